/* Attention of 16-bit floats: the kernels of the instruction sets.
 *
 * AMX, AVX-512 with dot products of pairs, and bfmmla of Arm multiply bf16 directly: scores and
 * sums are f32, weights are rounded to bf16. All others widen to f32 and compute as f32. */
#ifndef TENON_BACKENDS_CPU_ATTENTION_LOW_H
#define TENON_BACKENDS_CPU_ATTENTION_LOW_H

#include "attention_backward_kernels.h"

enum { TNI_AT_LOW_SIZE = 512 }; /* maximum elements of a row that is widened; whole vectors */

/* Functions that replace those of a set of f32, for rows of another dtype. */
typedef struct tni_at_half {
    void (*pack_rows)(const char *const *from, int64_t step, int64_t size, int64_t rows, char *to);
    bool (*pack)(const tni_at_pack *job);
    void (*finish)(const tni_at_step *step);
    /* Rows of at most TNI_AT_LOW_SIZE elements. The 16-bit elements are `step` bytes apart; the f32
     * side must have space for whole vectors. */
    void (*widen)(const char *from, int64_t step, int64_t size, float *to);
    void (*narrow)(const float *from, int64_t size, char *to, int64_t step);
    /* For attention-backward: the functions of the same names in tni_at_back_set. */
    void (*transpose)(const tni_at_pack *job);
    bool (*lines)(const tni_at_pack *job);
    void (*begin_row)(const tni_at_back_begin *job, void *out_less, void *out_delta);
    void (*write)(const void *sums, double by, int64_t size, char *to, int64_t step);
} tni_at_half;

#define TNI_AT_LOW_DECLARE_(isa)                     \
    extern const tni_at_half tni_at_half_bf16_##isa; \
    extern const tni_at_half tni_at_half_f16_##isa;
TNI_AT_LOW_DECLARE_(plain)
TNI_AT_LOW_DECLARE_(neon)
TNI_AT_LOW_DECLARE_(avx2)
TNI_AT_LOW_DECLARE_(avx512)
#undef TNI_AT_LOW_DECLARE_

/* Makes the set that computes 16-bit floats by a set of f32: for few rows, or for all rows; and that
 * of the backward pass. */
void tni_at_widen(const tni_at_set *base, const tni_at_half *half, tn_dtype dtype, tni_at_set *out);
void tni_at_back_widen(const tni_at_back_set *base, const tni_at_half *half, tni_at_back_set *out);

/* They have no kernels for few rows: see attention_rows_low.c. */
extern const tni_at_set tni_at_bf16_avx512_bf16;
extern const tni_at_set tni_at_bf16_amx;
extern const tni_at_set tni_at_bf16_neon_bf16;

#endif
