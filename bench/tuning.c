/* Tuning on the real clock: a problem is tuned many times, each time with nothing known about it.
 * Measures how often the same kernel is chosen, and how long one tuning takes. */
#include "harness.h"

#include "os/clock.h"
#include "policy/tuning/store.h"
#include "tenon/tenon.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TUNES = 20, KERNEL = 104 };

static void broken(const tn_error *err)
{
    fprintf(stderr, "bench: %s\n", err->message);
    exit(1);
}

/* Result of one tuning. */
typedef struct tune {
    char kernel[KERNEL];
    double ms;
} tune;

static int by_time(const void *a, const void *b)
{
    double x = ((const tune *)a)->ms, y = ((const tune *)b)->ms;
    return (x > y) - (x < y);
}

/* Returns the number of candidates that could be chosen, and the name of the chosen one. */
static int look(const tn_context *context, const char *problem, char out[KERNEL])
{
    tn_decision *decision = NULL;
    tn_error err;
    int count = 0;
    if (tn_explain(context, problem, &decision, &err))
        broken(&err);
    for (size_t i = 0; i < tn_decision_count(decision); i++)
        count += !tn_decision_candidate(decision, i)->why;
    snprintf(out, KERNEL, "%s", tn_decision_chosen(decision)->kernel);
    tn_decision_release(decision);
    return count;
}

static void tune_once(const tn_context *context, const char *problem, tune *out)
{
    tn_error err;
    tni_times_forget();
    tn_plan_cache_clear(NULL, TN_OP_NONE);
    int64_t began = tni_clock_ns();
    if (tn_prepare(context, problem, &err))
        broken(&err);
    out->ms = (double)(tni_clock_ns() - began) / 1e6;
    (void)look(context, problem, out->kernel);
}

/* Returns how many tunings made the most frequent choice; *out is the index of one of them. */
static int count_same(const tune *tunes, int *out)
{
    int most = 0;
    for (int i = 0; i < TUNES; i++) {
        int same = 0;
        for (int j = 0; j < TUNES; j++)
            same += strcmp(tunes[i].kernel, tunes[j].kernel) == 0;
        if (same > most) {
            most = same;
            *out = i;
        }
    }
    return most;
}

static void measure(const tn_context *tuned, const char *problem)
{
    tune tunes[TUNES];
    char predicted[KERNEL];
    int winner = 0, count = look(NULL, problem, predicted);
    if (count < 2) {
        printf("%-48s lacking: a second candidate\n", problem);
        return;
    }
    for (int i = 0; i < TUNES; i++)
        tune_once(tuned, problem, &tunes[i]);
    int same = count_same(tunes, &winner);
    printf("%-48s %s of %d in %d of %d tunes, %s predicted  ", problem, tunes[winner].kernel, count,
           same, TUNES, strcmp(tunes[winner].kernel, predicted) == 0 ? "as" : predicted);
    qsort(tunes, TUNES, sizeof tunes[0], by_time);
    printf("one tune %.1f ms (%.1f to %.1f)  aim %d of %d  %s\n", tunes[TUNES / 2].ms, tunes[0].ms,
           tunes[TUNES - 1].ms, TUNES, TUNES, same == TUNES ? "reached" : "not reached");
    fflush(stdout);
}

int main(void)
{
    static const char *const problems[] = {
        "matmul:f32:m=16,n=16,k=16@cpu:0",
        "matmul:f32:m=256,n=256,k=256@cpu:0",
        "matmul:f64:m=1,n=512,k=512@cpu:0",
        "permute:f32:shape=512x512,order=1;0@cpu:0",
        "cast:f32:shape=65536,to=bf16@cpu:0",
        "unary:f32:kind=exp,shape=4096@cpu:0",
        "reduce:f32:kind=sum,shape=64x1024,axes=1@cpu:0",
        "softmax:f32:shape=64x1024@cpu:0",
        "norm:f32:kind=rms,shape=64x1024,weight=1@cpu:0",
    };
    const tn_change change = tn_with_tuning_enabled(1);
    tn_context *tuned = NULL;
    tn_error err;
    setenv("TENON_CACHE", "", 1); /* disables the cache */
    if (tn_context_derive(NULL, &change, 1, &tuned, &err))
        broken(&err);
    for (size_t i = 0; i < sizeof problems / sizeof problems[0]; i++)
        measure(tuned, problems[i]);
    tn_context_release(tuned);
    return bench_end();
}
