/* Copies lines of 2-byte units between memory that is aligned to 16 bytes and memory that is not. A thread writes DEEP
 * aligned chunks of 16 bytes of a line. A chunk that is inside the line on both sides is read as one or two
 * aligned chunks and shifted into place; chunks at the ends of a line are copied unit by unit. Nothing outside a line is read
 * or written. */
enum { BLOCK = 256, UNITS = CUDA_PAD_UNITS, DEEP = CUDA_PAD_CHUNKS };
typedef pack<u32, 4> eight; /* units */

/* A line, as far as a thread copies it. */
struct part {
    const u16 *from; /* 0: there is no such line in `from` */
    u16 *to;
    int first;  /* unit of the line that the first chunk begins with; may be negative */
    int step;   /* units between the thread's chunks */
    int before; /* units by which source addresses of chunks are behind multiples of 16 bytes */
    int last;   /* the last unit of the line with which a whole chunk may begin; may be negative */
};

/* Returns how many units an address is behind the last multiple of 16 bytes. */
DEVICE int units_behind(const u16 *at)
{
    return (int)((u32)(u64)at / sizeof(u16) % UNITS);
}

DEVICE bool is_whole(const part &p, int first) { return first >= p.before && first <= p.last; }

/* Returns the 16 bytes that begin `before` units after the first of `low`; `before` is less than UNITS. */
DEVICE eight shifted(const eight &low, const eight &high, int before)
{
    u32 w[8];
    eight out;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        w[i] = low.of[i];
        w[i + 4] = high.of[i];
    }
#pragma unroll
    for (int i = 0; i < 6; i++)
        w[i] = before & 4 ? w[i + 2] : w[i];
#pragma unroll
    for (int i = 0; i < 5; i++)
        w[i] = before & 2 ? w[i + 1] : w[i];
#pragma unroll
    for (int i = 0; i < 4; i++)
        out.of[i] = before & 1 ? w[i] >> 16 | w[i + 1] << 16 : w[i];
    return out;
}

DEVICE u32 unit_at(const cuda_pad_args &args, const part &p, int unit)
{
    return p.from && unit >= 0 && unit < args.size ? p.from[unit] : 0;
}

DEVICE void write_units(const cuda_pad_args &args, const part &p, int first)
{
    if (first >= 0 && first + UNITS <= args.whole) {
        eight some;
#pragma unroll
        for (int i = 0; i < 4; i++)
            some.of[i] = unit_at(args, p, first + 2 * i) | unit_at(args, p, first + 2 * i + 1) << 16;
        put((u32 *)(p.to + first), some);
        return;
    }
#pragma unroll 1
    for (int unit = first; unit < first + UNITS; unit++) {
        if (unit >= 0 && unit < args.whole)
            p.to[unit] = (u16)unit_at(args, p, unit);
    }
}

/* Reads all chunks before it writes any, so that the reads overlap. */
DEVICE void copy_part(const cuda_pad_args &args, const part &p)
{
    eight low[DEEP], high[DEEP];
#pragma unroll
    for (int i = 0; i < DEEP; i++) {
        const int first = p.first + i * p.step;
        if (is_whole(p, first)) {
            const eight *source = (const eight *)(p.from + (first - p.before));
            low[i] = source[0];
            if (p.before)
                high[i] = source[1];
        }
    }
#pragma unroll
    for (int i = 0; i < DEEP; i++) {
        const int first = p.first + i * p.step;
        if (is_whole(p, first))
            put((u32 *)(p.to + first), shifted(low[i], high[i], p.before));
        else if (first < args.whole)
            write_units(args, p, first);
    }
}

extern "C" __global__ void __launch_bounds__(BLOCK) matmul_pad(const cuda_pad_args args)
{
    const int lane = (int)threadIdx.x % args.lanes, beside = (int)threadIdx.x / args.lanes;
    for (u32 tile = blockIdx.x; tile < args.tiles; tile += gridDim.x) {
        const u32 down = tile / args.tiles_across, matrix = down / args.tiles_down;
        const int line = (int)(down - matrix * args.tiles_down) * (BLOCK / args.lanes) + beside;
        const int chunk = (int)(tile - down * args.tiles_across) * args.lanes * DEEP + lane;
        const starts at = starts_of(args, matrix);
        if (line >= args.whole_lines)
            continue;
        part p = {0, (u16 *)args.to + at.of[1] + line * args.to_line, 0, args.lanes * UNITS, 0, -1};
        p.first = chunk * UNITS - units_behind(p.to);
        if (line < args.lines) {
            p.from = (const u16 *)args.from + at.of[0] + line * args.from_line;
            p.before = units_behind(p.from + p.first);
            p.last = args.size - (p.before ? 2 * UNITS - p.before : UNITS);
        }
        copy_part(args, p);
    }
}
