/* The operators that platforms support, according to the kernels that modules have for them, and
 * the resulting ranking. */
#include "platforms.h"

#include "base/op_words.h"
#include "tenon/module/kernel.h"

TN_STATIC_ASSERT(TN_OP_KIND_MAX <= 64, "a set of operators is 64 bits");

/* Most programs compute with f32: a kernel of other dtypes alone does not serve them. */
static bool computes_with_f32(const tn_kernel_row *row)
{
    const tn_dtype *dtype = row->dtypes;
    while (*dtype && *dtype != TN_F32)
        dtype++;
    return *dtype == TN_F32;
}

/* The operators that modules have kernels of f32 for on the platform, one bit per TN_OP_.... Operators
 * that this version does not know do not count. */
static uint64_t count_operators(tni_registry *registry, const char *platform)
{
    uint64_t operators = 0;
    const tni_record *record;
    for (size_t i = 0; (record = tni_registry_record(registry, i)) != NULL; i++) {
        const tn_kernel_row *const *rows =
            tni_record_counts(record) ? record->table->kernels : NULL;
        for (; rows && *rows; rows++) {
            if (tni_op_word((*rows)->op) && strcmp((*rows)->platform, platform) == 0 &&
                computes_with_f32(*rows))
                operators |= UINT64_C(1) << (*rows)->op;
        }
    }
    return operators;
}

void tni_platforms_weigh(tni_platforms *set)
{
    const uint64_t needed = count_operators(set->registry, tni_known_get(TN_PLATFORM_CPU)->word);
    tn_platform *platform;
    for (size_t i = 0; (platform = tni_platforms_at(set, i)) != NULL; i++) {
        const tni_offer *offer = atomic_load_explicit(&platform->served, memory_order_acquire);
        uint64_t lacks = 0;
        if (offer && !tni_record_is_own(offer->record))
            lacks = needed & ~count_operators(set->registry, platform->name);
        atomic_store_explicit(&platform->lacks, lacks, memory_order_release);
    }
}

static uint64_t operators_lacked(const tn_platform *platform)
{
    return atomic_load_explicit(&platform->lacks, memory_order_acquire);
}

static bool stands_in(const tn_platform *platform)
{
    const tn_platform_row *row = tni_platform_row_of(platform);
    return row && row->flags & TN_PLATFORM_STAND_IN;
}

bool tni_platform_is_eligible(const tn_platform *platform)
{
    return !stands_in(platform) && !operators_lacked(platform);
}

int32_t tni_platform_rank(const tn_platform *platform)
{
    return tni_known_rank(platform->known->kind) + (stands_in(platform) ? 2 * TN_PLATFORM_KIND_COUNT
                                                    : operators_lacked(platform)
                                                        ? TN_PLATFORM_KIND_COUNT
                                                        : 0);
}

void tni_platform_lacks_text(const tn_platform *platform, char *out, size_t size)
{
    const uint64_t lacks = stands_in(platform) ? 0 : operators_lacked(platform);
    char text[256] = "";
    size_t used = 0;
    for (size_t op = 1; op < TN_OP_KIND_MAX && used < sizeof text; op++) {
        if (lacks >> op & 1)
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%s",
                                     used ? ", " : "it has no f32 kernel for ",
                                     tni_op_word((int32_t)op));
    }
    tn_text_fit(out, size, text);
}
