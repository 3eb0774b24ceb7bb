/* Copies of elements, of the type ELEMENT for their size, whose dimensions lie in different orders.
 *
 * Where the operands have their neighbours in different dimensions, tiles go through shared memory, so that
 * both sides are read and written in whole lines. The last dimension is out's, the one before it in's. A row
 * of a tile is longer than it by a bank, so that neither side waits for the other's.
 *
 * Tiles are taken in bands of BAND rows of them, column by column: so those that are copied at once lie near
 * each other on both sides, where each row of tiles would touch a line of every row of in. */
enum { TILE = 64, WARP = 32, DEPTH = 256 / WARP, REST = sizeof(ELEMENT) < 4 ? 4 / sizeof(ELEMENT) : 1 };
#ifndef BAND
#define BAND 32
#endif

struct tile_place {
    i64 column, row, in, out;
};

/* Tiles across and down, and all of them. */
struct tiling {
    INDEX across, down, all;
};

DEVICE tile_place place_of(const cuda_each_args &args, const tiling &tiles, INDEX tile)
{
    const int r = args.rank;
    const INDEX plane = tiles.across * tiles.down, most = tiles.down < BAND ? tiles.down : (INDEX)BAND;
    INDEX left = r > 2 ? tile / plane : 0, at_tile = tile - left * plane;
    const INDEX band = at_tile / (most * tiles.across), first = band * most;
    const INDEX high = tiles.down - first < most ? tiles.down - first : most;
    at_tile -= first * tiles.across;
    const INDEX column = at_tile / high;
    tile_place at = {(i64)column * TILE, (i64)(first + at_tile - column * high) * TILE, 0, 0};
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
        const tile_place at = place_of(args, tiles, t);
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

/* The same of 16 bits, where rows of both sides are whole packs of eight elements. What a thread reads of two
 * neighbouring rows of in becomes pairs, which are words of four neighbours of a row of out each. Banks: a row of
 * pairs, and its second half, begin where the eight packs of four rows meet in none. */
struct __align__(16) packed {
    u32 of[4];
};

enum { PACK = 8, PACKS = TILE / PACK, PAIRS = TILE + 5 };

DEVICE int skewed(int column) { return column + column / 32 * 4; }

extern "C" __global__ void __launch_bounds__(256) tiled_pairs(const cuda_each_args args)
{
    __shared__ u32 pairs[TILE / 2][PAIRS];
    const u16 *in = (const u16 *)args.data[0];
    u16 *out = (u16 *)args.data[1];
    const int r = args.rank, x = threadIdx.x % PACKS, y = threadIdx.x / PACKS;
    const i64 columns = args.size[r - 1], rows = args.size[r - 2];
    const i64 in_step = args.stride[0][r - 1], out_step = args.stride[1][r - 2];
    const tiling tiles = tiling_of(args);
    for (INDEX t = blockIdx.x; t < tiles.all; t += gridDim.x) {
        const tile_place at = place_of(args, tiles, t);
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
