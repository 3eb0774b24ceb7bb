/* Overhead of Tenon over a kernel's own time: a matmul with a cached plan compared with a direct
 * call of OpenBLAS, and the cost of explaining and of a new plan. */
#include "harness.h"

#include "tenon/tenon.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

/* cblas.h */
enum { ROW_MAJOR = 101, NO_TRANSPOSE = 111 };
typedef void sgemm_fn(int order, int transpose_a, int transpose_b, int m, int n, int k, float alpha,
                      const float *a, int lda, const float *b, int ldb, float beta, float *c,
                      int ldc);

typedef struct product {
    tn_tensor a, b, out;
    int size;
} product;

static sgemm_fn *sgemm;

static void broken(const tn_error *err)
{
    fprintf(stderr, "bench: %s\n", err->message);
    exit(1);
}

static void by_tenon(void *user, int64_t times)
{
    const product *p = user;
    tn_error err;
    for (int64_t i = 0; i < times; i++) {
        if (tn_matmul(NULL, TN_ARGS(matmul, .a = &p->a, .b = &p->b, .out = &p->out), &err))
            broken(&err);
    }
}

static void directly(void *user, int64_t times)
{
    const product *p = user;
    for (int64_t i = 0; i < times; i++)
        sgemm(ROW_MAJOR, NO_TRANSPOSE, NO_TRANSPOSE, p->size, p->size, p->size, 1, p->a.data,
              p->size, p->b.data, p->size, 0, p->out.data, p->size);
}

static void explain(void *user, int64_t times)
{
    const product *p = user;
    tn_error err;
    for (int64_t i = 0; i < times; i++) {
        tn_decision *decision = NULL;
        if (tn_matmul_explain(NULL, TN_ARGS(matmul, .a = &p->a, .b = &p->b, .out = &p->out),
                              &decision, &err))
            broken(&err);
        tn_decision_release(decision);
    }
}

static void explain_text(void *user, int64_t times)
{
    tn_error err;
    for (int64_t i = 0; i < times; i++) {
        tn_decision *decision = NULL;
        if (tn_explain(NULL, user, &decision, &err))
            broken(&err);
        tn_decision_release(decision);
    }
}

/* Includes the product itself, as a first call does. */
static void plan_anew(void *user, int64_t times)
{
    for (int64_t i = 0; i < times; i++) {
        tn_plan_cache_clear(NULL, TN_OP_NONE);
        by_tenon(user, 1);
    }
}

static void make(product *out, tn_device *device, int size)
{
    const int64_t shape[] = {size, size};
    tn_error err;
    *out = (product){.size = size};
    if (tn_tensor_create(device, TN_F32, shape, 2, &out->a, &err) ||
        tn_tensor_create(device, TN_F32, shape, 2, &out->b, &err) ||
        tn_tensor_create(device, TN_F32, shape, 2, &out->out, &err) ||
        tn_random_normal(NULL, &out->a, &err) || tn_random_normal(NULL, &out->b, &err))
        broken(&err);
}

static void end(product *p)
{
    tn_tensor_release(&p->a);
    tn_tensor_release(&p->b);
    tn_tensor_release(&p->out);
}

static void measure_added(tn_device *device, const char *name, int size, double aim)
{
    product p;
    make(&p, device, size);
    const bench_figure figure = {
        .name = name,
        .kind = BENCH_ADDED,
        .aim = aim,
        .unit = "ns",
        .ours = {.name = "tenon", .run = by_tenon, .user = &p},
        .rival = {.name = sgemm ? "cblas_sgemm of OpenBLAS"
                                : "OpenBLAS: apt install libopenblas0-pthread",
                  .run = sgemm ? directly : NULL,
                  .user = &p},
    };
    bench_run(&figure);
    end(&p);
}

static void measure_time(const char *name, double aim, bench_fn *run, void *user)
{
    const bench_figure figure = {.name = name,
                                 .kind = BENCH_TIME,
                                 .aim = aim,
                                 .unit = "us",
                                 .ours = {.name = "tenon", .run = run, .user = user}};
    bench_run(&figure);
}

int main(void)
{
    static char text[] = "matmul:f32:m=16,n=16,k=16@cpu:0";
    tn_error err;
    tn_device *device = NULL;
    product p;
    void *library = dlopen("libopenblas.so.0", RTLD_NOW);
    if (library)
        *(void **)&sgemm = dlsym(library, "cblas_sgemm");
    if ((sgemm && tn_settings_set("rules=require:cpu.matmul.openblas", &err)) ||
        tn_device_get("cpu:0", &device, &err))
        broken(&err);
    measure_added(device, "matmul f32 16 x 16 with its plan at hand", 16, 150);
    make(&p, device, 16);
    measure_time("explain a matmul of tensors", 20, explain, &p);
    measure_time("explain a problem's text", 20, explain_text, text);
    measure_time("a new plan, with its first run", 50, plan_anew, &p);
    end(&p);
    return bench_end();
}
