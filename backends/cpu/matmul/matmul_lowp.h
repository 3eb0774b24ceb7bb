/* Matmuls of i8, bf16 and f16: the kernels of the instruction sets, and the kernel rows. */
#ifndef TENON_BACKENDS_CPU_MATMUL_LOWP_H
#define TENON_BACKENDS_CPU_MATMUL_LOWP_H

#include "matmul_panels.h"

/* Packing functions that replace those of a set: for operands of another dtype. */
typedef struct tni_mm_packs {
    void (*pack_a)(const tni_mm_pack *job);
    void (*pack_b)(const tni_mm_pack *job);
} tni_mm_packs;

/* Few rows of A with some columns of B; neither is packed. */
enum { TNI_MM_FEW = 8, TNI_MM_FEW_MORE = 64 };

typedef struct tni_mm_few {
    tni_mm_pack b;    /* its columns and all of k; no destination */
    int64_t rows;     /* at most TNI_MM_FEW */
    const char *x;    /* A as `lay` writes it, in 1, 4 or 8 rows */
    int64_t x_row;    /* bytes from row to row */
    char *sums;       /* as many rows as x, in whole vectors */
    char *room;       /* the same size, for sums of a chunk */
    int64_t sums_row; /* row stride of both, in bytes */
} tni_mm_few;

typedef struct tni_mm_thin_set {
    int32_t square; /* elements along k that are read at once; x is zero-padded to a multiple */
    int32_t x_size; /* bytes of an element of x */
    /* Writes the lines of A to `to`, `panel` bytes apart. */
    void (*lay)(const tni_mm_pack *job);
    void (*sum)(const tni_mm_few *job);
    /* At most 64 columns; may change `sums`. */
    void (*finish)(const tni_mm_finish *f, char *sums, int64_t sums_row, int64_t rows,
                   int64_t columns, char *out, const char *bias);
} tni_mm_thin_set;

bool tni_mm_low_is_thin(tni_mm_product *product); /* if so, transposes it so that A has few rows */
uint64_t tni_mm_low_thin_workspace(const tni_mm_thin_set *set, const tni_mm_product *product);
void tni_mm_low_thin_run(const tni_mm_thin_set *set, tn_dtype acc, const tni_mm_product *product,
                         const tn_run *run);

extern const tni_mm_set tni_mm_i8_plain;
extern const tni_mm_set tni_mm_i8_neon;
extern const tni_mm_set tni_mm_i8_avx2;
extern const tni_mm_set tni_mm_i8_avx_vnni;
extern const tni_mm_set tni_mm_i8_avx512;
extern const tni_mm_set tni_mm_i8_avx512_vnni;
extern const tni_mm_set tni_mm_i8_amx;
extern const tni_mm_set tni_mm_i8_neon_dotprod;
extern const tni_mm_set tni_mm_i8_neon_i8mm;
extern const tni_mm_set tni_mm_bf16_avx512_bf16;
extern const tni_mm_set tni_mm_bf16_amx;
extern const tni_mm_set tni_mm_bf16_neon_bf16;

extern const tni_mm_thin_set tni_mm_thin_i8_plain;
extern const tni_mm_thin_set tni_mm_thin_i8_neon;
extern const tni_mm_thin_set tni_mm_thin_i8_avx2;
extern const tni_mm_thin_set tni_mm_thin_i8_avx_vnni;
extern const tni_mm_thin_set tni_mm_thin_i8_avx512;
extern const tni_mm_thin_set tni_mm_thin_i8_avx512_vnni;
extern const tni_mm_thin_set tni_mm_thin_i8_neon_dotprod;
extern const tni_mm_thin_set tni_mm_thin_i8_neon_i8mm;
extern const tni_mm_thin_set tni_mm_thin_bf16_plain;
extern const tni_mm_thin_set tni_mm_thin_bf16_neon;
extern const tni_mm_thin_set tni_mm_thin_bf16_neon_bf16;
extern const tni_mm_thin_set tni_mm_thin_bf16_avx2;
extern const tni_mm_thin_set tni_mm_thin_bf16_avx512;
extern const tni_mm_thin_set tni_mm_thin_f16_plain;
extern const tni_mm_thin_set tni_mm_thin_f16_neon;
extern const tni_mm_thin_set tni_mm_thin_f16_avx2;
extern const tni_mm_thin_set tni_mm_thin_f16_avx512;

/* Packing for the sets of f32. */
extern const tni_mm_packs tni_mm_bf16_plain;
extern const tni_mm_packs tni_mm_bf16_neon;
extern const tni_mm_packs tni_mm_bf16_avx2;
extern const tni_mm_packs tni_mm_bf16_avx512;
extern const tni_mm_packs tni_mm_f16_plain;
extern const tni_mm_packs tni_mm_f16_neon;
extern const tni_mm_packs tni_mm_f16_avx2;
extern const tni_mm_packs tni_mm_f16_avx512;

/* A kernel row and the data of its functions. The rows are in matmul_cpu.c. */
typedef struct tni_mm_row {
    tn_kernel_row row; /* must be first: the functions get a pointer to it */
    const tni_mm_set *set;
    const tni_mm_packs *packs;   /* or NULL */
    const tni_mm_thin_set *thin; /* or NULL: few rows are packed like many */
    /* Inputs of the cost model, in ns: of a call, of one element of k for a whole tile, of the
     * epilogue of a row, and of 16 products with few rows. */
    double call_ns, step_ns, row_ns, thin_ns;
} tni_mm_row;

#endif
