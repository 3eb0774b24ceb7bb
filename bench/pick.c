/* The dispatcher's choice compared with the best available kernel, on 200 random products: f32,
 * f64, bf16 and i8, B plain or transposed. Untuned it uses the rows' predictions, tuned its own
 * measurements. Candidates run alternately; a candidate's time is its minimum over several samples.
 * A result outside its aim is measured again, longer, before it counts. The seed is an optional
 * argument. */
#include "harness.h"

#include "os/clock.h"
#include "tenon/tenon.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SHAPES = 200,
    KERNELS = 48,
    CANDIDATES = 32,
    NAME = 104,
    ROUNDS = 7,
    LOOKS = 4,
    SIDE_MOST = 1500
};
static const double sample_ns = 1e5, flops_most = 2e8, flops_least = 1;

/* A kernel, and settings that permit only this kernel. */
typedef struct choice {
    char name[NAME];
    tn_context *context;
} choice;

static choice choices[KERNELS];
static int choice_count;
static char *memory[3];
static uint64_t seed = 1;

static void broken(const tn_error *err)
{
    fprintf(stderr, "bench: %s\n", err->message);
    exit(1);
}

static double uniform(void)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(seed >> 11) * 0x1p-53;
}

/* One product. Must not be moved: the tensors point to its shapes. */
typedef struct product {
    int64_t shapes[3][2];
    tn_tensor tensors[3];
    tn_matmul_args args;
    char text[96];
} product;

static void make(product *it)
{
    static const tn_dtype dtypes[] = {TN_F32, TN_F32, TN_F64, TN_BF16,
                                      TN_F32, TN_F32, TN_F64, TN_I8};
    const tn_dtype dtype = dtypes[(int)(uniform() * 8)];
    const bool turned = uniform() < 0.25;
    int64_t m, n, k;
    double flops;
    do {
        m = (int64_t)exp(uniform() * log(SIDE_MOST));
        n = (int64_t)exp(uniform() * log(SIDE_MOST));
        k = (int64_t)exp(uniform() * log(SIDE_MOST));
        flops = 2.0 * (double)m * (double)n * (double)k;
    } while (flops > flops_most || flops < flops_least);
    const int64_t shapes[3][2] = {{m, k}, {turned ? n : k, turned ? k : n}, {m, n}};
    memcpy(it->shapes, shapes, sizeof shapes);
    for (int i = 0; i < 3; i++)
        it->tensors[i] = (tn_tensor){.data = memory[i],
                                     .device_type = TN_DLPACK_CPU,
                                     .ndim = 2,
                                     .dtype = i == 2 && dtype == TN_I8 ? TN_I32 : dtype,
                                     .shape = it->shapes[i]};
    it->args = (tn_matmul_args){.struct_size = sizeof it->args,
                                .a = &it->tensors[0],
                                .b = &it->tensors[1],
                                .out = &it->tensors[2],
                                .transpose_b = turned};
    snprintf(it->text, sizeof it->text, "%s %lld x %lld x %lld%s", tn_dtype_name(dtype),
             (long long)m, (long long)n, (long long)k, turned ? " transposed" : "");
}

static int choice_of(const char *kernel)
{
    tn_error err;
    for (int i = 0; i < choice_count; i++) {
        if (strcmp(choices[i].name, kernel) == 0)
            return i;
    }
    choice *made = &choices[choice_count];
    const tn_change change = tn_with_rules(TN_REQUIRE, made->name);
    if (choice_count == KERNELS)
        exit(1);
    snprintf(made->name, sizeof made->name, "%s", kernel);
    if (tn_context_derive(NULL, &change, 1, &made->context, &err))
        broken(&err);
    return choice_count++;
}

/* The candidates that could be chosen; the first is the chosen one. */
static int candidates_of(const tn_context *context, const product *it, int out[CANDIDATES])
{
    tn_decision *decision = NULL;
    tn_error err;
    if (tn_matmul_explain(context, &it->args, &decision, &err))
        broken(&err);
    int count = 0;
    out[count++] = choice_of(tn_decision_chosen(decision)->kernel);
    for (size_t i = 0; i < tn_decision_count(decision) && count < CANDIDATES; i++) {
        const tn_candidate *candidate = tn_decision_candidate(decision, i);
        if (!candidate->why && candidate != tn_decision_chosen(decision))
            out[count++] = choice_of(candidate->kernel);
    }
    tn_decision_release(decision);
    return count;
}

/* Nanoseconds per call. */
static double time_calls(const choice *by, const product *it, int64_t calls)
{
    tn_error err;
    const int64_t start = tni_clock_ns();
    for (int64_t i = 0; i < calls; i++) {
        if (tn_matmul(by->context, &it->args, &err))
            broken(&err);
    }
    return (double)(tni_clock_ns() - start) / (double)calls;
}

/* The minimum time of each. Candidates far from the best after a short first measurement are not
 * measured again, except the first. */
static void time_all(const product *it, const int *which, int count, int rounds, double *times)
{
    double best = HUGE_VAL;
    for (int i = 0; i < count; i++) {
        (void)time_calls(&choices[which[i]], it, 1);
        for (int look = 0; look < LOOKS; look++)
            times[i] = fmin(times[i], time_calls(&choices[which[i]], it, 1));
        best = fmin(best, times[i]);
    }
    const double far = 4 * best + 2e3;
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < count; i++) {
            if (i > 0 && times[i] > far)
                continue;
            const int64_t calls = (int64_t)(sample_ns / times[i]) + 1;
            times[i] = fmin(times[i], time_calls(&choices[which[i]], it, calls));
        }
    }
}

/* How much longer the first takes than the best, relative to the best; *out_best is the index of
 * the best. */
static double loss_of(const double *times, int count, int *out_best)
{
    *out_best = 0;
    for (int i = 1; i < count; i++) {
        if (times[i] < times[*out_best])
            *out_best = i;
    }
    return times[0] / times[*out_best] - 1;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void measure(const char *name, const tn_context *context, double aim)
{
    double losses[SHAPES], times[CANDIDATES];
    int within = 0;
    for (int s = 0; s < SHAPES; s++) {
        product it;
        tn_error err;
        int which[CANDIDATES], best = 0;
        make(&it);
        if (tn_matmul_prepare(context, &it.args, &err))
            broken(&err);
        const int count = candidates_of(context, &it, which);
        for (int i = 0; i < count; i++)
            times[i] = HUGE_VAL;
        for (int again = 0; again < 3; again++) {
            time_all(&it, which, count, ROUNDS << again, times);
            losses[s] = loss_of(times, count, &best);
            if (losses[s] <= aim)
                break;
        }
        within += losses[s] <= aim;
        if (losses[s] > aim)
            printf("    %-32s %s %.2f us, %s %.2f us\n", it.text, choices[which[0]].name,
                   times[0] / 1e3, choices[which[best]].name, times[best] / 1e3);
        fflush(stdout);
    }
    qsort(losses, SHAPES, sizeof losses[0], by_value);
    printf("%-48s %d of %d within %g %%; median %.1f %%, 95th of 100 %.1f %%, worst %.1f %%  %s\n",
           name, within, SHAPES, 100 * aim, 100 * losses[SHAPES / 2],
           100 * losses[SHAPES * 95 / 100], 100 * losses[SHAPES - 1],
           within == SHAPES ? "reached" : "not reached");
}

int main(int count, char **arguments)
{
    const tn_change change = tn_with_tuning_enabled(1);
    tn_context *tuned = NULL, *plain = NULL;
    tn_error err;
    if (count > 1)
        seed = strtoull(arguments[1], NULL, 0);
    const uint64_t first = seed;
    setenv("TENON_CACHE", "", 1); /* disables the cache */
    for (int i = 0; i < 3; i++) {
        memory[i] = calloc((size_t)SIDE_MOST * SIDE_MOST, 8);
        if (!memory[i])
            return 1;
        memset(memory[i], 0x3c, (size_t)SIDE_MOST * SIDE_MOST * 8); /* small numbers in any dtype */
    }
    if (tn_context_derive(NULL, NULL, 0, &plain, &err) ||
        tn_context_derive(NULL, &change, 1, &tuned, &err))
        broken(&err);
    printf("seed %llu\n", (unsigned long long)first);
    measure("the pick on random products, untuned", plain, 0.15);
    seed = first;
    measure("the pick on random products, tuned", tuned, 0.03);
    for (int i = 0; i < choice_count; i++)
        tn_context_release(choices[i].context);
    tn_context_release(plain);
    tn_context_release(tuned);
    for (int i = 0; i < 3; i++)
        free(memory[i]);
    return bench_end();
}
