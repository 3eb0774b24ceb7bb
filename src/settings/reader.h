/* Which component reads which settings, from the lists that the components use themselves. */
#ifndef TNI_SETTINGS_READER_H
#define TNI_SETTINGS_READER_H

#include "tenon/setting.h"

/* What a reader reads settings for: always something, any kernel, or the kernels of a group of
 * operators, by the group's number (TNI_OPS_...). */
enum { TNI_READS_ALWAYS = -2, TNI_READS_FOR_KERNELS = -1 };

/* A component that reads settings; `name` is shown in reports. */
typedef struct tni_setting_reader {
    const char *name;
    const tn_setting *settings; /* ended by -1 */
    int32_t reads;              /* TNI_READS_... or a group */
} tni_setting_reader;

/* The readers of a setting, as tn_setting_reader numbers them; NULL past the end. */
const tni_setting_reader *tni_setting_reader_at(tn_setting setting, size_t index);

/* Settings that dispatch follows whatever kernels are loaded, ended by -1. */
extern const tn_setting tni_settings_of_dispatch[];

/* Settings that kernels of a library query themselves (tn_query.setting), or that limit their plans;
 * ended by a row without a library. */
typedef struct tni_kernel_setting {
    tn_setting setting;
    const char *library;
} tni_kernel_setting;
extern const tni_kernel_setting tni_kernel_settings[];

/* All readers, ended by NULL. Constant, so that it is known before the first read. Defined in the
 * highest layer, which knows the readers of all layers. */
extern const tni_setting_reader *const tni_setting_readers[];

/* Threads of parallel loops and the instruction set limit. */
extern const tni_setting_reader tni_cpu_reader;

/* Whether a library may be used at all: tn_library_state.enabled. */
extern const tni_setting_reader tni_library_reader;

#endif
