/* The current platform: resolved once, from the request and from what is ready. */
#include "platforms.h"

#include "base/log.h"
#include "base/words.h"
#include "os/env.h"
#include "report.h"

enum { MOST_NAMES = 256 };

static const char variable[] = "TENON_PLATFORM";

static size_t names_of(tni_platforms *set, const char **names)
{
    size_t count = 0;
    tni_mutex_lock(&set->lock);
    for (; count < set->platforms.count && count < MOST_NAMES; count++)
        names[count] = ((const tn_platform *)set->platforms.items[count])->name;
    tni_mutex_unlock(&set->lock);
    return count;
}

static tn_status no_such(tni_platforms *set, const char *name, tn_error *err)
{
    const char *names[MOST_NAMES];
    char there[256], hint[TNI_HINT];
    size_t count = names_of(set, names);
    tni_words_join(names, count, there, sizeof there);
    const char *nearest = tni_words_nearest(name, names, count);
    return tn_fail(err, TN_NOT_FOUND, 0, "tn_platform_get",
                   "unknown platform \"%.60s\"; platforms: %s%s", name, there,
                   tni_words_hint(nearest, hint));
}

tn_status tni_platforms_find(tni_platforms *set, const char *name, tn_platform **out, tn_error *err)
{
    for (size_t i = 0;; i++) {
        tn_platform *platform = tni_platforms_at(set, i);
        if (!platform)
            return no_such(set, name, err);
        if (strcmp(platform->name, name) == 0) {
            *out = platform;
            return TN_OK;
        }
    }
}

/* A platform requested by name must be ready; there is no fallback. */
static tn_status find_requested(tni_platforms *set, const char *name, const char *by,
                                const tn_platform **out, tn_error *err)
{
    tn_platform *platform = NULL;
    tn_error why;
    tn_status status = tni_platforms_find(set, name, &platform, &why);
    if (!status && !tni_platform_is_ready(platform))
        status = tni_platform_unready(platform, by, &why);
    if (status)
        return tn_fail(err, status, 0, by, "%s%s%s", by == variable ? variable : "",
                       by == variable ? ": " : "", why.message);
    *out = platform;
    return TN_OK;
}

static const tn_platform *first_ready(tni_platforms *set)
{
    const tn_platform *best = NULL;
    for (size_t i = 0;; i++) {
        const tn_platform *platform = tni_platforms_at(set, i);
        if (!platform)
            return best;
        bool counts = tni_platform_is_ready(platform) && tni_platform_is_eligible(platform);
        if (counts && (!best || tni_platform_rank(platform) < tni_platform_rank(best)))
            best = platform;
    }
}

/* Determines the current platform without storing it. */
static tn_status resolve(tni_platforms *set, const tn_platform **out, const char **out_by,
                         tn_error *err)
{
    const char *request = tni_env_get(variable);
    if (request && request[0]) {
        *out_by = "selected by TENON_PLATFORM";
        return find_requested(set, request, variable, out, err);
    }
    tni_platforms_weigh(set);
    const tn_platform *platform = first_ready(set);
    if (!platform)
        return tn_fail(err, TN_UNAVAILABLE, 0, "tn_platform_current",
                       "no platform is ready; `tenon devices --explain` shows the reasons");
    *out = platform;
    *out_by = "the first platform that is ready";
    return TN_OK;
}

/* Stores `platform`, unless one is stored already and `replace` is false; returns the stored one.
 * `by` must be static text. */
static const tn_platform *store_choice(tni_platforms *set, const tn_platform *platform,
                                       const char *by, bool replace)
{
    tni_mutex_lock(&set->lock);
    bool changes = replace || !set->current;
    if (changes) {
        set->current = platform;
        set->chosen_by = by;
    }
    platform = set->current;
    tni_mutex_unlock(&set->lock);
    if (changes && platform)
        tni_log(TN_LOG_INFO, "the current platform is %s: %s", platform->name, by);
    return platform;
}

tn_status tni_platforms_current(tni_platforms *set, const tn_platform **out, tn_error *err)
{
    const char *by = "";
    tni_mutex_lock(&set->lock);
    const tn_platform *platform = set->current;
    tni_mutex_unlock(&set->lock);
    if (!platform) {
        tn_status status = tni_platforms_sync(set, err);
        if (!status)
            status = resolve(set, &platform, &by, err);
        if (status)
            return status;
        platform = store_choice(set, platform, by, false);
    }
    *out = platform;
    return TN_OK;
}

tn_status tni_platforms_select(tni_platforms *set, const char *name, tn_error *err)
{
    const tn_platform *platform = NULL;
    tn_status status = name ? tni_platforms_sync(set, err) : TN_OK;
    if (!status && name)
        status = find_requested(set, name, "tn_platform_select", &platform, err);
    if (!status)
        store_choice(set, platform, platform ? "selected by the program" : "", true);
    return status;
}

tn_status tn_platform_current(const tn_platform **out, tn_error *err)
{
    tni_platforms *set;
    if (!out)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, "tn_platform_current", "out is NULL");
    tn_status status = tni_platforms_process(&set, err);
    return status ? status : tni_platforms_current(set, out, err);
}

tn_status tn_platform_select(const char *name, tn_error *err)
{
    tni_platforms *set;
    tn_status status = tni_platforms_process(&set, err);
    return status ? status : tni_platforms_select(set, name, err);
}

tn_status tn_platform_get(const char *name, const tn_platform **out, tn_error *err)
{
    tni_platforms *set;
    tn_platform *platform = NULL;
    if (!name || !out)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, "tn_platform_get", "%s is NULL",
                       name ? "out" : "name");
    tn_status status = tni_platforms_process(&set, err);
    if (!status)
        status = tni_platforms_sync(set, err);
    if (!status)
        status = tni_platforms_find(set, name, &platform, err);
    if (!status)
        *out = platform;
    return status;
}
