"""tn_attention_sparse on a GPU beside PyTorch's flex_attention in one process, by the device's clock.

    python3 bench/peers/bench_torch_sparse.py BUILD [sliding] [video] [random]      all without a word

sliding: attention of sliding tiles, tokens in the order of tiles. video: the fine stage of video sparse attention. random: blocks
that are drawn. Both get the listed blocks ready, so neither compares positions. TFLOP/s are 4 * size operations for each pair of
a query and a key in a listed block.
"""

import ctypes
import itertools
import sys

import gpu
import pairs

if gpu.is_here():
    import torch
    from torch.nn.attention.flex_attention import BlockMask, flex_attention

# Word, heads, length, size of a head, tokens of a block, what is aimed at beside the rival; bf16.
ROWS = (("sliding", 24, 30 * 48 * 80, 128, 384, 1.4), ("video", 16, 49152, 128, 64, 1), ("random", 16, 61440, 128, 128, 1),
        ("random", 16, 61440, 128, 64, 1))
TILES, WINDOW = (5, 6, 10), (3, 3, 3)  # of sliding: the canvas and the window in tiles
TOP = 64  # of video: cubes that each cube sees
SHARE = 0.6  # of random: the share of the blocks that is listed
LEAST_SECONDS, ROUNDS = 4e-3, 15


class Arguments(ctypes.Structure):
    """tn_attention_sparse_args."""
    _fields_ = [("struct_size", ctypes.c_size_t),
                *((name, ctypes.c_void_p) for name in
                  ("q", "k", "v", "out", "lse", "block_mask", "starts", "blocks", "block_sizes", "order")),
                ("scale", ctypes.c_double),
                *((name, ctypes.c_int64) for name in ("block_queries", "block_keys", "window_left", "window_right")),
                *((name, ctypes.c_int32) for name in ("mask", "layout")),
                ("set", ctypes.c_uint32), ("reserved", ctypes.c_int32),
                ("stream", ctypes.c_void_p), ("workspace", ctypes.c_void_p), ("workspace_bytes", ctypes.c_uint64)]


def name_of(row):
    word, heads, length, size, block, _ = row
    return f"{word} ({heads},{length},{size}), blocks of {block}"


def tiles_seen(tile):
    """The tiles that a tile sees, in ascending order: along each axis those near the nearest centre whose window fits."""
    axes = []
    for at, count, window in zip(tile, TILES, WINDOW):
        half = window // 2
        centre = min(max(at, half), count - 1 - half)
        axes.append(range(centre - half, centre + half + 1))
    return [(t * TILES[1] + y) * TILES[2] + x for t, y, x in itertools.product(*axes)]


def listed(row):
    """For each head and block of queries, the blocks of keys that it sees, in ascending order: as many for each of them."""
    word, heads, length, _, block, _ = row
    blocks = length // block
    if word == "sliding":
        seen = [tiles_seen(tile) for tile in itertools.product(*map(range, TILES))]
        return torch.tensor(seen, dtype=torch.int32, device="cuda").expand(heads, -1, -1).contiguous()
    count = TOP if word == "video" else round(SHARE * blocks)
    order = torch.rand(heads, blocks, blocks, device="cuda").argsort(dim=2)[:, :, :count]
    return order.sort(dim=2).values.to(torch.int32).contiguous()


def ours_of(here, row, q, k, v, out, seen):
    """A call of tn_attention_sparse, and its kernel."""
    heads, block, count = row[1], row[4], seen.shape[2]
    starts = torch.arange(heads * seen.shape[1] + 1, dtype=torch.int32, device="cuda") * count
    # The last start of a head is the first of the next one.
    of_heads = starts.unfold(0, seen.shape[1] + 1, seen.shape[1]).contiguous()[None]
    tensors = dict(zip(("q", "k", "v", "out", "starts", "blocks"), (q, k, v, out, of_heads, seen.reshape(-1))))
    held = {name: here.tensor(it) for name, it in tensors.items()}
    arguments = Arguments(struct_size=ctypes.sizeof(Arguments), block_queries=block, block_keys=block, stream=here.stream)
    for name, tensor in held.items():
        setattr(arguments, name, ctypes.addressof(tensor.struct))
    call = here.call("tn_attention_sparse", ctypes.c_void_p, ctypes.POINTER(Arguments))
    kernel = here.kernel("attention_sparse", arguments)
    return (lambda kept=(held, tensors): call(None, arguments)), kernel


def theirs_of(row, q, k, v, seen, wanted):
    """A call of flex_attention, all of whose listed blocks are full."""
    counts = torch.full(seen.shape[:2], seen.shape[2], dtype=torch.int32, device="cuda")[None]
    is_listed = torch.zeros(*seen.shape[:2], seen.shape[1], dtype=torch.int32, device="cuda").scatter_(2, seen.long(), 1)
    order = is_listed.argsort(dim=2, descending=True, stable=True).to(torch.int32)[None]  # first what is listed
    mask = BlockMask.from_kv_blocks(torch.zeros_like(counts), torch.zeros_like(order), counts, order, BLOCK_SIZE=row[4])
    compiled = torch.compile(flex_attention)

    def theirs():
        wanted[:] = [compiled(q, k, v, block_mask=mask)]
    return theirs


def measure(here, row):
    _, heads, length, size, block, aim = row
    q, k, v = (torch.randn(1, heads, length, size, device="cuda", dtype=torch.bfloat16) for _ in range(3))
    seen, out, wanted = listed(row), torch.empty_like(q), []
    ours, kernel = ours_of(here, row, q, k, v, out, seen)
    work = 4 * size * block**2 * seen.numel() / 1e3
    times = here.times_for(ours, LEAST_SECONDS)
    name = f"{name_of(row)}, {kernel}"
    try:
        theirs = theirs_of(row, q, k, v, seen, wanted)
        theirs()
    except Exception as reason:  # it compiles for each problem, and does not support every one
        print(f"{name}: ours {work / here.seconds(ours, times) / 1e9:.2f} TFLOP/s; "
              f"flex_attention fails: {str(reason).splitlines()[0]}", flush=True)
        return
    ours()
    if not torch.allclose(out, wanted[0], atol=2e-2, rtol=2e-2):
        raise SystemExit(f"bench: tn_attention_sparse and PyTorch differ on {name_of(row)}")
    pairs.compare(name, work, lambda: here.seconds(ours, times), "flex_attention", lambda: here.seconds(theirs, times), aim,
                  unit="TFLOP/s", rounds=ROUNDS)


def main():
    words = sys.argv[2:] or ["sliding", "video", "random"]
    rows = [row for row in ROWS if row[0] in words]
    if not gpu.is_here():
        for row in rows:
            pairs.compare(f"tn_attention_sparse, bf16 {name_of(row)}", 0, None, gpu.LACKING, None, row[5])
        return
    torch.manual_seed(1)
    here = gpu.Gpu(sys.argv[1])
    print(f"{here.device.name}; PyTorch {torch.__version__}")
    for row in rows:
        measure(here, row)


if __name__ == "__main__":
    main()
