/* Scopes: they nest, are left in any order and on any thread, end with their thread, outlive fork() and
 * longjmp, and change what they name. */
#include "settings_check.h"

#include "os/thread.h"

#include <setjmp.h>

static int64_t limit(void)
{
    return tn_get_tuning_limit(NULL);
}

static void scopes_nest(void **state)
{
    tn_scope a = {0}, b = {0}, c = {0};
    char outside[ALL_TEXT], in_a[ALL_TEXT], in_b[ALL_TEXT];
    (void)state;
    write_all(NULL, outside);
    enter(&a, "tuning.limit=1");
    write_all(NULL, in_a);
    enter(&b, "cudnn.benchmark=true");
    write_all(NULL, in_b);
    enter(&c, "tuning.limit=3");
    assert_int_equal(limit(), 3);
    assert_int_equal(tn_get_cudnn_benchmark(NULL), 1);
    tn_scope_leave(&c);
    assert_all(NULL, in_b);
    tn_scope_leave(&b);
    assert_all(NULL, in_a);
    tn_scope_leave(&a);
    assert_all(NULL, outside);
}

/* A scope's row is left to the next one outside that names it. */
static int64_t innermost(const bool open[4])
{
    for (int i = 3; i >= 0; i--) {
        if (open[i])
            return 100 + i;
    }
    return 10;
}

static void check_open(const bool open[4])
{
    assert_int_equal(limit(), innermost(open));
    assert_int_equal(tn_get_inference(NULL), open[0]);
    assert_int_equal(tn_get_cudnn_benchmark(NULL), open[1]);
    assert_int_equal(tn_get_debug_sync(NULL), open[2]);
    assert_int_equal(tn_get_tuning_enabled(NULL), open[3]);
}

/* Whether something is read between two steps or not: what is kept for the reader may not show. */
static void leave_in_order(const int order[4], bool read_between)
{
    tn_scope scopes[4] = {{0}};
    bool open[4] = {true, true, true, true};
    char before[ALL_TEXT];
    tn_change own[] = {tn_with_inference(1), tn_with_cudnn_benchmark(1), tn_with_debug_sync(1),
                       tn_with_tuning_enabled(1)};
    write_all(NULL, before);
    for (int i = 0; i < 4; i++) {
        const tn_change changes[] = {own[i], tn_with_tuning_limit(100 + i)};
        assert_int_equal(tn_scope_enter(&scopes[i], changes, 2, NULL), TN_OK);
    }
    check_open(open);
    for (int i = 0; i < 4; i++) {
        tn_scope_leave(&scopes[order[i]]);
        open[order[i]] = false;
        assert_null(scopes[order[i]].inside);
        if (read_between)
            check_open(open);
    }
    check_open(open);
    assert_all(NULL, before);
}

static void scopes_are_left_in_any_order(void **state)
{
    (void)state;
    for (int code = 0; code < 4 * 4 * 4 * 4; code++) {
        const int order[] = {code % 4, code / 4 % 4, code / 16 % 4, code / 64};
        unsigned seen = 0;
        for (int i = 0; i < 4; i++)
            seen |= 1u << order[i];
        if (seen != 15)
            continue;
        leave_in_order(order, true);
        leave_in_order(order, false);
    }
}

static void a_scope_is_entered_once_and_left_once(void **state)
{
    tn_scope scope = {0};
    tn_error err = {0};
    (void)state;
    const tn_change change = tn_with_tuning_limit(5);
    enter(&scope, "tuning.limit=3");
    assert_int_equal(tn_scope_enter(&scope, &change, 1, &err), TN_BUSY);
    assert_contains(err.message, "entered already");
    tn_context *context = captured();
    assert_int_equal(tn_scope_enter_context(&scope, context, &err), TN_BUSY);
    tn_context_release(context);
    assert_int_equal(limit(), 3);
    tn_scope_leave(&scope);
    assert_int_equal(limit(), 10);
    tn_scope_leave(&scope);
    tn_scope_leave(&(tn_scope){0});
    assert_int_equal(limit(), 10);
    enter(&scope, "tuning.limit=4");
    assert_int_equal(limit(), 4);
    tn_scope_leave(&scope);
    assert_int_equal(limit(), 10);
}

static void the_process_is_seen_through_a_scope(void **state)
{
    tn_scope a = {0}, b = {0};
    (void)state;
    enter(&a, "tuning.limit=3");
    enter(&b, "inference=true");
    set("cudnn.benchmark_limit=7");
    set("tuning.limit=8");
    assert_int_equal(tn_get_cudnn_benchmark_limit(NULL), 7);
    assert_int_equal(limit(), 3);
    tn_scope_leave(&b);
    assert_int_equal(tn_get_cudnn_benchmark_limit(NULL), 7);
    assert_int_equal(tn_get_inference(NULL), 0);
    set("cudnn.benchmark_limit=6");
    tn_scope_leave(&a);
    assert_int_equal(limit(), 8);
    assert_int_equal(tn_get_cudnn_benchmark_limit(NULL), 6);
    reset(NULL);
}

static void a_captured_context_stays_what_it_was(void **state)
{
    tn_scope scope = {0}, inner = {0};
    char inside[ALL_TEXT];
    (void)state;
    enter(&scope, "tuning.limit=3");
    tn_context *context = captured();
    write_all(context, inside);
    tn_scope_leave(&scope);
    set("cudnn.benchmark_limit=7");
    assert_all(context, inside);
    assert_int_equal(tn_scope_enter_context(&scope, context, NULL), TN_OK);
    tn_context_release(context);
    assert_all(NULL, inside);
    set("cudnn.benchmark_limit=9");
    assert_all(NULL, inside);
    enter(&inner, "inference=true");
    assert_int_equal(tn_get_inference(NULL), 1);
    assert_int_equal(limit(), 3);
    assert_int_equal(tn_get_cudnn_benchmark_limit(NULL), 10);
    set("cudnn.benchmark_limit=8");
    assert_int_equal(tn_get_cudnn_benchmark_limit(NULL), 10);
    tn_scope_leave(&scope);
    assert_int_equal(tn_get_inference(NULL), 1);
    assert_int_equal(limit(), 10);
    assert_int_equal(tn_get_cudnn_benchmark_limit(NULL), 8);
    tn_scope_leave(&inner);
    reset(NULL);
}

static void a_derived_context_is_its_own(void **state)
{
    tn_scope scope = {0};
    char one[ALL_TEXT];
    (void)state;
    tn_context *first = derived(NULL, "tuning.limit=3");
    tn_context *second = derived(first, "inference=true");
    write_all(first, one);
    assert_int_equal(tn_get_tuning_limit(second), 3);
    assert_int_equal(tn_get_inference(second), 1);
    assert_int_equal(tn_get_inference(first), 0);
    assert_int_equal(origin_in(second, TN_SETTING_TUNING_LIMIT).level, TN_LEVEL_CALL);
    assert_ptr_equal(tn_context_retain(first), first);
    tn_context_release(first);
    set("tuning.limit=4");
    enter(&scope, "tuning.limit=5");
    assert_all(first, one);
    tn_scope_leave(&scope);
    tn_context_release(first);
    assert_int_equal(tn_get_tuning_limit(second), 3);
    tn_context_release(second);
    reset(NULL);
}

/* What another thread does, step by step with this one. */
typedef struct partner {
    tni_thread thread;
    tni_mutex lock;
    tni_condition changed;
    int step;
    tn_scope *scope;
    tn_context *context;
    int64_t seen[4];
} partner;

static void go_on(partner *with, int step)
{
    tni_mutex_lock(&with->lock);
    with->step = step;
    tni_condition_wake_all(&with->changed);
    tni_mutex_unlock(&with->lock);
}

static void wait_for(partner *with, int step)
{
    tni_mutex_lock(&with->lock);
    while (with->step < step)
        tni_condition_wait(&with->changed, &with->lock);
    tni_mutex_unlock(&with->lock);
}

static void start(void (*run)(void *), partner *with)
{
    tni_mutex_init(&with->lock);
    tni_condition_init(&with->changed);
    assert_int_equal(tni_thread_create(&with->thread, run, with, NULL), TN_OK);
}

static void run_through(void (*run)(void *), partner *with)
{
    start(run, with);
    tni_thread_join(with->thread);
}

static void leave_it(void *user)
{
    partner *with = user;
    tn_scope own = {0};
    const tn_change change = tn_with_tuning_limit(77);
    (void)tn_scope_enter(&own, &change, 1, NULL);
    tn_scope_leave(with->scope);
    with->seen[0] = tn_get_tuning_limit(NULL);
    tn_scope_leave(&own);
    with->seen[1] = tn_get_tuning_limit(NULL);
}

static void a_scope_may_be_left_on_another_thread(void **state)
{
    tn_scope a = {0}, b = {0}, c = {0};
    partner with = {.scope = &b};
    (void)state;
    enter(&a, "tuning.limit=1");
    enter(&b, "inference=true");
    enter(&c, "cudnn.benchmark=true");
    run_through(leave_it, &with);
    assert_int_equal(with.seen[0], 77);
    assert_int_equal(with.seen[1], 10);
    assert_null(b.inside);
    assert_int_equal(tn_get_inference(NULL), 0);
    assert_int_equal(tn_get_cudnn_benchmark(NULL), 1);
    assert_int_equal(limit(), 1);
    enter(&b, "inference=true"); /* the same one again, and now innermost */
    run_through(leave_it, &(partner){.scope = &a});
    tn_scope_leave(&c);
    assert_int_equal(limit(), 10);
    assert_int_equal(tn_get_inference(NULL), 1);
    tn_scope_leave(&b);
    assert_int_equal(tn_get_inference(NULL), 0);
}

static void enter_and_end(void *user)
{
    partner *with = user;
    const tn_change changes[] = {tn_with_tuning_limit(3), tn_with_matmul_library(TN_PREFER, "mkl")};
    (void)tn_scope_enter(&with->scope[0], changes, 2, NULL);
    (void)tn_scope_enter_context(&with->scope[1], with->context, NULL);
    (void)tn_scope_enter(&with->scope[2], changes, 2, NULL);
    with->seen[0] = tn_get_tuning_limit(NULL);
    go_on(with, 1);
    wait_for(with, 2);
}

/* Whoever leaves it afterwards takes its memory; who left it before its end needs not. */
static void a_scope_ends_with_its_thread(void **state)
{
    tn_scope scopes[3] = {{0}};
    char before[ALL_TEXT];
    (void)state;
    write_all(NULL, before);
    int64_t blocks = tn_allocator_blocks();
    for (int left_before = 0; left_before < 2; left_before++) {
        partner with = {.scope = scopes, .context = captured()};
        start(enter_and_end, &with);
        wait_for(&with, 1);
        if (left_before)
            tn_scope_leave(&scopes[1]);
        go_on(&with, 2);
        tni_thread_join(with.thread);
        assert_int_equal(with.seen[0], 3);
        assert_all(NULL, before);
        for (int i = 0; i < 3; i++)
            tn_scope_leave(&scopes[i]);
        tn_context_release(with.context);
        assert_all(NULL, before);
        assert_int_equal(tn_allocator_blocks(), blocks);
    }
}

static void work_for_another(void *user)
{
    partner *with = user;
    tn_scope scope = {0};
    with->seen[0] = tn_get_tuning_limit(NULL);
    (void)tn_scope_enter_context(&scope, with->context, NULL);
    tn_context_release(with->context);
    with->seen[1] = tn_get_tuning_limit(NULL);
    go_on(with, 1);
    wait_for(with, 2);
    with->seen[2] = tn_get_cudnn_benchmark_limit(NULL);
    tn_scope_leave(&scope);
    with->seen[3] = tn_get_cudnn_benchmark_limit(NULL);
}

static void a_thread_s_view_is_handed_to_another(void **state)
{
    tn_scope scope = {0};
    (void)state;
    enter(&scope, "tuning.limit=3");
    partner with = {.context = captured()};
    tn_scope_leave(&scope);
    start(work_for_another, &with);
    wait_for(&with, 1);
    set("cudnn.benchmark_limit=7");
    go_on(&with, 2);
    tni_thread_join(with.thread);
    assert_int_equal(with.seen[0], 10);
    assert_int_equal(with.seen[1], 3);
    assert_int_equal(with.seen[2], 10);
    assert_int_equal(with.seen[3], 7);
    reset(NULL);
}

static jmp_buf escape;

static void jump_out(tn_scope *scope)
{
    enter(scope, "tuning.limit=3");
    longjmp(escape, 1);
}

/* As context.h says: it holds until its thread ends, and may be left as long as there is its tn_scope. */
static void longjmp_leaves_no_scope(void **state)
{
    static tn_scope scope, outer;
    (void)state;
    enter(&outer, "tuning.limit=2");
    if (setjmp(escape) == 0)
        jump_out(&scope);
    assert_int_equal(limit(), 3);
    tn_scope_leave(&outer);
    assert_int_equal(limit(), 3);
    tn_scope_leave(&scope);
    assert_int_equal(limit(), 10);
}

static void jump_on_a_thread(void *user)
{
    partner *with = user;
    jmp_buf here;
    const tn_change change = tn_with_tuning_limit(3);
    if (setjmp(here) == 0) {
        (void)tn_scope_enter(with->scope, &change, 1, NULL);
        longjmp(here, 1);
    }
    with->seen[0] = tn_get_tuning_limit(NULL);
}

static void after_longjmp_it_ends_with_the_thread(void **state)
{
    static tn_scope scope;
    partner with = {.scope = &scope};
    (void)state;
    run_through(jump_on_a_thread, &with);
    assert_int_equal(with.seen[0], 3);
    assert_int_equal(limit(), 10);
    tn_scope_leave(&scope); /* so that nothing is left of it */
}

#if !defined(_WIN32)

static void say_in_child(FILE *say, const void *user)
{
    tn_scope *scopes = *(tn_scope *const *)user, own = {0};
    const tn_change change = tn_with_tuning_limit(9);
    fprintf(say, "%lld %d; ", (long long)limit(), (int)tn_get_inference(NULL));
    fprintf(say, "%s ", tn_status_name(tn_scope_enter(&own, &change, 1, NULL)));
    fprintf(say, "%lld; ", (long long)limit());
    tn_scope_leave(&scopes[0]);
    fprintf(say, "%lld %d; ", (long long)limit(), (int)tn_get_inference(NULL));
    tn_scope_leave(&own);
    fprintf(say, "%lld; ", (long long)limit());
    fprintf(say, "%s ", tn_status_name(tn_settings_set("tuning.limit=8", NULL)));
    tn_scope_leave(&scopes[1]);
    fprintf(say, "%lld %d", (long long)limit(), (int)tn_get_inference(NULL));
}

static void a_child_is_in_the_scopes_of_who_forked(void **state)
{
    tn_scope scopes[2] = {{0}}, *both = scopes;
    (void)state;
    enter(&scopes[0], "tuning.limit=3");
    enter(&scopes[1], "inference=true");
    assert_string_equal(child_says(say_in_child, &both), "3 1; ok 9; 9 1; 10; ok 8 0");
    assert_int_equal(limit(), 3);
    assert_int_equal(tn_get_inference(NULL), 1);
    tn_scope_leave(&scopes[1]);
    tn_scope_leave(&scopes[0]);
    assert_int_equal(limit(), 10);
}

#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scopes_nest),
        cmocka_unit_test(scopes_are_left_in_any_order),
        cmocka_unit_test(a_scope_is_entered_once_and_left_once),
        cmocka_unit_test(the_process_is_seen_through_a_scope),
        cmocka_unit_test(a_captured_context_stays_what_it_was),
        cmocka_unit_test(a_derived_context_is_its_own),
        cmocka_unit_test(a_scope_may_be_left_on_another_thread),
        cmocka_unit_test(a_scope_ends_with_its_thread),
        cmocka_unit_test(a_thread_s_view_is_handed_to_another),
        cmocka_unit_test(longjmp_leaves_no_scope),
        cmocka_unit_test(after_longjmp_it_ends_with_the_thread),
#if !defined(_WIN32)
        cmocka_unit_test(a_child_is_in_the_scopes_of_who_forked),
#endif
    };
    forget_settings();
    return run_suite("unit.scopes", tests);
}
