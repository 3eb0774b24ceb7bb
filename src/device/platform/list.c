/* A snapshot of every platform with its evidence, for reports. */
#include "report.h"

#include "base/alloc.h"

struct tn_platform_list {
    size_t count;
    tn_platform_report *reports;
    tni_platform_report *details;   /* storage of the reports' texts */
    tn_platform_evidence *evidence; /* TNI_EVIDENCE_MAX for each platform */
    tn_status choice_status;
    char choice[512];
};

void tn_platform_list_release(tn_platform_list *list)
{
    if (!list)
        return;
    tni_release(list->reports);
    tni_release(list->details);
    tni_release(list->evidence);
    tni_release(list);
}

/* Sorts by rank, then in order of arrival. */
static void sort(const tn_platform **platforms, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        const tn_platform *moving = platforms[i];
        int32_t rank = tni_platform_rank(moving);
        size_t at = i;
        for (; at > 0 && tni_platform_rank(platforms[at - 1]) > rank; at--)
            platforms[at] = platforms[at - 1];
        platforms[at] = moving;
    }
}

/* Adds to the reason of a ready platform why "best" does not choose it, and how to select it. */
static void add_why_not_best(const tn_platform *platform, tni_platform_report *to)
{
    char why[256];
    size_t used = strlen(to->reason);
    tni_platform_lacks_text(platform, why, sizeof why);
    if (why[0])
        snprintf(to->reason + used, sizeof to->reason - used,
                 "; not chosen as best: %s; select it by TENON_PLATFORM=%s or tn_platform_select",
                 why, platform->name);
}

static void fill_row(tn_platform_list *list, size_t index, const tn_platform *platform,
                     const tn_platform *current)
{
    tni_platform_report *detail = &list->details[index];
    tni_platform_examine(platform, detail);
    if (detail->verdict == TN_PLATFORM_READY && platform != current)
        add_why_not_best(platform, detail);
    for (size_t i = 0; i < detail->evidence_count; i++) {
        const tni_evidence *from = &detail->evidence[i];
        list->evidence[index * TNI_EVIDENCE_MAX + i] = (tn_platform_evidence){
            .struct_size = sizeof(tn_platform_evidence),
            .what = from->what,
            .found = from->found,
            .shows = from->shows,
            .holds = from->holds,
        };
    }
    const tni_offer *offer = atomic_load_explicit(&platform->served, memory_order_acquire);
    list->reports[index] = (tn_platform_report){
        .struct_size = sizeof(tn_platform_report),
        .platform = platform,
        .name = platform->name,
        .module = detail->module,
        .reason = detail->reason,
        .remedy = detail->remedy,
        .verdict = detail->verdict,
        .kind = platform->known->kind,
        .devices = offer ? offer->platform->devices : 0,
        .current = platform == current,
        .evidence_count = detail->evidence_count,
    };
}

/* "cpu: the first platform that is ready; also ready: acme; not chosen as best: toy: it has no
 * kernel for softmax". */
static void write_choice(tn_platform_list *list, tni_platforms *set, const tn_platform *current)
{
    tni_mutex_lock(&set->lock);
    const char *by = set->chosen_by;
    tni_mutex_unlock(&set->lock);
    size_t used = (size_t)snprintf(list->choice, sizeof list->choice, "%s: %s", current->name, by);
    const char *between = "; also ready: ";
    for (size_t i = 0; i < list->count && used < sizeof list->choice; i++) {
        const tn_platform_report *report = &list->reports[i];
        if (report->verdict != TN_PLATFORM_READY || report->current ||
            !tni_platform_is_eligible(report->platform))
            continue;
        used += (size_t)snprintf(list->choice + used, sizeof list->choice - used, "%s%s", between,
                                 report->name);
        between = ", ";
    }
    for (size_t i = 0; i < list->count && used < sizeof list->choice; i++) {
        const tn_platform_report *report = &list->reports[i];
        char why[256];
        tni_platform_lacks_text(report->platform, why, sizeof why);
        if (report->verdict == TN_PLATFORM_READY && !report->current && why[0])
            used += (size_t)snprintf(list->choice + used, sizeof list->choice - used,
                                     "; not chosen as best: %s: %s", report->name, why);
    }
}

static tn_platform_list *allocate_list(size_t count)
{
    tn_platform_list *list = tni_alloc_zeroed(1, sizeof *list);
    if (!list)
        return NULL;
    list->count = count;
    list->reports = tni_alloc_zeroed(count, sizeof *list->reports);
    list->details = tni_alloc_zeroed(count, sizeof *list->details);
    list->evidence = tni_alloc_zeroed(count * TNI_EVIDENCE_MAX, sizeof *list->evidence);
    if (!list->reports || !list->details || !list->evidence) {
        tn_platform_list_release(list);
        return NULL;
    }
    return list;
}

tn_status tni_platform_list_of(tni_platforms *set, tn_platform_list **out, tn_error *err)
{
    const tn_platform *current = NULL;
    tn_error why = {0};
    tn_status chosen = tni_platforms_current(set, &current, &why);
    if (chosen == TN_OUT_OF_MEMORY || chosen == TN_BUSY)
        return tn_fail(err, chosen, why.native_code, why.where, "%s", why.message);
    tni_platforms_weigh(set);
    size_t count = tni_platforms_count(set);
    const tn_platform **platforms = tni_alloc_zeroed(count, sizeof(const tn_platform *));
    tn_platform_list *list = platforms ? allocate_list(count) : NULL;
    if (list) {
        for (size_t i = 0; i < count; i++)
            platforms[i] = tni_platforms_at(set, i);
        sort(platforms, count);
        for (size_t i = 0; i < count; i++)
            fill_row(list, i, platforms[i], current);
        list->choice_status = chosen;
        if (chosen)
            tn_text_fit(list->choice, sizeof list->choice, why.message);
        else
            write_choice(list, set, current);
        *out = list;
    }
    tni_release((void *)platforms);
    return list ? TN_OK : tni_no_memory(err, "tn_platform_list_create", "the list");
}

tn_status tn_platform_list_create(tn_platform_list **out, tn_error *err)
{
    tni_platforms *set;
    if (!out)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, "tn_platform_list_create", "out is NULL");
    tn_status status = tni_platforms_process(&set, err);
    return status ? status : tni_platform_list_of(set, out, err);
}

size_t tn_platform_list_count(const tn_platform_list *list)
{
    return list ? list->count : 0;
}

const tn_platform_report *tn_platform_list_get(const tn_platform_list *list, size_t index)
{
    return list && index < list->count ? &list->reports[index] : NULL;
}

const tn_platform_evidence *tn_platform_list_evidence(const tn_platform_list *list, size_t index,
                                                      size_t evidence)
{
    const tn_platform_report *report = tn_platform_list_get(list, index);
    return report && evidence < report->evidence_count
               ? &list->evidence[index * TNI_EVIDENCE_MAX + evidence]
               : NULL;
}

const char *tn_platform_list_choice(const tn_platform_list *list)
{
    return list ? list->choice : "";
}

tn_status tn_platform_list_choice_status(const tn_platform_list *list)
{
    return list ? list->choice_status : TN_UNAVAILABLE;
}
