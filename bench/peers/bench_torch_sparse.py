"""tn_attention_sparse on a GPU beside PyTorch's flex_attention in one process, by the device's clock.

    python3 bench/peers/bench_torch_sparse.py BUILD [sliding] [video] [random]      all without a word

sliding: attention of sliding tiles, tokens in the order of tiles. video: the fine stage of video sparse attention. random: blocks
that are drawn. Both get the listed blocks ready, so neither compares positions. TFLOP/s are 4 * size operations for each pair of
a query and a key in a listed block.

Each of our kernels for tensor cores that the GPU has is measured. Some rows of each result, of ours and of flex_attention, are first
compared with attention in f32 over the listed keys; a kernel that differs is not measured.
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
LEAST_SECONDS, ROUNDS, ROUNDS_ALONE = 4e-3, 15, 5


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
    """A call of flex_attention, all of whose listed blocks are full. It compiles for each problem. Its tiles must divide the blocks;
    the tiles that it chooses itself are too large for blocks of 64."""
    torch._dynamo.reset()
    block = row[4]
    counts = torch.full(seen.shape[:2], seen.shape[2], dtype=torch.int32, device="cuda")[None]
    is_listed = torch.zeros(*seen.shape[:2], seen.shape[1], dtype=torch.int32, device="cuda").scatter_(2, seen.long(), 1)
    order = is_listed.argsort(dim=2, descending=True, stable=True).to(torch.int32)[None]  # first what is listed
    mask = BlockMask.from_kv_blocks(torch.zeros_like(counts), torch.zeros_like(order), counts, order, BLOCK_SIZE=block)
    compiled = torch.compile(flex_attention, dynamic=False)
    options = {"BLOCK_M": block, "BLOCK_N": block} if block < 128 else None

    def theirs():
        wanted[:] = [compiled(q, k, v, block_mask=mask, kernel_options=options)]
    return theirs


def differs(row, q, k, v, seen, out):
    """Where a result differs from attention in f32: in some blocks of queries of the first head and of the last; None if nowhere."""
    _, heads, _, size, block, _ = row
    for head, n in itertools.product((0, heads - 1), (0, seen.shape[1] // 2, seen.shape[1] - 1)):
        rows = slice(n * block, (n + 1) * block)
        keys = (seen[head, n].long()[:, None] * block + torch.arange(block, device="cuda")).flatten()
        weights = torch.softmax(q[0, head, rows].float() @ k[0, head, keys].float().T / size**0.5, dim=1)
        wanted = weights @ v[0, head, keys].float()
        if not torch.allclose(out[0, head, rows].float(), wanted, rtol=2e-2, atol=3e-2 * wanted.std().item()):
            return f"head {head}, block {n}"
    return None


def ours_by(here, name, row, operands, seen):
    """A call by a kernel of ours, and its name; None if it is wrong or refuses, which is printed."""
    here.set(f"rules=require:cuda.attention-sparse.{name}")
    out = torch.full_like(operands[0], float("nan"))
    try:
        call, kernel = ours_of(here, row, *operands, out, seen)
        call()
    except Exception as reason:
        print(f"{name_of(row)}: {name} fails: {str(reason).splitlines()[0]}", flush=True)
        return None, name
    wrong = differs(row, *operands, seen, out)
    if wrong:
        print(f"{name_of(row)}: {kernel} is wrong: {wrong}", flush=True)
    return (None if wrong else call), kernel


def rival_of(row, operands, seen):
    """A call of flex_attention; None if it is wrong or refuses, and then the reason."""
    wanted = []
    try:
        call = theirs_of(row, *operands, seen, wanted)
        call()
    except Exception as reason:  # it does not support every problem
        return None, f"flex_attention fails: {str(reason).splitlines()[0]}"
    wrong = differs(row, *operands, seen, wanted[0])
    return (None, f"flex_attention is wrong: {wrong}") if wrong else (call, "")


def kernels():
    """Of ours, the kernels for tensor cores that the GPU has."""
    return ("hopper", "mma") if torch.cuda.get_device_capability() == (9, 0) else ("mma",)


def measure(here, row):
    """Returns whether all of ours are right."""
    _, heads, length, size, block, aim = row
    operands = [torch.randn(1, heads, length, size, device="cuda", dtype=torch.bfloat16) for _ in range(3)]
    seen = listed(row)
    work = 4 * size * block**2 * seen.numel() / 1e3
    theirs, why = rival_of(row, operands, seen)
    right = True
    for name in kernels():
        ours, kernel = ours_by(here, name, row, operands, seen)
        right = right and ours is not None
        if ours is None:
            continue
        times = here.times_for(ours, LEAST_SECONDS)
        if theirs and name == kernels()[0]:
            pairs.compare(f"{name_of(row)}, {kernel}", work, lambda: here.seconds(ours, times), "flex_attention",
                          lambda: here.seconds(theirs, times), aim, unit="TFLOP/s", rounds=ROUNDS)
            continue
        took = sorted(here.seconds(ours, times) for _ in range(ROUNDS_ALONE))[ROUNDS_ALONE // 2]
        print(f"{name_of(row)}, {kernel}: {1e3 * took:.2f} ms, {work / took / 1e9:.2f} TFLOP/s {why}", flush=True)
    here.set("rules=")
    return right


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
    if not all([measure(here, row) for row in rows]):
        raise SystemExit("bench: a kernel of ours failed")


if __name__ == "__main__":
    main()
