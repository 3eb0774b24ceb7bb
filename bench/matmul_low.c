/* i8 and bf16 products compared with f32 products of the same size, all by the CPU's own kernels
 * and on the same number of threads. The aims: i8 by dot products of bytes three times as fast as
 * f32, bf16 by bfmmla two and a half times. bf16 by AMX is also compared with oneDNN if that is
 * installed, and with PyTorch by bench/peers/bench_torch_matmul.py. Rows are called as the
 * dispatcher calls them. */
#include "harness.h"
#include "host.h"

#include "os/cpu.h"
#include "tenon/module/kernel.h"
#include "tenon/module/library.h"
#include "tenon/module/op/matmul.h"
#include "tenon/parallel.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

tn_module_entry_fn tni_cpu_module_entry;

enum { SIDE_MOST = 2048, OPERANDS = 3 };

static int32_t threads;
static char *memory[OPERANDS];

/* A square product by one row, ready to run. */
typedef struct product {
    tn_op op;
    void *data[TN_MATMUL_OPERANDS];
    void *scratch;
    tn_run run;
} product;

static const tn_module *module(void)
{
    const tn_module *found = NULL;
    (void)tni_cpu_module_entry(&bench_host, &found, NULL);
    return found;
}

/* Returns NULL if this build does not have it, or this processor cannot run it. */
static const tn_kernel_row *row_of(const char *name)
{
    for (const tn_kernel_row *const *row = module()->kernels; *row; row++) {
        if (strcmp((*row)->name, name) == 0 && !((*row)->cpu_needs & ~tni_cpu_features()))
            return *row;
    }
    return NULL;
}

static const tn_kernel_row *first_of(const char *const *names)
{
    const tn_kernel_row *row = NULL;
    for (; !row && *names; names++)
        row = row_of(*names);
    return row;
}

static bool open_library(const char *name, void **out)
{
    for (const tn_library_row *const *row = module()->libraries; *row; row++) {
        if (strcmp((*row)->name, name) == 0)
            return (*row)->open(&bench_host, out, NULL) == TN_OK;
    }
    return false;
}

static void describe(tn_op *op, tn_dtype in, tn_dtype out, int64_t side)
{
    *op = (tn_op){.struct_size = sizeof *op, .kind = TN_OP_MATMUL, .count = OPERANDS};
    *TN_PARAMS_MUTABLE(op, matmul) = (tn_matmul_op){.m = side,
                                                    .n = side,
                                                    .k = side,
                                                    .matrices = 1,
                                                    .acc = in == TN_I8 ? TN_I32 : TN_F32,
                                                    .alpha = 1};
    for (int i = 0; i < OPERANDS; i++)
        op->operand[i] = (tn_layout){.dtype = i == TN_MATMUL_OUT ? out : in,
                                     .rank = 2,
                                     .alignment = 64,
                                     .shape = {side, side},
                                     .stride = {side, 1}};
}

/* Returns false, with nothing to release, if the row or its library is not available. */
static bool prepare(product *it, const tn_kernel_row *row, tn_dtype in, int64_t side)
{
    uint64_t bytes = 0;
    memset(it, 0, sizeof *it);
    if (!row || (row->library && !open_library(row->library, &it->run.library)))
        return false;
    describe(&it->op, in, in == TN_I8 ? TN_I32 : in, side);
    for (int i = 0; i < OPERANDS; i++)
        it->data[i] = memory[i];
    const tn_query query = {.struct_size = sizeof query,
                            .op = &it->op,
                            .library_version = -1,
                            .cpu_features = tni_cpu_features(),
                            .threads = threads};
    it->run = (tn_run){.struct_size = sizeof it->run,
                       .row = row,
                       .op = &it->op,
                       .data = it->data,
                       .library = it->run.library,
                       .host = &bench_host,
                       .threads = threads};
    if (row->plan && row->plan(&it->run, &it->run.plan, &bytes, NULL))
        return false;
    it->run.workspace_bytes = row->workspace ? row->workspace(row, &query) : 0;
    it->scratch = it->run.workspace =
        bench_host.alloc(NULL, (size_t)it->run.workspace_bytes + 64, 64);
    return it->scratch != NULL;
}

static void end(product *it)
{
    if (it->run.plan)
        it->run.row->plan_release(&it->run, it->run.plan);
    free(it->scratch);
}

static void run(void *user, int64_t times)
{
    product *it = user;
    for (int64_t i = 0; i < times; i++) {
        if (it->run.row->run(&it->run, NULL))
            exit(1);
    }
}

static const char *const own_f32[] = {"cpu.matmul.avx512", "cpu.matmul.avx2", "cpu.matmul.neon",
                                      NULL};
static const char *const own_i8[] = {"cpu.matmul.i8.avx512_vnni", "cpu.matmul.i8.avx_vnni",
                                     "cpu.matmul.i8.neon_i8mm", "cpu.matmul.i8.neon_dotprod", NULL};
static const char *const amx_i8[] = {"cpu.matmul.i8.amx", NULL};
static const char *const amx_bf16[] = {"cpu.matmul.bf16.amx", NULL};
static const char *const neon_bf16[] = {"cpu.matmul.bf16.neon_bf16", NULL};
static const char *const onednn_bf16[] = {"cpu.matmul.onednn.bf16", NULL};

/* Compares one kernel with another, for the same sizes. */
static void compare(const char *name, const char *const *ours, tn_dtype in,
                    const char *const *rival, tn_dtype rival_in, int64_t side, double aim)
{
    product mine, other;
    const bool here = prepare(&mine, first_of(ours), in, side);
    const bool has_rival = prepare(&other, first_of(rival), rival_in, side);
    const bench_figure figure = {.name = name,
                                 .kind = BENCH_RATIO,
                                 .aim = aim,
                                 .unit = "ms",
                                 .ours = {.name = here ? mine.run.row->name : *ours,
                                          .run = here ? run : NULL,
                                          .user = &mine},
                                 .rival = {.name = has_rival ? other.run.row->name : *rival,
                                           .run = has_rival ? run : NULL,
                                           .user = &other}};
    if (here)
        bench_run(&figure);
    else
        printf("%s: %s does not run here\n", name, *ours);
    end(&mine);
    end(&other);
}

/* Bytes that are small numbers in every dtype; no bf16 or f32 value is subnormal. */
static bool fill_memory(void)
{
    const size_t bytes = (size_t)SIDE_MOST * SIDE_MOST * 4;
    for (int i = 0; i < OPERANDS; i++) {
        memory[i] = aligned_alloc(4096, bytes);
        if (!memory[i])
            return false;
        for (size_t k = 0; k < bytes / 2; k++) {
            uint16_t x = (uint16_t)(0x3c00 + k % 1021);
            memcpy(memory[i] + 2 * k, &x, sizeof x);
        }
    }
    return true;
}

int main(void)
{
    threads = tn_parallel_threads();
    (void)tni_cpu_amx_request();
    if (fill_memory()) {
        compare("i8 1024 cubed, beside f32", own_i8, TN_I8, own_f32, TN_F32, 1024, 3);
        compare("i8 2048 cubed, beside f32", own_i8, TN_I8, own_f32, TN_F32, 2048, 3);
        compare("i8 2048 cubed, AMX", amx_i8, TN_I8, own_f32, TN_F32, 2048, 6);
        compare("bf16 1024 cubed, bfmmla", neon_bf16, TN_BF16, own_f32, TN_F32, 1024, 2.5);
        compare("bf16 2048 cubed, bfmmla", neon_bf16, TN_BF16, own_f32, TN_F32, 2048, 2.5);
        compare("bf16 1024 cubed, AMX", amx_bf16, TN_BF16, own_f32, TN_F32, 1024, 4);
        compare("bf16 2048 cubed, AMX", amx_bf16, TN_BF16, own_f32, TN_F32, 2048, 4);
        compare("bf16 2048 cubed, AMX, beside oneDNN", amx_bf16, TN_BF16, onednn_bf16, TN_BF16,
                2048, 1);
    } else {
        printf("the figures of narrow products need %d MiB of memory\n", OPERANDS * 16);
    }
    for (int i = 0; i < OPERANDS; i++)
        free(memory[i]);
    return bench_end();
}
