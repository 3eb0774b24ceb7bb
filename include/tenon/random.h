/* Random numbers: the same bits from the same seed on every machine, whatever compiled Tenon,
 * however many threads it runs on and however wide their vectors are.
 *
 * A generator is Philox 4x32-10. Its seed is the key; its 128-bit counter holds the subsequence in
 * the upper half and the index of a block in the lower one. A block is four 32-bit words, and its
 * words depend on those three numbers alone, so nothing has to be drawn in order: a generator is
 * its seed, its subsequence and its offset, the index of the first block that is not taken yet.
 *
 * A fill takes whole blocks. An element takes one word, an f64 two; element i is made from the
 * i-th word, or pair of words, from the fill's first block on. So a fill of a elements and then one
 * of b give what one of a + b gives, when a is a multiple of 4 (f64: of 2). The offset counts
 * modulo 2^64.
 *
 * Thread-safety: Safe. Each fill takes its blocks at once, so fills from several threads never
 * share one; which of them comes first is theirs to settle, or each has a generator of its own. */
#ifndef TENON_RANDOM_H
#define TENON_RANDOM_H

#include "base.h"
#include "module/dtype.h"

TN_BEGIN_DECLS

/* The seed of the process's default generator until it is given another: runs repeat unless a
 * program asks them not to. */
#define TN_SEED_DEFAULT UINT64_C(0)

/* NULL means the process's default generator in every call but tn_generator_release. After fork()
 * both processes go on from the same state. */
typedef struct tn_generator tn_generator;

/* A generator at the beginning of subsequence 0. The caller releases it. */
TN_API tn_status tn_generator_create(uint64_t seed, tn_generator **out, tn_error *err);
TN_API void tn_generator_release(tn_generator *generator);

/* Gives another seed and goes back to the offset 0; the subsequence stays. */
TN_API void tn_generator_seed(tn_generator *generator, uint64_t seed);

/* Everything there is to a generator: what a program saves and restores. Generators with the same
 * seed and different subsequences share no block. */
typedef struct tn_generator_state {
    size_t struct_size;
    uint64_t seed;
    uint64_t subsequence;
    uint64_t offset;
} tn_generator_state;
TN_ENDS_WITH(tn_generator_state, offset);

/* Set out->struct_size first. */
TN_API tn_status tn_generator_state_get(const tn_generator *generator, tn_generator_state *out,
                                        tn_error *err);
TN_API tn_status tn_generator_state_set(tn_generator *generator, const tn_generator_state *state,
                                        tn_error *err);

/* Seeds the process's default generator and that of every device, as tn_generator_seed does, all at
 * one moment; devices that are found later begin with this seed too. Generators that the program
 * created keep theirs. */
TN_API tn_status tn_seed_everything(uint64_t seed, tn_error *err);

/* Writes `count` numbers that are uniform over [0, 1). With w a word, w' the one after it:
 *     TN_F32             floor(w / 2^8) / 2^24
 *     TN_F64             floor((w + 2^32 w') / 2^11) / 2^53
 *     TN_F16, TN_BF16    what TN_F32 gives, rounded towards zero, which keeps it below 1
 *     TN_U32, TN_I32     the word itself, so over all there are
 * `out` needs no alignment, and may be NULL when count is 0. Runs on the threads of
 * tenon/parallel.h when it is long. Fails before anything is written or taken:
 * TN_INVALID_ARGUMENT for NULL, a negative count or more bytes than memory can have; TN_UNSUPPORTED
 * for another dtype, naming those there are. */
TN_API tn_status tn_random_fill_uniform(tn_generator *generator, tn_dtype dtype, void *out,
                                        int64_t count, tn_error *err);

/* The same with numbers of mean 0 and variance 1, normally distributed, in pairs after Box and
 * Muller: sqrt(-2 log u) times the cosine and the sine of 2 pi v, where
 *     TN_F32             u = (w | 1) / 2^32, v = w' / 2^32
 *     TN_F64             u and v the same of two words each, by 2^64
 *     TN_F16, TN_BF16    what TN_F32 gives, rounded to nearest
 * computed by polynomials whose every operation is written out (src/device/random/numbers.h). Their
 * error is below 2e-6 for TN_F32 and 5e-15 for TN_F64; no number exceeds 6.67 or 9.42. The bits
 * are as promised in IEEE 754's default rounding, which the calling thread must not have changed. */
TN_API tn_status tn_random_fill_normal(tn_generator *generator, tn_dtype dtype, void *out,
                                       int64_t count, tn_error *err);

TN_END_DECLS

#endif
