/* Matrix products with any strides, summed in W; FUNCTION(x) is the activation. A block computes a tile of
 * out from shared memory. Its threads form four groups of 8 by 8, each with PER rows and columns per thread;
 * a group takes every fourth product of a sum, and the four sums are added in a fixed order. So an output
 * depends only on a row of A, a column of B and k, whatever tile it is in. */
enum { BLOCK = 256, GROUPS = 4, SIDE = 8, GROUP = SIDE * SIDE };
enum { RESIDENT = (sizeof(W) == 4 ? 6 : 4) - PER / 2 }; /* resident blocks per multiprocessor */
enum { TILE = SIDE * PER, PITCH = TILE + 4, DEPTH = 64, ROOM = 2 * DEPTH * PITCH };
static_assert(GROUPS * TILE * PITCH <= ROOM, "the groups' sums have no room");
typedef pack<W, PER> some;

DEVICE f32 fused(f32 a, f32 b, f32 c) { return fmaf(a, b, c); }
DEVICE f64 fused(f64 a, f64 b, f64 c) { return fma(a, b, c); }
DEVICE i32 fused(i32 a, i32 b, i32 c) { return (i32)((u32)a * (u32)b + (u32)c); } /* wraps around */

/* Converts a sum to the type from which elements are written. */
DEVICE f32 whole(f32 x) { return x; }
DEVICE f64 whole(f64 x) { return x; }
DEVICE i64 whole(i32 x) { return x; }

/* TILE rows of A, or columns of B, DEPTH elements of each at a time. A thread has every APART-th element of one
 * of them, so that neighbouring threads read neighbours in memory: eight along k, or those of a tile. */
struct panel {
    enum { SLOTS = TILE * DEPTH / BLOCK, APART = BLOCK / TILE };
    const IN *from;
    i64 along;
    int line;  /* row of A or column of B, in the tile */
    int first; /* index along k */
    bool inside;
    W held[SLOTS];

    SPECIAL panel(const IN *tile, i64 between, i64 along_k, i64 lines, bool by_k) : along(along_k)
    {
        const int t = threadIdx.x;
        line = by_k ? t / SIDE % TILE : t % TILE;
        first = by_k ? t % SIDE + t / (SIDE * TILE) * SIDE : t / TILE;
        from = tile + line * between + first * along;
        inside = line < lines;
    }

    /* Reads the next elements, of which `left` exist; 0 for the others. */
    SPECIAL void fetch(i64 left)
    {
#pragma unroll
        for (int i = 0; i < SLOTS; i++) {
            const bool there = inside && first + i * APART < left;
            held[i] = there ? (W)widened<IN>(from[i * APART * along]) : (W)0;
        }
        from += DEPTH * along;
    }

    SPECIAL void lay(W *to) const
    {
#pragma unroll
        for (int i = 0; i < SLOTS; i++)
            to[(first + i * APART) * PITCH + line] = held[i];
    }
};

/* Adds one group's products from shared memory. */
DEVICE void add_products(const W *a, const W *b, int depth, some (&sum)[PER])
{
    const int me = threadIdx.x % GROUP;
    a += me / SIDE * PER;
    b += me % SIDE * PER;
#pragma unroll 4
    for (int k = threadIdx.x / GROUP; k < depth; k += GROUPS) {
        const some x = *(const some *)(a + k * PITCH), y = *(const some *)(b + k * PITCH);
#pragma unroll
        for (int i = 0; i < PER; i++) {
#pragma unroll
            for (int j = 0; j < PER; j++)
                sum[i].of[j] = fused(x.of[i], y.of[j], sum[i].of[j]);
        }
    }
}

DEVICE void write_one(const cuda_matmul_args &args, const starts &at, i64 row, i64 column, W x)
{
    OUT *out = (OUT *)args.data[2] + at.of[2] + row * args.down[2] + column * args.across[2];
    const OUT *bias = (const OUT *)args.data[3];
    x *= (W)args.alpha;
    if (args.beta != 0)
        x = fused((W)args.beta, (W)widened<OUT>(*out), x);
    if (bias)
        x += (W)widened<OUT>(bias[at.of[3] + row * args.down[3] + column * args.across[3]]);
    *out = narrowed<OUT>(whole(FUNCTION(x)));
}

/* Adds the groups' sums through shared memory, whose previous content is no longer needed. */
DEVICE void finish(const cuda_matmul_args &args, const starts &at, i64 row, i64 column,
                   const some (&sum)[PER], W *room)
{
    const int me = threadIdx.x % GROUP;
    W *mine = room + (threadIdx.x / GROUP * TILE + me / SIDE * PER) * PITCH + me % SIDE * PER;
#pragma unroll
    for (int i = 0; i < PER; i++)
        *(some *)(mine + i * PITCH) = sum[i];
    __syncthreads();
    for (int e = threadIdx.x; e < TILE * TILE; e += BLOCK) {
        const int r = args.by_columns ? e % TILE : e / TILE;
        const int c = args.by_columns ? e / TILE : e % TILE;
        W x = room[r * PITCH + c];
        for (int g = 1; g < GROUPS; g++)
            x += room[(g * TILE + r) * PITCH + c];
        if (row + r < args.m && column + c < args.n)
            write_one(args, at, row + r, column + c, x);
    }
    __syncthreads();
}

DEVICE void one_tile(const cuda_matmul_args &args, unsigned tile, W *room)
{
    const unsigned line = tile / args.tiles_across, matrix = line / args.tiles_down;
    const i64 row = (i64)(line - matrix * args.tiles_down) * TILE;
    const i64 column = (i64)(tile - line * args.tiles_across) * TILE;
    const starts at = starts_of(args, matrix);
    W *of_a = room, *of_b = room + DEPTH * PITCH;
    some sum[PER] = {};
    panel a((const IN *)args.data[0] + at.of[0] + row * args.down[0], args.down[0], args.across[0],
            args.m - row, args.a_by_k);
    panel b((const IN *)args.data[1] + at.of[1] + column * args.across[1], args.across[1],
            args.down[1], args.n - column, args.b_by_k);
    a.fetch(args.k);
    b.fetch(args.k);
    for (i64 left = args.k; left > 0; left -= DEPTH) {
        a.lay(of_a);
        b.lay(of_b);
        __syncthreads();
        if (left > DEPTH) {
            a.fetch(left - DEPTH);
            b.fetch(left - DEPTH);
        }
        add_products(of_a, of_b, left < DEPTH ? (int)left : DEPTH, sum);
        __syncthreads();
    }
    finish(args, at, row, column, sum, room);
}

extern "C" __global__ void __launch_bounds__(BLOCK, RESIDENT) matmul_tiles(const cuda_matmul_args args)
{
    __shared__ __align__(32) W room[ROOM];
    for (unsigned tile = blockIdx.x; tile < args.tiles; tile += gridDim.x)
        one_tile(args, tile, room);
}
