#include "attention_dropout.h"

#include "attention_cuda.h"

CUDA_TEXT_DECLARE(dropout_cu);
static const cuda_text text = CUDA_TEXT(dropout_cu, "dropout.cu");
static const cuda_unit unit = {{&cuda_text_of_args, &cuda_text_of_attention_args,
                                &cuda_text_of_common, &cuda_text_of_philox, &text}};
const cuda_case cuda_dropout_case = {&unit, "dropout_kept", "-default-device\n"};

cuda_dropout_args cuda_dropout_args_of(const tn_attention_op *at, void *out, int64_t elements,
                                       uint16_t one)
{
    return (cuda_dropout_args){.out = out,
                               .elements = elements,
                               .seed = at->seed,
                               .block = at->offset,
                               .least = cuda_dropout_least(at->dropout),
                               .one = one};
}
