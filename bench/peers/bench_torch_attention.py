"""tn_attention on the processor beside PyTorch's scaled_dot_product_attention, forward.

    python3 bench/peers/bench_torch_attention.py BUILD [DTYPE]...      f32 and bf16 without a word

Both have as many threads as the processor runs. What a call through ctypes costs, some microseconds, is
in ours; an operation takes milliseconds. PyTorch's threads spin for a while after a call: each operation is
preceded by a pause that is not timed.
"""

import ctypes
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tests"))
import harness
import pairs

try:
    import torch
except ImportError:
    torch = None

# dtype, batch, heads, length, size, aim
ROWS = (("f32", 1, 16, 4096, 64, 1.25), ("f32", 1, 8, 4096, 128, 1.25),
        ("f32", 1, 2, 16384, 128, 1.25), ("f32", 64, 12, 128, 64, 1.4),
        ("bf16", 1, 16, 4096, 64, 1.2), ("bf16", 1, 8, 4096, 128, 1.2),
        ("bf16", 1, 2, 16384, 128, 1.2), ("bf16", 64, 12, 128, 64, 1.2))

PAUSE = 0.02  # seconds

# How far both may be apart: roundings of out, and of weights.
SLACK = {"f32": {"atol": 1e-5, "rtol": 1e-4}, "bf16": {"atol": 1e-2, "rtol": 2e-2}}


class Arguments(ctypes.Structure):
    """tn_attention_args."""
    _fields_ = [("struct_size", ctypes.c_size_t),
                *((name, ctypes.c_void_p) for name in
                  ("q", "k", "v", "out", "lse", "mask_tensor", "sinks", "starts_q", "starts_k",
                   "lengths", "pages")),
                *((name, ctypes.c_double) for name in ("scale", "softcap", "dropout")),
                *((name, ctypes.c_uint64) for name in ("seed", "offset")),
                *((name, ctypes.c_int64) for name in
                  ("window_left", "window_right", "max_queries", "max_keys")),
                *((name, ctypes.c_int32) for name in ("mask", "layout")),
                *((name, ctypes.c_uint32) for name in ("set", "reserved")),
                ("stream", ctypes.c_void_p), ("workspace", ctypes.c_void_p),
                ("workspace_bytes", ctypes.c_uint64)]


def ours_of(tenon, dtype, tensors):
    """A call of tn_attention with q, k, v and out."""
    wrapped = [tenon.wrap(t.data_ptr(), dtype, t.shape, released=lambda t=t: t) for t in tensors]
    arguments = Arguments(struct_size=ctypes.sizeof(Arguments))
    for name, tensor in zip(("q", "k", "v", "out"), wrapped):
        setattr(arguments, name, ctypes.cast(ctypes.pointer(tensor.struct), ctypes.c_void_p))
    call = tenon._fallible("tn_attention", [ctypes.c_void_p, ctypes.POINTER(Arguments)])

    def attend():
        call(None, ctypes.byref(arguments))

    attend.held = wrapped
    return attend


def measure(tenon, dtype, batch, heads, length, size, aim):
    q, k, v = (torch.randn(batch, heads, length, size)
               .to(torch.float32 if dtype == "f32" else torch.bfloat16) for _ in range(3))
    out = torch.empty_like(q)
    theirs = []
    ours = ours_of(tenon, dtype, (q, k, v, out))

    def attend():
        theirs[:] = [torch.nn.functional.scaled_dot_product_attention(q, k, v)]

    ours()
    attend()
    if not torch.allclose(out, theirs[0], **SLACK[dtype]):
        raise SystemExit("bench: tn_attention and PyTorch differ")
    pairs.compare(f"tn_attention, {dtype} ({batch},{heads},{length},{size})",
                  4 * batch * heads * length**2 * size, ours, "PyTorch", attend, aim, "GFLOP/s",
                  PAUSE)


def main():
    if torch is None:
        for dtype, batch, heads, length, size, aim in ROWS:
            pairs.compare(f"tn_attention, {dtype} ({batch},{heads},{length},{size})", 0, None,
                          "PyTorch (pip: torch)", None, aim)
        return
    tenon = harness.Library(sys.argv[1])
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    print(f"PyTorch {torch.__version__}, {torch.get_num_threads()} threads, "
          f"Python {sys.version.split()[0]}")
    for row in ROWS:
        if row[0] in (sys.argv[2:] or SLACK):
            measure(tenon, *row)


if __name__ == "__main__":
    main()
