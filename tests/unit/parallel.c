/* The process's loops: its pool, or the program's engine in its place. */
#include "loops.h"

#include "os/parallel.h"
#include "tenon/alloc.h"
#include "tenon/setting.h"

static void one_pool_serves_all_callers(void **state)
{
    struct caller callers[CALLERS];
    (void)state;
    assert_int_equal(tn_parallel_threads_set(4, NULL), TN_OK);
    assert_threads_come(NULL, 4);
    callers_start(callers, NULL);
    callers_end(callers);
    assert_nested(NULL, NULL);
    assert_int_equal(tn_parallel_threads_set(0, NULL), TN_OK);
}

/* An allocator that counts, and fails the n-th time. */
static _Atomic int64_t allocations, fails_at;

/* The block that malloc gave stands before the one handed out. */
static void *counting_alloc(void *self, size_t size, size_t align)
{
    (void)self;
    if (atomic_fetch_add(&allocations, 1) + 1 == atomic_load(&fails_at))
        return NULL;
    char *block = malloc(size + align + sizeof block);
    if (!block)
        return NULL;
    uintptr_t start = ((uintptr_t)block + sizeof block + align - 1) & ~(uintptr_t)(align - 1);
    char *memory = block + (start - (uintptr_t)block);
    memcpy(memory - sizeof block, &block, sizeof block);
    return memory;
}

static void counting_release(void *self, void *memory)
{
    char *block;
    (void)self;
    memcpy(&block, (char *)memory - sizeof block, sizeof block);
    free(block);
}

static void count_allocations(int64_t failing)
{
    static const tn_allocator counting = {
        .struct_size = sizeof counting, .alloc = counting_alloc, .release = counting_release};
    atomic_store(&allocations, 0);
    atomic_store(&fails_at, failing);
    assert_int_equal(tn_allocator_set(&counting, NULL), TN_OK);
}

static void loops_allocate_nothing(void **state)
{
    (void)state;
    count_allocations(0);
    assert_int_equal(tn_parallel_threads_set(3, NULL), TN_OK);
    assert_threads_come(NULL, 3); /* so that they have begun and done what they do once */
    int64_t before = atomic_load(&allocations);
    assert_true(before > 0);
    for (int i = 0; i < 1000; i++)
        assert_true(loop_is_right(NULL, 1 + i % 50));
    assert_int_equal(atomic_load(&allocations), before);
    assert_int_equal(tn_parallel_threads_set(0, NULL), TN_OK);
    assert_int_equal(tn_allocator_set(NULL, NULL), TN_OK);
}

static void force_threads(int32_t threads)
{
    tni_pool *ended = NULL;
    assert_int_equal(tni_parallel_threads_set(threads, &ended, NULL), TN_OK);
    tni_pool_destroy(ended);
}

static void loops_survive_want_of_memory(void **state)
{
    int64_t n = 1;
    (void)state;
    for (int reached = 1; reached; n++) {
        count_allocations(n);
        force_threads(4);
        assert_true(loop_is_right(NULL, 100));
        assert_true(loop_is_right(NULL, 100));
        reached = atomic_load(&allocations) >= n;
        force_threads(0);
        assert_int_equal(tn_allocator_set(NULL, NULL), TN_OK); /* nothing is left */
    }
    assert_int_equal(n, 1 + 1 + 1); /* the pool with its threads, and a round without failure */
}

static void pool_without_memory_is_refused(void **state)
{
    tni_pool *pool = NULL;
    tn_error err;
    (void)state;
    count_allocations(1);
    assert_int_equal(tni_pool_create(2, &pool, &err), TN_OUT_OF_MEMORY);
    assert_contains(err.message, "no memory for a pool");
    assert_null(pool);
    assert_int_equal(tn_allocator_set(NULL, NULL), TN_OK);
}

/* An engine: a serial one that counts. */
struct engine {
    _Atomic int loops;
    _Atomic int64_t indices;
};

static void engine_for(void *self, int64_t count, tn_task *task, void *user)
{
    struct engine *engine = self;
    atomic_fetch_add(&engine->loops, 1);
    atomic_fetch_add(&engine->indices, count);
    for (int64_t i = count; i-- > 0;)
        task(user, i);
}

static tn_parallel_engine engine_of(struct engine *self)
{
    return (tn_parallel_engine){.struct_size = sizeof(tn_parallel_engine),
                                .self = self,
                                .parallel_for = engine_for,
                                .threads = 6};
}

static void wrong_engines_are_refused(void **state)
{
    struct engine self = {0};
    tn_parallel_engine engine = engine_of(&self);
    tn_error err;
    (void)state;
    engine.struct_size = offsetof(tn_parallel_engine, threads);
    assert_int_equal(tn_parallel_engine_set(&engine, &err), TN_INVALID_ARGUMENT);
    assert_contains(err.message, "engine->struct_size: expected at least");
    engine = engine_of(&self);
    engine.parallel_for = NULL;
    assert_int_equal(tn_parallel_engine_set(&engine, &err), TN_INVALID_ARGUMENT);
    assert_contains(err.message, "engine->parallel_for is NULL");
    engine = engine_of(&self);
    engine.threads = 0;
    assert_int_equal(tn_parallel_engine_set(&engine, &err), TN_INVALID_ARGUMENT);
    assert_contains(err.message, "engine->threads: expected at least 1, got 0");
    assert_true(loop_is_right(NULL, 10));
    assert_int_equal(atomic_load(&self.loops), 0);
    assert_int_equal(tn_parallel_threads_set(0, NULL), TN_OK);
}

static void engine_runs_every_loop(void **state)
{
    struct engine self = {0};
    tn_parallel_engine engine = engine_of(&self);
    (void)state;
    engine.struct_size = TN_UP_TO(tn_parallel_engine, threads);
    assert_int_equal(tn_parallel_engine_set(&engine, NULL), TN_OK);
    memset(&engine, 0, sizeof engine); /* a copy was taken */
    assert_int_equal(tn_parallel_threads(), 6);
    assert_true(loop_is_right(NULL, 1));
    assert_true(loop_is_right(NULL, 100));
    assert_int_equal(atomic_load(&self.loops), 2);
    assert_int_equal(atomic_load(&self.indices), 101);
    assert_nested(NULL, NULL); /* the inner loops stay off the engine */
    assert_int_equal(atomic_load(&self.loops), 3);
    assert_int_equal(tn_parallel_engine_set(NULL, NULL), TN_OK);
    assert_true(loop_is_right(NULL, 100));
    assert_int_equal(atomic_load(&self.loops), 3);
    assert_int_equal(tn_parallel_threads_set(0, NULL), TN_OK);
}

/* An engine that hands everything back. */
static void fall_back(void *self, int64_t count, tn_task *task, void *user)
{
    struct engine *engine = self;
    atomic_fetch_add(&engine->loops, 1);
    tn_parallel_for(count, task, user);
}

static void engine_may_fall_back(void **state)
{
    struct engine self = {0};
    tn_parallel_engine engine = engine_of(&self);
    (void)state;
    engine.parallel_for = fall_back;
    assert_int_equal(tn_parallel_engine_set(&engine, NULL), TN_OK);
    assert_true(loop_is_right(NULL, 100));
    assert_int_equal(atomic_load(&self.loops), 1);
    assert_int_equal(tn_parallel_engine_set(NULL, NULL), TN_OK);
    tn_parallel_for(3, NULL, NULL); /* no task is none to run */
    assert_int_equal(tn_parallel_threads_set(0, NULL), TN_OK);
}

static void engine_changes_while_loops_run(void **state)
{
    struct engine one = {0}, two = {0};
    tn_parallel_engine engines[] = {engine_of(&one), engine_of(&two)};
    struct caller callers[CALLERS];
    (void)state;
    callers_start(callers, NULL);
    for (int i = 0; i < 3000; i++) {
        const tn_parallel_engine *next = i % 3 == 2 ? NULL : &engines[i % 3];
        assert_int_equal(tn_parallel_engine_set(next, NULL), TN_OK);
        if (i % 16 == 0)
            tni_clock_sleep_ns(10000);
    }
    callers_end(callers);
    assert_int_equal(tn_parallel_engine_set(NULL, NULL), TN_OK);
    assert_int_equal(tn_parallel_threads_set(0, NULL), TN_OK);
}

static void set_threads(void *user, int64_t index)
{
    (void)index;
    atomic_store((_Atomic int *)user, tn_parallel_threads_set(3, NULL));
}

static void threads_are_set_between_loops(void **state)
{
    struct stay stay = {0};
    _Atomic int from_task = TN_OK;
    tn_error err;
    (void)state;
    assert_int_equal(tn_parallel_threads(), tni_thread_processors());
    assert_int_equal(tn_parallel_threads_set(-1, &err), TN_INVALID_ARGUMENT);
    assert_contains(err.message, "cannot be \"-1\"; allowed: 0 to 1024");
    assert_int_equal(tn_parallel_threads_set(1025, &err), TN_INVALID_ARGUMENT);
    assert_contains(err.message, "cannot be \"1025\"");
    assert_int_equal(tn_parallel_threads_set(4, NULL), TN_OK);
    assert_int_equal(tn_parallel_threads(), 4);
    stay_begin(&stay);
    assert_int_equal(tn_parallel_threads_set(2, &err), TN_BUSY);
    assert_contains(err.message, "a loop is running");
    stay_end(&stay);
    assert_int_equal(tn_parallel_threads(), 4);
    tn_parallel_for(4, set_threads, &from_task);
    assert_int_equal(atomic_load(&from_task), TN_BUSY);
    assert_int_equal(tn_parallel_threads_set(2, NULL), TN_OK);
    assert_threads_come(NULL, 2);
    assert_int_equal(tn_parallel_threads(), 2);
    assert_int_equal(tn_parallel_threads_set(0, NULL), TN_OK);
    assert_int_equal(tn_allocator_blocks(), 0);
}

/* What a program does when one of its threads ends: on a worker that is while the pool ends. */
static pthread_key_t at_end;
static _Atomic int ended_well;

static void change_settings(void *value)
{
    (void)value;
    ended_well += tn_settings_set("tuning.limit=3", NULL) == TN_OK && tn_parallel_threads() > 0;
}

static void mark_thread(void *user, int64_t index)
{
    meet(user, index);
    (void)pthread_setspecific(at_end, user);
}

static void threads_that_end_may_change_settings(void **state)
{
    struct meeting meeting = {.expected = 3};
    (void)state;
    assert_int_equal(pthread_key_create(&at_end, change_settings), 0);
    assert_int_equal(tn_parallel_threads_set(3, NULL), TN_OK);
    tn_parallel_for(3, mark_thread, &meeting);
    assert_int_equal(tn_settings_set("cpu.threads=2", NULL), TN_OK);
    assert_int_equal(ended_well, 2);
    struct meeting again = {.expected = 2};
    tn_parallel_for(2, mark_thread, &again);
    assert_int_equal(tn_settings_reset("cpu.threads", NULL), TN_OK);
    assert_int_equal(ended_well, 3);
    (void)pthread_setspecific(at_end, NULL);
    assert_int_equal(pthread_key_delete(at_end), 0);
    assert_int_equal(tn_settings_reset(NULL, NULL), TN_OK);
    assert_int_equal(tn_allocator_blocks(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_pool_serves_all_callers),
        cmocka_unit_test(loops_allocate_nothing),
        cmocka_unit_test(loops_survive_want_of_memory),
        cmocka_unit_test(pool_without_memory_is_refused),
        cmocka_unit_test(wrong_engines_are_refused),
        cmocka_unit_test(engine_runs_every_loop),
        cmocka_unit_test(engine_may_fall_back),
        cmocka_unit_test(engine_changes_while_loops_run),
        cmocka_unit_test(threads_are_set_between_loops),
        cmocka_unit_test(threads_that_end_may_change_settings),
    };
    return run_suite("unit.parallel", tests);
}
