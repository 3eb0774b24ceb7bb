#include "texts.h"

/* Embedded by CMake. */
#define TEXT_LIST(X)                         \
    X(args, "args.h")                        \
    X(common, "common.cuh")                  \
    X(functions, "functions.cuh")            \
    X(rows, "rows.cuh")                      \
    X(each, "each.cu")                       \
    X(permute, "permute.cu")                 \
    X(softmax, "softmax.cu")                 \
    X(norm, "norm.cu")                       \
    X(rotary, "rotary.cu")                   \
    X(reduce, "reduce.cu")                   \
    X(philox, "philox.h")                    \
    X(numbers, "numbers.h")                  \
    X(random, "random.cu")                   \
    X(attention_rows, "attention.cuh")       \
    X(attention_tile, "attention_tile.cuh")  \
    X(attention, "attention.cu")             \
    X(attention_back, "attention_back.cu")   \
    X(attention_empty, "attention_empty.cu") \
    X(attention_few, "attention_few.cu")     \
    X(attention_join, "attention_join.cu")   \
    X(matmul, "matmul.cu")                   \
    X(matmul_finish, "matmul_finish.cu")     \
    X(dropout, "dropout.cu")

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
    [CUDA_UNIT_EACH] = {TEXT_args, TEXT_common, TEXT_functions, TEXT_each},
    [CUDA_UNIT_PERMUTE] = {TEXT_args, TEXT_common, TEXT_permute},
    [CUDA_UNIT_SOFTMAX] = {TEXT_args, TEXT_common, TEXT_functions, TEXT_rows, TEXT_softmax},
    [CUDA_UNIT_NORM] = {TEXT_args, TEXT_common, TEXT_functions, TEXT_rows, TEXT_norm},
    [CUDA_UNIT_ROTARY] = {TEXT_args, TEXT_common, TEXT_rows, TEXT_rotary},
    [CUDA_UNIT_REDUCE] = {TEXT_args, TEXT_common, TEXT_functions, TEXT_reduce},
    [CUDA_UNIT_RANDOM] = {TEXT_args, TEXT_common, TEXT_philox, TEXT_numbers, TEXT_random},
    [CUDA_UNIT_MATMUL] = {TEXT_args, TEXT_common, TEXT_functions, TEXT_matmul},
    [CUDA_UNIT_MATMUL_FINISH] = {TEXT_args, TEXT_common, TEXT_functions, TEXT_matmul_finish},
#define ATTENTION_ TEXT_args, TEXT_common, TEXT_functions, TEXT_philox, TEXT_attention_rows
    [CUDA_UNIT_ATTENTION] = {ATTENTION_, TEXT_attention_tile, TEXT_attention},
    [CUDA_UNIT_ATTENTION_BACK] = {ATTENTION_, TEXT_attention_tile, TEXT_attention_back},
    [CUDA_UNIT_ATTENTION_EMPTY] = {ATTENTION_, TEXT_attention_empty},
    [CUDA_UNIT_ATTENTION_FEW] = {ATTENTION_, TEXT_attention_few},
    [CUDA_UNIT_ATTENTION_JOIN] = {ATTENTION_, TEXT_attention_join},
#undef ATTENTION_
    [CUDA_UNIT_DROPOUT] = {TEXT_args, TEXT_common, TEXT_philox, TEXT_dropout},
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
