/* Random numbers: the same seed gives the same bits on every machine, independent of the compiler,
 * the number of threads and the vector width.
 *
 * A generator is Philox 4x32-10. Its seed is the key; its 128-bit counter holds the subsequence in
 * the upper half and the block index in the lower half. A block is four 32-bit words that depend
 * only on those three numbers, so blocks can be computed in any order. The state of a generator is
 * its seed, its subsequence and its offset: the index of the first unused block.
 *
 * A fill uses whole blocks. Each element uses one word, an f64 two; element i is made from the i-th
 * word, or pair of words, counted from the first block of the fill. So a fill of a elements
 * followed by a fill of b gives the same numbers as one fill of a + b, if a is a multiple of 4
 * (f64: of 2). The offset wraps modulo 2^64.
 *
 * Thread-safety: Safe. Each fill reserves its blocks atomically, so fills from several threads
 * never share a block. Their order is not defined; for a defined order, synchronize the threads or
 * give each its own generator. */
#ifndef TENON_RANDOM_H
#define TENON_RANDOM_H

#include "base.h"
#include "module/dtype.h"

TN_BEGIN_DECLS

/* The initial seed of the process's default generator, so that runs are repeatable unless a program
 * seeds it. */
#define TN_SEED_DEFAULT UINT64_C(0)

/* NULL means the process's default generator in every call except tn_generator_release. After
 * fork() both processes continue from the same state. */
typedef struct tn_generator tn_generator;

/* Creates a generator at offset 0 of subsequence 0. The caller must release it. */
TN_API tn_status tn_generator_create(uint64_t seed, tn_generator **out, tn_error *err);
TN_API void tn_generator_release(tn_generator *generator);

/* Sets the seed and resets the offset to 0; the subsequence stays. */
TN_API void tn_generator_seed(tn_generator *generator, uint64_t seed);

/* The complete state of a generator, for saving and restoring. Generators with the same seed and
 * different subsequences share no block. */
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

/* Seeds the process's default generator and those of all devices, as tn_generator_seed does,
 * atomically. Devices found later start with this seed too. Generators that the program created
 * keep theirs. */
TN_API tn_status tn_seed_everything(uint64_t seed, tn_error *err);

/* Writes `count` numbers that are uniform over [0, 1). With w a word and w' the next one:
 *     TN_F32             floor(w / 2^8) / 2^24
 *     TN_F64             floor((w + 2^32 w') / 2^11) / 2^53
 *     TN_F16, TN_BF16    the TN_F32 value, rounded towards zero, which keeps it below 1
 *     TN_U32, TN_I32     the word itself, so uniform over the full range
 * `out` needs no alignment, and may be NULL if count is 0. Long fills run on the threads of
 * tenon/parallel.h. If it fails, nothing is written and no block is used: TN_INVALID_ARGUMENT for
 * NULL, a negative count or more bytes than memory can have; TN_UNSUPPORTED for any other dtype,
 * listing the valid ones. */
TN_API tn_status tn_random_fill_uniform(tn_generator *generator, tn_dtype dtype, void *out,
                                        int64_t count, tn_error *err);

/* The same with normally distributed numbers of mean 0 and variance 1, in pairs by the Box-Muller
 * method: sqrt(-2 log u) times the cosine and the sine of 2 pi v, where
 *     TN_F32             u = (w | 1) / 2^32, v = w' / 2^32
 *     TN_F64             u and v the same from two words each, divided by 2^64
 *     TN_F16, TN_BF16    the TN_F32 value, rounded to nearest
 * computed by polynomials in a fixed order of operations (src/device/random/numbers.h). Their
 * error is below 2e-6 for TN_F32 and 5e-15 for TN_F64; no number exceeds 6.67 or 9.42. The bits
 * are reproducible in IEEE 754's default rounding mode, which the calling thread must not have
 * changed. */
TN_API tn_status tn_random_fill_normal(tn_generator *generator, tn_dtype dtype, void *out,
                                       int64_t count, tn_error *err);

TN_END_DECLS

#endif
