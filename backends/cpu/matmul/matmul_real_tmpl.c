/* Kernels of f32 and f64 products, compiled for each instruction set and dtype: the build defines
 * ISA, and either REAL_F32 or REAL_F64. */
#include "../shared/block.h"
#include "../shared/transpose.h"
#include "../shared/vector_math.h"
#include "matmul_kernels.h"

/* Tiles of packed panels are TILE_ROWS by 2 vectors of accumulators, as many as fit in registers.
 * If operands are read in place, wider and lower tiles load fewer elements of A for each
 * product. */
#define EACH_4(X, v)  X(1, v) X(2, v) X(3, v) X(4, v)
#define EACH_6(X, v)  EACH_4(X, v) X(5, v) X(6, v)
#define EACH_8(X, v)  EACH_6(X, v) X(7, v) X(8, v)
#define EACH_9(X, v)  EACH_8(X, v) X(9, v)
#define EACH_12(X, v) EACH_9(X, v) X(10, v) X(11, v) X(12, v)
#define EACH_14(X, v) EACH_12(X, v) X(13, v) X(14, v)
#define EACH_16(X, v) EACH_14(X, v) X(15, v) X(16, v)

#if LANES == 16 /* 32 registers */
#define TILE_ROWS        14
#define TILE_SUMS_MOST   28
#define PACKED_EACH      EACH_14
#define IN_PLACE_EACH(X) EACH_16(X, 1) EACH_14(X, 2) EACH_9(X, 3) EACH_6(X, 4)
#define IN_PLACE_VECTORS 4
#define IN_PLACE_ROWS    16, 14, 9, 6
#elif defined(__aarch64__) /* 32 registers */
#define TILE_ROWS        12
#define TILE_SUMS_MOST   24
#define PACKED_EACH      EACH_12
#define IN_PLACE_EACH(X) EACH_16(X, 1) EACH_12(X, 2) EACH_8(X, 3) EACH_6(X, 4)
#define IN_PLACE_VECTORS 4
#define IN_PLACE_ROWS    16, 12, 8, 6
#else /* 16 registers */
#define TILE_ROWS        6
#define TILE_SUMS_MOST   12
#define PACKED_EACH      EACH_6
#define IN_PLACE_EACH(X) EACH_8(X, 1) EACH_6(X, 2) EACH_4(X, 3)
#define IN_PLACE_VECTORS 3
#define IN_PLACE_ROWS    8, 6, 4
#endif
#define TILE_COLUMNS (2 * WIDTH)

#define NAME_(dtype, isa) tni_mm_##dtype##_##isa
#define NAME(dtype, isa)  NAME_(dtype, isa)

#if defined(REAL_F32)
#include "../shared/family_f32_inc.h"
#define ACC     TN_F32
#define KERNELS NAME(f32, ISA)
#else
#include "../shared/family_f64_inc.h"
#define ACC     TN_F64
#define KERNELS NAME(f64, ISA)
#endif

#include "matmul_finish.h"
#include "matmul_pack.h"
#include "matmul_thin_sums.h"

#include "matmul_real_tiles.h"

#include "matmul_columns.h"

static void pack_a(const tni_mm_pack *job)
{
    F(pack)(job, TILE_ROWS);
}

static void pack_b(const tni_mm_pack *job)
{
    F(pack)(job, TILE_COLUMNS);
}

static void finish(const tni_mm_finish *f, const void *sums, int64_t sums_row, int64_t rows,
                   int64_t columns, char *out, const char *bias)
{
    F(finish_tile)(f, sums, sums_row, rows, columns, out, bias);
}

TN_STATIC_ASSERT(TILE_SUMS_MOST * sizeof(VECTOR) <= TNI_MM_TILE_BYTES, "a tile has room");

#define AT(rows, vectors) [vectors - 1][rows - 1] = F(in_place_##rows##_##vectors),
const tni_mm_kernels KERNELS = {
    .packed = {.rows = TILE_ROWS,
               .columns = TILE_COLUMNS,
               .depth = TNI_MM_DEPTH,
               .group = 1,
               .a_size = sizeof(REAL),
               .b_size = sizeof(REAL),
               .acc = ACC,
               .acc_size = sizeof(REAL),
               .cost = 0.05 * (double)sizeof(REAL) / LANES,
               .pack_a = pack_a,
               .pack_b = pack_b,
               .block = F(block)},
    .width_log2 = WIDTH == 16  ? 4
                  : WIDTH == 8 ? 3
                  : WIDTH == 4 ? 2
                               : 1,
    .tile_vectors = IN_PLACE_VECTORS,
    .tile_rows = {IN_PLACE_ROWS},
    .tile = {IN_PLACE_EACH(AT)},
    .columns = COLUMNS,
    .columns_most = COLUMNS_MOST,
    .columns_rows = COLUMNS_ROWS,
    .finish = finish,
    .thin_wide = F(thin_wide),
    .thin_narrow = F(thin_narrow),
    .thin_transposed = F(thin_transposed),
    .thin_total = F(thin_total),
};
