#include "matmul_pad.h"

#include "matmul_cuda.h"

CUDA_TEXT_DECLARE(matmul_pad_args_h);
CUDA_TEXT_DECLARE(matmul_pad_cu);
static const cuda_text text_of_args = CUDA_TEXT(matmul_pad_args_h, "matmul_pad_args.h");
static const cuda_text text = CUDA_TEXT(matmul_pad_cu, "matmul_pad.cu");
static const cuda_unit unit = {{&cuda_text_of_args, &text_of_args, &cuda_text_of_common, &text}};

const cuda_case cuda_pad_case = {&unit, "matmul_pad", "-default-device\n"};

tn_status cuda_pad_plan(const tn_run *run, cuda_kernel **out, tn_error *err)
{
    return cuda_kernel_beside(run, &cuda_pad_case, "copies of operands", out, err);
}

/* Writes the dimensions of the batch, without those along which `to` has one matrix; returns the number of
 * matrices. */
static int64_t describe_batch(const tn_layout *from, const tn_layout *to, int64_t units,
                              cuda_pad_args *out)
{
    int64_t matrices = 1;
    for (int32_t d = 0; d < to->rank - 2; d++) {
        if (to->shape[d] != 0 && (to->shape[d] == 1 || to->stride[d] == 0))
            continue;
        out->outer[out->rank] = to->shape[d];
        out->stride[0][out->rank] = from->stride[d] * units;
        out->stride[1][out->rank++] = to->stride[d] * units;
        matrices *= to->shape[d];
    }
    return matrices;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

void cuda_pad_describe(const tn_layout *from, const tn_layout *to, int32_t along, bool to_padding,
                       cuda_pad_args *out)
{
    const int32_t line = 2 * to->rank - 3 - along;
    const int64_t units = cuda_bytes_of(to->dtype) / 2;
    *out = (cuda_pad_args){
        .size = (int)(least(from->shape[along], to->shape[along]) * units),
        .whole = (int)((to_padding ? to->stride[line] : to->shape[along]) * units),
        .lines = (int)least(from->shape[line], to->shape[line]),
        .whole_lines = (int)to->shape[line],
        .from_line = from->stride[line] * units,
        .to_line = to->stride[line] * units,
    };
    const int64_t matrices = describe_batch(from, to, units, out);
    /* A line that begins at any unit of a chunk. */
    const int64_t chunks =
        cuda_tiles_along((int64_t)out->whole + CUDA_PAD_UNITS - 1, CUDA_PAD_UNITS);
    out->lanes = (int)cuda_matmul_lanes(chunks, CUDA_PAD_CHUNKS);
    out->tiles_across = (unsigned)cuda_tiles_along(chunks, (int64_t)out->lanes * CUDA_PAD_CHUNKS);
    out->tiles_down = (unsigned)cuda_tiles_along(out->whole_lines, CUDA_THREADS / out->lanes);
    out->tiles = out->tiles_across * out->tiles_down * (unsigned)matrices;
}

tn_status cuda_pad_run(const tn_run *run, cuda_kernel *kernel, const cuda_pad_args *described,
                       const void *from, void *to, tn_error *err)
{
    cuda_pad_args args = *described;
    args.from = from;
    args.to = to;
    return args.tiles > 0
               ? cuda_plan_launch(run, kernel, cuda_blocks_for(run, args.tiles), &args, err)
               : TN_OK;
}
