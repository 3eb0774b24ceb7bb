/* Who reads which settings: told by the lists that readers go by, never typed beside a row. */
#ifndef TNI_SETTINGS_READER_H
#define TNI_SETTINGS_READER_H

#include "tenon/setting.h"

/* Someone who reads; `name` is what reports show. */
typedef struct tni_setting_reader {
    const char *name;
    const tn_setting *settings; /* ended by -1 */
} tni_setting_reader;

/* All of them, ended by NULL: constant, so that who reads what is known before anyone has. The
 * highest floor has the list, as it knows those of all floors. */
extern const tni_setting_reader *const tni_setting_readers[];

/* Threads of loops and levels of instructions. */
extern const tni_setting_reader tni_cpu_reader;

/* Whether a library may be taken at all: tn_library_state.enabled. */
extern const tni_setting_reader tni_library_reader;

#endif
