/* The plan cache: a table that all threads share. Plans are found by their key words and bounded per
 * device. In front of it, each thread remembers its latest calls (fast_path.c) and takes no lock.
 *
 * Calls hold references to their plans, so an evicted plan lives until the threads that remember it
 * look again. Eviction gives every plan that was used since the last eviction pass another round. */
#include "plan.h"

#include "base/alloc.h"
#include "base/out_of_line.h"
#include "device/stream/epoch.h"
#include "judge.h"
#include "os/cpu.h"
#include "os/fork.h"
#include "os/thread.h"
#include "settings/context.h"
#include "thread_state.h"

enum { BUCKETS = 4096, STATE_BUCKETS = 256, KEY_MOST = TNI_KEY_MOST + 4 };

/* The plans of one device, newest first. */
typedef struct shelf {
    struct shelf *next;
    const tn_device *device;
    tni_plan *newest, *oldest;
    int64_t size;
    int64_t bytes;
    int64_t evictions;
    int64_t misses;
    int64_t shared;
    int64_t limits[TN_OP_KIND_MAX]; /* of each op's plans, plus 1; 0: that of the op's setting */
} shelf;

typedef struct thread {
    tni_thread_kept kept; /* must be first: other code points to this member */
    struct thread *next, *before;
} thread;

static thread *current_thread(void)
{
    return (thread *)tni_thread_state_own.kept;
}

static struct {
    tni_fork_lock lock;
    tni_plan *buckets[BUCKETS];
    tni_state *states[STATE_BUCKETS];
    shelf *shelves;
    thread *threads;
    int64_t hits; /* of threads that ended, and of lookups in the shared table */
} cache = {.lock = {TNI_FORK_LOCK_INIT}};

/* The key of a plan: the op with the alignments that some kernel distinguishes, the device and its
 * epoch, the context settings that the op reads, and everything else that affects the choice. */
typedef struct key {
    uint64_t words[KEY_MOST];
    size_t count;
    uint64_t hash;
} key;

static void make_key(const tni_question *question, key *out)
{
    const tni_op_class *class = tni_op_class_of(question->op->kind);
    int64_t alignment = tni_kernels_alignment(question->device->platform->name, question->op->kind);
    size_t count = tni_op_key_up_to(question->op, alignment, out->words);
    uint64_t device_epoch = (uint32_t)tni_device_epoch(question->device);
    out->words[count++] = (uint64_t)question->device->ordinal << 32 | device_epoch;
    out->words[count++] = tni_context_hash(question->context, class);
    out->words[count++] = tni_dispatch_generation();
    out->words[count++] = tni_cpu_stamp();
    out->count = count;
    out->hash = tni_hash_words(out->words, count);
}

static bool has_key(const tni_plan *plan, const key *k)
{
    return plan->hash == k->hash && plan->key_count == k->count &&
           memcmp(plan->key, k->words, k->count * sizeof k->words[0]) == 0;
}

/* Returns true if the plan's key equals `k`, ignoring alignments. */
static bool is_of_any_alignment(const tni_plan *plan, const key *k)
{
    enum { AFTER = TNI_KEY_ALIGNMENTS + TNI_ALIGNMENT_WORDS };
    return plan->key_count == k->count &&
           memcmp(plan->key, k->words, TNI_KEY_ALIGNMENTS * sizeof k->words[0]) == 0 &&
           memcmp(&plan->key[AFTER], &k->words[AFTER], (k->count - AFTER) * sizeof k->words[0]) ==
               0;
}

static void thread_ends(tni_thread_end *end)
{
    thread *ending = (thread *)end;
    if (current_thread() == ending)
        tni_thread_state_own.kept = NULL;
    if (ending->kept.fast_path)
        ending->kept.fast_path_release(ending->kept.fast_path);
    tni_fork_lock_acquire(&cache.lock);
    *(ending->before ? &ending->before->next : &cache.threads) = ending->next;
    if (ending->next)
        ending->next->before = ending->before;
    cache.hits += atomic_load_explicit(&ending->kept.hits, memory_order_relaxed);
    tni_fork_lock_release(&cache.lock);
    tni_release(ending);
}

/* Adds the calling thread to the list. Does nothing if out of memory: then the thread remembers no
 * calls. */
static void add_thread(void)
{
    thread *made = tni_alloc_zeroed(1, sizeof *made);
    if (!made)
        return;
    made->kept.end.run = thread_ends;
    if (!tni_thread_end_add(&made->kept.end)) {
        tni_release(made);
        return;
    }
    tni_fork_lock_acquire(&cache.lock);
    made->next = cache.threads;
    if (made->next)
        made->next->before = made;
    cache.threads = made;
    tni_fork_lock_release(&cache.lock);
    tni_thread_state_own.kept = &made->kept;
}

void tni_lease_end(tni_lease *lease)
{
    tni_plan_release(lease->plan);
}

/* The functions below need the lock, except where they say otherwise. */

static tni_state **states_of(uint64_t hash)
{
    return &cache.states[hash % STATE_BUCKETS];
}

/* Returns a state with the same key, or NULL. A state is in the list, which holds one reference to
 * it, as long as a plan in the cache uses it. */
static tni_state *find_state(const tni_state *like)
{
    tni_state *state = *states_of(like->hash);
    while (state && !(state->hash == like->hash && state->kernel == like->kernel &&
                      state->device == like->device && state->key_count == like->key_count &&
                      memcmp(state->key, like->key, like->key_count * sizeof like->key[0]) == 0))
        state = state->next;
    return state;
}

static void keep_state(tni_state *state)
{
    tni_state **list = states_of(state->hash);
    if (state->kept++ > 0)
        return;
    state->next = *list;
    *list = tni_state_retain(state);
}

/* The plan holds its own reference to the state. */
static void drop_state(tni_state *state)
{
    tni_state **at = states_of(state->hash);
    if (--state->kept > 0)
        return;
    while (*at != state)
        at = &(*at)->next;
    *at = state->next;
    tni_state_release(state);
}

static shelf *find_shelf(const tn_device *device)
{
    shelf *found = cache.shelves;
    while (found && found->device != device)
        found = found->next;
    return found;
}

static shelf *shelf_of(const tn_device *device)
{
    shelf *found = find_shelf(device);
    if (found)
        return found;
    found = tni_alloc_zeroed(1, sizeof *found);
    if (!found)
        return NULL;
    found->device = device;
    found->next = cache.shelves;
    cache.shelves = found;
    return found;
}

static tni_plan **bucket_of(uint64_t hash)
{
    return &cache.buckets[hash % BUCKETS];
}

static tni_plan *find_plan(const key *k)
{
    tni_plan *plan = *bucket_of(k->hash);
    while (plan && !has_key(plan, k))
        plan = plan->next;
    return plan;
}

static void link_newest(shelf *to, tni_plan *plan)
{
    plan->older = to->newest;
    plan->newer = NULL;
    *(to->newest ? &to->newest->newer : &to->oldest) = plan;
    to->newest = plan;
}

static void unlink_plan(shelf *from, tni_plan *plan)
{
    *(plan->newer ? &plan->newer->older : &from->newest) = plan->older;
    *(plan->older ? &plan->older->newer : &from->oldest) = plan->newer;
}

static void add_plan(shelf *to, tni_plan *plan)
{
    tni_plan **bucket = bucket_of(plan->hash);
    plan->next = *bucket;
    *bucket = tni_plan_retain(plan);
    link_newest(to, plan);
    to->size++;
    to->bytes += (int64_t)plan->bytes;
    keep_state(plan->state);
}

/* The cache's reference passes to the caller. */
static void remove_plan(shelf *from, tni_plan *plan)
{
    tni_plan **at = bucket_of(plan->hash);
    while (*at != plan)
        at = &(*at)->next;
    *at = plan->next;
    unlink_plan(from, plan);
    from->size--;
    from->bytes -= (int64_t)plan->bytes;
    drop_state(plan->state);
    atomic_store_explicit(&plan->dead, true, memory_order_release);
}

/* Removes plans until the limits hold. Returns them as a list linked by `next`, in front of `gone`,
 * to be released without the lock. */
static tni_plan *evict_plans(shelf *from, int64_t most, int64_t most_bytes, tni_plan *gone)
{
    int64_t rounds = from->size;
    while (from->oldest && (from->size > most || from->bytes > most_bytes)) {
        tni_plan *plan = from->oldest;
        if (rounds-- > 0 && atomic_exchange_explicit(&plan->used, false, memory_order_relaxed)) {
            unlink_plan(from, plan);
            link_newest(from, plan);
            continue;
        }
        remove_plan(from, plan);
        from->evictions++;
        plan->next = gone;
        gone = plan;
    }
    return gone;
}

/* Returns the op's own limit of plans; -1 if it has none. `on` may be NULL: the device has no plans. */
static int64_t limit_of(const shelf *on, const tn_device *device, const tn_context *context,
                        int32_t op)
{
    const tni_plan_limit *limit = tni_op_class_of(op)->plan_limits;
    if (on && on->limits[op] > 0)
        return on->limits[op] - 1;
    for (; limit && limit->platform; limit++) {
        if (strcmp(limit->platform, device->platform->name) == 0)
            return tn_setting_value(context, limit->setting);
    }
    return -1;
}

/* Removes the oldest plans of an op until at most `most` are left, those that were not used since the last eviction
 * first. Returns them like evict_plans. */
static tni_plan *evict_op_plans(shelf *from, int32_t op, int64_t most, tni_plan *gone)
{
    int64_t left = 0;
    for (const tni_plan *plan = from->newest; plan; plan = plan->older)
        left += plan->op.kind == op;
    for (int pass = 0; pass < 2 && left > most; pass++) {
        tni_plan *newer;
        for (tni_plan *plan = from->oldest; plan && left > most; plan = newer) {
            newer = plan->newer;
            if (plan->op.kind != op ||
                atomic_exchange_explicit(&plan->used, false, memory_order_relaxed))
                continue;
            remove_plan(from, plan);
            from->evictions++;
            plan->next = gone;
            gone = plan;
            left--;
        }
    }
    return gone;
}

/* Must be called without the lock. */
static void release_all(tni_plan *list)
{
    while (list) {
        tni_plan *next = list->next;
        tni_plan_release(list);
        list = next;
    }
}

/* Finds a plan whose key equals `k` except for alignments: with `serves`, the newest that needs no
 * more alignment than the key has; otherwise the newest of all. Returns NULL if none exists. */
static tni_plan *find_of_alignment(const tni_question *question, const key *k, bool serves)
{
    const shelf *on = find_shelf(question->device);
    tni_plan *plan = on ? on->newest : NULL;
    while (plan && !(is_of_any_alignment(plan, k) &&
                     (!serves || tni_alignments_reach(tni_key_alignments(k->words),
                                                      tni_key_alignments(plan->key)))))
        plan = plan->older;
    return plan;
}

/* Must be called without the lock. Writes the problem of a plan that cannot be used only because of
 * its alignments; writes nothing if none exists. */
static void write_unaligned(const tni_question *question, const key *k, tni_buffer *out)
{
    tn_op op = *question->op;
    tni_fork_lock_acquire(&cache.lock);
    const tni_plan *plan = find_of_alignment(question, k, false);
    if (plan)
        tni_alignments_set(&op, tni_key_alignments(plan->key));
    tni_fork_lock_release(&cache.lock);
    if (plan)
        tni_problem_write(&op, question->device->id, out);
}

/* Must be called without the lock. */
static tn_status not_prepared(const tni_question *question, const key *k, tn_error *err)
{
    const char *why =
        question->recorded ? "a graph is being recorded, but" : "plan.only_prepared is set, but";
    const char *what = question->recorded ? "there is no plan" : "this process prepared no plan";
    const char *where = tni_op_class_of(question->op->kind)->where;
    tni_buffer text = {0}, other = {0};
    tn_status status;
    tni_problem_write(question->op, question->device->id, &text);
    write_unaligned(question, k, &other);
    if (other.length > 0)
        status = tn_fail(err, TN_REFUSED, 0, where,
                         "%s the existing plan: expected memory aligned as in %.150s, got %.150s; "
                         "align the memory, or prepare the problem with tn_prepare for this "
                         "alignment",
                         why, tni_buffer_text(&other), tni_buffer_text(&text));
    else
        status = tn_fail(err, TN_REFUSED, 0, where, "%s %s for %s; %sprepare it with tn_prepare",
                         why, what, tni_buffer_text(&text),
                         question->recorded ? "call it once before, or " : "");
    tni_buffer_release(&other);
    tni_buffer_release(&text);
    return status;
}

/* Returns the cached state that serves the question with this candidate, or NULL. Writes the
 * state's key to `like`. Must be called without the lock; the caller owns a reference to the
 * result. */
static tni_state *share_state(const tni_question *question, const tni_contender *of,
                              tni_state *like)
{
    tni_state_init(question, of, like);
    tni_fork_lock_acquire(&cache.lock);
    tni_state *found = find_state(like);
    if (found)
        tni_state_retain(found);
    tni_fork_lock_release(&cache.lock);
    return found;
}

/* Returns the first candidate from `index` on that may run and has a state, or choice->admitted if none has. Called
 * without the lock. */
static TNI_OUT_OF_LINE size_t find_prepared(const tni_question *question, const tni_choice *choice,
                                            size_t index)
{
    tni_state like;
    for (; index < choice->admitted; index++) {
        const tni_contender *of = &choice->candidates[index];
        tni_state *found =
            of->verdict == TN_VERDICT_UNTESTED ? NULL : share_state(question, of, &like);
        tni_state_release(found);
        if (found)
            break;
    }
    return index;
}

/* Moves an admitted candidate to the front and marks it as chosen. */
static void choose_candidate(tni_choice *choice, size_t index)
{
    tni_contender moved = choice->candidates[index];
    for (size_t i = 0; i < choice->admitted; i++) {
        if (choice->candidates[i].verdict == TN_VERDICT_CHOSEN)
            choice->candidates[i].verdict = TN_VERDICT_ADMITTED;
    }
    memmove(&choice->candidates[1], &choice->candidates[0], index * sizeof moved);
    choice->candidates[0] = moved;
    choice->candidates[0].verdict = TN_VERDICT_CHOSEN;
}

/* Returns the index, among the admitted candidates, of the kernel of the plan that a call would
 * find; choice->admitted if there is no such plan. Must be called without the lock. */
static size_t find_kept(const tni_question *question, const key *k, const tni_choice *choice)
{
    size_t index = 0;
    tni_fork_lock_acquire(&cache.lock);
    const tni_plan *plan = find_plan(k);
    plan = plan ? plan : find_of_alignment(question, k, true);
    while (index < choice->admitted && !(plan && choice->candidates[index].kernel == plan->kernel))
        index++;
    tni_fork_lock_release(&cache.lock);
    return index;
}

tn_status tni_prepared_check(const tni_question *question, tni_choice *choice, tn_error *err)
{
    key k;
    if (choice->admitted == 0 ||
        !tn_setting_value(question->context, TN_SETTING_PLAN_ONLY_PREPARED))
        return TN_OK;
    make_key(question, &k);
    size_t index = find_kept(question, &k, choice);
    if (index == choice->admitted)
        index = find_prepared(question, choice, 0);
    if (index == choice->admitted)
        return not_prepared(question, &k, err);
    choose_candidate(choice, index);
    return TN_OK;
}

/* Inserts a new plan, unless another thread inserted an equal one first. Returns the plan that is
 * in the cache, with a reference for the caller. Must be called without the lock. */
static tni_plan *insert_plan(const tni_question *question, const key *k, bool shared,
                             tni_plan *made)
{
    int64_t most = tn_setting_value(question->context, TN_SETTING_PLAN_CACHE_SIZE);
    int64_t most_bytes = tn_setting_value(question->context, TN_SETTING_PLAN_CACHE_BYTES);
    const int32_t op = question->op->kind;
    tni_plan *gone = NULL;
    tni_fork_lock_acquire(&cache.lock);
    shelf *on = shelf_of(question->device);
    tni_plan *other = find_plan(k);
    if (other) {
        tni_plan_retain(other);
    } else if (on) {
        on->misses++;
        on->shared += shared;
        const int64_t most_of_op = limit_of(on, question->device, question->context, op);
        const bool fits = most > 0 && most_of_op != 0 && (int64_t)made->bytes <= most_bytes;
        if (most_of_op >= 0)
            gone = evict_op_plans(on, op, most_of_op - fits, NULL);
        if (fits)
            add_plan(on, made);
        gone = evict_plans(on, most, most_bytes, gone);
    }
    bool kept = !other && made->key_count > 0 && find_plan(k) == made;
    tni_fork_lock_release(&cache.lock);
    release_all(gone);
    if (other) {
        tni_plan_release(made);
        return other;
    }
    if (!kept)
        atomic_store_explicit(&made->dead, true, memory_order_release);
    return made;
}

static bool may_make_plans(const tni_question *question, bool preparing)
{
    return preparing || !tn_setting_value(question->context, TN_SETTING_PLAN_ONLY_PREPARED);
}

/* Binds the chosen candidate to a plan and caches it. If plans may not be made, uses the first
 * prepared candidate from `index` on; a plan of a candidate that was not chosen is not cached. Must
 * be called without the lock. */
static TNI_OUT_OF_LINE tn_status bind_plan(const tni_question *question, bool preparing,
                                           const key *k, const tni_choice *choice, size_t index,
                                           tni_plan **out, tn_error *err)
{
    tni_state like;
    tni_plan *made = NULL;
    const bool may_make = may_make_plans(question, preparing);
    const size_t taken = may_make ? index : find_prepared(question, choice, index);
    if (taken == choice->admitted)
        return not_prepared(question, k, err);
    const tni_contender *chosen = &choice->candidates[taken];
    tni_state *state = share_state(question, chosen, &like);
    const bool shared = state != NULL;
    tn_status status = TN_OK;
    if (!shared)
        status = may_make ? tni_state_make(question, &like, &state, err)
                          : not_prepared(question, k, err);
    if (!status && state)
        status = tni_plan_bind(question, chosen, state, k->words, k->count, &made, err);
    if (status || !made)
        return status;
    made->hash = k->hash;
    tni_fallback_count(question, choice, taken);
    atomic_store_explicit(&made->dead, taken != index, memory_order_release);
    *out = taken == index ? insert_plan(question, k, shared, made) : made;
    return TN_OK;
}

static tn_status choose_and_bind(const tni_question *question, bool preparing, const key *k,
                                 tni_plan **out, tn_error *err)
{
    size_t index = 0;
    if (question->recorded)
        return not_prepared(question, k, err);
    tni_choice *choice = tni_alloc(sizeof *choice);
    if (!choice)
        return tni_no_memory(err, "plan", "a choice");
    tn_status status = TN_OK;
    bool again = true;
    for (int32_t round = 0; again && round < TNI_CANDIDATES_MOST; round++) {
        again = false;
        status = tni_choose(question, choice, &index, err);
        if (status)
            continue;
        status = bind_plan(question, preparing, k, choice, index, out, err);
        again = tni_choose_again(question, &choice->candidates[index], status);
    }
    tni_release(choice);
    return status;
}

/* With `serves`, also accepts a plan that was made for less alignment. */
static tni_plan *find_in_table(const tni_question *question, const key *k, bool serves)
{
    tni_fork_lock_acquire(&cache.lock);
    tni_plan *found = find_plan(k);
    if (!found && serves)
        found = find_of_alignment(question, k, true);
    if (found) {
        tni_plan_retain(found);
        atomic_store_explicit(&found->used, true, memory_order_relaxed);
        cache.hits++;
    }
    tni_fork_lock_release(&cache.lock);
    return found;
}

/* Returns the plan, with a reference for the caller. Sets `stands_in` if it was made for less
 * alignment, or for a kernel that was not chosen. Replaces the key, which
 * requests of the policies may change. Must be called without the lock. */
static tn_status find_or_make(const tni_question *question, bool preparing, bool keeps, key *k,
                              tni_lease *out, tn_error *err)
{
    const bool serves = question->recorded || !may_make_plans(question, preparing);
    tni_decide_request(question);
    make_key(question, k);
    out->plan = keeps ? find_in_table(question, k, serves) : NULL;
    tn_status status = out->plan ? TN_OK : choose_and_bind(question, preparing, k, &out->plan, err);
    if (!status && out->plan) /* both hold or neither does */
        out->stands_in = serves && (!has_key(out->plan, k) || atomic_load(&out->plan->dead));
    return status;
}

tn_status tni_lease_acquire(const tni_question *question, bool preparing, tni_lease *out,
                            tn_error *err)
{
    const bool keeps = question->context->value[TN_SETTING_PLAN_CACHE_SIZE] > 0;
    key k;
    *out = (tni_lease){0};
    if (!current_thread())
        add_thread();
    make_key(question, &k);
    out->plan = keeps ? find_in_table(question, &k, false) : NULL;
    return out->plan ? TN_OK : find_or_make(question, preparing, keeps, &k, out, err);
}

/* The public functions. */

static tn_status check_op(int32_t op, const char *where, tn_error *err)
{
    if (op == TN_OP_NONE || tni_op_class_of(op))
        return TN_OK;
    return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                   "op: expected 0 (all) or a TN_OP_..., got %d", (int)op);
}

static void count_op(const shelf *on, int32_t op, tn_plan_cache_state *to)
{
    for (const tni_plan *plan = on->newest; plan; plan = plan->older) {
        if (op == TN_OP_NONE || plan->op.kind == op) {
            to->size++;
            to->bytes += (int64_t)plan->bytes;
        }
    }
}

tn_status tn_plan_cache_state_get(const tn_context *context, tn_device *device, int32_t op,
                                  tn_plan_cache_state *out, tn_error *err)
{
    static const char where[] = "tn_plan_cache_state_get";
    tn_plan_cache_state made = {0};
    if (!out || !TN_HAS(out, tn_plan_cache_state, evictions))
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "out is NULL, or its struct_size is too small");
    tn_status status = check_op(op, where, err);
    if (status)
        return status;
    context = tni_context_or_current(context);
    int64_t most = -1;
    tni_fork_lock_acquire(&cache.lock);
    made.hits = cache.hits;
    for (const thread *t = cache.threads; t; t = t->next)
        made.hits += atomic_load_explicit(&t->kept.hits, memory_order_relaxed);
    for (const shelf *s = cache.shelves; s; s = s->next) {
        if (device && s->device != device)
            continue;
        count_op(s, op, &made);
        made.misses += s->misses;
        made.shared += s->shared;
        made.evictions += s->evictions;
    }
    if (device && op != TN_OP_NONE)
        most = limit_of(find_shelf(device), device, context, op);
    tni_fork_lock_release(&cache.lock);
    made.struct_size = out->struct_size;
    made.max_size = most >= 0 ? most : tn_setting_value(context, TN_SETTING_PLAN_CACHE_SIZE);
    made.max_bytes = tn_setting_value(context, TN_SETTING_PLAN_CACHE_BYTES);
    *out = made;
    return TN_OK;
}

tn_status tn_plan_cache_limit_set(tn_device *device, int32_t op, int64_t max_size, tn_error *err)
{
    static const char where[] = "tn_plan_cache_limit_set";
    tni_plan *gone = NULL;
    if (!device)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "device is NULL");
    if (op == TN_OP_NONE || !tni_op_class_of(op))
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "op: expected a TN_OP_..., got %d",
                       (int)op);
    if (max_size < -1 || max_size == INT64_MAX)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "max_size: expected -1 to 2^63 - 2, got %lld", (long long)max_size);
    const tn_context *context = tni_context_or_current(NULL);
    tni_fork_lock_acquire(&cache.lock);
    shelf *on = shelf_of(device);
    if (on) {
        on->limits[op] = max_size + 1;
        const int64_t most = limit_of(on, device, context, op);
        gone = most >= 0 ? evict_op_plans(on, op, most, NULL) : NULL;
    }
    tni_fork_lock_release(&cache.lock);
    release_all(gone);
    return on ? TN_OK : tni_no_memory(err, where, "a limit");
}

void tn_plan_cache_clear(tn_device *device, int32_t op)
{
    tni_plan *gone = NULL;
    tni_fork_lock_acquire(&cache.lock);
    for (shelf *s = cache.shelves; s; s = s->next) {
        tni_plan *older;
        for (tni_plan *plan = s->newest; plan; plan = older) {
            older = plan->older;
            if ((device && s->device != device) || (op != TN_OP_NONE && plan->op.kind != op))
                continue;
            remove_plan(s, plan);
            plan->next = gone;
            gone = plan;
        }
    }
    tni_fork_lock_release(&cache.lock);
    release_all(gone);
}
