/* Cost of settings: reading one, entering a scope, deriving a context, changing the process
 * settings. */
#include "harness.h"

#include "tenon/tenon.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#include "os/thread.h"
#include "settings/context.h"

static volatile int64_t sink;

/* Volatile, so that the compiler cannot optimize the call away. */
static int64_t nothing(const tn_context *context, tn_setting setting)
{
    return context ? setting : 0;
}
static int64_t (*volatile empty)(const tn_context *context, tn_setting setting) = nothing;

static void call_nothing(void *user, int64_t times)
{
    for (int64_t i = 0; i < times; i++)
        sink = empty(user, TN_SETTING_DETERMINISM);
}

static void read_one(void *user, int64_t times)
{
    for (int64_t i = 0; i < times; i++)
        sink = tn_get_determinism(user);
}

static void resolve_one(void *user, int64_t times)
{
    for (int64_t i = 0; i < times; i++)
        sink = tn_setting_resolved(user, TN_SETTING_CUDA_MATMUL_FP32_PRECISION);
}

static void scope(void *user, int64_t times)
{
    (void)user;
    for (int64_t i = 0; i < times; i++) {
        tn_scope in = {0};
        (void)tn_scope_enter(
            &in,
            TN_CHANGES(tn_with_fp32_precision(TN_FP32_IEEE), tn_with_determinism(TN_RUN_TO_RUN)),
            NULL);
        tn_scope_leave(&in);
    }
}

static void derive(void *user, int64_t times)
{
    for (int64_t i = 0; i < times; i++) {
        tn_context *made = NULL;
        (void)tn_context_derive(
            user,
            TN_CHANGES(tn_with_fp32_precision(TN_FP32_IEEE), tn_with_determinism(TN_RUN_TO_RUN)),
            &made, NULL);
        tn_context_release(made);
    }
}

static void derive_with_rule(void *user, int64_t times)
{
    for (int64_t i = 0; i < times; i++) {
        tn_context *made = NULL;
        (void)tn_context_derive(user, TN_CHANGES(tn_with_matmul_library(TN_PREFER, "mkl,openblas")),
                                &made, NULL);
        tn_context_release(made);
    }
}

static void change(void *user, int64_t times)
{
    (void)user;
    for (int64_t i = 0; i < times; i++)
        (void)tn_settings_change(TN_CHANGES(tn_with_debug_sample(i & 1)), NULL);
}

/* The minimum cost of a new context: an allocation of its size. */
static void allocate(void *user, int64_t times)
{
    (void)user;
    for (int64_t i = 0; i < times; i++) {
        void *volatile memory = malloc(sizeof(tn_context));
        free(memory);
    }
}

/* A thread that changes the process settings as fast as it can. */
static struct {
    tni_thread thread;
    _Atomic bool stop;
} writer;

static void write_on(void *user)
{
    (void)user;
    while (!atomic_load(&writer.stop))
        change(NULL, 1);
}

static void start_writer(void *user)
{
    (void)user;
    atomic_store(&writer.stop, false);
    if (tni_thread_create(&writer.thread, write_on, NULL, NULL) != TN_OK)
        atomic_store(&writer.stop, true);
}

static void stop_writer(void *user)
{
    (void)user;
    if (!atomic_exchange(&writer.stop, true))
        tni_thread_join(writer.thread);
}

int main(void)
{
    static tn_context *context;
    const bench_side bare = {.name = "an empty call", .run = call_nothing};
    const bench_side block = {.name = "malloc and free", .run = allocate};
    const bench_side none = {0};
    const bench_side beside[] = {block, none};
    (void)tn_context_capture(&context, NULL);
    const bench_figure figures[] = {
        {.name = "read a setting",
         .kind = BENCH_TIME,
         .aim = 5,
         .unit = "ns",
         .ours = {.name = "tn_get_determinism", .run = read_one},
         .rival = none,
         .beside = (const bench_side[]){bare, none}},
        {.name = "read of a given context",
         .kind = BENCH_TIME,
         .aim = 5,
         .unit = "ns",
         .ours = {.name = "tn_get_determinism", .run = read_one, .user = context},
         .rival = none,
         .beside = (const bench_side[]){bare, none}},
        {.name = "resolve a precision",
         .kind = BENCH_TIME,
         .aim = 20,
         .unit = "ns",
         .ours = {.name = "tn_setting_resolved", .run = resolve_one},
         .rival = none,
         .beside = (const bench_side[]){bare, none}},
        {.name = "scope with two changes",
         .kind = BENCH_TIME,
         .aim = 150,
         .unit = "ns",
         .ours = {.name = "enter and leave", .run = scope},
         .rival = none,
         .beside = beside},
        {.name = "derive a context",
         .kind = BENCH_TIME,
         .aim = 300,
         .unit = "ns",
         .ours = {.name = "tn_context_derive", .run = derive},
         .rival = none,
         .beside = beside},
        {.name = "derive one with rules",
         .kind = BENCH_TIME,
         .aim = 1000,
         .unit = "ns",
         .ours = {.name = "tn_context_derive", .run = derive_with_rule},
         .rival = none,
         .beside = beside},
        {.name = "change the process's",
         .kind = BENCH_TIME,
         .aim = 1000,
         .unit = "ns",
         .ours = {.name = "tn_settings_change", .run = change},
         .rival = none,
         .beside = beside},
        {.name = "read while another changes",
         .kind = BENCH_TIME,
         .aim = 1000,
         .unit = "ns",
         .ours = {.name = "tn_get_determinism",
                  .run = read_one,
                  .begin = start_writer,
                  .end = stop_writer},
         .rival = none,
         .beside = (const bench_side[]){bare, none}},
    };
    for (size_t i = 0; i < sizeof figures / sizeof figures[0]; i++)
        bench_run(&figures[i]);
    tn_context_release(context);
    (void)tn_settings_reset(NULL, NULL);
    return bench_end();
}
