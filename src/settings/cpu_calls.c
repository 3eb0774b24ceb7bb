/* Public calls about threads and instruction sets: they read the settings first, and change them. */
#include "os/cpu.h"
#include "os/cpu_level.h"
#include "os/parallel.h"
#include "process.h"
#include "table.h"

tn_status tn_parallel_threads_set(int32_t threads, tn_error *err)
{
    if (threads == 0)
        return tn_settings_reset("cpu.threads", err);
    const tn_change change = tn_with_cpu_threads(threads);
    return tn_settings_change(&change, 1, err);
}

int32_t tn_parallel_threads(void)
{
    tni_settings_load();
    return tni_parallel_threads();
}

void tn_parallel_for(int64_t count, tn_task *task, void *user)
{
    tni_settings_load();
    tni_parallel_for(count, task, user);
}

const char *tn_cpu_capability(void)
{
    tni_settings_load();
    return tni_cpu_capability();
}

const char *tn_cpu_level(void)
{
    tni_settings_load();
    return tni_cpu_level();
}

size_t tn_cpu_features(char *out, size_t size)
{
    tni_settings_load();
    return tni_cpu_features_write(tni_cpu_reported(), out, out ? size : 0);
}

/* Returns the setting's number of a level, -1 if unknown. The limit accepts several spellings of a
 * level, of which the setting has one. */
static int64_t level_number(const char *level)
{
    const tni_word_list *words = tni_setting_row_of(TN_SETTING_CPU_ISA_MASK)->words;
    const char *word = tni_cpu_limit_word(level);
    for (size_t i = 1; word && i < words->settable; i++) {
        if (strcmp(words->words[i], word) == 0)
            return (int64_t)i;
    }
    return -1;
}

tn_status tn_cpu_limit(const char *level, tn_error *err)
{
    if (!level)
        return tn_settings_reset("cpu.isa_mask", err);
    tn_status status = tni_cpu_limit_check(level, err);
    if (status)
        return status;
    const tn_change change = tn_with_cpu_isa_mask((int32_t)level_number(level));
    return tn_settings_change(&change, 1, err);
}
