#include "layout.h"

CUDA_TEXT_DECLARE(numbers_h);
CUDA_TEXT_DECLARE(random_cu);
static const cuda_text text_of_numbers = CUDA_TEXT(numbers_h, "numbers.h");
static const cuda_text text_of_random = CUDA_TEXT(random_cu, "random.cu");
const cuda_unit cuda_random_unit = {{&cuda_text_of_args, &cuda_text_of_common, &cuda_text_of_philox,
                                     &text_of_numbers, &text_of_random}};

const tn_dtype cuda_number_dtypes[] = {TN_F32, TN_BF16, TN_F16, TN_F64, TN_I8,  TN_I16,  TN_I32,
                                       TN_I64, TN_U8,   TN_U16, TN_U32, TN_U64, TN_BOOL, 0};
const tn_dtype cuda_float_dtypes[] = {TN_F32, TN_BF16, TN_F16, TN_F64, 0};

const char *cuda_type_of(tn_dtype dtype)
{
    switch (dtype) {
    case TN_I8: return "i8";
    case TN_I16: return "i16";
    case TN_I32: return "i32";
    case TN_I64: return "i64";
    case TN_U8: return "u8";
    case TN_U16: return "u16";
    case TN_U32: return "u32";
    case TN_U64: return "u64";
    case TN_F16: return "f16";
    case TN_BF16: return "bf16";
    case TN_F32: return "f32";
    case TN_F64: return "f64";
    case TN_BOOL: return "boolean";
    default: return NULL;
    }
}

int64_t cuda_bytes_of(tn_dtype dtype)
{
    return (int64_t)(dtype >> 8 & 0xFF) * (int64_t)(dtype >> 16) / 8;
}

const char *cuda_index_of(int64_t count)
{
    return count < INT64_C(1) << 31 ? "unsigned" : "unsigned long long";
}

bool cuda_is_float(tn_dtype dtype)
{
    return dtype == TN_F16 || dtype == TN_BF16 || dtype == TN_F32 || dtype == TN_F64;
}

bool cuda_is_whole(tn_dtype dtype)
{
    return cuda_type_of(dtype) && !cuda_is_float(dtype);
}

tn_status cuda_refuse(tn_refusal *why, int32_t code, const char *what, int64_t needed,
                      int64_t found, const char *text)
{
    (void)tn_refuse(why, code, what, needed, found);
    if (why)
        tn_text_fit(why->text, sizeof why->text, text);
    return TN_UNSUPPORTED;
}

tn_status cuda_admit_counts(const cuda_count *counts, size_t number, int64_t most, const char *text,
                            tn_refusal *why)
{
    for (size_t i = 0; i < number; i++) {
        if (counts[i].found > most)
            return cuda_refuse(why, TN_REFUSE_SHAPE, counts[i].name, most, counts[i].found, text);
    }
    return TN_OK;
}

tn_status cuda_admit_bytes(const char *what, double bytes, double most, const char *text,
                           tn_refusal *why)
{
    return bytes <= most
               ? TN_OK
               : cuda_refuse(why, TN_REFUSE_MEMORY, what, bytes < 9e18 ? (int64_t)bytes : INT64_MAX,
                             (int64_t)most, text);
}

tn_status cuda_admit_alignment(const tn_query *query, tn_refusal *why)
{
    for (int32_t i = 0; i < query->op->count; i++) {
        const tn_layout *layout = &query->op->operand[i];
        int64_t needed = cuda_bytes_of(layout->dtype);
        if (needed > 0 && layout->alignment < needed)
            return tn_refuse(why, TN_REFUSE_ALIGNMENT, "alignment", needed, layout->alignment);
    }
    return TN_OK;
}

tn_status cuda_plan_alloc(const tn_run *run, size_t size, void **out, uint64_t *out_bytes,
                          tn_error *err)
{
    void *plan = run->host->alloc(run->host->self, size, _Alignof(max_align_t));
    if (!plan)
        return tn_fail(err, TN_OUT_OF_MEMORY, 0, "cuda: plan", "no memory for a plan");
    memset(plan, 0, size);
    *out = plan;
    *out_bytes = size;
    return TN_OK;
}

tn_status cuda_plan_make(const tn_run *run, size_t size, cuda_plan_fill *fill, void **out,
                         uint64_t *out_bytes, tn_error *err)
{
    void *plan = NULL;
    tn_status status = cuda_plan_alloc(run, size, &plan, out_bytes, err);
    if (status)
        return status;
    status = fill(run, plan, err);
    if (status)
        cuda_plan_release(run, plan);
    else
        *out = plan;
    return status;
}

tn_status cuda_plan_create(const tn_run *run, cuda_plan **out, uint64_t *out_bytes, tn_error *err)
{
    void *plan = NULL;
    tn_status status = cuda_plan_alloc(run, sizeof **out, &plan, out_bytes, err);
    if (!status)
        *out = plan;
    return status;
}

void cuda_plan_release(const tn_run *run, void *plan)
{
    run->host->release(run->host->self, plan);
}

unsigned cuda_blocks_for(const tn_run *run, int64_t units)
{
    return cuda_blocks_on(run->platform, run->device, units);
}

int64_t cuda_processors(cuda *self, int32_t device)
{
    const cuda_found *found = NULL;
    return cuda_describe(self, device, &found, NULL) ? 0 : found->multi_processors;
}

unsigned cuda_blocks_on(cuda *self, int32_t device, int64_t units)
{
    const int64_t processors = cuda_processors(self, device);
    int64_t most = processors > 0 ? processors * 32 : 4096;
    return (unsigned)(units < 1 ? 1 : units < most ? units : most);
}

tn_status cuda_plan_kernel(const tn_run *run, const cuda_unit *unit, const char *function,
                           const char *options, cuda_kernel **out, tn_error *err)
{
    const cuda_case wanted = {unit, function, options};
    return cuda_kernel_get(run->platform, run->library, run->device, &wanted, out, err);
}

tn_status cuda_plan_launch(const tn_run *run, cuda_kernel *kernel, unsigned blocks, void *args,
                           tn_error *err)
{
    const cuda_launch launch = {.kernel = kernel,
                                .blocks = blocks,
                                .threads = CUDA_THREADS,
                                .args = args,
                                .stream = run->stream};
    return cuda_kernel_launch(run->platform, run->device, &launch, err);
}

int cuda_walk_sizes(const tn_walk *walk, long long *out)
{
    for (int32_t d = 0; d < walk->rank; d++)
        out[d] = walk->outer[d];
    out[walk->rank] = walk->size;
    return walk->rank + 1;
}

void cuda_walk_strides(const tn_walk *walk, int32_t operand, long long *out)
{
    for (int32_t d = 0; d < walk->rank; d++)
        out[d] = walk->outer_stride[d][operand];
    out[walk->rank] = walk->stride[operand];
}
