/* Equations of einsum: an accepted one is computed, for operands whose elements are all 1, and its
 * explanation is an equation that has the same result. The input: the number of operands, for each its
 * number of dimensions and their sizes, a byte each; then the equation. */
#include "tenon/tenon.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { OPERANDS = 5, DIMS = 5, SIZE = 4, TEXT = 256, OUT_MOST = 1 << 12, SUM_MOST = 1 << 16 };

static double ones[SIZE * SIZE * SIZE * SIZE * SIZE], sums[OUT_MOST];

typedef struct input {
    int64_t shapes[OPERANDS][DIMS];
    tn_tensor tensors[OPERANDS];
    const tn_tensor *operands[OPERANDS];
    int32_t count;
    char equation[TEXT];
} input;

static void require(int holds)
{
    if (!holds)
        __builtin_trap();
}

static void read_input(const uint8_t *data, size_t size, input *out)
{
    size_t at = 0;
    memset(out, 0, sizeof *out);
    out->count = size ? 1 + data[at++] % OPERANDS : 1;
    for (int32_t i = 0; i < out->count; i++) {
        const int32_t ndim = at < size ? data[at++] % (DIMS + 1) : 0;
        for (int32_t k = 0; k < ndim; k++)
            out->shapes[i][k] = at < size ? data[at++] % (SIZE + 1) : 1;
        out->tensors[i] = (tn_tensor){.data = ones,
                                      .device_type = TN_DLPACK_CPU,
                                      .ndim = ndim,
                                      .dtype = TN_F64,
                                      .shape = out->shapes[i]};
        out->operands[i] = &out->tensors[i];
    }
    const size_t left = size - at < TEXT - 1 ? size - at : TEXT - 1;
    if (left)
        memcpy(out->equation, data + at, left);
}

/* An error has a reason. */
static void check_error(const tn_error *err)
{
    require(err->status == TN_INVALID_ARGUMENT && err->message[0]);
}

/* Computes it: each element of out is the number of combinations that are summed. */
static void check_result(const tn_einsum_args *args, const tn_einsum_path_info *info)
{
    int64_t elements = 1;
    tn_error err;
    for (int32_t i = 0; i < args->out->ndim; i++)
        elements *= args->out->shape[i];
    memset(sums, 0xFF, sizeof sums);
    require(tn_einsum(NULL, args, &err) == TN_OK);
    for (int64_t i = 0; i < elements; i++)
        require(sums[i] == sums[0]);
    if (elements == 0)
        return;
    const double values = sums[0] * (double)elements;
    const double factor = (args->count > 1 ? args->count - 1 : 1) + (sums[0] > 1);
    require(sums[0] == 0 || values * factor == info->cost_at_once);
    if (elements < OUT_MOST)
        require(sums[elements] != sums[elements]);
}

/* The equation of an explanation has explicit output, and is explained as itself. */
static void check_equation(const tn_einsum_args *args, const char *equation)
{
    tn_einsum_args again = *args;
    tn_einsum_path *path = NULL;
    tn_einsum_path_info info = {.struct_size = sizeof info};
    tn_error err;
    again.equation = equation;
    require(tn_einsum_explain(NULL, &again, &path, &err) == TN_OK);
    require(tn_einsum_path_info_get(path, &info, &err) == TN_OK);
    require(strcmp(info.equation, equation) == 0);
    tn_einsum_path_release(path);
}

/* The shape of an equation's result. */
static tn_tensor infer(const char *equation, const tn_tensor *const *operands, int32_t count,
                       int64_t *shape)
{
    const tn_einsum_args args = {
        .struct_size = sizeof args, .equation = equation, .operands = operands, .count = count};
    tn_tensor out = {.device_type = TN_DLPACK_CPU, .dtype = TN_F64, .shape = shape};
    require(tn_einsum_shape(&args, shape, &out.ndim, NULL) == TN_OK);
    return out;
}

/* The equation of each step, and what remains, fit the operands that are left. */
static void check_steps(const tn_einsum_args *args, const tn_einsum_path *path)
{
    int64_t shapes[2 * OPERANDS][TN_TENSOR_NDIM_MAX], shape[TN_TENSOR_NDIM_MAX];
    tn_tensor made[2 * OPERANDS];
    const tn_tensor *left[OPERANDS];
    const tn_einsum_step *step;
    int32_t count = args->count;
    memcpy(left, args->operands, (size_t)count * sizeof left[0]);
    for (size_t i = 0; args->count > 1 && (step = tn_einsum_path_step(path, i)); i++) {
        const int32_t pair_count = step->second < 0 ? 1 : 2;
        const tn_tensor *const pair[] = {left[step->first],
                                         left[pair_count == 1 ? 0 : step->second]};
        int32_t kept = 0;
        made[i] = infer(step->equation, pair, pair_count, shapes[i]);
        for (int32_t k = 0; k < count; k++) {
            if (k != step->first && k != step->second)
                left[kept++] = left[k];
        }
        left[kept++] = &made[i];
        count = kept;
        require(infer(step->remaining, left, kept, shape).ndim == args->out->ndim);
        for (int32_t k = 0; k < args->out->ndim; k++)
            require(shape[k] == args->out->shape[k]);
    }
    require(count == 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const strategies[] = {"left", "greedy",   "optimal",    "auto",
                                             "dp",   "branch-2", "branch-all", "random-greedy"};
    static input in;
    int64_t shape[TN_TENSOR_NDIM_MAX], elements = 1;
    int32_t ndim;
    tn_error err;
    tn_einsum_path *path = NULL;
    tn_einsum_path_info info = {.struct_size = sizeof info};
    for (size_t i = 0; i < sizeof ones / sizeof ones[0]; i++)
        ones[i] = 1;
    read_input(data, size, &in);
    tn_einsum_args args = {.struct_size = sizeof args,
                           .equation = in.equation,
                           .operands = in.operands,
                           .count = in.count,
                           .strategy =
                               strategies[size % (sizeof strategies / sizeof strategies[0])]};
    if (tn_einsum_shape(&args, shape, &ndim, &err)) {
        check_error(&err);
        return 0;
    }
    if (tn_einsum_explain(NULL, &args, &path, &err))
        return 0; /* more elements than there are addresses */
    require(tn_einsum_path_info_get(path, &info, &err) == TN_OK);
    for (int32_t i = 0; i < ndim; i++)
        elements = elements > OUT_MOST ? elements : elements * shape[i];
    check_equation(&args, info.equation);
    tn_tensor out = {
        .data = sums, .device_type = TN_DLPACK_CPU, .ndim = ndim, .dtype = TN_F64, .shape = shape};
    args.out = &out;
    check_steps(&args, path);
    if (elements <= OUT_MOST && info.largest <= SUM_MOST)
        check_result(&args, &info);
    tn_einsum_path_release(path);
    return 0;
}
