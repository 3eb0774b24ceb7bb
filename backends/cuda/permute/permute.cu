/* Copies of elements with a different order of dimensions. ELEMENT is a type of their size.
 *
 * If the operands' contiguous dimensions differ, tiles go through shared memory, so that both sides are read
 * and written in whole lines. The last dimension is contiguous in out, the one before it in in. A tile's
 * rows are padded by one bank to avoid bank conflicts. */
enum { TILE = 64, WARP = 32, DEPTH = 256 / WARP, REST = sizeof(ELEMENT) < 4 ? 4 / sizeof(ELEMENT) : 1 };

struct tile_place {
    i64 column, row, in, out;
};

DEVICE tile_place place_of(const cuda_each_args &args, INDEX tile, INDEX across, INDEX down)
{
    const int r = args.rank;
    INDEX left = tile / across;
    tile_place at = {(i64)(tile - left * across) * TILE, (i64)left * TILE, 0, 0};
    if (r > 2) {
        const INDEX next = left / down;
        at.row = (i64)(left - next * down) * TILE;
        left = next;
    }
    for (int d = r - 3; d >= 0; d--) {
        const INDEX size = (INDEX)args.size[d], next = left / size;
        const i64 here = (i64)(left - next * size);
        at.in += here * args.stride[0][d];
        at.out += here * args.stride[1][d];
        left = next;
    }
    at.in += at.column * args.stride[0][r - 1] + at.row * args.stride[0][r - 2];
    at.out += at.row * args.stride[1][r - 2] + at.column * args.stride[1][r - 1];
    return at;
}

/* The number of tiles across, down, and in total. */
struct tiling {
    INDEX across, down, all;
};

DEVICE tiling tiling_of(const cuda_each_args &args)
{
    const int r = args.rank;
    tiling t = {(INDEX)((args.size[r - 1] + TILE - 1) / TILE), (INDEX)((args.size[r - 2] + TILE - 1) / TILE),
                0};
    t.all = t.across * t.down;
    for (int d = 0; d < r - 2; d++)
        t.all *= (INDEX)args.size[d];
    return t;
}

DEVICE int least(i64 a, int b) { return a < b ? (int)a : b; }

extern "C" __global__ void __launch_bounds__(256) tiled(const cuda_each_args args)
{
    __shared__ ELEMENT tile[TILE][TILE + REST];
    const ELEMENT *in = (const ELEMENT *)args.data[0];
    ELEMENT *out = (ELEMENT *)args.data[1];
    const int r = args.rank, x = threadIdx.x % WARP, y = threadIdx.x / WARP;
    const i64 columns = args.size[r - 1], rows = args.size[r - 2];
    const i64 in_step = args.stride[0][r - 1], out_step = args.stride[1][r - 2];
    const tiling tiles = tiling_of(args);
    for (INDEX t = blockIdx.x; t < tiles.all; t += gridDim.x) {
        const tile_place at = place_of(args, t, tiles.across, tiles.down);
        const int wide = least(columns - at.column, TILE), high = least(rows - at.row, TILE);
#pragma unroll
        for (int k = 0; k < TILE; k += DEPTH) {
#pragma unroll
            for (int i = 0; i < TILE; i += WARP) {
                if (k + y < wide && i + x < high)
                    tile[k + y][i + x] = in[at.in + (k + y) * in_step + i + x];
            }
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < TILE; k += DEPTH) {
#pragma unroll
            for (int i = 0; i < TILE; i += WARP) {
                if (k + y < high && i + x < wide)
                    out[at.out + (k + y) * out_step + i + x] = tile[i + x][k + y];
            }
        }
        __syncthreads();
    }
}

/* The same for 16-bit elements, if the rows of both sides consist of whole packs of eight. A thread combines
 * elements of two neighbouring rows of in into pairs; a pair is one word of a row of out. Padding avoids bank
 * conflicts: the rows of pairs, and their second halves, start such that the eight packs of four rows use
 * different banks. */
struct __align__(16) packed {
    u32 of[4];
};

enum { PACK = 8, PACKS = TILE / PACK, PAIRS = TILE + 5 };

DEVICE int skewed(int column) { return column + column / 32 * 4; }

extern "C" __global__ void __launch_bounds__(256, 8) tiled_pairs(const cuda_each_args args)
{
    __shared__ u32 pairs[TILE / 2][PAIRS];
    const u16 *in = (const u16 *)args.data[0];
    u16 *out = (u16 *)args.data[1];
    const int r = args.rank, x = threadIdx.x % PACKS, y = threadIdx.x / PACKS;
    const i64 columns = args.size[r - 1], rows = args.size[r - 2];
    const i64 in_step = args.stride[0][r - 1], out_step = args.stride[1][r - 2];
    const tiling tiles = tiling_of(args);
    for (INDEX t = blockIdx.x; t < tiles.all; t += gridDim.x) {
        const tile_place at = place_of(args, t, tiles.across, tiles.down);
        const int wide = least(columns - at.column, TILE), high = least(rows - at.row, TILE);
        if (2 * y < wide && PACK * x < high) {
            const u16 *from = in + at.in + 2 * y * in_step + PACK * x;
            const packed a = *(const packed *)from, b = *(const packed *)(from + in_step);
#pragma unroll
            for (int i = 0; i < 4; i++) {
                pairs[y][skewed(PACK * x) + 2 * i] = (a.of[i] & 0xFFFF) | b.of[i] << 16;
                pairs[y][skewed(PACK * x) + 2 * i + 1] = a.of[i] >> 16 | (b.of[i] & 0xFFFF0000);
            }
        }
        __syncthreads();
#pragma unroll
        for (int k = y; k < TILE; k += TILE / 2) {
            packed some;
#pragma unroll
            for (int i = 0; i < 4; i++)
                some.of[i] = pairs[4 * x + i][skewed(k)];
            if (k < high && PACK * x < wide)
                *(packed *)(out + at.out + k * out_step + PACK * x) = some;
        }
        __syncthreads();
    }
}
