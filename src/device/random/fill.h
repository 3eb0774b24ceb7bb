/* The inner function of a fill, one per instruction set. Included by objects that are compiled for
 * more than the baseline processor: declarations only, see cmake/TenonIsa.cmake. */
#ifndef TNI_DEVICE_RANDOM_FILL_H
#define TNI_DEVICE_RANDOM_FILL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tni_isa_row;

/* Kinds of elements: name, bytes, and random words per element. */
#define TNI_FILL_LIST(X)  \
    X(WORDS, 4, 1)        \
    X(UNIFORM_F16, 2, 1)  \
    X(UNIFORM_BF16, 2, 1) \
    X(UNIFORM_F32, 4, 1)  \
    X(UNIFORM_F64, 8, 2)  \
    X(NORMAL_F16, 2, 1)   \
    X(NORMAL_BF16, 2, 1)  \
    X(NORMAL_F32, 4, 1)   \
    X(NORMAL_F64, 8, 2)

enum {
#define TNI_FILL_ENUM_(name, bytes, words) TNI_FILL_##name,
    TNI_FILL_LIST(TNI_FILL_ENUM_) TNI_FILL_COUNT
#undef TNI_FILL_ENUM_
};

/* Indexed by kind. */
extern const uint8_t tni_fill_bytes[TNI_FILL_COUNT];
extern const uint8_t tni_fill_words[TNI_FILL_COUNT];

/* Where the words come from, see tn_philox_block. `past_caches`: the output is larger than the
 * caches, so use non-temporal stores if available. */
typedef struct tni_fill_source {
    uint64_t seed;
    uint64_t subsequence;
    uint64_t block;
    bool past_caches;
} tni_fill_source;

/* Writes `count` elements of a TNI_FILL_ kind to `out` (any alignment), from the words that begin
 * with the source's block. The blocks must not cross a multiple of 2^32. */
typedef void tni_fill(const tni_fill_source *source, int kind, size_t count, unsigned char *out);

void tni_fill_avx512(const tni_fill_source *source, int kind, size_t count, unsigned char *out);
void tni_fill_avx2(const tni_fill_source *source, int kind, size_t count, unsigned char *out);
void tni_fill_portable(const tni_fill_source *source, int kind, size_t count, unsigned char *out);

/* Every implementation in this build, best first; `function` is a tni_fill. */
const struct tni_isa_row *tni_fill_rows(size_t *out_count);

/* Selects the best implementation for `features` for all later fills, and returns it. The first use
 * does this with tni_cpu_features(); further calls are for tests. */
const struct tni_isa_row *tni_fill_choose(uint64_t features);

#endif
