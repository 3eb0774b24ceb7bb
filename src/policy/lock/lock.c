/* The active lock: loaded once, consulted for every choice. */
#include "lock.h"

#include "base/alloc.h"
#include "base/log.h"
#include "dispatch/judge.h"
#include "dispatch/policy.h"
#include "dispatch/thread_state.h"
#include "os/env.h"
#include "os/file.h"
#include "os/fork.h"
#include "os/thread.h"

#include <stdatomic.h>
#include <stdlib.h>

static const char variable[] = "TENON_LOCK";

/* A selection, found by the key words of its problem regardless of operand alignments. */
typedef struct entry {
    struct entry *next;
    const tni_selection *selection;
    const tni_setup *setup;
    tni_alignments alignments; /* for which it was written */
    uint64_t hash;
    size_t key_count;
    uint64_t key[];
} entry;

/* A loaded lock; immutable. */
typedef struct loaded {
    char *path;
    tn_error failure; /* status TN_OK if it was read; otherwise the reason why nothing may be
                       * chosen */
    tni_selections selections;
    size_t bucket_count;
    entry **buckets;
} loaded;

enum { NOTHING, LOCKED, UNREAD }; /* UNREAD: the environment variable was not read yet */
static _Atomic int32_t state = UNREAD;
static tni_fork_lock lock = {TNI_FORK_LOCK_INIT};
static loaded *current; /* under the lock */

static uint64_t hash_of(const uint64_t *key, size_t count)
{
    uint64_t hash = count;
    for (size_t i = 0; i < count; i++)
        hash = tni_hash_mix(hash, key[i]);
    return hash;
}

static void release_lock(loaded *gone)
{
    if (!gone)
        return;
    for (size_t i = 0; gone->buckets && i < gone->bucket_count; i++) {
        while (gone->buckets[i]) {
            entry *e = gone->buckets[i];
            gone->buckets[i] = e->next;
            tni_release(e);
        }
    }
    tni_release(gone->buckets);
    tni_selections_release(&gone->selections);
    tni_release(gone->path);
    tni_release(gone);
}

/* Loading. */

static int by_problem(const void *a, const void *b)
{
    const tni_selection *x = *(const tni_selection *const *)a,
                        *y = *(const tni_selection *const *)b;
    int order = strcmp(x->problem, y->problem);
    if (order == 0)
        order = strcmp(x->device, y->device);
    return order != 0 ? order : (x->line > y->line) - (x->line < y->line);
}

static tn_status check_single(const char *path, const tni_selections *read, tn_error *err)
{
    const tni_selection **sorted = tni_alloc_zeroed(read->count, sizeof *sorted);
    char place[TNI_FORM_PLACE];
    tn_status status = TN_OK;
    if (!sorted)
        return tni_no_memory(err, "lock", path);
    for (size_t i = 0; i < read->count; i++)
        sorted[i] = &read->selections[i];
    qsort(sorted, read->count, sizeof *sorted, by_problem);
    for (size_t i = 1; i < read->count && !status; i++) {
        const tni_selection *a = sorted[i - 1], *b = sorted[i];
        if (strcmp(a->problem, b->problem) == 0 && strcmp(a->device, b->device) == 0)
            status = tn_fail(err, TN_CORRUPT, 0, "lock",
                             "%s: expected only %.96s, of line %u, for %.120s, got %.96s",
                             tni_form_place(path, b->line, place), a->kernel, (unsigned)a->line,
                             b->problem, b->kernel);
    }
    tni_release(sorted);
    return status;
}

tn_status tni_lock_read(const char *path, tni_selections *out, tn_error *err)
{
    tni_selections read = {0};
    tn_status status = tni_selections_read(path, &read, err);
    if (!status)
        status = check_single(path, &read, err);
    if (status)
        tni_selections_release(&read);
    else
        *out = read;
    return status;
}

/* Two texts can be the same problem if they differ only in numbers that are not part of the key. */
static tn_status check_other(const loaded *in, const entry *made, tn_error *err)
{
    char place[TNI_FORM_PLACE];
    const entry *e = in->buckets[made->hash % in->bucket_count];
    for (; e; e = e->next) {
        if (e->hash == made->hash && e->key_count == made->key_count && e->setup == made->setup &&
            memcmp(&e->alignments, &made->alignments, sizeof e->alignments) == 0 &&
            memcmp(e->key, made->key, made->key_count * sizeof *made->key) == 0 &&
            strcmp(e->selection->kernel, made->selection->kernel) != 0)
            return tn_fail(
                err, TN_CORRUPT, 0, "lock",
                "%s: expected %.96s as in line %u, got %.96s: numbers such as alpha do not "
                "affect the choice",
                tni_form_place(in->path, made->selection->line, place), e->selection->kernel,
                (unsigned)e->selection->line, made->selection->kernel);
    }
    return TN_OK;
}

static tn_status add_entry(loaded *to, const tni_selection *selection, tn_error *err)
{
    tn_op op;
    char device[8];
    uint64_t key[TNI_KEY_MOST];
    tn_status status = tni_problem_parse(selection->problem, &op, device, sizeof device, err);
    if (status)
        return status;
    size_t count = tni_op_key_up_to(&op, 1, key);
    entry *made = tni_alloc_zeroed(1, sizeof *made + count * sizeof *key);
    if (!made)
        return tni_no_memory(err, "lock", selection->problem);
    made->selection = selection;
    made->setup = tni_selections_setup(&to->selections, selection->device);
    made->alignments = tni_alignments_of(&op, TN_OP_ALIGNMENT_MAX);
    made->hash = hash_of(key, count);
    made->key_count = count;
    memcpy(made->key, key, count * sizeof *key);
    status = check_other(to, made, err);
    if (status) {
        tni_release(made);
        return status;
    }
    entry **at = &to->buckets[made->hash % to->bucket_count];
    made->next = *at;
    *at = made;
    return TN_OK;
}

static tn_status index_selections(loaded *of, tn_error *err)
{
    tn_status status = TN_OK;
    of->bucket_count = of->selections.count + 1;
    of->buckets = tni_alloc_zeroed(of->bucket_count, sizeof(entry *));
    if (!of->buckets)
        return tni_no_memory(err, "lock", of->path);
    for (size_t i = 0; !status && i < of->selections.count; i++)
        status = add_entry(of, &of->selections.selections[i], err);
    return status;
}

static tn_status load_lock(const char *path, loaded **out, tn_error *err)
{
    loaded *made = tni_alloc_zeroed(1, sizeof *made);
    if (!made)
        return tni_no_memory(err, "lock", path);
    tn_status status = tni_path_absolute(path, &made->path, err);
    if (!status)
        status = tni_lock_read(path, &made->selections, err);
    if (!status)
        status = index_selections(made, err);
    if (status)
        release_lock(made);
    else
        *out = made;
    return status;
}

/* Must be called with the lock held. Replaces the active lock and returns the old one. */
static loaded *replace_lock(loaded *by)
{
    loaded *old = current;
    current = by;
    atomic_store_explicit(&state, by ? LOCKED : NOTHING, memory_order_release);
    return old;
}

/* Loads the lock that the environment variable names; NULL if none. A file that cannot be read
 * gives a lock that permits nothing. Out of memory is temporary: sets *out_later. */
static loaded *load_variable(bool *out_later)
{
    const char *path = tni_env_get(variable);
    loaded *made = NULL;
    tn_error why;
    if (!path && tni_env_is_set(variable))
        tni_log(TN_LOG_WARNING, "%s is ignored: the process runs with elevated privileges",
                variable);
    if (!path || !*path)
        return NULL;
    tn_status status = load_lock(path, &made, &why);
    *out_later = status == TN_OUT_OF_MEMORY || status == TN_BUSY;
    if (!status || *out_later)
        return made;
    made = tni_alloc_zeroed(1, sizeof *made);
    if (made) {
        made->path = tni_text_copy(path);
        made->failure = why;
    }
    *out_later = !made || !made->path;
    if (*out_later) {
        release_lock(made);
        return NULL;
    }
    return made;
}

/* Reads the environment variable, once. Returns false if out of memory: until a later attempt
 * succeeds, nothing is permitted. */
static bool read_variable(void)
{
    bool later = false;
    loaded *unused = NULL;
    if (atomic_load_explicit(&state, memory_order_acquire) != UNREAD)
        return true;
    loaded *made = load_variable(&later);
    if (later)
        return false;
    tni_fork_lock_acquire(&lock);
    if (atomic_load(&state) == UNREAD)
        (void)replace_lock(made);
    else
        unused = made;
    tni_fork_lock_release(&lock);
    release_lock(unused);
    return true;
}

tn_status tn_lock_use(const char *path, tn_error *err)
{
    loaded *made = NULL;
    tn_status status = path ? load_lock(path, &made, err) : TN_OK;
    if (status)
        return status;
    tni_fork_lock_acquire(&lock);
    tni_dispatch_invalidate(); /* before the new lock is visible: decisions under the old one are made
                          * again */
    loaded *old = replace_lock(made);
    tni_fork_lock_release(&lock);
    release_lock(old);
    tni_dispatch_invalidate();
    return TN_OK;
}

size_t tn_lock_used(char *out, size_t size)
{
    size_t length = 0;
    (void)read_variable();
    tni_fork_lock_acquire(&lock);
    const char *path = current ? current->path : "";
    length = strlen(path);
    if (out && size > 0)
        snprintf(out, size, "%s", path);
    tni_fork_lock_release(&lock);
    return length;
}

/* Queries. */

/* Returns 2 if the entry names the device itself, 1 if it names a similar one, 0 otherwise. */
static int32_t speaks_of(const entry *e, const tn_device *device)
{
    if (strcmp(e->setup->id, device->id) == 0)
        return 2;
    size_t platform = strcspn(e->setup->id, ":");
    return strncmp(e->setup->id, device->id, platform) == 0 && device->id[platform] == ':' &&
           e->setup->name[0] && strcmp(e->setup->name, device->properties.name) == 0 &&
           strcmp(e->setup->architecture, tni_device_known(device)->architecture) == 0;
}

/* Returns true if entry `a` fits memory of these alignments better than `b`. Best is an entry for
 * exactly these alignments; then one for smaller alignments, the largest of them first, whose
 * kernel can run here; then one for larger alignments. */
static bool fits_better(const entry *a, const entry *b, tni_alignments alignments)
{
    bool a_runs = tni_alignments_reach(alignments, a->alignments);
    bool b_runs = tni_alignments_reach(alignments, b->alignments);
    if (a_runs != b_runs)
        return a_runs;
    return a_runs ? tni_alignments_reach(a->alignments, b->alignments)
                  : tni_alignments_reach(b->alignments, a->alignments);
}

/* Must be called with the lock held, after tni_device_described was called for the device. Returns
 * NULL if the lock does not name the problem. An entry applies to its problem at every
 * alignment. */
static const entry *find_entry(const tni_question *question)
{
    uint64_t key[TNI_KEY_MOST];
    size_t count = tni_op_key_up_to(question->op, 1, key);
    tni_alignments alignments = tni_alignments_of(question->op, TN_OP_ALIGNMENT_MAX);
    uint64_t hash = hash_of(key, count);
    const entry *best = NULL;
    int32_t most = 0;
    for (const entry *e = current->buckets[hash % current->bucket_count]; e; e = e->next) {
        if (e->hash != hash || e->key_count != count ||
            memcmp(e->key, key, count * sizeof *key) != 0)
            continue;
        int32_t speaks = speaks_of(e, question->device);
        if (speaks > most || (speaks > 0 && speaks == most && fits_better(e, best, alignments))) {
            best = e;
            most = speaks;
        }
    }
    return best;
}

static bool is_locked_kernel(const tni_selection *s, const tni_kernel *kernel, int64_t version,
                             tn_refusal *why)
{
    const char *path = current->path;
    char room[TNI_LOCK_VERSION];
    if (strcmp(s->kernel, kernel->row->name) != 0)
        return tni_refuse(why, TN_REFUSE_LOCK, "kernel", 1, 0, "%s:%u locks %s", path,
                          (unsigned)s->line, s->kernel);
    if (s->version != kernel->row->version)
        return tni_refuse(why, TN_REFUSE_LOCK, "version", s->version, kernel->row->version,
                          "%s:%u locks its version %lld", path, (unsigned)s->line,
                          (long long)s->version);
    if (s->numerics != kernel->row->numerics)
        return tni_refuse(why, TN_REFUSE_LOCK, "numerics", (int64_t)s->numerics,
                          (int64_t)kernel->row->numerics, "%s:%u locks it with other numerics",
                          path, (unsigned)s->line);
    if (s->library_version != version)
        return tni_refuse(why, TN_REFUSE_LOCK, "library version", s->library_version, version,
                          "%s:%u locks %s of %s", path, (unsigned)s->line,
                          tni_lock_version(s->library_version, room), s->library);
    return true;
}

/* Must be called with the lock held. */
static bool lock_permits(const tni_question *question, const tni_kernel *kernel, int64_t version,
                         tn_refusal *why)
{
    if (current->failure.status)
        return tni_refuse(why, TN_REFUSE_LOCK, variable, 1, 0, "%s: %s", variable,
                          current->failure.message);
    const entry *e = find_entry(question);
    if (e)
        return is_locked_kernel(e->selection, kernel, version, why);
    return !current->selections.strict ||
           tni_refuse(why, TN_REFUSE_LOCK, "problem", 1, 0,
                      "%s is strict and does not contain the problem", current->path);
}

void tni_lock_ignore(bool ignored)
{
    tni_thread_state_own.unlocked = ignored;
}

bool tni_lock_permits(const tni_question *question, const tni_kernel *kernel,
                      int64_t library_version, tn_refusal *why)
{
    if (tni_thread_state_own.unlocked)
        return true;
    if (!read_variable())
        return tni_refuse(why, TN_REFUSE_BUSY, variable, 1, 0, "no memory for the lock");
    if (atomic_load_explicit(&state, memory_order_acquire) == NOTHING)
        return true;
    (void)tni_device_described(question->device);
    tni_fork_lock_acquire(&lock);
    bool permitted = !current || lock_permits(question, kernel, library_version, why);
    tni_fork_lock_release(&lock);
    return permitted;
}

void tni_lock_explain_alignment(const tni_question *question, const tni_kernel *kernel,
                                tn_refusal *why)
{
    char text[1024];
    if (tni_thread_state_own.unlocked || !read_variable() ||
        atomic_load_explicit(&state, memory_order_acquire) == NOTHING)
        return;
    (void)tni_device_described(question->device);
    tni_fork_lock_acquire(&lock);
    const entry *e = current && !current->failure.status ? find_entry(question) : NULL;
    if (e && strcmp(e->selection->kernel, kernel->row->name) == 0) {
        snprintf(text, sizeof text,
                 "%s:%u locks it for this problem: align the memory, or write the lock for "
                 "this alignment too",
                 current->path, (unsigned)e->selection->line);
        tn_text_fit(why->text, sizeof why->text, text);
    }
    tni_fork_lock_release(&lock);
}

const char *tni_lock_names(const tni_question *question, char room[TNI_LOCK_KERNEL])
{
    room[0] = '\0';
    if (!read_variable() || atomic_load_explicit(&state, memory_order_acquire) == NOTHING)
        return room;
    (void)tni_device_described(question->device);
    tni_fork_lock_acquire(&lock);
    const entry *e = current && !current->failure.status ? find_entry(question) : NULL;
    if (e)
        tn_text_fit(room, TNI_LOCK_KERNEL, e->selection->kernel);
    tni_fork_lock_release(&lock);
    return room;
}

static bool admit_candidate(const tni_question *question, int64_t version, tni_contender *to)
{
    return tni_lock_permits(question, to->kernel, version, &to->why);
}

static void explain_candidate(const tni_question *question, tni_contender *to)
{
    if (to->why.code == TN_REFUSE_ALIGNMENT)
        tni_lock_explain_alignment(question, to->kernel, &to->why);
}

static bool asks_for_candidate(const tni_question *question, const tni_contender *candidate)
{
    char room[TNI_LOCK_KERNEL];
    return strcmp(tni_lock_names(question, room), candidate->kernel->row->name) == 0;
}

const tni_policy tni_lock_policy = {.name = "lock",
                                    .admit = admit_candidate,
                                    .explain = explain_candidate,
                                    .asks_for = asks_for_candidate};
