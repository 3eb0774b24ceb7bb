/* Tiles of TILE rows by TILE keys, and products with them, in small squares in registers: thread (x, y) of 16 by 16
 * has WIDE rows from WIDE * y on of one side, and WIDE from WIDE * x on of the other. Heads are loaded STEP
 * elements at a time, transposed, so that a square's sides are contiguous; values as many rows at a time as fit. */
enum {
    SIDE = 16,
    WIDE = sizeof(A) == 8 ? 2 : 4,
    TILE = SIDE * WIDE,
    STEP = 32,
    PITCH = TILE + WIDE,
    COLUMNS = SIZE / TILE,       /* number of packs of WIDE values that a thread has per row */
    VALUES = TILE * TILE / SIZE, /* rows of values in shared memory at a time */
    ROOM = 2 * STEP * PITCH > TILE * TILE ? 2 * STEP * PITCH : TILE * TILE
};
typedef pack<A, WIDE> few;

/* Loads STEP elements of TILE rows, from `first` on. */
DEVICE void lay_heads(const IN *from, const i64 *at, int first, int size, i64 along, int whole, A *to)
{
#pragma unroll
    for (int n = threadIdx.x; n < TILE * (STEP / EACH); n += BLOCK) {
        const int row = n % TILE, d = n / TILE * EACH;
        piece some = {};
        if (at[row] != ABSENT)
            some = piece_of(from + at[row], first + d, size, along, whole);
        A wide[EACH];
        widen(some, wide);
#pragma unroll
        for (int e = 0; e < EACH; e++)
            to[(d + e) * PITCH + row] = wide[e];
    }
}

/* Loads VALUES whole rows. Returns true if one has a non-finite element: multiplied by the 0 of an uncounted
 * weight, it would give NaN. */
DEVICE bool lay_values(const IN *from, const i64 *at, int size, i64 along, int whole, A *to)
{
    A nonfinite = 0;
#pragma unroll 4
    for (int n = threadIdx.x; n < VALUES * (SIZE / EACH); n += BLOCK) {
        const int key = n / (SIZE / EACH), d = n % (SIZE / EACH) * EACH;
        piece some = {};
        if (at[key] != ABSENT)
            some = piece_of(from + at[key], d, size, along, whole);
        A wide[EACH];
        widen(some, wide);
#pragma unroll
        for (int e = 0; e < EACH; e++) {
            nonfinite += wide[e] - wide[e];
            to[key * SIZE + d + e] = wide[e];
        }
    }
    return !(nonfinite == 0);
}

/* Adds STEP products of the rows of both sides, by y and by x. */
DEVICE void multiply(const A *a_side, const A *b_side, A score[WIDE][WIDE])
{
    const A *mine = a_side + threadIdx.x / SIDE * WIDE, *theirs = b_side + threadIdx.x % SIDE * WIDE;
#pragma unroll 8
    for (int d = 0; d < STEP; d++) {
        const few a = *(const few *)(mine + d * PITCH), b = *(const few *)(theirs + d * PITCH);
#pragma unroll
        for (int i = 0; i < WIDE; i++) {
#pragma unroll
            for (int j = 0; j < WIDE; j++)
                score[i][j] = fused(a.of[i], b.of[j], score[i][j]);
        }
    }
}

/* Adds the values of `count` keys with their weights; if GUARDED, only with the weights that count. */
template <bool GUARDED>
DEVICE void add_values(const A *weights, const A *values, int count, A sums[WIDE][COLUMNS][WIDE])
{
    const A *mine = weights + threadIdx.x / SIDE * WIDE;
#pragma unroll 4
    for (int key = 0; key < count; key++) {
        const few w = *(const few *)(mine + key * PITCH);
#pragma unroll
        for (int c = 0; c < COLUMNS; c++) {
            const few v = *(const few *)(values + key * SIZE + c * TILE + threadIdx.x % SIDE * WIDE);
#pragma unroll
            for (int i = 0; i < WIDE; i++) {
#pragma unroll
                for (int e = 0; e < WIDE; e++) {
                    if (!GUARDED || counts(w.of[i]))
                        sums[i][c][e] = fused(w.of[i], v.of[e], sums[i][c][e]);
                }
            }
        }
    }
}

/* Stores a square transposed, as add_values reads it. */
DEVICE void lay_turned(const A square[WIDE][WIDE], A *to)
{
    const int x = threadIdx.x % SIDE * WIDE, y = threadIdx.x / SIDE * WIDE;
#pragma unroll
    for (int j = 0; j < WIDE; j++) {
        few turned;
#pragma unroll
        for (int i = 0; i < WIDE; i++)
            turned.of[i] = square[i][j];
        *(few *)(to + (x + j) * PITCH + y) = turned;
    }
}

/* Adds TILE rows of values, of which only the first `count` exist. All threads of the block must call it. */
DEVICE void add_tile(const A *weights, const IN *from, const i64 *at, int count, int size, i64 along, int whole,
                     A *room, A sums[WIDE][COLUMNS][WIDE])
{
    for (int row = 0; row < TILE && row < count; row += VALUES) {
        __syncthreads();
        if (__syncthreads_or(lay_values(from, at + row, size, along, whole, room)))
            add_values<true>(weights + row * PITCH, room, VALUES, sums);
        else
            add_values<false>(weights + row * PITCH, room, VALUES, sums);
    }
}
