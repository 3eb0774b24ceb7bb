/* Which component reads which settings, from the lists that the components use themselves. */
#ifndef TNI_SETTINGS_READER_H
#define TNI_SETTINGS_READER_H

#include "tenon/setting.h"

/* A component that reads settings; `name` is shown in reports. */
typedef struct tni_setting_reader {
    const char *name;
    const tn_setting *settings; /* ended by -1 */
} tni_setting_reader;

/* All readers, ended by NULL. Constant, so that it is known before the first read. Defined in the
 * highest layer, which knows the readers of all layers. */
extern const tni_setting_reader *const tni_setting_readers[];

/* Threads of parallel loops and the instruction set limit. */
extern const tni_setting_reader tni_cpu_reader;

/* Whether a library may be used at all: tn_library_state.enabled. */
extern const tni_setting_reader tni_library_reader;

#endif
