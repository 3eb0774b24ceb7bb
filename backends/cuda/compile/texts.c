#include "texts.h"

/* Embedded by CMake. */
#define TEXT_LIST(X)                                  \
    X(args_h, "args.h")                               \
    X(common_cuh, "common.cuh")                       \
    X(functions_cuh, "functions.cuh")                 \
    X(rowwise_cuh, "rowwise.cuh")                     \
    X(elementwise_cu, "elementwise.cu")               \
    X(permute_cu, "permute.cu")                       \
    X(softmax_cu, "softmax.cu")                       \
    X(norm_cu, "norm.cu")                             \
    X(rotary_cu, "rotary.cu")                         \
    X(reduce_cu, "reduce.cu")                         \
    X(philox_h, "philox.h")                           \
    X(numbers_h, "numbers.h")                         \
    X(random_cu, "random.cu")                         \
    X(attention_cuh, "attention.cuh")                 \
    X(attention_tile_cuh, "attention_tile.cuh")       \
    X(attention_cu, "attention.cu")                   \
    X(attention_backward_cu, "attention_backward.cu") \
    X(attention_empty_cu, "attention_empty.cu")       \
    X(attention_few_cu, "attention_few.cu")           \
    X(attention_join_cu, "attention_join.cu")         \
    X(matmul_cu, "matmul.cu")                         \
    X(matmul_finish_cu, "matmul_finish.cu")           \
    X(dropout_cu, "dropout.cu")

enum {
    NO_TEXT = 0,
#define TEXT_(symbol, name) TEXT_##symbol,
    TEXT_LIST(TEXT_)
#undef TEXT_
        TEXT_COUNT
};

#define TEXT_(symbol, name)                          \
    extern const unsigned char cuda_text_##symbol[]; \
    extern const size_t cuda_text_##symbol##_size;
TEXT_LIST(TEXT_)
#undef TEXT_

typedef struct text {
    const char *name;
    const unsigned char *bytes;
    const size_t *size;
} text;

static const text texts[TEXT_COUNT] = {
#define TEXT_(symbol, name) \
    [TEXT_##symbol] = {name, cuda_text_##symbol, &cuda_text_##symbol##_size},
    TEXT_LIST(TEXT_)
#undef TEXT_
};

enum { PARTS_MOST = 7 };
static const int units[CUDA_UNIT_COUNT][PARTS_MOST] = {
    [CUDA_UNIT_EACH] = {TEXT_args_h, TEXT_common_cuh, TEXT_functions_cuh, TEXT_elementwise_cu},
    [CUDA_UNIT_PERMUTE] = {TEXT_args_h, TEXT_common_cuh, TEXT_permute_cu},
    [CUDA_UNIT_SOFTMAX] = {TEXT_args_h, TEXT_common_cuh, TEXT_functions_cuh, TEXT_rowwise_cuh,
                           TEXT_softmax_cu},
    [CUDA_UNIT_NORM] = {TEXT_args_h, TEXT_common_cuh, TEXT_functions_cuh, TEXT_rowwise_cuh,
                        TEXT_norm_cu},
    [CUDA_UNIT_ROTARY] = {TEXT_args_h, TEXT_common_cuh, TEXT_rowwise_cuh, TEXT_rotary_cu},
    [CUDA_UNIT_REDUCE] = {TEXT_args_h, TEXT_common_cuh, TEXT_functions_cuh, TEXT_reduce_cu},
    [CUDA_UNIT_RANDOM] = {TEXT_args_h, TEXT_common_cuh, TEXT_philox_h, TEXT_numbers_h,
                          TEXT_random_cu},
    [CUDA_UNIT_MATMUL] = {TEXT_args_h, TEXT_common_cuh, TEXT_functions_cuh, TEXT_matmul_cu},
    [CUDA_UNIT_MATMUL_FINISH] = {TEXT_args_h, TEXT_common_cuh, TEXT_functions_cuh,
                                 TEXT_matmul_finish_cu},
#define ATTENTION_ \
    TEXT_args_h, TEXT_common_cuh, TEXT_functions_cuh, TEXT_philox_h, TEXT_attention_cuh
    [CUDA_UNIT_ATTENTION] = {ATTENTION_, TEXT_attention_tile_cuh, TEXT_attention_cu},
    [CUDA_UNIT_ATTENTION_BACK] = {ATTENTION_, TEXT_attention_tile_cuh, TEXT_attention_backward_cu},
    [CUDA_UNIT_ATTENTION_EMPTY] = {ATTENTION_, TEXT_attention_empty_cu},
    [CUDA_UNIT_ATTENTION_FEW] = {ATTENTION_, TEXT_attention_few_cu},
    [CUDA_UNIT_ATTENTION_JOIN] = {ATTENTION_, TEXT_attention_join_cu},
#undef ATTENTION_
    [CUDA_UNIT_DROPOUT] = {TEXT_args_h, TEXT_common_cuh, TEXT_philox_h, TEXT_dropout_cu},
};

static int last_part(int32_t unit)
{
    int last = 0;
    while (last + 1 < PARTS_MOST && units[unit][last + 1])
        last++;
    return units[unit][last];
}

const char *cuda_unit_name(int32_t unit)
{
    return texts[last_part(unit)].name;
}

char *cuda_unit_text(const tn_host *host, int32_t unit)
{
    enum { HEAD = 64 };
    size_t room = 1, used = 0;
    for (int i = 0; i < PARTS_MOST; i++)
        room += units[unit][i] ? HEAD + *texts[units[unit][i]].size : 0;
    char *out = host->alloc(host->self, room, 1);
    for (int i = 0; out && i < PARTS_MOST; i++) {
        const text *part = &texts[units[unit][i]];
        if (!units[unit][i])
            continue;
        used += (size_t)snprintf(out + used, HEAD, "#line 1 \"%s\"\n", part->name);
        memcpy(out + used, part->bytes, *part->size);
        used += *part->size;
    }
    if (out)
        out[used] = '\0';
    return out;
}

/* The parts of C's and our headers that the definition of random numbers needs. */
const char *const cuda_header_names[] = {"abi.h", "float.h", "tenon/module/philox.h"};
const char *const cuda_header_texts[] = {
    "typedef unsigned char uint8_t;\ntypedef unsigned short uint16_t;\n"
    "typedef unsigned int uint32_t;\ntypedef int int32_t;\n"
    "typedef unsigned long long uint64_t;\ntypedef long long int64_t;\n"
    "#define UINT32_C(x) x##u\n#define UINT64_C(x) x##ull\n"
    "#define TN_BEGIN_DECLS\n#define TN_END_DECLS\n"
    "#define TN_STATIC_ASSERT(condition, text) static_assert(condition, text)\n",
    "#define FLT_EVAL_METHOD 0\n", "", /* already placed before the text that includes it */
};
const int32_t cuda_headers = 3;
