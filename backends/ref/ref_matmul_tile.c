#include "ref_matmul_tile.h"

enum { TILE = TNI_REF_TILE, BLOCK = TNI_REF_BLOCK, LOW = TNI_REF_DEPTH_WIDE * TNI_REF_TILE };

/* BLOCK by BLOCK sums, which stay in registers. */
static void add_block(const double *a, const double *b, int64_t depth, double *sums)
{
    double sum[BLOCK][BLOCK];
    for (int i = 0; i < BLOCK; i++) {
        for (int j = 0; j < BLOCK; j++)
            sum[i][j] = sums[i * TILE + j];
    }
    for (int64_t p = 0; p < depth; p++, a += TILE, b += TILE) {
        for (int i = 0; i < BLOCK; i++) {
            for (int j = 0; j < BLOCK; j++)
                sum[i][j] += a[i] * b[j];
        }
    }
    for (int i = 0; i < BLOCK; i++) {
        for (int j = 0; j < BLOCK; j++)
            sums[i * TILE + j] = sum[i][j];
    }
}

void tni_ref_tile_add(tni_ref_tile *tile, int64_t rows, int64_t columns, int64_t depth)
{
    for (int64_t i = 0; i < rows; i += BLOCK) {
        for (int64_t j = 0; j < columns; j += BLOCK)
            add_block(tile->a + i, tile->b + j, depth, tile->sum + i * TILE + j);
    }
}

/* One row of BLOCK sums. Each product is a * b plus its rounding error; the same for each
 * addition. */
static void add_line_wide(const double *a, const double *b, int64_t depth, double *sums,
                          double *rests)
{
    double sum[BLOCK], rest[BLOCK];
    memcpy(sum, sums, sizeof sum);
    memcpy(rest, rests, sizeof rest);
    for (int64_t p = 0; p < depth; p++, a += TILE, b += TILE) {
        const double a_high = a[0], a_low = a[LOW], whole = a_high + a_low;
        for (int j = 0; j < BLOCK; j++) {
            const double b_high = b[j], b_low = b[LOW + j];
            const double product = whole * (b_high + b_low);
            const double left =
                ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low;
            const double next = sum[j] + product, of_product = next - sum[j];
            rest[j] += left + ((sum[j] - (next - of_product)) + (product - of_product));
            sum[j] = next;
        }
    }
    memcpy(sums, sum, sizeof sum);
    memcpy(rests, rest, sizeof rest);
}

void tni_ref_tile_add_wide(tni_ref_tile *tile, int64_t rows, int64_t columns, int64_t depth)
{
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = 0; j < columns; j += BLOCK) {
            int64_t at = i * TILE + j;
            add_line_wide(tile->a + i, tile->b + j, depth, tile->sum + at, tile->rest + at);
        }
    }
}
