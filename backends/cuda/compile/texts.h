/* The kernels' source texts, which are embedded in the module, and the units that are made of them. */
#ifndef CUDA_TEXTS_H
#define CUDA_TEXTS_H

#include "nvrtc.h"

/* An embedded source text: one file. */
typedef struct cuda_text {
    const char *name; /* the file's, without its folder */
    const unsigned char *bytes;
    const size_t *size;
} cuda_text;

/* Initializes a cuda_text. `symbol` is the file's name with "_" for "."; CUDA_TEXT_DECLARE(symbol) must precede. */
#define CUDA_TEXT(symbol, name)                              \
    {                                                        \
        name, cuda_text_##symbol, &cuda_text_##symbol##_size \
    }
#define CUDA_TEXT_DECLARE(symbol)                    \
    extern const unsigned char cuda_text_##symbol[]; \
    extern const size_t cuda_text_##symbol##_size

/* Texts that several units share: args.h, block.cuh, common.cuh, functions.cuh, and tenon/module/philox.h. */
extern const cuda_text cuda_text_of_args, cuda_text_of_block, cuda_text_of_common,
    cuda_text_of_functions, cuda_text_of_philox;

/* What is compiled together: texts in order, up to the first NULL. The last one names the unit. Units are compared
 * by address, so each is defined once. */
enum { CUDA_UNIT_PARTS = 20 };
typedef struct cuda_unit {
    const cuda_text *parts[CUDA_UNIT_PARTS];
} cuda_unit;

static inline int cuda_unit_count(const cuda_unit *unit)
{
    int count = 0;
    while (count < CUDA_UNIT_PARTS && unit->parts[count])
        count++;
    return count;
}

/* The unit's name: "rotary.cu". */
static inline const char *cuda_unit_name(const cuda_unit *unit)
{
    return unit->parts[cuda_unit_count(unit) - 1]->name;
}

/* Returns the unit's whole text, terminated by '\0'; #line directives keep each part's name and line
 * numbers. The caller must host->release it. NULL if out of memory. */
char *cuda_unit_text(const tn_host *host, const cuda_unit *unit);

/* Headers that the units include, in addition to their parts. */
extern const char *const cuda_header_names[];
extern const char *const cuda_header_texts[];
extern const int32_t cuda_headers;

#endif
