/* Shared by the kernels for gradients of attention on Hopper. All tiles of operands have 64 rows. HEAD and VALUES are the head
 * sizes, 64 or 128. A block has a warpgroup that loads and GROUPS that compute. */
enum {
    CHUNK = 64, /* elements of 128 bytes */
    CHUNK_BYTES = SLOPE_TILE * 128,
    X_BYTES = HEAD / CHUNK * CHUNK_BYTES,   /* a tile of Q or K */
    Y_BYTES = VALUES / CHUNK * CHUNK_BYTES, /* a tile of V or dOut */
    GROUPS = 2,
    THREADS = 128 * (GROUPS + 1)
};

#define INFINITE __int_as_float(0x7F800000)

/* Marks a weight or a slope of a pair that does not count, as in attention.cuh. Rows that may be not finite are not multiplied by
 * it. A number that counts is never -0 in a tile with such pairs. */
#define UNCOUNTED (-0.0f)
enum { UNCOUNTED_BITS = 0x8000 };
DEVICE bool counts(f32 x) { return __float_as_uint(x) != 0x80000000u; }

/* Numbers of the barrier of a group's threads. */
enum { GROUP_BARRIER = 1 };

/* A stage of a pipeline, and the parity of its barriers' phase. */
struct pipeline {
    int stage;
    u32 parity;
};
template <int COUNT> DEVICE void advance(pipeline &at)
{
    if (++at.stage == COUNT) {
        at.stage = 0;
        at.parity ^= 1;
    }
}

/* Copies the chunks of a tile of 64 rows. The barrier must expect its bytes. */
template <int BYTES> DEVICE void load_rows(const hopper_map &map, u32 to, u32 barrier, int row, int head, int batch)
{
#pragma unroll
    for (int c = 0; c < BYTES / CHUNK_BYTES; c++)
        load_box(&map, to + c * CHUNK_BYTES, barrier, c * CHUNK, row, head, batch);
}

/* sums += the tile's rows times weights, which are in registers as the left operand, or 64 x 64 slopes in shared memory. The sum
 * runs over the 64 rows. */
template <int N> DEVICE void add_tile(f32 (&sums)[N], const u32 (&weights)[SLOPE_TILE / 4], u32 rows)
{
    const u64 tile = tile_of(rows, CHUNK_BYTES);
#pragma unroll
    for (int i = 0; i < SLOPE_TILE / 16; i++)
        product_of_weights(sums, weights + 4 * i, tile + i * 2048 / 16, 1);
}
template <int N> DEVICE void add_tile(f32 (&sums)[N], u32 slopes, u32 rows)
{
    const u64 left = tile_of(slopes, CHUNK_BYTES), right = tile_of(rows, CHUNK_BYTES);
#pragma unroll
    for (int i = 0; i < SLOPE_TILE / 16; i++)
        product_of_columns(sums, left + i * 2048 / 16, right + i * 2048 / 16, 1);
}

/* Adds a row of a tile to the sums of a thread's row `half`, times a weight of 16 bits, unless that is UNCOUNTED. */
template <int N> DEVICE void add_row(f32 (&sums)[N], int half, u32 bits, u32 rows, int row)
{
    const int x = threadIdx.x % 4 * 2;
    if (bits == UNCOUNTED_BITS)
        return;
    const f32 weight = widen_bits(bits);
#pragma unroll
    for (int g = 0; g < N / 4; g++) {
#pragma unroll
        for (int e = 0; e < 2; e++) {
            f32 &sum = sums[4 * g + 2 * half + e];
            sum = fmaf(weight, widen_bits(bits_at<CHUNK_BYTES>(rows, row, 8 * g + x + e)), sum);
        }
    }
}

/* Writes a thread's row of sums times a factor: those of row `half`. `to` is NULL if the row does not exist; all lanes of a row
 * call it together. */
template <int N> DEVICE void write_row(const f32 (&sums)[N], int half, f32 factor, IN *to, i64 along, int whole)
{
    const int x = threadIdx.x % 4;
#pragma unroll
    for (int g = 0; g < N / 4; g += 4) {
        u32 words[4];
#pragma unroll
        for (int i = 0; i < 4; i++)
            words[i] = narrow_pair(sums[4 * (g + i) + 2 * half] * factor, sums[4 * (g + i) + 2 * half + 1] * factor);
        if (whole) {
            transpose_words(words);
            if (to)
                *(uint4 *)(to + 8 * (g + x)) = make_uint4(words[0], words[1], words[2], words[3]);
            continue;
        }
#pragma unroll
        for (int i = 0; i < 8; i++) {
            if (to)
                to[(8 * (g + i / 2) + 2 * x + i % 2) * along].bits = (u16)(words[i / 2] >> i % 2 * 16);
        }
    }
}
