/* Settings that have one value per process and are applied to lower layers: the number of threads
 * of parallel loops, whether OpenMP runs them, and the instruction set limit. */
#include "os/cpu.h"
#include "os/cpu_level.h"
#include "os/parallel.h"
#include "process.h"
#include "reader.h"
#include "table.h"

/* Name of the instruction set limit, NULL for none. */
static const char *level_of(const tn_context *context)
{
    int64_t value = context->value[TN_SETTING_CPU_ISA_MASK];
    return value ? tni_setting_row_of(TN_SETTING_CPU_ISA_MASK)->words->words[value] : NULL;
}

static const tn_setting read_here[] = {TN_SETTING_CPU_THREADS, TN_SETTING_CPU_POOL,
                                       TN_SETTING_CPU_ISA_MASK, -1};
const tni_setting_reader tni_cpu_reader = {"cpu", read_here, TNI_READS_ALWAYS};

tn_status tni_settings_check(const tn_context *context, tn_error *err)
{
    return tni_cpu_limit_check(level_of(context), err);
}

tn_status tni_settings_force(const tn_context *context, bool threads, tni_pool **out_ended,
                             tn_error *err)
{
    tn_status status = tni_settings_check(context, err);
    if (!status && threads)
        status = tni_parallel_threads_set((int32_t)context->value[TN_SETTING_CPU_THREADS],
                                          out_ended, err);
    if (!status)
        status = tni_cpu_limit(level_of(context), err);
    if (!status)
        tni_parallel_openmp_set(context->value[TN_SETTING_CPU_POOL] == TN_POOL_OPENMP);
    return status;
}
