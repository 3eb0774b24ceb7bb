/* The queries that kernels get, and the hash of the context settings that are part of plan keys. */
#include "judge.h"

#include "policy.h"
#include "settings/context.h"
#include "settings/table.h"

/* Only settings that are part of plan keys can be queried: a kernel chosen by any other setting
 * would stay in the cache after that setting changed. */
static tn_status read_setting(const tn_query *query, const char *key, int64_t *out)
{
    const tni_asking *asking = query->self;
    tn_setting number = key ? tni_setting_find(key) : -1;
    for (const tn_setting *s = asking->class->settings; number >= 0 && *s >= 0; s++) {
        if (*s == number) {
            *out = tn_setting_resolved(asking->question->context, number);
            return TN_OK;
        }
    }
    return TN_NOT_FOUND;
}

void tni_query_make(const tni_asking *asking, int64_t library_version, tn_query *out)
{
    *out = (tn_query){.struct_size = sizeof *out,
                      .op = asking->shown,
                      .device = tni_device_described(asking->question->device),
                      .library_version = library_version,
                      .cpu_features = asking->cpu_features,
                      .threads = asking->threads,
                      .self = (void *)(uintptr_t)asking,
                      .setting = read_setting};
}

uint64_t tni_context_hash_make(const tn_context *context, const tni_op_class *class)
{
    uint64_t hash = (uint64_t) class->group + 1;
    for (const tn_setting *s = class->settings; *s >= 0; s++)
        hash = tni_hash_mix(hash, (uint64_t)tn_setting_resolved(context, *s));
    TNI_POLICIES_EACH (policy) {
        if (policy->key)
            hash = policy->key(hash, context, class);
    }
    hash += !hash;
    tni_context_note_set(context, class->group, hash);
    return hash;
}
