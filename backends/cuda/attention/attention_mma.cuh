/* Products of a warp's weights with rows in shared memory, for attention on tensor cores: 16 rows at a time, `pitch` bytes
 * apart. A lane has the weights as left operands (mma.cuh) and the sums of SIDES tiles of 16. */
/* Returns whether one of COUNT rows of WIDE elements is not finite. */
template <int WIDE, int COUNT> DEVICE bool find_nonfinite(const u8 *rows, int pitch, int lane)
{
    const u32 exponent = sizeof DTYPE == sizeof "bf16" ? 0x7F80 : 0x7C00;
    bool found = false;
#pragma unroll 1
    for (int n = 0; n < WIDE / 16 * (COUNT / 16); n++) {
        const int row = decode_copied_key(WIDE, lane, n), chunk = decode_copied_chunk(WIDE, lane, n);
        const words some = *(const words *)(rows + row * pitch + chunk * 16);
#pragma unroll
        for (int i = 0; i < 4; i++)
            found = found || (some.of[i] & exponent) == exponent || (some.of[i] >> 16 & exponent) == exponent;
    }
    return __any_sync(0xFFFFFFFFu, found);
}

/* sums += weights . rows, by tensor cores. */
template <int WIDE, int SIDES>
DEVICE void add_rows(u32 rows, int pitch, int lane, const u32 (*weights)[4], f32 (*sums)[WIDE / 8][4])
{
#pragma unroll
    for (int d = 0; d < WIDE / 16; d++) {
        u32 v[4];
        read_transposed(v, rows + decode_values_at(pitch, lane, d));
#pragma unroll
        for (int t = 0; t < SIDES; t++) {
            add_product(sums[t][2 * d], weights[t], v[0], v[1]);
            add_product(sums[t][2 * d + 1], weights[t], v[2], v[3]);
        }
    }
}

/* As add_rows, row by row without those whose weight is UNCOUNTED, for rows that are not finite. */
template <int WIDE, int SIDES>
DEVICE void add_counted_rows(const u8 *rows, int pitch, int lane, const u32 (*weights)[4], f32 (*sums)[WIDE / 8][4])
{
    enum { UNCOUNTED_BITS = 0x8000 };
#pragma unroll
    for (int t = 0; t < SIDES; t++) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
#pragma unroll 1
            for (int key = 0; key < 8; key++) {
                const u32 both = __shfl_sync(0xFFFFFFFFu, weights[t][i], lane / 4 * 4 + key / 2);
                const u32 bits = key % 2 ? both >> 16 : both & 0xFFFF;
                const IN *row = (const IN *)(rows + (i / 2 * 8 + key) * pitch) + lane % 4 * 2;
                if (bits == UNCOUNTED_BITS)
                    continue;
#pragma unroll
                for (int g = 0; g < WIDE / 8; g++) {
                    f32(&to)[4] = sums[t][g];
                    to[i % 2 * 2] = fused(widen_bits(bits), widened<IN>(row[8 * g]), to[i % 2 * 2]);
                    to[i % 2 * 2 + 1] = fused(widen_bits(bits), widened<IN>(row[8 * g + 1]), to[i % 2 * 2 + 1]);
                }
            }
        }
    }
    __syncwarp();
}
