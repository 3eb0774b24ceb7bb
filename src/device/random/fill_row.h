/* The part that all implementations of fill.h share: what is done with the words. How words are
 * generated is up to each. Static functions only: each object has its copy, compiled for its
 * instruction set. */
#ifndef TNI_DEVICE_RANDOM_FILL_ROW_H
#define TNI_DEVICE_RANDOM_FILL_ROW_H

#include "fill.h"
#include "numbers.h"
#include "philox.h"

#include <stdalign.h>

/* Words are generated in groups: enough to keep a pipeline busy, few enough for the L1 cache. */
enum { GROUP_BLOCKS = 32, GROUP = GROUP_BLOCKS * TN_PHILOX_WORDS };

/* Writes the words of the blocks from `block` on. `how` is the implementation's own data, derived
 * from the source. */
typedef void make_group(const void *how, uint64_t block, uint32_t words[GROUP]);

/* Writes `size` bytes to `out` with non-temporal stores; both are multiples of STREAM. NULL in
 * implementations that have no such stores. */
enum { STREAM = 16 };
typedef void stream_group(unsigned char *out, const unsigned char *from, size_t size);

static inline void pair_up(const uint32_t words[GROUP], uint64_t pairs[GROUP / 2])
{
    for (int i = 0; i < GROUP / 2; i++)
        pairs[i] = words[2 * i] | (uint64_t)words[2 * i + 1] << 32;
}

static inline void normals_f32(const uint32_t words[restrict GROUP], float out[restrict GROUP])
{
    for (int i = 0; i < GROUP; i += 2)
        tni_normals_f32(words[i], words[i + 1], &out[i], &out[i + 1]);
}

static inline void normals_f64(const uint64_t pairs[restrict GROUP / 2],
                               double out[restrict GROUP / 2])
{
    for (int i = 0; i < GROUP / 2; i += 2)
        tni_normals_f64(pairs[i], pairs[i + 1], &out[i], &out[i + 1]);
}

#define EACH(type, count, value)                                            \
    for (int i = 0; i < (count); i++) {                                     \
        type element_ = (value);                                            \
        memcpy(out + i * (int)sizeof element_, &element_, sizeof element_); \
    }

/* Converts one group of words into elements. */
static inline void convert(int kind, const uint32_t words[restrict GROUP],
                           unsigned char *restrict out)
{
    alignas(64) uint64_t pairs[GROUP / 2];
    alignas(64) float f32[GROUP];
    alignas(64) double f64[GROUP / 2];
    if (kind == TNI_FILL_UNIFORM_F64 || kind == TNI_FILL_NORMAL_F64)
        pair_up(words, pairs);
    if (kind == TNI_FILL_NORMAL_F16 || kind == TNI_FILL_NORMAL_BF16 || kind == TNI_FILL_NORMAL_F32)
        normals_f32(words, f32);
    switch (kind) {
    case TNI_FILL_WORDS: memcpy(out, words, GROUP * sizeof words[0]); break;
    case TNI_FILL_UNIFORM_F16: EACH(uint16_t, GROUP, tni_uniform_f16(words[i])) break;
    case TNI_FILL_UNIFORM_BF16: EACH(uint16_t, GROUP, tni_uniform_bf16(words[i])) break;
    case TNI_FILL_UNIFORM_F32: EACH(float, GROUP, tni_uniform_f32(words[i])) break;
    case TNI_FILL_UNIFORM_F64: EACH(double, GROUP / 2, tni_uniform_f64(pairs[i])) break;
    case TNI_FILL_NORMAL_F16: EACH(uint16_t, GROUP, tni_f16_nearest(f32[i])) break;
    case TNI_FILL_NORMAL_BF16: EACH(uint16_t, GROUP, tni_bf16_nearest(f32[i])) break;
    case TNI_FILL_NORMAL_F32: memcpy(out, f32, sizeof f32); break;
    case TNI_FILL_NORMAL_F64:
        normals_f64(pairs, f64);
        memcpy(out, f64, sizeof f64);
        break;
    default: break;
    }
}

static inline void fill_groups(make_group *make, const void *how, stream_group *stream,
                               const tni_fill_source *source, int kind, size_t count,
                               unsigned char *out)
{
    alignas(64) uint32_t words[GROUP];
    alignas(64) unsigned char made[sizeof words];
    const size_t size = tni_fill_bytes[kind], whole = GROUP / tni_fill_words[kind];
    const bool streams = stream && source->past_caches && (uintptr_t)out % STREAM == 0;
    uint64_t block = source->block;
    for (; count >= whole; count -= whole, out += whole * size, block += GROUP_BLOCKS) {
        make(how, block, words);
        convert(kind, words, streams ? made : out);
        if (streams)
            stream(out, made, whole * size);
    }
    if (count > 0) {
        make(how, block, words);
        convert(kind, words, made);
        memcpy(out, made, count * size);
    }
}

#endif
