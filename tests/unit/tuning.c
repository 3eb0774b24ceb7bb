/* Tuning under a clock of the test's own: what noise must not change, what is kept and for how long. */
#include "sim.h"

#include "fault/fault.h"
#include "os/cache/cache.h"
#include "os/thread.h"
#include "policy/tuning/store.h"
#include "policy/tuning/times.h"
#include "policy/tuning/tuning.h"
#include "policy/tuning/tuning_time.h"
#include "scratch.h"

static char folder[SCRATCH_PATH];
#define PROBLEM "unary:f32:kind=neg,shape=256@sim:0"

static const double rising[] = {1, 2, 3, 4}, hard[] = {30, 20, 10, 5};

/* As a process that begins on a machine where nothing was tuned. */
static void forget_all(void)
{
    tni_cache *cache = NULL;
    assert_int_equal(tni_cache_create(folder, 1 << 20, &cache, NULL), TN_OK);
    assert_int_equal(tni_cache_prune(cache, 0, NULL), TN_OK);
    tni_cache_release(cache);
    tni_times_forget();
}

static tn_status tune(sim_asked *asked)
{
    (void)sim_first(asked);
    return tni_tune(&asked->question, &asked->choice, NULL);
}

static bool is_due(sim_asked *asked)
{
    (void)sim_first(asked);
    return tni_tuning_is_due(&asked->question, &asked->choice);
}

static int64_t runs(void)
{
    int64_t all = 0;
    for (int i = 0; i < SIM_KERNELS; i++)
        all += sim[i].runs;
    return all;
}

/* The letters of all candidates, in the order in which they would be taken. */
static const char *order(sim_asked *asked)
{
    static char letters[SIM_KERNELS + 1];
    (void)sim_first(asked);
    for (size_t i = 0; i < asked->choice.admitted; i++) {
        const char *name = asked->choice.candidates[i].kernel->row->name;
        letters[i] = name[strlen(name) - 1];
    }
    letters[asked->choice.admitted] = '\0';
    return letters;
}

typedef struct scene {
    double scatter;
    double us[SIM_KERNELS];
    double predicted[SIM_KERNELS];
    const char *order;
} scene;

/* Under 20 stretches of noise, the same choices. */
static void assert_always(const scene *s)
{
    tn_context *context = sim_context(NULL, 0);
    for (uint64_t i = 1; i <= 20; i++) {
        sim_asked asked;
        forget_all();
        sim_set(s->us, s->predicted);
        sim_scatter = s->scatter;
        sim_noise(i * 7919);
        sim_ask(&asked, context, PROBLEM);
        assert_int_equal(tune(&asked), TN_OK);
        sim_noise(0);
        assert_false(is_due(&asked));
        if (strcmp(order(&asked), s->order) != 0)
            fail_msg("tune %d: %s instead of %s", (int)i, order(&asked), s->order);
    }
    tn_context_release(context);
}

static void ties_keep_the_predicted_order(void **state)
{
    (void)state;
    assert_always(&(scene){0.04, {10, 9.9, 10.1, 10}, {1, 2, 3, 4}, "abcd"});
    assert_always(&(scene){0.04, {10, 9.9, 10.1, 10}, {4, 3, 2, 1}, "dcba"});
    assert_always(&(scene){0.04, {10, 9.8, 20, 20.3}, {2, 3, 4, 1}, "abdc"});
}

static void differences_of_a_fifth_are_found(void **state)
{
    (void)state;
    assert_always(&(scene){0.04, {12, 10, 14.4, 17.3}, {1, 2, 3, 4}, "bacd"});
    assert_always(&(scene){0.04, {0.5, 0.7, 0.6, 0.72}, {4, 1, 3, 2}, "acbd"});
    assert_always(&(scene){0.04, {9000, 7500, 11000, 200000}, {1, 2, 3, 4}, "bacd"});
}

/* What fifteen rounds cannot tell, more of them can. */
static void noisier_kernels_are_timed_for_longer(void **state)
{
    (void)state;
    assert_always(&(scene){0.14, {340, 300, 400, 480}, {1, 2, 3, 4}, "bacd"});
}

/* What is clearly beaten is not timed again for the sake of those that are close. */
static void close_ones_are_timed_for_longer(void **state)
{
    tn_context *context = sim_context(NULL, 0);
    sim_asked asked;
    (void)state;
    forget_all();
    sim_set((double[]){310, 300, 900, 1200}, rising);
    sim_scatter = 0.14;
    sim_noise(7919);
    sim_ask(&asked, context, PROBLEM);
    assert_int_equal(tune(&asked), TN_OK);
    sim_noise(0);
    assert_true(sim[0].runs >= 100 && sim[1].runs == sim[0].runs);
    assert_in_range(sim[2].runs, 15, 40);
    assert_in_range(sim[3].runs, 15, 40);
    assert_string_equal(order(&asked) + 2, "cd");
    tn_context_release(context);
}

/* A device that gets slower by and by: what was beaten early stays so beside what was timed for longer. */
static void what_is_beaten_stays_behind(void **state)
{
    tn_context *context = sim_context(NULL, 0);
    sim_asked asked;
    (void)state;
    forget_all();
    sim_set((double[]){310, 300, 450, 1200}, rising);
    sim_scatter = 0.14;
    sim_wear = 0.005;
    sim_noise(7919);
    sim_ask(&asked, context, PROBLEM);
    assert_int_equal(tune(&asked), TN_OK);
    sim_noise(0);
    assert_true(sim[0].runs >= 2 * sim[2].runs);
    assert_string_equal(order(&asked) + 2, "cd");
    tn_context_release(context);
}

/* Nor does it lose its time when all that was timed for longer fails. */
static void what_is_beaten_outlives_the_others(void **state)
{
    tn_context *context = sim_context(NULL, 0);
    sim_asked asked;
    (void)state;
    forget_all();
    sim_set((double[]){310, 300, 900, 1200}, rising);
    for (int i = 0; i < 2; i++) {
        sim[i].fails_at = 60;
        sim[i].failure = TN_BUSY;
    }
    sim_scatter = 0.14;
    sim_noise(7919);
    sim_ask(&asked, context, PROBLEM);
    assert_int_equal(tune(&asked), TN_OK);
    sim_noise(0);
    assert_int_equal(sim[0].runs, 60);
    assert_string_equal(order(&asked), "cdab");
    tn_context_release(context);
}

static void samples_become_times(void **state)
{
    const double one[] = {10, 10, 10, 12, 12, 12, 10.2, 10.2, 10.2};
    /* The second is 10 % slower, as far as that can be told. */
    const double wild[] = {10, 14, 9, 10, 15, 9.2, 12, 13.6, 12.2};
    const double near[] = {1000, 1000, 1000, 1004, 1004, 1004, 1006, 1006, 1006};
    int64_t ns[4];
    (void)state;
    assert_true(tni_times_resolve(near, 3, 1, 3, 0.005, ns));
    assert_int_equal(ns[1], 1000);
    assert_int_equal(ns[2], 1006);
    assert_true(tni_times_resolve(one, 3, 1, 3, 0.025, ns));
    assert_int_equal(ns[0], 10);
    assert_int_equal(ns[1], 12);
    assert_int_equal(ns[2], 10); /* ties with the first */
    assert_false(tni_times_resolve(wild, 3, 1, 3, 0.025, ns));
    assert_int_equal(ns[1], ns[0]);
    assert_true(tni_times_resolve((const double[]){1e-3}, 1, 1, 1, 0.025, ns));
    assert_int_equal(ns[0], 1);
}

/* However often it is measured at each of four places: the first pair leads by turns, of the second one does everywhere. */
static void a_lead_at_some_places_is_none(void **state)
{
    enum { ROUNDS = 48, PLACES = 4 };
    static const double turns[PLACES] = {0.97, 1.01, 1.02, 0.97},
                        ahead[] = {0.97, 0.96, 0.97, 0.98};
    double samples[2 * ROUNDS];
    int64_t ns[2];
    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        samples[i] = 1000;
        samples[ROUNDS + i] = 1000 * turns[i % PLACES];
    }
    (void)tni_times_resolve(samples, ROUNDS, PLACES, 2, 0.005, ns);
    assert_int_equal(ns[0], ns[1]);
    for (int i = 0; i < ROUNDS; i++)
        samples[ROUNDS + i] = 1000 * ahead[i % PLACES];
    (void)tni_times_resolve(samples, ROUNDS, PLACES, 2, 0.005, ns);
    assert_int_equal(ns[0], 1000);
    assert_int_equal(ns[1], 970);
}

/* Who does not say that it has its memory to itself is taken for one that shares it. */
static void ties_are_finer_on_a_device_apart(void **state)
{
    tn_device apart = {.properties = {.known = TN_DEVICE_KNOWS(is_integrated)}}, silent = {0};
    tn_device shares = apart;
    (void)state;
    shares.properties.is_integrated = 1;
    assert_true(tni_times_tie(&apart) < 0.01);
    assert_true(tni_times_tie(&silent) == tni_times_tie(&shares));
    assert_true(tni_times_tie(&silent) > 2 * tni_times_tie(&apart));
}

static void only_so_many_are_timed(void **state)
{
    tn_context *context = sim_context(TN_CHANGES(tn_with_tuning_limit(2)));
    sim_asked asked;
    (void)state;
    forget_all();
    sim_set(hard, rising);
    sim_ask(&asked, context, PROBLEM);
    assert_true(is_due(&asked));
    assert_int_equal(tune(&asked), TN_OK);
    assert_true(sim[0].runs > 0 && sim[1].runs > 0);
    assert_int_equal(sim[2].runs + sim[3].runs, 0);
    assert_string_equal(order(&asked), "bacd"); /* what was timed comes first */
    assert_false(is_due(&asked));
    tn_context_release(context);
}

static void nothing_is_timed_without_need(void **state)
{
    tn_context *off = sim_context(TN_CHANGES(tn_with_tuning_enabled(0)));
    tn_context *on = sim_context(TN_CHANGES(tn_with_rule(TN_REQUIRE, "kernel:sim.unary.c")));
    sim_asked asked;
    (void)state;
    forget_all();
    sim_set((double[]){1, 1, 1, 1}, rising);
    sim_ask(&asked, off, PROBLEM);
    assert_false(is_due(&asked));
    sim_ask(&asked, on, PROBLEM); /* there is nothing to choose */
    assert_int_equal(sim_first(&asked), 'c');
    assert_false(is_due(&asked));
    sim_set((double[]){1, 1, 1, 1}, (double[]){1, 2, 3e5, 4e5}); /* a call would take too long */
    tn_context *both = sim_context(NULL, 0);
    sim_ask(&asked, both, PROBLEM);
    assert_int_equal(tune(&asked), TN_OK);
    assert_int_equal(sim[2].runs + sim[3].runs, 0);
    tn_context_release(both);
    tn_context_release(on);
    tn_context_release(off);
}

static void times_outlive_the_process(void **state)
{
    tn_context *context = sim_context(NULL, 0);
    sim_asked asked;
    (void)state;
    forget_all();
    sim_set(hard, rising);
    sim_ask(&asked, context, PROBLEM);
    assert_int_equal(tune(&asked), TN_OK);
    assert_string_equal(order(&asked), "dcba");
    int64_t before = runs();
    tni_times_forget();
    assert_false(is_due(&asked));
    assert_string_equal(order(&asked), "dcba");
    double level = 0;
    assert_int_equal(tni_tuned_us(&asked.question, asked.choice.candidates[0].kernel, &level), 5);
    assert_int_equal(level, 5);
    assert_int_equal(runs(), before);
    tn_context_release(context);
}

/* Kernels that take any memory in the same way are timed once for a shape, wherever its operands lie. */
static void alignments_are_not_timed_apart(void **state)
{
    tn_context *context = sim_context(NULL, 0);
    sim_asked asked;
    char problem[96];
    (void)state;
    forget_all();
    sim_set(hard, rising);
    sim_ask(&asked, context, PROBLEM);
    assert_int_equal(tune(&asked), TN_OK);
    int64_t before = runs();
    for (int in = 1; in <= 64; in *= 2) {
        for (int out = 1; out <= 64; out *= 2) {
            snprintf(problem, sizeof problem, "unary:f32:kind=neg,shape=256,align=%d;%d@sim:0", in,
                     out);
            sim_ask(&asked, context, problem);
            assert_false(is_due(&asked));
            assert_int_equal(tune(&asked), TN_OK);
            assert_string_equal(order(&asked), "dcba");
        }
    }
    assert_int_equal(runs(), before);
    tn_context_release(context);
}

/* What a time depends on makes it another one; what it does not, does not. */
static void times_are_kept_by_what_they_depend_on(void **state)
{
    tn_context *context = sim_context(NULL, 0);
    tn_context *strict = sim_context(TN_CHANGES(tn_with_determinism(TN_RUN_TO_RUN)));
    tn_context *limited = sim_context(
        TN_CHANGES(tn_with_tuning_limit(3), tn_with_rule(TN_PREFER, "kernel:sim.unary.b")));
    sim_asked asked;
    (void)state;
    forget_all();
    sim_set(hard, rising);
    sim_ask(&asked, context, PROBLEM);
    assert_int_equal(tune(&asked), TN_OK);
    sim_ask(&asked, limited, PROBLEM);
    assert_false(is_due(&asked));
    assert_string_equal(order(&asked), "bdca"); /* a preference goes before a time */
    sim_ask(&asked, strict, PROBLEM);
    assert_true(is_due(&asked));
    sim_ask(&asked, context, "unary:f32:kind=neg,shape=257@sim:0");
    assert_true(is_due(&asked));
    sim_ask(&asked, context, "unary:f32:kind=neg,shape=256@sim:1"); /* a device like the first */
    assert_false(is_due(&asked));
    sim_ask(&asked, context, PROBLEM);
    sim_version(3, 2);
    assert_true(is_due(&asked));
    assert_string_equal(order(&asked), "cbad");
    tni_times_forget();
    assert_true(is_due(&asked));
    assert_int_equal(tune(&asked), TN_OK);
    assert_string_equal(order(&asked), "dcba");
    tn_context_release(limited);
    tn_context_release(strict);
    tn_context_release(context);
}

static void what_fails_is_left_out(void **state)
{
    tn_context *context = sim_context(NULL, 0);
    sim_asked asked;
    (void)state;
    for (int64_t at = 1; at < 40; at += 13) { /* at once, and in the middle */
        forget_all();
        sim_set(hard, rising);
        sim[3].fails_at = at;
        sim[3].failure = TN_OUT_OF_MEMORY;
        sim_ask(&asked, context, PROBLEM);
        assert_int_equal(tune(&asked), TN_OK);
        assert_string_equal(order(&asked), "cbad");
        assert_false(is_due(&asked)); /* nor is it tried over and over */
    }
    forget_all();
    sim_set(hard, rising);
    sim_memory_left = 1;
    tn_memory_trim(asked.question.device);
    assert_int_equal(tune(&asked), TN_OUT_OF_MEMORY);
    assert_string_equal(order(&asked), "abcd");
    sim_memory_left = -1;
    assert_int_equal(tune(&asked), TN_OK);
    assert_string_equal(order(&asked), "dcba");
    tn_context_release(context);
}

/* One that was timed already when it fails, as more rounds were needed. */
static void what_fails_late_has_no_time(void **state)
{
    enum { FIRST_ROUNDS = 2 + 15 };
    tn_context *context = sim_context(NULL, 0);
    sim_asked asked;
    int late = 0;
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        forget_all();
        sim_set((double[]){340, 300, 400, 480}, rising);
        sim[1].fails_at = FIRST_ROUNDS + 3;
        sim[1].failure = TN_BUSY;
        sim_scatter = 0.14;
        sim_noise(seed * 7919);
        sim_ask(&asked, context, PROBLEM);
        assert_int_equal(tune(&asked), TN_OK);
        sim_noise(0);
        late += sim[1].runs == sim[1].fails_at;
        assert_string_equal(order(&asked), sim[1].runs < sim[1].fails_at ? "bacd" : "acdb");
    }
    assert_true(late > 0 && late < 20);
    tn_context_release(context);
}

static int64_t kept_ns(const sim_asked *asked, const tni_kernel *kernel)
{
    int64_t level;
    return tni_times_find(&asked->question, kernel, &level);
}

static int64_t kept_level(const sim_asked *asked, const tni_kernel *kernel)
{
    int64_t level = -7;
    (void)tni_times_find(&asked->question, kernel, &level);
    return level;
}

/* Times that come one after the other tie as those of one tune do. */
static void times_of_several_tunes_tie(void **state)
{
    tn_context *context = sim_context(NULL, 0);
    sim_asked asked;
    tni_timed timed[SIM_KERNELS];
    (void)state;
    forget_all();
    sim_set(rising, rising);
    sim_ask(&asked, context, PROBLEM);
    assert_int_equal(sim_first(&asked), 'a');
    for (size_t i = 0; i < SIM_KERNELS; i++)
        timed[i] = (tni_timed){.kernel = asked.choice.candidates[i].kernel,
                               .library_version = i % 2 ? 321 : -1,
                               .ns = (const int64_t[]){1000, 1010, 990, 1030}[i]};
    assert_int_equal(tni_times_keep(&asked.question, timed, 2, NULL), TN_OK);
    assert_int_equal(kept_level(&asked, timed[0].kernel), 1000);
    assert_int_equal(kept_level(&asked, timed[1].kernel), 1000);
    assert_int_equal(tni_times_keep(&asked.question, timed + 2, 2, NULL), TN_OK);
    for (int again = 0; again < 2; again++) {
        for (size_t i = 0; i < 3; i++)
            assert_int_equal(kept_level(&asked, timed[i].kernel), 990);
        assert_int_equal(kept_level(&asked, timed[3].kernel), 1030);
        for (size_t i = 0; i < SIM_KERNELS; i++) /* and what is told is what was measured */
            assert_int_equal(kept_ns(&asked, timed[i].kernel), timed[i].ns);
        tni_times_forget(); /* then from the cache directory */
    }
    timed[3].ns = TNI_TIME_FAILED; /* which does not void a time */
    assert_int_equal(tni_times_keep(&asked.question, timed + 3, 1, NULL), TN_OK);
    assert_int_equal(kept_ns(&asked, timed[3].kernel), 1030);
    timed[3].library_version = 322; /* but another version does */
    assert_int_equal(tni_times_keep(&asked.question, timed + 3, 1, NULL), TN_OK);
    assert_int_equal(kept_ns(&asked, timed[3].kernel), TNI_TIME_UNKNOWN);
    assert_int_equal(kept_level(&asked, timed[3].kernel), -7);
    tn_context_release(context);
}

/* The whole way: what is prepared is timed, and its plan is of the fastest. */
static void preparing_tunes(void **state)
{
    tn_context *context = sim_context(NULL, 0);
    sim_asked asked;
    tni_plan *plan = NULL;
    tn_error err;
    (void)state;
    forget_all();
    sim_set((double[]){30, 20, 10, 15}, rising);
    uint64_t generation = tni_dispatch_generation();
    if (tn_prepare(context, PROBLEM, &err))
        fail_msg("%s", err.message);
    assert_true(runs() > 0);
    assert_true(tni_dispatch_generation() != generation);
    int64_t before = runs();
    sim_ask(&asked, context, PROBLEM);
    assert_int_equal(tni_plan_make(&asked.question, &plan, &err), TN_OK);
    assert_string_equal(tni_plan_kernel(plan)->row->name, "sim.unary.c");
    assert_int_equal(runs(), before);
    tni_plan_release(plan);
    tn_context_release(context);
}

static void want_of_memory_is_not_fatal(void **state)
{
    tn_context *context = sim_context(NULL, 0);
    sim_asked asked;
    long n = 1;
    (void)state;
    sim_set(hard, rising);
    sim_ask(&asked, context, PROBLEM);
    assert_int_equal(tune(&asked), TN_OK);
    for (bool fired = true; fired; n++) {
        forget_all();
        (void)sim_first(&asked);
        for (int i = 0; i < SIM_KERNELS; i++)
            sim[i].runs = 0;
        fault_arm(&fault_memory, n, false, 0);
        tn_status status = tni_tune(&asked.question, &asked.choice, NULL);
        fired = fault_end(&fault_memory);
        assert_true(status == TN_OK || (fired && status == TN_OUT_OF_MEMORY));
        tni_times_forget();
        assert_int_equal(tune(&asked), TN_OK); /* with what was kept, or anew */
        tni_times_forget();
    }
    assert_true(n > 10);
    forget_all();
    assert_int_equal(tune(&asked), TN_OK);
    assert_string_equal(order(&asked), "dcba");
    tn_context_release(context);
}

static void nothing_is_left_behind(void **state)
{
    tn_context *context = sim_context(NULL, 0);
    sim_asked asked;
    (void)state;
    sim_set(hard, rising);
    sim_ask(&asked, context, PROBLEM);
    forget_all();
    assert_int_equal(tune(&asked), TN_OK);
    tni_times_forget();
    tn_memory_trim(asked.question.device);
    struct fault_state before = fault_look();
    for (int i = 0; i < 3; i++) {
        forget_all();
        assert_int_equal(tune(&asked), TN_OK);
        tni_times_forget();
        tn_memory_trim(asked.question.device);
    }
    assert_int_equal(fault_left(before, "tune", 0), 0);
    tn_context_release(context);
}

static _Atomic int wrong;

static void tune_many(void *user)
{
    const tn_context *context = user;
    for (int i = 1; i <= 8; i++) {
        char problem[64];
        sim_asked asked;
        snprintf(problem, sizeof problem, "unary:f32:kind=neg,shape=%d@sim:0", 64 * i);
        sim_ask(&asked, context, problem);
        wrong += tune(&asked) || is_due(&asked);
    }
}

static void threads_take_turns(void **state)
{
    enum { THREADS = 4 };
    tn_context *context = sim_context(NULL, 0);
    tni_thread threads[THREADS];
    (void)state;
    forget_all();
    sim_set((double[]){300, 200, 100, 500}, rising);
    sim_pause = 20000;
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(tni_thread_create(&threads[i], tune_many, context, NULL), TN_OK);
    for (int i = 0; i < THREADS; i++)
        tni_thread_join(threads[i]);
    int64_t before = runs();
    tune_many(context);
    assert_int_equal(wrong, 0);
    assert_int_equal(runs(), before); /* each was timed, by whoever came first */
    tn_context_release(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_become_times),
        cmocka_unit_test(a_lead_at_some_places_is_none),
        cmocka_unit_test(ties_are_finer_on_a_device_apart),
        cmocka_unit_test(ties_keep_the_predicted_order),
        cmocka_unit_test(differences_of_a_fifth_are_found),
        cmocka_unit_test(noisier_kernels_are_timed_for_longer),
        cmocka_unit_test(close_ones_are_timed_for_longer),
        cmocka_unit_test(only_so_many_are_timed),
        cmocka_unit_test(nothing_is_timed_without_need),
        cmocka_unit_test(times_outlive_the_process),
        cmocka_unit_test(alignments_are_not_timed_apart),
        cmocka_unit_test(times_are_kept_by_what_they_depend_on),
        cmocka_unit_test(what_fails_is_left_out),
        cmocka_unit_test(what_fails_late_has_no_time),
        cmocka_unit_test(times_of_several_tunes_tie),
        cmocka_unit_test(preparing_tunes),
        cmocka_unit_test(want_of_memory_is_not_fatal),
        cmocka_unit_test(nothing_is_left_behind),
        cmocka_unit_test(threads_take_turns),
        cmocka_unit_test(what_is_beaten_stays_behind),
        cmocka_unit_test(what_is_beaten_outlives_the_others),
    };
    fault_memory_install();
    scratch_make(folder);
    setenv("TENON_CACHE", folder, 1);
    sim_begin();
    int failed = run_suite("unit.tuning", tests);
    sim_end();
    scratch_remove(folder);
    return failed;
}
