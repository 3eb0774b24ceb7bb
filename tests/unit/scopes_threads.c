/* Settings on many threads at once: every reader sees whole changes only, and its own scopes alone,
 * whatever others change, leave for it or fork meanwhile. */
#include "settings_check.h"

#include "os/thread.h"
#include "tenon/module/module.h"

enum { READERS = 8 };

static int rounds(void)
{
    return test_reduced() ? 300 : 3000;
}

/* No assertion on other threads: what is wrong is counted. */
typedef struct reader {
    tni_thread thread;
    int number;
    bool changes; /* the process's settings too */
    long wrong;
} reader;

static _Atomic bool stop;

/* tuning.limit and cudnn.benchmark_limit are only ever set together. */
static bool set_both(int64_t to)
{
    const tn_change both[] = {tn_with_tuning_limit(to),
                              tn_with_matmul_library(TN_PREFER, to % 2 ? "mkl" : "openblas"),
                              tn_with_cudnn_benchmark_limit(to)};
    return tn_settings_change(both, 3, NULL) == TN_OK;
}

static bool is_whole(const tn_context *context)
{
    char text[64];
    int64_t limit = tn_get_tuning_limit(context);
    (void)tn_setting_write(context, TN_SETTING_MATMUL_LIBRARY, text, sizeof text);
    const char *expected = limit == 10 ? "any" : limit % 2 ? "prefer:mkl" : "prefer:openblas";
    return limit == tn_get_cudnn_benchmark_limit(context) && strcmp(text, expected) == 0;
}

static long look(int number)
{
    tn_context *context = NULL;
    long wrong = tn_context_capture(&context, NULL) != TN_OK;
    if (wrong)
        return 1;
    wrong += !is_whole(context);
    wrong += tn_get_plan_cache_size(context) != 1000 + number;
    wrong += tn_get_plan_cache_size(NULL) != 1000 + number;
    wrong += tn_get_determinism(context) != TN_RUN_TO_RUN;
    tn_context_release(context);
    return wrong;
}

static void read_in_scopes(void *user)
{
    reader *self = user;
    for (int i = 0; i < rounds(); i++) {
        tn_scope outer = {0}, inner = {0};
        const tn_change own = tn_with_plan_cache_size(1000 + self->number);
        const tn_change more[] = {tn_with_determinism(TN_RUN_TO_RUN),
                                  tn_with_fft_library(TN_AVOID, "pocketfft")};
        self->wrong += tn_scope_enter(&outer, &own, 1, NULL) != TN_OK;
        self->wrong += tn_scope_enter(&inner, more, 2, NULL) != TN_OK;
        self->wrong += look(self->number);
        if (self->changes)
            self->wrong += !set_both(100 + i % 50);
        self->wrong += look(self->number);
        tn_scope_leave(i % 2 ? &outer : &inner);
        tn_scope_leave(i % 2 ? &inner : &outer);
        self->wrong += tn_get_plan_cache_size(NULL) != 4096;
        self->wrong += tn_get_determinism(NULL) != TN_DETERMINISM_ANY;
    }
}

static void start_all(reader *readers, int count, void (*run)(void *), bool last_changes)
{
    for (int i = 0; i < count; i++) {
        readers[i] = (reader){.number = i, .changes = last_changes && i == count - 1};
        assert_int_equal(tni_thread_create(&readers[i].thread, run, &readers[i], NULL), TN_OK);
    }
}

static void join_all(reader *readers, int count)
{
    for (int i = 0; i < count; i++) {
        tni_thread_join(readers[i].thread);
        assert_int_equal(readers[i].wrong, 0);
    }
}

/* Seven read in scopes of their own, the eighth changes the process's settings as well, and so does
 * this thread, which now and then takes everything back. */
static void every_reader_sees_whole_changes(void **state)
{
    reader readers[READERS];
    char before[ALL_TEXT];
    (void)state;
    write_all(NULL, before);
    start_all(readers, READERS, read_in_scopes, true);
    for (int i = 0; i < rounds(); i++) {
        assert_true(set_both(200 + i % 100));
        if (i % 16 == 0)
            assert_int_equal(tn_settings_reset(NULL, NULL), TN_OK);
    }
    join_all(readers, READERS);
    reset(NULL);
    assert_all(NULL, before);
}

/* A scope that its own thread leaves or another does. */
static tn_scope shared[READERS];
static _Atomic int turn[READERS]; /* 0: to be entered, 1: entered, 2: left elsewhere */

static void enter_for_another(void *user)
{
    reader *self = user;
    int at = self->number;
    const tn_change change = tn_with_inference(1);
    for (int i = 0; i < rounds() / 10; i++) {
        self->wrong += tn_scope_enter(&shared[at], &change, 1, NULL) != TN_OK;
        self->wrong += tn_get_inference(NULL) != 1;
        atomic_store(&turn[at], 1);
        while (atomic_load(&turn[at]) != 2)
            self->wrong += tn_get_plan_cache_size(NULL) != 4096;
        self->wrong += tn_get_inference(NULL) != 0;
        atomic_store(&turn[at], 0);
    }
    atomic_store(&turn[at], 3);
}

static void leave_for_others(void *user)
{
    (void)user;
    for (bool all = false; !all;) {
        all = true;
        for (int i = 0; i < READERS / 2; i++) {
            if (atomic_load(&turn[i]) == 1) {
                tn_scope_leave(&shared[i]);
                atomic_store(&turn[i], 2);
            }
            all = all && atomic_load(&turn[i]) == 3;
        }
    }
}

static void scopes_are_left_by_another_thread(void **state)
{
    reader readers[READERS / 2], leaver[1];
    char before[ALL_TEXT];
    (void)state;
    write_all(NULL, before);
    start_all(readers, READERS / 2, enter_for_another, false);
    start_all(leaver, 1, leave_for_others, false);
    join_all(readers, READERS / 2);
    join_all(leaver, 1);
    assert_all(NULL, before);
}

static void end_inside(void *user)
{
    reader *self = user;
    const tn_change change = tn_with_inference(1);
    self->wrong += tn_scope_enter(&shared[self->number], &change, 1, NULL) != TN_OK;
    self->wrong += tn_get_inference(NULL) != 1;
    atomic_store(&turn[self->number], 1);
}

/* Leaves half of the scopes as soon as they are entered, while their threads end. */
static void leave_half(void)
{
    for (int i = 0; i < READERS; i += 2) {
        while (atomic_load(&turn[i]) != 1)
            (void)tn_get_inference(NULL);
        tn_scope_leave(&shared[i]);
    }
}

/* Threads come and go, inside scopes that are left while they end or afterwards. */
static void threads_end_inside_scopes(void **state)
{
    char before[ALL_TEXT];
    (void)state;
    write_all(NULL, before);
    int64_t blocks = tn_allocator_blocks();
    for (int i = 0; i < rounds() / 20; i++) {
        reader readers[READERS];
        for (int j = 0; j < READERS; j++)
            atomic_store(&turn[j], 0);
        start_all(readers, READERS, end_inside, false);
        assert_true(set_both(i + 100));
        leave_half();
        join_all(readers, READERS);
        for (int j = 0; j < READERS; j++)
            tn_scope_leave(&shared[j]);
    }
    reset(NULL);
    assert_all(NULL, before);
    assert_int_equal(tn_allocator_blocks(), blocks);
}

static void end_inside_a_context(void *user)
{
    reader *self = user;
    tn_context *context = NULL;
    const tn_change change = tn_with_matmul_library(TN_PREFER, "mkl");
    self->wrong += tn_context_derive(NULL, &change, 1, &context, NULL) != TN_OK;
    self->wrong += tn_scope_enter_context(&shared[self->number], context, NULL) != TN_OK;
    tn_context_release(context);
}

/* A scope that nobody leaves costs the one block that a tn_scope points to. */
static void scopes_that_are_not_left_keep_one_block_each(void **state)
{
    static void (*const ways[])(void *) = {end_inside, end_inside_a_context};
    (void)state;
    for (size_t way = 0; way < 2; way++) {
        reader readers[READERS];
        (void)tn_get_inference(NULL);
        int64_t blocks = tn_allocator_blocks();
        start_all(readers, READERS, ways[way], false);
        join_all(readers, READERS);
        assert_int_equal(tn_allocator_blocks(), blocks + READERS);
        for (int i = 0; i < READERS; i++)
            tn_scope_leave(&shared[i]);
        assert_int_equal(tn_allocator_blocks(), blocks);
    }
}

static void say_hello(void *user, int64_t index)
{
    (void)index;
    *(_Atomic int32_t *)user += tn_get_inference(NULL) + 1;
}

/* Changes everything that a fork has to wait for, with loops that read settings in between. */
static void change_and_loop(void *user)
{
    reader *self = user;
    for (int i = 0; !atomic_load(&stop); i++) {
        _Atomic int32_t said = 0;
        self->wrong += tn_parallel_threads_set(2 + i % 2, NULL) != TN_OK;
        tn_parallel_for(8, say_hello, &said);
        self->wrong += said != 8;
        self->wrong += !set_both(100 + i % 50);
    }
}

static void read_and_end(void *user)
{
    (void)user;
    (void)tn_get_inference(NULL);
}

/* Threads that read for the first time and end, so that the list of readers is never still. */
static void begin_and_end(void *user)
{
    reader *self = user;
    while (!atomic_load(&stop)) {
        tni_thread thread;
        bool begun = tni_thread_create(&thread, read_and_end, NULL, NULL) == TN_OK;
        self->wrong += !begun;
        if (begun)
            tni_thread_join(thread);
    }
}

/* Memory that comes slowly to one thread: a fork meets it in the middle of a change. */
static _Thread_local bool slow;

static void *slow_alloc(void *self, size_t size, size_t align)
{
    void *memory = NULL;
    (void)self;
    if (slow)
        (void)usleep(2000);
    return posix_memalign(&memory, align, size) == 0 ? memory : NULL;
}

static void slow_release(void *self, void *memory)
{
    (void)self;
    free(memory);
}

static void change_slowly(void *user)
{
    slow = true;
    change_and_loop(user);
}

static void say_child(FILE *say, const void *user)
{
    const tn_change change = tn_with_tuning_limit(11);
    tn_scope scope = {0}, *outer = *(tn_scope *const *)user;
    bool whole = is_whole(NULL);
    bool set_well = set_both(4001) && tn_get_tuning_limit(NULL) == 4001;
    bool entered = tn_scope_enter(&scope, &change, 1, NULL) == TN_OK;
    bool inside = tn_get_tuning_limit(NULL) == 11 && tn_get_inference(NULL) == 1;
    tn_scope_leave(&scope);
    tn_scope_leave(outer);
    bool left = tn_get_inference(NULL) == 0 && tn_get_tuning_limit(NULL) == 4001;
    bool reset_well = tn_settings_reset(NULL, NULL) == TN_OK && tn_get_tuning_limit(NULL) == 10;
    fprintf(say, "%d%d%d%d%d%d", whole, set_well, entered, inside, left, reset_well);
}

/* Whenever it comes, a child can read and change at once. */
static void have_children(bool slowly)
{
    reader busy[2];
    tn_scope outer = {0}, *in = &outer;
    enter(&outer, "inference=true");
    atomic_store(&stop, false);
    start_all(busy, 1, slowly ? change_slowly : change_and_loop, false);
    start_all(busy + 1, 1, begin_and_end, false);
    for (int i = 0; i < (test_reduced() ? 20 : 100); i++)
        assert_string_equal(child_says(say_child, &in), "111111");
    atomic_store(&stop, true);
    join_all(busy, 2);
    tn_scope_leave(&outer);
    reset(NULL);
}

static void children_of_a_busy_process_are_free(void **state)
{
    (void)state;
    if (TN_MODULE_BUILT_WITH == TN_MODULE_SANITIZER_ADDRESS)
        skip_because(
            "the address sanitizer's own allocator keeps locks that others held at a fork");
    have_children(false);
    have_children(true);
}

int main(void)
{
    static const tn_allocator allocator = {
        .struct_size = sizeof allocator, .alloc = slow_alloc, .release = slow_release};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_reader_sees_whole_changes),
        cmocka_unit_test(scopes_are_left_by_another_thread),
        cmocka_unit_test(threads_end_inside_scopes),
        cmocka_unit_test(scopes_that_are_not_left_keep_one_block_each),
        cmocka_unit_test(children_of_a_busy_process_are_free),
    };
    if (tn_allocator_set(&allocator, NULL) != TN_OK)
        return 1;
    forget_settings();
    return run_suite("unit.scopes_threads", tests);
}
