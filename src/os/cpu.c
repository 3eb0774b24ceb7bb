#include "cpu_detect.h"

#include "base/epoch.h"
#include "thread.h"

#include <stdatomic.h>

/* Bit of a stamp that no feature uses. */
#define MASKED (UINT64_C(1) << 63)
TN_STATIC_ASSERT(TN_CPU_FEATURE_COUNT <= 63, "the features and one more bit must fit in one word");

/* Each set of facts is written once, under its own tni_once, and does not change after `current`
 * points to it. */
static tni_cpu_facts at_first, with_amx;
static const tni_cpu_facts *_Atomic current;
static _Atomic uint64_t allowed = UINT64_MAX;

static void examine_cpu(bool ask_amx, tni_cpu_facts *out)
{
    tni_cpu_x86 x86;
    tni_cpu_arm arm;
    if (tni_cpu_x86_read(&x86)) {
        if (ask_amx)
            x86.amx = tni_cpu_x86_request_amx();
        tni_cpu_x86_judge(&x86, out);
    } else if (tni_cpu_arm_read(&arm)) {
        tni_cpu_arm_judge(&arm, out);
    }
    atomic_store_explicit(&current, out, memory_order_release);
}

static void examine_first(void)
{
    examine_cpu(false, &at_first);
}

static void examine_with_amx(void)
{
    examine_cpu(true, &with_amx);
    tni_epoch_next();
}

static const tni_cpu_facts *cpu_facts(void)
{
    static tni_once once = TNI_ONCE_INIT;
    const tni_cpu_facts *known = atomic_load_explicit(&current, memory_order_acquire);
    if (known)
        return known;
    tni_once_run(&once, examine_first);
    return atomic_load_explicit(&current, memory_order_acquire);
}

bool tni_cpu_amx_request(void)
{
    static tni_once once = TNI_ONCE_INIT;
    cpu_facts();
    tni_once_run(&once, examine_with_amx);
    return (tni_cpu_detected() & TN_CPU_BIT(AMX_TILE)) != 0;
}

uint64_t tni_cpu_detected(void)
{
    return cpu_facts()->usable;
}

static bool amx_offered;

static void detect_amx(void)
{
    amx_offered = tni_cpu_x86_offers_amx();
}

uint64_t tni_cpu_possible(void)
{
    static tni_once once = TNI_ONCE_INIT;
    const tni_cpu_facts *known = cpu_facts();
    if (known->possible == known->usable)
        return known->usable;
    tni_once_run(&once, detect_amx);
    return amx_offered ? known->possible : known->usable;
}

uint64_t tni_cpu_features(void)
{
    return cpu_facts()->usable & tni_cpu_mask();
}

void tni_cpu_mask_set(uint64_t allow)
{
    atomic_store_explicit(&allowed, allow, memory_order_relaxed);
    tni_epoch_next();
}

uint64_t tni_cpu_mask(void)
{
    return atomic_load_explicit(&allowed, memory_order_relaxed);
}

bool tni_cpu_is_masked(void)
{
    uint64_t mask = tni_cpu_mask();
    return mask != UINT64_MAX && (tni_cpu_possible() & ~mask) != 0;
}

uint64_t tni_cpu_stamp(void)
{
    return tni_cpu_features() | (tni_cpu_is_masked() ? MASKED : 0);
}

const char *tni_cpu_why_not(int feature_index)
{
    bool known = feature_index >= 0 && feature_index < TN_CPU_FEATURE_COUNT;
    return known ? cpu_facts()->why_not[feature_index] : NULL;
}

const tni_isa_row *tni_isa_choose(const tni_isa_row *rows, size_t count, uint64_t features)
{
    const tni_isa_row *row = rows;
    while (row < rows + count - 1 && (row->needs & ~features))
        row++;
    return row;
}

const tni_isa_row *tni_isa_use(tni_isa_table *table, uint64_t features)
{
    const tni_isa_row *row = tni_isa_choose(table->rows, table->count, features);
    atomic_store_explicit(&table->chosen, row, memory_order_relaxed);
    return row;
}

const tni_isa_row *tni_isa_best(tni_isa_table *table)
{
    const tni_isa_row *row = atomic_load_explicit(&table->chosen, memory_order_relaxed);
    return row ? row : tni_isa_use(table, tni_cpu_features());
}
