#include "texts.h"

CUDA_TEXT_DECLARE(args_h);
CUDA_TEXT_DECLARE(block_cuh);
CUDA_TEXT_DECLARE(common_cuh);
CUDA_TEXT_DECLARE(functions_cuh);
CUDA_TEXT_DECLARE(philox_h);

const cuda_text cuda_text_of_args = CUDA_TEXT(args_h, "args.h");
const cuda_text cuda_text_of_block = CUDA_TEXT(block_cuh, "block.cuh");
const cuda_text cuda_text_of_common = CUDA_TEXT(common_cuh, "common.cuh");
const cuda_text cuda_text_of_functions = CUDA_TEXT(functions_cuh, "functions.cuh");
const cuda_text cuda_text_of_philox = CUDA_TEXT(philox_h, "philox.h");

char *cuda_unit_text(const tn_host *host, const cuda_unit *unit)
{
    enum { HEAD = 64 };
    const int count = cuda_unit_count(unit);
    size_t room = 1, used = 0;
    for (int i = 0; i < count; i++)
        room += HEAD + *unit->parts[i]->size;
    char *out = host->alloc(host->self, room, 1);
    for (int i = 0; out && i < count; i++) {
        const cuda_text *part = unit->parts[i];
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
