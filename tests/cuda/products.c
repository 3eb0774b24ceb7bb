/* What cuBLAS and cuBLASLt are told of settings, against their stubs: memory, how sums are made, which of the two,
 * by one thread and by two at once. */
#include "test.h"

#include "../../backends/cuda/lib/cublas/blas.h"
#include "../../backends/cuda/lib/cublas/lt.h"
#include "stub_blas.h"
#include "tenon/tenon.h"

#include <dlfcn.h>
#include <pthread.h>

enum { MIB = 1 << 20, LOST = 192 /* to align the workspace */, GREAT = 1024 };

static tn_device *device;
static tn_error err;
static stub_blas_seen *lt, *blas;

#define DO(call)                                                   \
    do {                                                           \
        if (call)                                                  \
            fail_msg("%s: %s: %s", #call, err.where, err.message); \
    } while (0)

static void *find(const char *file, const char *name)
{
    void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    assert_non_null(library);
    void *found = dlsym(library, name);
    assert_non_null(found);
    return found;
}

static void come_in(void)
{
    DO(tn_settings_reset(NULL, &err));
    DO(tn_settings_set("admission=never", &err));              /* as the stubs compute nothing */
    DO(tn_settings_set("rules=forbid:cuda.matmul.own", &err)); /* which has the small ones else */
    if (device) {
        lt->count = blas->count = 0;
        for (int i = 0; i < STUB_ANSWERS; i++)
            lt->answers[i] = 0;
        return;
    }
    DO(tn_module_file_add(CUDA_MODULE, TN_MODULE_TRUSTED, &err));
    DO(tn_device_get("cuda:0", &device, &err));
    lt = find(LT_STUB, "stub_lt_seen");
    blas = find(BLAS_STUB, "stub_cublas_seen");
}

static void set(const char *text)
{
    DO(tn_settings_set(text, &err));
}

static tn_tensor make(tn_dtype dtype, int64_t batch, int64_t size)
{
    tn_tensor made;
    const int64_t shape[] = {batch, size, size};
    DO(tn_tensor_create(device, dtype, batch > 1 ? shape : shape + 1, batch > 1 ? 3 : 2, &made,
                        &err));
    return made;
}

/* A product of the dtype, batched or not. */
static tn_status multiply(const tn_context *context, tn_dtype dtype, int64_t batch, int64_t size,
                          tn_stream *stream)
{
    tn_tensor a = make(dtype, batch, size), b = make(dtype, batch, size);
    tn_tensor out = make(dtype == TN_I8 ? TN_I32 : dtype, batch, size);
    tn_status status = tn_matmul(context,
                                 TN_ARGS(matmul, .a = &a, .b = &b, .out = &out, .stream = stream,
                                         .transpose_b = dtype == TN_I8),
                                 &err);
    tn_tensor_release(&a), tn_tensor_release(&b), tn_tensor_release(&out);
    return status;
}

/* What the stub's last product was. */
static const stub_blas_call *last(const stub_blas_seen *of)
{
    assert_true(of->count > 0 && of->count <= STUB_CALLS_MOST);
    return &of->calls[of->count - 1];
}

static void memory_of_cublaslt_is_what_the_setting_says(void **state)
{
    (void)state;
    come_in();
    DO(multiply(NULL, TN_F32, 1, 64, NULL));
    assert_int_equal(last(lt)->bytes, 4 * MIB);
    DO(multiply(NULL, TN_F32, 1, 1024, NULL));
    assert_int_equal(last(lt)->bytes, 32 * MIB);
    const int asked = lt->asked;
    set("cuda.cublaslt_workspace_size=1m");
    DO(multiply(NULL, TN_F32, 1, 64, NULL));
    assert_int_equal(last(lt)->bytes, MIB);
    set("cuda.cublaslt_workspace_size=2m");
    DO(multiply(NULL, TN_F32, 1, 64, NULL));
    assert_int_equal(last(lt)->bytes, 2 * MIB);
    set("cuda.cublaslt_workspace_size=0");
    DO(multiply(NULL, TN_F32, 1, 64, NULL));
    assert_int_equal(last(lt)->bytes, 0);
    assert_int_equal(lt->asked, asked + 3); /* each is another plan */
    set("cuda.cublaslt_workspace_size=1m");
    DO(multiply(NULL, TN_F32, 1, 64, NULL));
    assert_int_equal(last(lt)->bytes, MIB);
    assert_int_equal(lt->asked, asked + 3);
}

static void usual_memory_keeps_to_the_limit(void **state)
{
    (void)state;
    come_in();
    set("workspace.limit=1m");
    DO(multiply(NULL, TN_F32, 1, 64, NULL));
    assert_int_equal(last(lt)->bytes, MIB - LOST);
    set("cuda.cublaslt_workspace_size=8m"); /* what is asked for is not cut: another one computes */
    DO(multiply(NULL, TN_F32, 1, 64, NULL));
    assert_int_equal(last(lt)->bytes, MIB - LOST);
    assert_int_equal(last(blas)->bytes, MIB - LOST);
    set("workspace.limit=1k");
    assert_int_equal(multiply(NULL, TN_F32, 1, 64, NULL), TN_REFUSED);
    assert_non_null(strstr(err.message, "workspace"));
}

static void a_callers_memory_is_aligned(void **state)
{
    tn_tensor a, b, out;
    void *memory = NULL;
    (void)state;
    come_in();
    set("cuda.cublaslt_workspace_size=1m");
    DO(tn_memory_alloc(device, 2 * MIB, "test", &memory, &err));
    a = make(TN_F32, 1, 64), b = make(TN_F32, 1, 64), out = make(TN_F32, 1, 64);
    for (uintptr_t off = 0; off < 512; off += 64) {
        const uintptr_t begin = (uintptr_t)memory + off;
        DO(tn_matmul(NULL,
                     TN_ARGS(matmul, .a = &a, .b = &b, .out = &out, .workspace = (void *)begin,
                             .workspace_bytes = MIB + LOST),
                     &err));
        assert_true(last(lt)->room >= begin && last(lt)->room + MIB <= begin + MIB + LOST);
    }
    tn_tensor_release(&a), tn_tensor_release(&b), tn_tensor_release(&out);
    DO(tn_device_synchronize(device, &err));
    tn_memory_free(device, memory);
}

/* What each library is told for a dtype under a setting: where computing, and not memory, takes the time. */
static const char fp16[] = "cuda.matmul.allow_fp16_reduced_precision_reduction=false",
                  bf16[] = "cuda.matmul.allow_bf16_reduced_precision_reduction=false",
                  fp16_k[] = "cuda.matmul.allow_fp16_reduced_precision_reduction_split_k=false",
                  bf16_k[] = "cuda.matmul.allow_bf16_reduced_precision_reduction_split_k=false",
                  f16_sums[] = "cuda.matmul.allow_fp16_accumulation=true",
                  tf32[] = "cuda.matmul.fp32_precision=tf32",
                  allow_tf32[] = "cuda.matmul.allow_tf32=true",
                  high[] = "float32_matmul_precision=high", none[] = "admission=never";
static const struct {
    tn_dtype dtype;
    const char *setting;
    int compute, scale, mode;
    int blas_mode; /* -1: cuBLAS has nothing */
} cases[] = {
    {TN_F32, none, LT_COMPUTE_32F, LT_R_32F, LT_REDUCE_ANYHOW, BLAS_MATH_WIDE_SUMS},
    {TN_F32, tf32, LT_COMPUTE_TF32, LT_R_32F, LT_REDUCE_ANYHOW, BLAS_MATH_TF32},
    {TN_F32, allow_tf32, LT_COMPUTE_TF32, LT_R_32F, LT_REDUCE_ANYHOW, BLAS_MATH_TF32},
    {TN_F32, high, LT_COMPUTE_TF32, LT_R_32F, LT_REDUCE_ANYHOW, BLAS_MATH_TF32},
    {TN_F64, none, LT_COMPUTE_64F, LT_R_64F, LT_REDUCE_ANYHOW, BLAS_MATH_WIDE_SUMS},
    {TN_C64, none, LT_COMPUTE_32F, LT_C_32F, LT_REDUCE_ANYHOW, BLAS_MATH_WIDE_SUMS},
    {TN_C128, none, LT_COMPUTE_64F, LT_C_64F, LT_REDUCE_ANYHOW, BLAS_MATH_WIDE_SUMS},
    {TN_I8, none, LT_COMPUTE_32I, LT_R_32I, LT_REDUCE_ANYHOW, BLAS_MATH_WIDE_SUMS},
    {TN_F16, none, LT_COMPUTE_32F, LT_R_32F, LT_REDUCE_ANYHOW, BLAS_MATH_USUAL},
    {TN_F16, fp16, LT_COMPUTE_32F, LT_R_32F, LT_REDUCE_IN_COMPUTE_TYPE, BLAS_MATH_WIDE_SUMS},
    {TN_F16, fp16_k, LT_COMPUTE_32F, LT_R_32F, LT_REDUCE_NOT, -1},
    {TN_F16, f16_sums, LT_COMPUTE_16F, LT_R_16F, LT_REDUCE_IN_COMPUTE_TYPE, BLAS_MATH_USUAL},
    {TN_F16, bf16, LT_COMPUTE_32F, LT_R_32F, LT_REDUCE_ANYHOW, BLAS_MATH_USUAL},
    {TN_BF16, none, LT_COMPUTE_32F, LT_R_32F, LT_REDUCE_ANYHOW, BLAS_MATH_USUAL},
    {TN_BF16, bf16, LT_COMPUTE_32F, LT_R_32F, LT_REDUCE_IN_COMPUTE_TYPE, BLAS_MATH_WIDE_SUMS},
    {TN_BF16, bf16_k, LT_COMPUTE_32F, LT_R_32F, LT_REDUCE_NOT, -1},
    {TN_BF16, f16_sums, LT_COMPUTE_32F, LT_R_32F, LT_REDUCE_ANYHOW, BLAS_MATH_USUAL},
};

static void sums_are_made_as_settings_permit(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        come_in();
        set(cases[i].setting);
        DO(multiply(NULL, cases[i].dtype, 1, GREAT, NULL));
        assert_int_equal(last(lt)->compute, cases[i].compute);
        assert_int_equal(last(lt)->scale, cases[i].scale);
        assert_int_equal(last(lt)->mode, cases[i].mode);
        set("matmul.library=cublas");
        if (cases[i].blas_mode < 0) {
            assert_int_equal(multiply(NULL, cases[i].dtype, 1, GREAT, NULL), TN_REFUSED);
            continue;
        }
        DO(multiply(NULL, cases[i].dtype, 1, GREAT, NULL));
        assert_int_equal(last(blas)->compute, cases[i].compute);
        assert_int_equal(last(blas)->mode, cases[i].blas_mode);
    }
}

static void either_library_is_taken_as_preferred(void **state)
{
    (void)state;
    come_in();
    int before = blas->count;
    DO(multiply(NULL, TN_F32, 1, 64, NULL));
    assert_int_equal(blas->count, before);
    set("rules=");
    set("cuda.preferred_blas_library=cublas");
    DO(multiply(NULL, TN_F32, 1, 64, NULL));
    assert_int_equal(blas->count, before + 1);
    assert_int_equal(last(blas)->bytes, 32 * MIB);
    assert_int_equal(last(blas)->batch, 1);
    set("cuda.cublas_workspace_size=1m");
    DO(multiply(NULL, TN_F32, 3, 64, NULL));
    assert_int_equal(last(blas)->bytes, MIB);
    assert_int_equal(last(blas)->batch, 3);
    before = lt->count;
    set("cuda.preferred_blas_library=cublaslt");
    DO(multiply(NULL, TN_F32, 1, 64, NULL));
    assert_int_equal(lt->count, before + 1);
}

/* cuBLAS has no heuristics to ask ahead, so that one plan serves all sizes. */
static void a_plan_of_cublas_serves_every_size(void **state)
{
    tn_plan_cache_state before = {.struct_size = sizeof before}, after = before;
    (void)state;
    come_in();
    set("cuda.preferred_blas_library=cublas");
    DO(multiply(NULL, TN_F64, 1, 16, NULL));
    DO(tn_plan_cache_state_get(NULL, device, TN_OP_MATMUL, &before, &err));
    for (int64_t size = 17; size < 27; size++)
        DO(multiply(NULL, TN_F64, 1, size, NULL));
    DO(tn_plan_cache_state_get(NULL, device, TN_OP_MATMUL, &after, &err));
    assert_int_equal(after.shared - before.shared, 10);
}

static void handles_follow_a_reset(void **state)
{
    (void)state;
    come_in();
    DO(multiply(NULL, TN_F32, 1, 64, NULL));
    set("cuda.preferred_blas_library=cublas");
    DO(multiply(NULL, TN_F32, 1, 64, NULL));
    const int of_lt = lt->handles, of_blas = blas->handles;
    DO(multiply(NULL, TN_F32, 1, 48, NULL));
    assert_int_equal(blas->handles, of_blas);
    DO(tn_device_reset(device, &err));
    DO(multiply(NULL, TN_F32, 1, 64, NULL));
    set("cuda.preferred_blas_library=default");
    DO(multiply(NULL, TN_F32, 1, 64, NULL));
    assert_int_equal(lt->handles, of_lt + 1);
    assert_int_equal(blas->handles, of_blas + 1);
}

static void every_answer_of_the_heuristics_has_its_row(void **state)
{
    static const char *const names[] = {"cuda.matmul.cublaslt", "cuda.matmul.cublaslt.2",
                                        "cuda.matmul.cublaslt.3"};
    char rule[64];
    (void)state;
    for (int ways = 0; ways < 2; ways++) {
        for (int i = 0; i < 3; i++) {
            come_in();
            tn_plan_cache_clear(NULL, TN_OP_NONE);
            snprintf(rule, sizeof rule, "rules=require:%s", names[i]);
            set(rule);
            DO(multiply(NULL, TN_F32, 1, 64, NULL));
            assert_int_equal(last(lt)->answer, ways == 0 || i < 2 ? i : 1);
        }
        setenv("STUB_LT_WAYS", "2", 1);
    }
    unsetenv("STUB_LT_WAYS");
    come_in();
    tn_plan_cache_clear(NULL, TN_OP_NONE);
}

/* A graph holds the stream, as the device would be done with a call before the next one is queued. */
static void tuning_tries_them(void **state)
{
    (void)state;
    come_in();
    const _Atomic int *graphs = find(CUDA_STUB, "stub_graph_runs");
    const int before = *graphs;
    set("tuning.enabled=true");
    DO(multiply(NULL, TN_F64, 1, 32, NULL));
    assert_true(*graphs > before);
    assert_true(lt->answers[0] > 0 && lt->answers[1] > 0 && lt->answers[2] > 0);
    assert_true(blas->count > 0);
}

/* Sums of f32 lie before the library's memory where out is of 16 bits, and in out where it is of f32. Complex sums lie in
 * out: the library adds no bias to them. */
static void what_follows_sums_is_a_kernel_of_ours(void **state)
{
    enum { SIZE = 64 };
    static const tn_dtype dtypes[] = {TN_BF16, TN_F32, TN_C64, TN_C128};
    const _Atomic int *launches = find(CUDA_STUB, "stub_launches");
    (void)state;
    for (int i = 0; i < 4; i++) {
        come_in();
        tn_tensor a = make(dtypes[i], 1, SIZE), b = make(dtypes[i], 1, SIZE);
        tn_tensor out = make(dtypes[i], 1, SIZE), bias = make(dtypes[i], 1, SIZE);
        const int before = *launches;
        DO(tn_matmul(NULL,
                     TN_ARGS(matmul, .a = &a, .b = &b, .out = &out, .bias = &bias,
                             .activation = i < 2 ? TN_ACT_GELU : TN_ACT_NONE),
                     &err));
        assert_int_equal(*launches, before + 1);
        assert_int_equal(lt->count, 1);
        const stub_blas_call *call = last(lt);
        const bool apart = dtypes[i] == TN_BF16;
        assert_int_equal(call->out == (uintptr_t)out.data, !apart);
        if (apart)
            assert_int_equal(call->room, call->out + SIZE * SIZE * sizeof(float));
        assert_int_equal(call->bytes, 4 * MIB);
        tn_tensor_release(&a), tn_tensor_release(&b);
        tn_tensor_release(&out), tn_tensor_release(&bias);
    }
}

/* A bf16 product of [m, k] and [k, n] whose operands begin some elements after aligned memory; checks how many kernels of
 * ours it launched and which operands the library was given copies of. */
typedef struct placed {
    int64_t m, n, k;
    int64_t behind[3]; /* elements, of A, B and out */
    double beta;
    int launches;
    bool copied[3];
} placed;

static void multiply_placed(const placed *p)
{
    const _Atomic int *launches = find(CUDA_STUB, "stub_launches");
    const int64_t shapes[3][2] = {{p->m, p->k}, {p->k, p->n}, {p->m, p->n}};
    tn_tensor whole[3], of[3];
    for (int i = 0; i < 3; i++) {
        const int64_t room = shapes[i][0] * shapes[i][1] + 8;
        DO(tn_tensor_create(device, TN_BF16, &room, 1, &whole[i], &err));
        DO(tn_tensor_wrap(device, (uint16_t *)whole[i].data + p->behind[i], TN_BF16, shapes[i],
                          NULL, 2, NULL, NULL, &of[i], &err));
    }
    const int before = *launches, count = lt->count;
    DO(tn_matmul(NULL, TN_ARGS(matmul, .a = &of[0], .b = &of[1], .out = &of[2], .beta = p->beta),
                 &err));
    assert_int_equal(*launches, before + p->launches);
    assert_int_equal(lt->count, count + 1);
    const stub_blas_call *call = last(lt);
    const uintptr_t given[3] = {call->right, call->left, call->out}; /* columns come first there */
    for (int i = 0; i < 3; i++) {
        assert_int_equal(given[i] != (uintptr_t)of[i].data, p->copied[i]);
        assert_int_equal(given[i] % 16, p->copied[i] ? 0 : p->behind[i] % 8 * 2);
        if (p->copied[i]) /* the library's own memory follows the copies */
            assert_true(given[i] + (uintptr_t)(shapes[i][0] * shapes[i][1] * 2) <= call->room);
    }
    assert_int_equal(call->bytes, 32 * MIB);
    for (int i = 0; i < 3; i++)
        tn_tensor_release(&of[i]), tn_tensor_release(&whole[i]);
}

static void misaligned_operands_are_copied_to_workspace(void **state)
{
    static const placed problems[] = {
        {1999, 2001, 2003, {0, 0, 0}, 0, 3, {true, true, true}},
        {1999, 2001, 2003, {3, 5, 7}, 2, 4, {true, true, true}}, /* out is read, too */
        {2000, 2000, 2000, {1, 0, 0}, 0, 1, {true, false, false}},
        {2000, 2000, 2000, {0, 1, 0}, 0, 1, {false, true, false}},
        {2000, 2000, 2000, {1, 0, 1}, 0, 2, {true, false, true}},
        {2000, 2000, 2001, {0, 0, 0}, 0, 2, {true, true, false}}, /* k is rounded up */
        {2000, 2000, 2000, {0, 0, 0}, 0, 0, {false, false, false}},
    };
    (void)state;
    come_in();
    for (size_t i = 0; i < sizeof problems / sizeof problems[0]; i++)
        multiply_placed(&problems[i]);
}

/* Scores and weights are in workspace: what one product writes, kernels of ours turn into what the next one reads. */
static void attention_is_two_products(void **state)
{
    static const tn_dtype dtypes[] = {TN_BF16, TN_F32, TN_F64};
    const int64_t shape[] = {2, 3, 32, 16};
    const _Atomic int *launches = find(CUDA_STUB, "stub_launches");
    tn_tensor of[4];
    (void)state;
    for (int d = 0; d < 3; d++) {
        come_in();
        set("rules=require:cuda.attention.math");
        for (int i = 0; i < 4; i++)
            DO(tn_tensor_create(device, dtypes[d], shape, 4, &of[i], &err));
        const int before = *launches;
        DO(tn_attention(
            NULL, TN_ARGS(attention, .q = &of[0], .k = &of[1], .v = &of[2], .out = &of[3]), &err));
        assert_int_equal(*launches, before + 4);
        assert_int_equal(lt->count, 2);
        assert_int_equal(blas->count, 0);
        for (int i = 0; i < 2; i++) {
            assert_int_equal(lt->calls[i].batch, 6);
            assert_int_equal(lt->calls[i].compute, d == 2 ? LT_COMPUTE_64F : LT_COMPUTE_32F);
            assert_int_equal(lt->calls[i].out % 64, 0);
        }
        assert_true(lt->calls[1].right > lt->calls[0].out); /* weights lie behind scores */
        set("cuda.math_sdp=false");
        assert_int_equal(
            tn_attention(NULL,
                         TN_ARGS(attention, .q = &of[0], .k = &of[1], .v = &of[2], .out = &of[3]),
                         &err),
            TN_REFUSED);
        for (int i = 0; i < 4; i++)
            tn_tensor_release(&of[i]);
    }
    come_in();
}

/* With the switch, and only with it, scores take 16 bits. */
static void scores_are_narrow_where_they_may_be(void **state)
{
    const int64_t shape[] = {2, 3, 32, 16};
    tn_tensor of[4];
    (void)state;
    come_in();
    for (int i = 0; i < 4; i++)
        DO(tn_tensor_create(device, TN_BF16, shape, 4, &of[i], &err));
    for (int may = 0; may < 2; may++) {
        come_in();
        set("cuda.flash_sdp=false");
        set("cuda.mem_efficient_sdp=false");
        set("cuda.cudnn_sdp=false");
        set(may ? "cuda.allow_fp16_bf16_reduction_math_sdp=true"
                : "cuda.allow_fp16_bf16_reduction_math_sdp=false");
        DO(tn_attention(
            NULL, TN_ARGS(attention, .q = &of[0], .k = &of[1], .v = &of[2], .out = &of[3]), &err));
        assert_int_equal(lt->count, 2);
        const uintptr_t scores =
            lt->calls[1].right - lt->calls[0].out; /* weights lie behind them */
        assert_int_equal(scores, 2 * 3 * 32 * 32 * (may ? 2 : 4));
    }
    for (int i = 0; i < 4; i++)
        tn_tensor_release(&of[i]);
    come_in();
}

/* Out lies by rows, and so it is B, transposed, that the library calls A. */
static void scales_of_8_bit_floats_are_pointed_to(void **state)
{
    const int64_t one[] = {1, 1}, rows[] = {64, 1}, columns[] = {1, 64};
    tn_tensor scale[4];
    (void)state;
    come_in();
    tn_tensor a = make(TN_F8_E4M3FN, 1, 64), b = make(TN_F8_E5M2, 1, 64);
    tn_tensor out = make(TN_BF16, 1, 64);
    const int64_t *const shapes[] = {one, one, rows, columns};
    for (int i = 0; i < 4; i++)
        DO(tn_tensor_create(device, TN_F32, shapes[i], 2, &scale[i], &err));
    for (int i = 0; i < 4; i += 2) {
        DO(tn_matmul(NULL,
                     TN_ARGS(matmul, .a = &a, .b = &b, .out = &out, .transpose_b = 1,
                             .scale_a = &scale[i], .scale_b = &scale[i + 1]),
                     &err));
        assert_int_equal(last(lt)->compute, LT_COMPUTE_32F);
        assert_int_equal(last(lt)->scale_a, (uintptr_t)scale[i + 1].data);
        assert_int_equal(last(lt)->scale_b, (uintptr_t)scale[i].data);
        assert_int_equal(last(lt)->scale_mode, i ? LT_SCALE_EACH : 0);
    }
    DO(tn_matmul(NULL, TN_ARGS(matmul, .a = &a, .b = &b, .out = &out, .transpose_b = 1), &err));
    assert_true(last(lt)->scale_a == 0 && last(lt)->scale_b == 0);
    for (int i = 0; i < 4; i++)
        tn_tensor_release(&scale[i]);
    tn_tensor_release(&a), tn_tensor_release(&b), tn_tensor_release(&out);
}

/* Products of several sizes, the last of no rows. */
enum { GROUPS = 5 };
static tn_status multiply_grouped(const tn_context *context, tn_dtype dtype)
{
    tn_tensor a[GROUPS], b[GROUPS], out[GROUPS];
    tn_matmul_args args[GROUPS];
    const tn_matmul_args *groups[GROUPS];
    for (int i = 0; i < GROUPS; i++) {
        const int64_t m = i == GROUPS - 1 ? 0 : 8 * (i + 1), n = 16 + 8 * i, k = 32;
        const int64_t of_a[] = {m, k}, of_b[] = {k, n}, of_out[] = {m, n};
        DO(tn_tensor_create(device, dtype, of_a, 2, &a[i], &err));
        DO(tn_tensor_create(device, dtype, of_b, 2, &b[i], &err));
        DO(tn_tensor_create(device, dtype, of_out, 2, &out[i], &err));
        args[i] =
            (tn_matmul_args){.struct_size = sizeof args[i], .a = &a[i], .b = &b[i], .out = &out[i]};
        groups[i] = &args[i];
    }
    tn_status status = tn_matmul_grouped(context, groups, GROUPS, &err);
    for (int i = 0; i < GROUPS; i++)
        tn_tensor_release(&a[i]), tn_tensor_release(&b[i]), tn_tensor_release(&out[i]);
    return status;
}

/* What a kernel of many hands to the device is gone when it returns: it is not recorded, and another one holds the
 * stream. */
static void tuning_records_none_of_many(void **state)
{
    (void)state;
    come_in();
    const _Atomic int *graphs = find(CUDA_STUB, "stub_graph_runs");
    const int before = *graphs;
    set("tuning.enabled=true");
    DO(multiply_grouped(NULL, TN_F32));
    assert_true(*graphs > before);
    assert_true(blas->count > 0);
    assert_int_equal(blas->recorded, 0);
}

/* Where the stream is held long enough, and where it never is: then at one place, as calls are queued. */
static void tuning_has_operands_at_several_places(void **state)
{
    (void)state;
    _Atomic int *waits_for_us = find(CUDA_STUB, "stub_waits_for_us");
    for (int held = 0; held < 2; held++) {
        come_in();
        set("tuning.enabled=true");
        *waits_for_us = held;
        lt->outs = 0;
        DO(multiply(NULL, TN_F64, 1, 40 + held, NULL));
        *waits_for_us = 0;
        assert_int_equal(lt->outs, held ? 9 : 2); /* one is the call's own */
    }
}

static void groups_are_one_call_of_cublas(void **state)
{
    static const tn_dtype dtypes[] = {TN_F32, TN_F64, TN_BF16, TN_F16};
    (void)state;
    for (int i = 0; i < 4; i++) {
        come_in();
        DO(multiply_grouped(NULL, dtypes[i]));
        assert_int_equal(lt->count, 0);
        assert_int_equal(blas->count, 1);
        assert_int_equal(last(blas)->batch, GROUPS - 1); /* one has nothing to compute */
        assert_int_equal(last(blas)->mode, BLAS_MATH_WIDE_SUMS);
        assert_int_equal(last(blas)->bytes, 32 * MIB);
    }
    come_in();
    set("cuda.cublas_workspace_size=1m");
    DO(multiply_grouped(NULL, TN_BF16));
    assert_int_equal(last(blas)->bytes, MIB);
}

/* Two sequences of three heads each, which lie between rows: a batch of heads for each sequence. */
static void a_batch_without_one_stride_is_several_calls(void **state)
{
    enum { SEQUENCES = 2, HEADS = 3, SIZE = 16 };
    const int64_t shape[] = {SEQUENCES, HEADS, SIZE, SIZE};
    const int64_t between[] = {HEADS * SIZE * SIZE, SIZE, HEADS * SIZE, 1};
    tn_tensor whole, a, b, out;
    (void)state;
    come_in();
    DO(tn_tensor_create(device, TN_F32, shape, 4, &whole, &err));
    DO(tn_tensor_create(device, TN_F32, shape, 4, &b, &err));
    DO(tn_tensor_create(device, TN_F32, shape, 4, &out, &err));
    DO(tn_tensor_wrap(device, whole.data, TN_F32, shape, between, 4, NULL, NULL, &a, &err));
    DO(tn_matmul(NULL, TN_ARGS(matmul, .a = &a, .b = &b, .out = &out), &err));
    assert_int_equal(lt->count, 0);
    assert_int_equal(blas->count, SEQUENCES);
    for (int i = 0; i < SEQUENCES; i++) { /* columns come first there: B is its left one */
        const size_t first = (size_t)i * HEADS * SIZE * SIZE * sizeof(float);
        assert_int_equal(blas->calls[i].batch, HEADS);
        assert_int_equal(blas->calls[i].left, (uintptr_t)b.data + first);
        assert_int_equal(blas->calls[i].right, (uintptr_t)a.data + first);
        assert_int_equal(blas->calls[i].out, (uintptr_t)out.data + first);
    }
    tn_tensor_release(&a), tn_tensor_release(&b), tn_tensor_release(&out);
    tn_tensor_release(&whole);
}

/* More than addresses are copied at once for are several calls; what fails is told as a call's, of no product. */
static void many_groups_are_several_calls(void **state)
{
    enum { MANY = 2048 + 77 };
    static tn_matmul_args args[MANY];
    static const tn_matmul_args *groups[MANY];
    (void)state;
    come_in();
    tn_tensor a = make(TN_F32, 1, 16), b = make(TN_F32, 1, 16), out = make(TN_F32, MANY, 16);
    tn_tensor each[MANY];
    for (int i = 0; i < MANY; i++) {
        const int64_t shape[] = {16, 16};
        DO(tn_tensor_wrap(device, (float *)out.data + i * 256, TN_F32, shape, NULL, 2, NULL, NULL,
                          &each[i], &err));
        args[i] =
            (tn_matmul_args){.struct_size = sizeof args[i], .a = &a, .b = &b, .out = &each[i]};
        groups[i] = &args[i];
    }
    DO(tn_matmul_grouped(NULL, groups, MANY, &err));
    assert_int_equal(blas->count, 2);
    assert_int_equal(blas->calls[0].batch, 2048);
    assert_int_equal(blas->calls[1].batch, 77);
    setenv("STUB_BLAS", "15", 1), setenv("STUB_BLAS_AT", "4", 1);
    assert_int_equal(tn_matmul_grouped(NULL, groups, MANY, &err), TN_UNSUPPORTED);
    assert_contains(err.message, "groups[0] to groups[2124], 2125 at once: cuda:0: ");
    assert_contains(err.message, "a call for 77 of them, behind 2048: ");
    assert_null(strstr(err.message, "matmul:f32:m="));
    setenv("STUB_BLAS_AT", "6", 1);
    assert_int_equal(tn_matmul_grouped(NULL, groups, 2048 + 1, &err), TN_UNSUPPORTED);
    assert_contains(err.message, "groups[2048]: cuda:0: a call for 1 of them, behind 2048: ");
    assert_contains(err.message, "matmul:f32:m=16,n=16,k=16");
    unsetenv("STUB_BLAS"), unsetenv("STUB_BLAS_AT");
    for (int i = 0; i < MANY; i++)
        tn_tensor_release(&each[i]);
    tn_tensor_release(&a), tn_tensor_release(&b), tn_tensor_release(&out);
}

/* By the setting for it, and where every one is asked for. */
static void groups_go_through_cublaslt_one_by_one(void **state)
{
    (void)state;
    come_in();
    set("cuda.matmul.prefer_cublaslt_grouped_gemm=true");
    DO(multiply_grouped(NULL, TN_BF16));
    assert_int_equal(blas->count, 0);
    assert_int_equal(lt->count, GROUPS - 1);
    DO(multiply_grouped(NULL, TN_F16)); /* it is about bf16 */
    assert_int_equal(blas->count, 1);
    come_in();
    set("matmul.library=cublaslt");
    DO(multiply_grouped(NULL, TN_F32));
    assert_int_equal(blas->count, 0);
    assert_int_equal(lt->count, GROUPS - 1);
    come_in();
    set("matmul.library=cublas");
    DO(multiply_grouped(NULL, TN_C64)); /* of which it takes one at a time */
    assert_int_equal(blas->count, GROUPS - 1);
    assert_int_equal(last(blas)->batch, 1);
}

/* A thread with settings and a stream of its own. */
typedef struct worker {
    pthread_t thread;
    tn_context *context;
    tn_stream *stream;
    uintptr_t raw;
    int64_t bytes;
    int mode;
    tn_status status;
} worker;

static void *work(void *any)
{
    worker *w = any;
    tn_error said = {0};
    const int64_t shape[] = {GREAT, GREAT};
    for (int i = 0; i < 200 && !w->status; i++) {
        tn_tensor a = {0}, b = {0}, out = {0};
        w->status = tn_tensor_create(device, TN_BF16, shape, 2, &a, &said);
        if (!w->status)
            w->status = tn_tensor_create(device, TN_BF16, shape, 2, &b, &said);
        if (!w->status)
            w->status = tn_tensor_create(device, TN_BF16, shape, 2, &out, &said);
        if (!w->status)
            w->status = tn_matmul(
                w->context, TN_ARGS(matmul, .a = &a, .b = &b, .out = &out, .stream = w->stream),
                &said);
        tn_tensor_release(&a), tn_tensor_release(&b), tn_tensor_release(&out);
    }
    return NULL;
}

static tn_context *context_of(const char *const *settings, size_t count)
{
    tn_change changes[4];
    tn_context *made = NULL;
    for (size_t i = 0; i < count; i++)
        DO(tn_setting_parse(settings[i], &changes[i], &err));
    DO(tn_context_derive(NULL, changes, count, &made, &err));
    return made;
}

static void two_threads_with_settings_of_their_own(void **state)
{
    static const char *const settings[2][3] = {
        {"cuda.preferred_blas_library=cublas", "cuda.cublas_workspace_size=1m",
         "cuda.matmul.allow_bf16_reduced_precision_reduction=false"},
        {"cuda.preferred_blas_library=cublas", "cuda.cublas_workspace_size=2m",
         "cuda.matmul.allow_bf16_reduced_precision_reduction=true"}};
    worker workers[2] = {{.bytes = MIB, .mode = BLAS_MATH_WIDE_SUMS},
                         {.bytes = 2 * MIB, .mode = BLAS_MATH_USUAL}};
    int seen[2] = {0, 0};
    (void)state;
    come_in();
    const int before = blas->count, crossed = blas->crossed;
    for (int i = 0; i < 2; i++) {
        workers[i].context = context_of(settings[i], 3);
        DO(tn_stream_create(device, NULL, &workers[i].stream, &err));
        workers[i].raw = tn_stream_raw(workers[i].stream);
        assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_join(workers[i].thread, NULL), 0);
        assert_int_equal(workers[i].status, TN_OK);
    }
    for (int i = before; i < blas->count; i++) {
        const stub_blas_call *call = &blas->calls[i];
        const int w = (uintptr_t)call->stream == workers[1].raw;
        assert_int_equal((uintptr_t)call->stream, workers[w].raw);
        assert_int_equal(call->bytes, workers[w].bytes);
        assert_int_equal(call->mode, workers[w].mode);
        seen[w]++;
    }
    assert_int_equal(seen[0], 200);
    assert_int_equal(seen[1], 200);
    assert_int_equal(blas->crossed, crossed);
    for (int i = 0; i < 2; i++) {
        tn_stream_release(workers[i].stream);
        tn_context_release(workers[i].context);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_of_cublaslt_is_what_the_setting_says),
        cmocka_unit_test(usual_memory_keeps_to_the_limit),
        cmocka_unit_test(a_callers_memory_is_aligned),
        cmocka_unit_test(sums_are_made_as_settings_permit),
        cmocka_unit_test(either_library_is_taken_as_preferred),
        cmocka_unit_test(a_plan_of_cublas_serves_every_size),
        cmocka_unit_test(handles_follow_a_reset),
        cmocka_unit_test(scales_of_8_bit_floats_are_pointed_to),
        cmocka_unit_test(groups_are_one_call_of_cublas),
        cmocka_unit_test(a_batch_without_one_stride_is_several_calls),
        cmocka_unit_test(many_groups_are_several_calls),
        cmocka_unit_test(groups_go_through_cublaslt_one_by_one),
        cmocka_unit_test(every_answer_of_the_heuristics_has_its_row),
        cmocka_unit_test(tuning_tries_them),
        cmocka_unit_test(what_follows_sums_is_a_kernel_of_ours),
        cmocka_unit_test(misaligned_operands_are_copied_to_workspace),
        cmocka_unit_test(attention_is_two_products),
        cmocka_unit_test(scores_are_narrow_where_they_may_be),
        cmocka_unit_test(tuning_records_none_of_many),
        cmocka_unit_test(tuning_has_operands_at_several_places),
        cmocka_unit_test(two_threads_with_settings_of_their_own),
    };
    (void)setenv("TENON_CACHE", "", 1); /* times of another run would be taken for this one's */
    return run_suite("cuda.products", tests);
}
