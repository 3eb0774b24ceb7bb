/* Compiles kernels when the module is built:
 *
 *     cuda-ready NVRTC ARCHITECTURE FILE
 *
 * writes the kernels of a list of common problems for an architecture to a file that becomes part of the
 * module (compile/ready.h). The kernel rows themselves determine the variants: each row plans a problem on a
 * fictitious device, and the kernels that it requests are compiled. */
#include "../attention/attention_cuda.h"
#include "../attention/attention_dropout.h"
#include "../compile/ready.h"
#include "../fft/fft_copy.h"
#include "../kernels/layout.h"
#include "../kernels/rows.h"
#include "../matmul/matmul_finish.h"
#include "../matmul/matmul_pad.h"
#include "../platform/tile.h"
#include "tenon/module/op/attention.h"
#include "tenon/module/op/binary.h"
#include "tenon/module/op/matmul.h"
#include "tenon/module/op/norm.h"
#include "tenon/module/op/reduce.h"
#include "tenon/module/op/unary.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static const cuda_nvrtc *compiler;
static const char *architecture, *nvrtc_path;
static FILE *out;
static int made;

static void exit_with_error(const char *what, const char *words)
{
    fprintf(stderr, "cuda-ready: %s: %s\n", what, words);
    exit(1);
}

static void *alloc_host(void *self, size_t size, size_t align)
{
    (void)self;
    return aligned_alloc(align < 64 ? 64 : align, (size + 63) / 64 * 64);
}

static void release_host(void *self, void *memory)
{
    (void)self;
    free(memory);
}

static void print_log(void *self, int32_t level, const char *text)
{
    (void)self, (void)level;
    fprintf(stderr, "cuda-ready: %s\n", text);
}

static tn_status bind_symbols(void *self, const char *files, const tn_symbol *symbols, size_t count,
                              void *table, tn_error *err)
{
    void *library = dlopen(nvrtc_path, RTLD_NOW | RTLD_LOCAL);
    (void)self, (void)files;
    for (size_t i = 0; library && i < count; i++) {
        void *found = dlsym(library, symbols[i].name);
        if (!found)
            return tn_fail(err, TN_INCOMPATIBLE, 0, "bind", "no %s", symbols[i].name);
        memcpy((char *)table + symbols[i].offset, &found, sizeof found);
    }
    return library ? TN_OK : tn_fail(err, TN_UNAVAILABLE, 0, "bind", "%s", dlerror());
}

static const tn_host host = {.struct_size = offsetof(tn_host, cache_get),
                             .abi_major = TN_MODULE_ABI_MAJOR,
                             .abi_minor = TN_MODULE_ABI_MINOR,
                             .alloc = alloc_host,
                             .release = release_host,
                             .log = print_log,
                             .library_bind = bind_symbols};

static void write_padded(const void *bytes, size_t size)
{
    static const char zeroes[CUDA_READY_ALIGNMENT];
    size_t rest = (CUDA_READY_ALIGNMENT - size % CUDA_READY_ALIGNMENT) % CUDA_READY_ALIGNMENT;
    if (fwrite(bytes, 1, size, out) != size || fwrite(zeroes, 1, rest, out) != rest)
        exit_with_error("writing", "no room");
}

/* Replaces platform/describe.c. */
tn_status cuda_describe(cuda *self, int32_t index, const cuda_found **out_found, tn_error *err)
{
    static const cuda_found made_up = {.multi_processors = 128};
    (void)self, (void)index, (void)err;
    *out_found = &made_up;
    return TN_OK;
}

/* Replaces compile/code.c, which rows call for their kernels: nothing is loaded. */
static char seen[256][512];

tn_status cuda_kernel_get(cuda *self, const cuda_nvrtc *nvrtc, int32_t device,
                          const cuda_case *wanted, cuda_kernel **out_kernel, tn_error *err)
{
    char key[512];
    char *text = cuda_unit_text(&host, wanted->unit);
    const cuda_source source = {.name = cuda_unit_name(wanted->unit),
                                .text = text,
                                .options = wanted->options,
                                .header_names = cuda_header_names,
                                .header_texts = cuda_header_texts,
                                .headers = cuda_headers};
    cuda_ready entry = {.options_bytes = (uint32_t)strlen(wanted->options) + 1,
                        .compiler = (uint32_t)(compiler->major * 100 + compiler->minor)};
    void *code = NULL;
    size_t size = 0;
    (void)self, (void)nvrtc, (void)device, (void)out_kernel;
    snprintf(key, sizeof key, "%s %s %s", source.name, wanted->function, wanted->options);
    for (int i = 0; i < made; i++) {
        if (strcmp(seen[i], key) == 0) {
            free(text);
            return TN_OK;
        }
    }
    if (made == sizeof seen / sizeof seen[0])
        exit_with_error("cases", "there are too many");
    memcpy(seen[made++], key, sizeof key);
    tn_status status = cuda_nvrtc_compile(compiler, &source, architecture, &code, &size, err);
    free(text);
    if (status)
        return status;
    snprintf(entry.architecture, sizeof entry.architecture, "%s", architecture);
    snprintf(entry.function, sizeof entry.function, "%s", wanted->function);
    snprintf(entry.unit, sizeof entry.unit, "%s", source.name);
    entry.code_bytes = (uint32_t)size;
    write_padded(&entry, sizeof entry);
    write_padded(wanted->options, entry.options_bytes);
    write_padded(code, size);
    free(code);
    return TN_OK;
}

tn_status cuda_kernel_beside(const tn_run *run, const cuda_case *wanted, const char *what,
                             cuda_kernel **out_kernel, tn_error *err)
{
    (void)run, (void)what;
    return cuda_kernel_get(NULL, compiler, 0, wanted, out_kernel, err);
}

tn_status cuda_kernel_launch(cuda *self, int32_t device, const cuda_launch *launch, tn_error *err)
{
    (void)self, (void)device, (void)launch;
    return tn_fail(err, TN_INTERNAL, 0, "cuda-ready", "nothing is launched here");
}

tn_status cuda_tiles_check(cuda *self, tn_error *err)
{
    (void)self, (void)err;
    return TN_OK;
}

tn_status cuda_tiles_describe(cuda *self, int32_t device, const cuda_tile *tiles, int count,
                              tn_error *err)
{
    (void)self, (void)device, (void)tiles, (void)count;
    return tn_fail(err, TN_INTERNAL, 0, "cuda-ready", "nothing is launched here");
}

static tn_layout dense_layout(tn_dtype dtype, int64_t rows, int64_t columns)
{
    return (tn_layout){.dtype = dtype,
                       .rank = 2,
                       .alignment = 64,
                       .shape = {rows, columns},
                       .stride = {columns, 1}};
}

static tn_op op_of(const tn_kernel_row *row, int32_t which, tn_dtype in, tn_dtype to, int64_t size)
{
    enum { ROWS = 4096 };
    tn_op op = {.struct_size = sizeof op, .kind = row->op, .count = 2};
    *TN_PARAMS_MUTABLE(&op, elementwise) = (tn_elementwise_op){
        .kind = which, .elements = ROWS * size, .rows = ROWS, .size = size, .axes = 2, .value = 1};
    op.operand[TN_ELEMENTWISE_IN] = dense_layout(in, ROWS, size);
    op.operand[TN_ELEMENTWISE_OUT] = dense_layout(to, ROWS, size);
    return op;
}

static void plan_problem(const tn_kernel_row *row, const tn_op *op)
{
    static cuda made_up;
    const tn_run run = {.struct_size = sizeof run,
                        .row = row,
                        .op = op,
                        .platform = &made_up,
                        .library = (void *)(uintptr_t)compiler,
                        .host = &host};
    uint64_t bytes = 0;
    void *plan = NULL;
    tn_error err;
    if (row->plan(&run, &plan, &bytes, &err))
        exit_with_error(row->name, err.message);
    row->plan_release(&run, plan);
}

static void compile_elements(tn_dtype dtype)
{
    static const int32_t unary[] = {TN_UNARY_EXP, TN_UNARY_SILU, TN_UNARY_GELU, TN_UNARY_RELU};
    static const int32_t binary[] = {TN_BINARY_ADD, TN_BINARY_SUB, TN_BINARY_MUL, TN_BINARY_DIV};
    tn_op op = op_of(&cuda_fill_row, 0, dtype, dtype, 4096);
    plan_problem(&cuda_fill_row, &op);
    op = op_of(&cuda_permute_row, 0, dtype, dtype, 4096);
    plan_problem(&cuda_permute_row, &op);
    op.operand[TN_ELEMENTWISE_IN].stride[0] = 1;
    op.operand[TN_ELEMENTWISE_IN].stride[1] = 4096;
    plan_problem(&cuda_permute_row, &op);
    for (int i = 0; i < 4; i++) {
        op = op_of(&cuda_unary_row, unary[i], dtype, dtype, 4096);
        plan_problem(&cuda_unary_row, &op);
        op = op_of(&cuda_binary_row, binary[i], dtype, dtype, 4096);
        op.operand[TN_ELEMENTWISE_OTHER] = op.operand[TN_ELEMENTWISE_IN];
        op.count = 3;
        plan_problem(&cuda_binary_row, &op);
    }
    if (dtype == TN_F32)
        return;
    op = op_of(&cuda_cast_row, 0, dtype, TN_F32, 4096);
    plan_problem(&cuda_cast_row, &op);
    op = op_of(&cuda_cast_row, 0, TN_F32, dtype, 4096);
    plan_problem(&cuda_cast_row, &op);
}

static void compile_rows(tn_dtype dtype)
{
    static const int64_t sizes[] = {1024, 4096, 8192};
    tn_op op = op_of(&cuda_reduce_row, TN_REDUCE_SUM, dtype, dtype, 4096);
    op.operand[TN_ELEMENTWISE_OUT] = dense_layout(dtype, 4096, 1);
    TN_PARAMS_MUTABLE(&op, elementwise)->elements = 4096;
    plan_problem(&cuda_reduce_row, &op);
    TN_PARAMS_MUTABLE(&op, elementwise)->kind = TN_REDUCE_MAX;
    plan_problem(&cuda_reduce_row, &op);
    for (int i = 0; i < 3; i++) {
        op = op_of(&cuda_softmax_row, 0, dtype, dtype, sizes[i]);
        plan_problem(&cuda_softmax_row, &op);
        for (int32_t kind = TN_NORM_LAYER; kind <= TN_NORM_RMS; kind++) {
            op = op_of(&cuda_norm_row, kind, dtype, dtype, sizes[i]);
            op.operand[TN_NORM_WEIGHT] = dense_layout(dtype, 1, sizes[i]);
            if (kind == TN_NORM_LAYER)
                op.operand[TN_NORM_BIAS] = dense_layout(dtype, 1, sizes[i]);
            op.count = 4;
            plan_problem(&cuda_norm_row, &op);
        }
    }
}

static void compile_case(const cuda_case *wanted)
{
    cuda_kernel *kernel = NULL;
    tn_error err;
    if (cuda_kernel_get(NULL, compiler, 0, wanted, &kernel, &err))
        exit_with_error(wanted->function, err.message);
}

/* Kernels for the epilogue after a library's matrix products. */
static void compile_following(tn_op *op)
{
    static const int32_t activations[] = {TN_ACT_GELU, TN_ACT_GELU_TANH, TN_ACT_SILU};
    for (int i = 0; i < 3; i++) {
        char options[CUDA_FINISH_OPTIONS];
        cuda_case wanted;
        TN_PARAMS_MUTABLE(op, matmul)->activation = activations[i];
        cuda_finish_case(op, options, &wanted);
        compile_case(&wanted);
    }
}

/* Kernels that add a bias after complex products. */
static void compile_complex(tn_dtype dtype)
{
    const tn_op op = {.operand[TN_MATMUL_OUT].dtype = dtype};
    char options[CUDA_FINISH_OPTIONS];
    cuda_case wanted;
    cuda_finish_case(&op, options, &wanted);
    compile_case(&wanted);
}

/* One kernel serves all sizes and strides. */
static void compile_products(tn_dtype dtype)
{
    enum { SIDE = 64 };
    tn_op op = {.struct_size = sizeof op, .kind = cuda_matmul_row.op, .count = TN_MATMUL_OPERANDS};
    *TN_PARAMS_MUTABLE(&op, matmul) =
        (tn_matmul_op){.m = SIDE, .n = SIDE, .k = SIDE, .matrices = 1, .acc = TN_F32, .alpha = 1};
    for (int32_t i = TN_MATMUL_A; i <= TN_MATMUL_OUT; i++)
        op.operand[i] = dense_layout(dtype, SIDE, SIDE);
    plan_problem(&cuda_matmul_row, &op);
    compile_following(&op);
}

static tn_layout dense_heads(tn_dtype dtype, int64_t size)
{
    enum { LENGTH = 64 };
    return (tn_layout){.dtype = dtype,
                       .rank = 4,
                       .alignment = 64,
                       .shape = {1, 1, LENGTH, size},
                       .stride = {LENGTH * size, LENGTH * size, size, 1}};
}

/* One plan contains the kernels for every length. Libraries leave sequences without keys to our own kernel. */
static void compile_attention(tn_dtype dtype)
{
    enum { SIZE = 128 };
    tn_op op = {
        .struct_size = sizeof op, .kind = cuda_attention_row.op, .count = TN_ATTENTION_OPERANDS};
    *TN_PARAMS_MUTABLE(&op, attention) = (tn_attention_op){.size = SIZE, .value_size = SIZE};
    for (int32_t n = TN_ATTENTION_Q; n <= TN_ATTENTION_OUT; n++)
        op.operand[n] = dense_heads(dtype, SIZE);
    plan_problem(&cuda_attention_row, &op);
    char options[CUDA_ATTENTION_OPTIONS];
    cuda_case empty;
    cuda_attention_empty_case(&op, options, &empty);
    if (dtype != TN_F32) /* which no library supports */
        compile_case(&empty);
}

/* The usual sizes of heads, without bounds and causal, in bf16. */
static void compile_hopper(void)
{
    static const int64_t sizes[] = {64, 128};
    tn_op op = {
        .struct_size = sizeof op, .kind = cuda_hopper_row.op, .count = TN_ATTENTION_OPERANDS};
    if (strcmp(architecture, "sm_90a") != 0)
        return;
    for (int i = 0; i < 4; i++) {
        *TN_PARAMS_MUTABLE(&op, attention) = (tn_attention_op){.size = sizes[i / 2],
                                                               .value_size = sizes[i / 2],
                                                               .left = -1,
                                                               .right = i % 2 ? 0 : -1,
                                                               .scale = 1};
        for (int32_t n = TN_ATTENTION_Q; n <= TN_ATTENTION_OUT; n++)
            op.operand[n] = dense_heads(TN_BF16, sizes[i / 2]);
        plan_problem(&cuda_hopper_row, &op);
    }
}

/* Copies around a library's Fourier transforms. */
static void compile_fft_copies(void)
{
    static const tn_dtype dtypes[] = {TN_F32, TN_F64, TN_C64, TN_C128};
    for (int i = 0; i < 4; i++) {
        char options[CUDA_FFT_COPY_OPTIONS];
        cuda_case wanted;
        cuda_fft_copy_case(dtypes[i], options, &wanted);
        compile_case(&wanted);
    }
}

int main(int argc, char **argv)
{
    static const tn_dtype dtypes[] = {TN_F32, TN_BF16, TN_F16};
    void *opened = NULL;
    tn_error err;
    if (argc != 4)
        exit_with_error("usage", "cuda-ready NVRTC ARCHITECTURE FILE");
    nvrtc_path = argv[1];
    architecture = argv[2];
    out = fopen(argv[3], "wb");
    if (!out)
        exit_with_error(argv[3], "it cannot be written");
    if (cuda_nvrtc_open(&host, &opened, &err))
        exit_with_error(nvrtc_path, err.message);
    compiler = opened;
    for (int i = 0; i < 3; i++) {
        compile_elements(dtypes[i]);
        compile_rows(dtypes[i]);
        compile_products(dtypes[i]);
        compile_attention(dtypes[i]);
    }
    compile_hopper();
    compile_complex(TN_C64);
    compile_complex(TN_C128);
    compile_fft_copies();
    compile_case(&cuda_pad_case);
    compile_case(&cuda_dropout_case); /* whichever library computes attention */
    if (fclose(out))
        exit_with_error(argv[3], "it cannot be written");
    return 0;
}
