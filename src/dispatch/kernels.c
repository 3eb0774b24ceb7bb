/* The list of kernels, made from the registry. */
#include "kernels.h"

#include "base/alloc.h"
#include "base/epoch.h"
#include "base/words.h"
#include "op/op.h"
#include "os/fork.h"
#include "os/thread.h"
#include "policy.h"
#include "registry/registry.h"
#include "settings/library.h"

#include <stdatomic.h>

static const char where[] = "kernels";

/* A platform's kernels of one op. */
typedef struct group {
    const char *platform;
    int32_t op;
    const tni_kernel **kernels; /* NULL-terminated */
    int64_t alignment;          /* the largest that any of them distinguishes */
} group;

/* Immutable once published. Earlier tables are kept, because decisions may still read them. */
typedef struct table {
    struct table *before;
    uint64_t generation;
    size_t count;
    size_t group_count;
    const tni_kernel **kernels; /* all, in the order of their modules */
    const tni_kernel **grouped; /* the groups one after another, each NULL-terminated */
    group *groups;
} table;

static table *_Atomic current;
_Atomic uint16_t tni_kernels_alignments[TN_OP_KIND_MAX];
static tni_fork_lock lock = {TNI_FORK_LOCK_INIT}; /* held while making the next table */
static tni_once watched = TNI_ONCE_INIT;
static _Atomic uint64_t invalidated;

/* Libraries first: their lock is taken while this lock is held. */
static void watch_forks(void)
{
    tni_libraries_watch_forks();
    tni_fork_lock_watch(&lock);
}

uint64_t tni_dispatch_generation(void)
{
    return tn_module_generation() +
           (atomic_load_explicit(&invalidated, memory_order_acquire) << 32);
}

void tni_dispatch_invalidate(void)
{
    atomic_fetch_add(&invalidated, 1);
    tni_epoch_next();
}

static bool has_kernels(const tni_record *record)
{
    return tni_record_counts(record) && record->table->kernels;
}

static const tni_kernel *find_row(const table *in, const tn_kernel_row *row,
                                  const tni_record *record)
{
    for (size_t i = 0; in && i < in->count; i++) {
        if (in->kernels[i]->row == row && in->kernels[i]->record == record)
            return in->kernels[i];
    }
    return NULL;
}

static const tni_kernel *find_name(const table *in, const char *name)
{
    for (size_t i = 0; i < in->count; i++) {
        if (strcmp(in->kernels[i]->row->name, name) == 0)
            return in->kernels[i];
    }
    return NULL;
}

static const char *other_name(const tn_library *library)
{
    const char *other = NULL;
    tni_libraries_lock();
    const tni_library_offer *offer = library ? tni_library_served(library) : NULL;
    if (offer)
        other = offer->row->other;
    tni_libraries_unlock();
    return other ? other : "";
}

static tni_kernel *make_kernel(const tn_kernel_row *row, const tni_record *record)
{
    tni_kernel *kernel = tni_alloc_zeroed(1, sizeof *kernel);
    if (!kernel)
        return NULL;
    kernel->row = row;
    kernel->record = record;
    if (row->library)
        (void)tn_library_get(row->library, &kernel->library, NULL);
    if (kernel->library)
        kernel->talker = tni_library_talker(kernel->library, record);
    kernel->names = (tni_candidate){.op = tni_op_class_of(row->op)->word,
                                    .kernel = row->name,
                                    .library = row->library ? row->library : "",
                                    .backend = row->backend ? row->backend : "",
                                    .platform = row->platform,
                                    .language = "",
                                    .library_other = other_name(kernel->library)};
    TNI_POLICIES_EACH (policy) {
        if (policy->name_row)
            policy->name_row(row, &kernel->names);
    }
    kernel->alignment = TN_HAS(row, tn_kernel_row, alignment) ? row->alignment + !row->alignment
                                                              : TN_OP_ALIGNMENT_MAX;
    kernel->own = tni_record_is_own(record);
    kernel->reference = record->origin == TNI_ORIGIN_BUILT_IN && strcmp(record->name, "ref") == 0;
    return kernel;
}

/* Rows of operators that this version does not know are ignored. */
static bool add_module(table *to, const table *before, const tni_record *record, size_t room)
{
    const tn_kernel_row *const *rows = record->table->kernels;
    for (size_t i = 0; rows[i] && to->count < room; i++) {
        if (!tni_op_class_of(rows[i]->op) || find_name(to, rows[i]->name))
            continue;
        const tni_kernel *kernel = find_row(before, rows[i], record);
        if (!kernel)
            kernel = make_kernel(rows[i], record);
        if (!kernel)
            return false;
        to->kernels[to->count++] = kernel;
    }
    return true;
}

static size_t count_rows(tni_registry *registry)
{
    const tni_record *record;
    size_t count = 0;
    for (size_t i = 0; (record = tni_registry_record(registry, i)); i++)
        count += has_kernels(record) ? (size_t)tni_rows_count(record->table->kernels) : 0;
    return count;
}

static bool is_first_of_group(const table *t, size_t index)
{
    for (size_t i = 0; i < index; i++) {
        if (t->kernels[i]->row->op == t->kernels[index]->row->op &&
            strcmp(t->kernels[i]->row->platform, t->kernels[index]->row->platform) == 0)
            return false;
    }
    return true;
}

/* Fills in the kernels of every group, one group after another; the arrays have room for the worst
 * case. */
static void group_up(table *t)
{
    const tni_kernel **next = t->grouped;
    for (size_t i = 0; i < t->count; i++) {
        const tn_kernel_row *first = t->kernels[i]->row;
        if (!is_first_of_group(t, i))
            continue;
        group *made = &t->groups[t->group_count++];
        *made = (group){first->platform, first->op, next, 1};
        for (size_t j = i; j < t->count; j++) {
            const tni_kernel *kernel = t->kernels[j];
            if (kernel->row->op != first->op || strcmp(kernel->row->platform, first->platform) != 0)
                continue;
            *next++ = kernel;
            if (kernel->alignment > made->alignment)
                made->alignment = kernel->alignment;
        }
        *next++ = NULL;
    }
}

/* Must be called with the lock held, before the table is published. */
static void publish_alignments(const table *t)
{
    int64_t host[TN_OP_KIND_MAX] = {0}, most[TN_OP_KIND_MAX] = {0};
    for (size_t i = 0; i < t->group_count; i++) {
        const group *g = &t->groups[i];
        if (strcmp(g->platform, "cpu") == 0)
            host[g->op] = g->alignment;
        if (g->alignment > most[g->op])
            most[g->op] = g->alignment;
    }
    for (int32_t i = 0; i < TN_OP_KIND_MAX; i++)
        atomic_store_explicit(&tni_kernels_alignments[i], (uint16_t)(host[i] | most[i] << 8),
                              memory_order_relaxed);
}

static void destroy_table(table *t)
{
    if (!t)
        return;
    tni_release(t->kernels);
    tni_release(t->grouped);
    tni_release(t->groups);
    tni_release(t);
}

/* Must be called with the lock held. Kernels that were created are kept even if making the table
 * fails. */
static table *make_table(tni_registry *registry, table *before, uint64_t generation)
{
    const tni_record *record;
    size_t rows = count_rows(registry);
    table *made = tni_alloc_zeroed(1, sizeof *made);
    if (!made)
        return NULL;
    made->before = before;
    made->generation = generation;
    made->kernels = tni_alloc_zeroed(rows + 1, sizeof *made->kernels);
    made->grouped = tni_alloc_zeroed(2 * rows + 1, sizeof *made->grouped);
    made->groups = tni_alloc_zeroed(rows + 1, sizeof *made->groups);
    bool whole = made->kernels && made->grouped && made->groups;
    for (size_t i = 0; whole && (record = tni_registry_record(registry, i)); i++)
        whole = !has_kernels(record) || add_module(made, before, record, rows);
    if (!whole) {
        for (size_t i = 0; made->kernels && i < made->count; i++) {
            if (!find_row(before, made->kernels[i]->row, made->kernels[i]->record))
                tni_release((void *)(uintptr_t)made->kernels[i]);
        }
        destroy_table(made);
        return NULL;
    }
    group_up(made);
    return made;
}

/* On failure returns NULL and sets *out_status. */
static const table *current_table(tn_status *out_status, tn_error *err)
{
    tni_registry *registry;
    *out_status = tni_registry_process(&registry, err);
    if (!*out_status)
        *out_status = tni_registry_discover(registry, err);
    if (*out_status)
        return NULL;
    table *t = atomic_load_explicit(&current, memory_order_acquire);
    if (!t || t->generation != tni_registry_generation(registry)) {
        tni_once_run(&watched, watch_forks);
        tni_fork_lock_acquire(&lock);
        uint64_t generation = tni_registry_generation(registry);
        t = atomic_load_explicit(&current, memory_order_acquire);
        if (!t || t->generation != generation) {
            t = make_table(registry, t, generation);
            if (t) {
                publish_alignments(t);
                atomic_store_explicit(&current, t, memory_order_release);
            }
        }
        tni_fork_lock_release(&lock);
    }
    if (!t)
        *out_status = tni_no_memory(err, where, "the list of kernels");
    return t;
}

/* Returns NULL if none exists. */
static const group *find_group(const table *in, const char *platform, int32_t op)
{
    for (size_t i = 0; i < in->group_count; i++) {
        if (in->groups[i].op == op && strcmp(in->groups[i].platform, platform) == 0)
            return &in->groups[i];
    }
    return NULL;
}

tn_status tni_kernels_of(const char *platform, int32_t op, const tni_kernel *const **out,
                         tn_error *err)
{
    static const tni_kernel *const none[] = {NULL};
    tn_status status;
    const table *t = current_table(&status, err);
    if (!t)
        return status;
    const group *found = find_group(t, platform, op);
    *out = found ? found->kernels : none;
    return TN_OK;
}

int64_t tni_kernels_alignment(const char *platform, int32_t op)
{
    tn_status status;
    const table *t = current_table(&status, NULL);
    const group *found = t ? find_group(t, platform, op) : NULL;
    return found ? found->alignment : TN_OP_ALIGNMENT_MAX;
}

static tn_status no_kernel(const table *t, const char *name, tn_error *err)
{
    const char *nearest = NULL;
    char hint[TNI_HINT];
    const char **names = tni_alloc_zeroed(t->count + 1, sizeof *names);
    for (size_t i = 0; names && i < t->count; i++)
        names[i] = t->kernels[i]->row->name;
    if (names)
        nearest = tni_words_nearest(name, names, t->count);
    tn_status status =
        tn_fail(err, TN_NOT_FOUND, 0, where,
                "no kernel \"%.96s\"; `tenon explain PROBLEM` lists the kernels of a "
                "problem%s",
                name, tni_words_hint(nearest, hint));
    tni_release(names);
    return status;
}

tn_status tni_kernel_find(const char *name, const tni_kernel **out, tn_error *err)
{
    tn_status status;
    const table *t = current_table(&status, err);
    if (!t)
        return status;
    const tni_kernel *found = find_name(t, name);
    if (!found)
        return no_kernel(t, name, err);
    *out = found;
    return TN_OK;
}

const tni_kernel *tni_kernel_at(size_t index)
{
    tn_status status;
    const table *t = current_table(&status, NULL);
    return t && index < t->count ? t->kernels[index] : NULL;
}

tn_status tni_kernel_reference(int32_t op, const tni_kernel **out, tn_error *err)
{
    const tni_kernel *const *list = NULL;
    tn_status status = tni_kernels_of("cpu", op, &list, err);
    if (status || !list)
        return status;
    while (*list && !(*list)->reference)
        list++;
    if (!*list)
        return tn_fail(err, TN_UNSUPPORTED, 0, where, "%s has no reference kernel",
                       tni_op_class_of(op)->word);
    *out = *list;
    return TN_OK;
}
