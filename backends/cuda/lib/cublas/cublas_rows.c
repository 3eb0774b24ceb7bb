/* The cuBLASLt rows, one set per numeric variant, because each has its own speed and rounding. The figures are
 * those of an H200, where a call takes 7 to 12 us on the processor and 2 us until it starts on the device; the
 * figures of a later answer only rank it after the one before. */
#include "cublas_admit.h"
#include "cublas_matmul.h"

enum { AFTER_SUMS = TN_MATMUL_USES_BIAS | TN_MATMUL_USES_ACTIVATION };

/* Our epilogue kernel reads 32 bytes of sums at once; the library's heuristics distinguish smaller
 * alignments only. */
enum { LT_ALIGNMENT = 32 };

#define WAY(nth, pad, number, word, flops, ...)            \
    {                                                      \
        .answer = nth, .pads = pad, .row = {               \
            .struct_size = sizeof(tn_kernel_row),          \
            .name = "cuda.matmul.cublaslt" word number,    \
            .platform = "cuda",                            \
            .library = "cublaslt",                         \
            .op = TN_OP_MATMUL,                            \
            .version = 6,                                  \
            .flops_per_us = (flops) * (1 - 0.001 * (nth)), \
            .bytes_per_us = 3.5e6,                         \
            .overhead_us = 9.5 + 0.1 * (nth),              \
            .alignment = LT_ALIGNMENT,                     \
            .workspace = lt_workspace,                     \
            .cost = lt_cost,                               \
            .plan = lt_plan,                               \
            .plan_release = lt_plan_release,               \
            .run = lt_run,                                 \
            __VA_ARGS__                                    \
        }                                                  \
    }

/*  Variant, part of its name, operations per us, other fields. */
#define ROWS(kind, word, flops, ...)                   \
    const lt_row cuda_lt_##kind##_rows[LT_WAYS] = {    \
        WAY(0, false, "", word, flops, __VA_ARGS__),   \
        WAY(1, false, ".2", word, flops, __VA_ARGS__), \
        WAY(2, false, ".3", word, flops, __VA_ARGS__), \
    }

/* Also a row that copies misaligned operands, for the first answer. */
#define HALF_ROWS(kind, word, flops, ...)                           \
    ROWS(kind, word, flops, .admit = cuda_blas_admit, __VA_ARGS__); \
    const lt_row cuda_lt_##kind##_padded =                          \
        WAY(0, true, ".padded", word, flops, .admit = cuda_blas_admit_padded, __VA_ARGS__)

ROWS(wide, "", 5e7, .dtypes = cuda_blas_wide, .numerics = TN_NUM_RUN_TO_RUN | TN_NUM_SPLIT_SUMS,
     .honours = BLAS_SHAPES | BLAS_FACTORS | AFTER_SUMS, .admit = cuda_blas_admit);

ROWS(tf32, ".tf32", 4e8, .dtypes = cuda_blas_f32,
     .numerics = TN_NUM_RUN_TO_RUN | TN_NUM_SPLIT_SUMS | TN_NUM_ROUNDS_F32_TF32,
     .honours = BLAS_SHAPES | BLAS_FACTORS | AFTER_SUMS, .admit = cuda_blas_admit);

/* With 16-bit outputs, a bias or beta c may be added to an already rounded product (seen with 13.1). */
HALF_ROWS(half, ".half", 7.5e8, .dtypes = cuda_blas_half,
          .numerics = TN_NUM_RUN_TO_RUN | TN_NUM_SPLIT_SUMS | TN_NUM_ROUNDS_PRODUCT,
          .honours = BLAS_SHAPES | BLAS_FACTORS | AFTER_SUMS | TN_MATMUL_USES_OUT_DTYPE);

/* Partial sums may be combined in out's dtype. */
HALF_ROWS(half_reduced, ".half-reduced", 7.6e8, .dtypes = cuda_blas_half,
          .numerics = TN_NUM_RUN_TO_RUN | TN_NUM_SPLIT_SUMS | TN_NUM_REDUCED_REDUCTION |
                      TN_NUM_ROUNDS_PRODUCT,
          .honours = BLAS_SHAPES | BLAS_FACTORS | AFTER_SUMS | TN_MATMUL_USES_OUT_DTYPE);

/* Sums are not split: one block computes each. */
HALF_ROWS(half_whole, ".half-whole", 7.4e8, .dtypes = cuda_blas_half,
          .numerics = TN_NUM_RUN_TO_RUN | TN_NUM_ROUNDS_PRODUCT,
          .honours = BLAS_SHAPES | BLAS_FACTORS | AFTER_SUMS | TN_MATMUL_USES_OUT_DTYPE);

/* Without alpha and beta, which would be in f16. */
HALF_ROWS(f16_sums, ".f16-sums", 7.7e8, .dtypes = cuda_blas_f16,
          .numerics = TN_NUM_RUN_TO_RUN | TN_NUM_SPLIT_SUMS | TN_NUM_F16_SUMS,
          .honours = BLAS_SHAPES | AFTER_SUMS | TN_MATMUL_USES_ACC);

ROWS(int8, ".int8", 1.3e9, .dtypes = cuda_blas_i8,
     .numerics = TN_NUM_RUN_TO_RUN | TN_NUM_BATCH_INVARIANT | TN_NUM_CROSS_DEVICE,
     .honours = BLAS_SHAPES, .admit = cuda_blas_admit_int8);

/* The device accumulates 8-bit floats with less precision than f32. */
ROWS(f8, ".f8", 1.4e9, .dtypes = cuda_blas_f8,
     .numerics = TN_NUM_RUN_TO_RUN | TN_NUM_SPLIT_SUMS | TN_NUM_REDUCED_REDUCTION |
                 TN_NUM_ROUNDS_PRODUCT,
     .honours = BLAS_SHAPES | BLAS_FACTORS | AFTER_SUMS | TN_MATMUL_USES_OUT_DTYPE |
                TN_MATMUL_USES_SCALES,
     .admit = cuda_blas_admit_f8);
