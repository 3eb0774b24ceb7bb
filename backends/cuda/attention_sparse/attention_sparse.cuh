/* Which rows a block computes, and which keys it visits. A block computes a tile of rows of one block of queries. Its first warp
 * walks over the listed blocks of keys, and packs their valid keys into tiles, whose keys need not be adjacent: so no slot
 * of a tile is lost to blocks that are smaller than a tile, or to keys that are not valid. The keys of a tile depend only on the
 * lists and on the rows' positions.
 *
 * Tables may be wrong, and nobody has checked them: starts are clamped to the number of entries, sizes to those of the blocks, and
 * entries that are no block are ignored. So nothing outside of the operands is read. */
enum { NO_KEY = -1, NO_BLOCK = -1 };

/* Rows `row` to `end` - 1 of query block n of a head. If the block has no rows, `end` <= `row`. */
struct tile_rows {
    int b, head, n;
    int row, end;
};

/* The tile with number `index`. The last ones of a head come first: with bounds by position they see the most keys. */
template <int ROWS> DEVICE tile_rows tile_rows_at(const cuda_sparse_args &args, u32 index)
{
    const u32 each = (u32)args.query_blocks * (u32)args.tiles, lot = index / each, b = lot / (u32)args.of.heads;
    const u32 place = each - 1 - (index - lot * each), n = place / (u32)args.tiles;
    const i64 first = (i64)n * args.block_queries, row = first + (i64)(place - n * (u32)args.tiles) * ROWS;
    const i64 last = within(first + args.block_queries, 0, args.of.queries);
    return {(int)b, (int)(lot - b * (u32)args.of.heads), (int)n, (int)within(row, 0, last), (int)within(row + ROWS, 0, last)};
}

/* The rows of this block. */
template <int ROWS> DEVICE tile_rows tile_rows_of(const cuda_sparse_args &args) { return tile_rows_at<ROWS>(args, blockIdx.x); }

/* The sequence of a tile, in which no rows exist from the tile's end on. */
DEVICE sequence sequence_of_tile(const cuda_sparse_args &args, const tile_rows &rows)
{
    return {rows.b, rows.b, rows.end, args.of.keys, 0, 0};
}

/* A tile's rows, and the keys that some of them see by position. */
struct listing {
    tile_rows rows;
    reach seen;
};

template <int ROWS> DEVICE listing listing_of(const cuda_sparse_args &args, const tile_rows &rows)
{
    return {rows, reach_of(args.of, sequence_of_tile(args, rows), rows.head, rows.row, ROWS)};
}

/* A lane of the warp that walks over the listed blocks. Each lane has a candidate, one of 32 that follow each other in the list or in
 * the mask. All but the lane's own keys is the same in all lanes. */
struct walk {
    int at, end;   /* the candidates that no lane has had yet */
    int from, to;  /* the lane's keys; none if from >= to */
    u32 live;      /* lanes with keys that were not visited yet */
    int key, last; /* the next keys, of the candidate at work */
};

DEVICE walk walk_of(const cuda_sparse_args &args, const listing &of)
{
    walk w = {};
    if (of.seen.from >= of.seen.end)
        return w;
    if (args.starts) {
        const int *starts = args.starts + of.rows.b * args.starts_stride[0] + of.rows.head * args.starts_stride[1] +
                            of.rows.n * args.starts_stride[2];
        w.at = (int)within(starts[0], 0, args.entries);
        w.end = (int)within(starts[args.starts_stride[2]], w.at, args.entries);
    } else {
        w.at = of.seen.from / args.block_keys;
        w.end = (of.seen.end - 1) / args.block_keys + 1;
    }
    return w;
}

/* Returns the block of a candidate; NO_BLOCK if it is not listed. */
DEVICE int block_of(const cuda_sparse_args &args, const tile_rows &rows, int candidate)
{
    const long long *stride = args.of.mask_stride;
    if (!args.starts) {
        const i64 at = rows.b * stride[0] + rows.head * stride[1] + rows.n * stride[2] + candidate * stride[3];
        return ((const u8 *)args.of.mask)[at] ? candidate : NO_BLOCK;
    }
    const int block = args.blocks[candidate * args.blocks_stride];
    return block >= 0 && block < args.key_blocks ? block : NO_BLOCK;
}

/* Reads the lanes' next candidates. */
DEVICE void read_candidates(const cuda_sparse_args &args, const listing &of, walk &w)
{
    const int candidate = w.at + (int)threadIdx.x % WARP;
    const int block = candidate < w.end ? block_of(args, of.rows, candidate) : NO_BLOCK;
    w.from = w.to = 0;
    if (block != NO_BLOCK) {
        const int first = block * args.block_keys, left = args.of.keys - first;
        i64 size = left < args.block_keys ? left : args.block_keys;
        if (args.sizes)
            size = within(args.sizes[of.rows.b * args.sizes_stride[0] + block * args.sizes_stride[1]], 0, size);
        w.from = first > of.seen.from ? first : of.seen.from;
        w.to = (int)(first + size < of.seen.end ? first + size : of.seen.end);
    }
    w.at += WARP;
    w.live = __ballot_sync(0xFFFFFFFFu, w.from < w.to);
}

/* Finds the next keys; returns false after the last ones. */
DEVICE bool find_next(const cuda_sparse_args &args, const listing &of, walk &w)
{
    while (w.live == 0) {
        if (w.at >= w.end)
            return false;
        read_candidates(args, of, w);
    }
    const int lane = __ffs((int)w.live) - 1;
    w.live &= w.live - 1;
    w.key = __shfl_sync(0xFFFFFFFFu, w.from, lane);
    w.last = __shfl_sync(0xFFFFFFFFu, w.to, lane);
    return true;
}

/* Writes the keys of the next tile to shared memory, in ascending order, and returns their number; the other slots become NO_KEY. For
 * one warp. */
template <int COUNT> DEVICE int next_keys(const cuda_sparse_args &args, const listing &of, walk &w, int *keys)
{
    const int lane = (int)threadIdx.x % WARP;
    int filled = 0;
    while (filled < COUNT) {
        if (w.key >= w.last && !find_next(args, of, w))
            break;
        const int room = COUNT - filled, left = w.last - w.key, count = left < room ? left : room;
        for (int i = lane; i < count; i += WARP)
            keys[filled + i] = w.key + i;
        filled += count;
        w.key += count;
    }
    for (int i = filled + lane; i < COUNT; i += WARP)
        keys[i] = NO_KEY;
    return filled;
}
