/* Checks the names in rule selectors against the existing kernels and libraries. */
#include "base/alloc.h"
#include "base/words.h"
#include "policy/backend_names/names.h"
#include "registry/registry.h"
#include "settings/library.h"
#include "tenon/module/language.h"
#include "tenon/platform.h"

static const char where[] = "tn_selector_check";

/* Matches for any op: a library is known even if it has no kernel for the selector's op. */
static bool matches_kernel(const tni_selector *selector)
{
    const tni_selector wide = {.kind = selector->kind, .op = "", .name = selector->name};
    const tni_kernel *kernel;
    for (size_t i = 0; (kernel = tni_kernel_at(i)); i++) {
        if (tni_selector_matches(&wide, &kernel->names))
            return true;
    }
    return false;
}

static bool is_language(const char *name)
{
    tni_registry *registry;
    const tni_record *record;
    if (tni_registry_process(&registry, NULL))
        return false;
    for (size_t i = 0; (record = tni_registry_record(registry, i)); i++) {
        const tn_language_row *const *row =
            tni_record_counts(record) ? record->table->languages : NULL;
        for (; row && *row; row++) {
            if (strcmp((*row)->name, name) == 0)
                return true;
        }
    }
    return false;
}

/* Searches kernels and libraries, the names that users write by hand. */
static const char *nearest_to(const char *name)
{
    const tni_kernel *kernel;
    const tn_library *library;
    size_t kernels = 0, libraries = 0;
    const char *nearest = NULL;
    while (tni_kernel_at(kernels))
        kernels++;
    while (tn_library_at(libraries))
        libraries++;
    const char **names = tni_alloc_zeroed(kernels + libraries + 1, sizeof *names);
    if (!names)
        return NULL;
    size_t count = 0;
    for (size_t i = 0; i < libraries && (library = tn_library_at(i)); i++)
        names[count++] = library->name;
    for (size_t i = 0; i < kernels && (kernel = tni_kernel_at(i)); i++)
        names[count++] = kernel->names.kernel;
    nearest = tni_words_nearest(name, names, count);
    tni_release(names);
    return nearest;
}

static tn_status check_any(const char *name, tn_error *err)
{
    const tn_library *library;
    const tn_platform *platform;
    char hint[TNI_HINT];
    if (!tn_library_get(name, &library, NULL) || !tn_platform_get(name, &platform, NULL) ||
        tni_backend_is_known(name) || is_language(name))
        return TN_OK;
    return tn_fail(err, TN_NOT_FOUND, 0, where,
                   "no kernel, library, backend, platform or language is named \"%.80s\"%s", name,
                   tni_words_hint(nearest_to(name), hint));
}

tn_status tn_selector_check(const char *selector, tn_error *err)
{
    char room[TNI_SELECTOR_MAX];
    tni_selector parsed;
    const tn_library *library;
    const tni_kernel *kernel;
    if (!selector)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "the selector is NULL");
    tn_status status = tni_selector_parse(selector, room, &parsed, err);
    if (status || parsed.open || matches_kernel(&parsed))
        return status;
    switch (parsed.kind) {
    case TNI_SELECT_KERNEL: return tni_kernel_find(parsed.name, &kernel, err);
    case TNI_SELECT_LIBRARY: return tn_library_get(parsed.name, &library, err);
    case TNI_SELECT_ANY: return check_any(parsed.name, err);
    default: return TN_OK;
    }
}
