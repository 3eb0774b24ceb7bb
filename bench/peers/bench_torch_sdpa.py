"""tn_attention on a GPU beside PyTorch's scaled_dot_product_attention in one process, by the device's clock.

    python3 bench/peers/bench_torch_sdpa.py BUILD [forward] [own] [decode] [gradients] [backward[.KERNEL]]    all without a word

PyTorch's forward is cuDNN's. forward: ours by the row that is chosen. own: ours by Tenon's kernel for Hopper, also where
cuDNN is predicted to be faster. decode: few queries, ours by Tenon's kernel for that, PyTorch's by cuDNN or FlashAttention,
whichever is faster; beside it the share of the speed of a copy in the same process. gradients: of bf16 both by cuDNN; of
f32, which cuDNN does not take, ours by our own kernels, PyTorch's by its memory-efficient ones. backward: gradients of
bf16 by each of our kernels, which are own, mma and hopper, beside cuDNN's; backward.mma only by that one.
"""

import ctypes
import sys

import gpu
import pairs
from bench_torch_attention import Arguments

if gpu.is_here():
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel

# Batch, heads, length, size of a head, causal, heads of keys; bf16.
ROWS = ((4, 16, 4096, 128, False, 16), (4, 16, 4096, 128, True, 16), (2, 16, 8192, 128, False, 16),
        (2, 16, 8192, 128, True, 16), (1, 16, 16384, 128, False, 16), (1, 16, 16384, 128, True, 16),
        (1, 24, 32760, 128, False, 24), (1, 24, 32768, 128, False, 24), (1, 24, 115200, 128, False, 24),
        (4, 32, 4096, 64, False, 32), (4, 32, 4096, 64, True, 32), (2, 16, 4096, 96, False, 16),
        (2, 8, 8192, 256, False, 8), (1, 32, 8192, 128, True, 8), (16, 24, 512, 64, False, 24),
        (3, 11, 3001, 80, True, 11), (1, 12, 32760, 128, False, 12))
# Batch, heads, heads of keys, queries, keys, size of a head; bf16.
STEPS = ((8, 32, 8, 1, 8192, 128), (1, 32, 8, 1, 32768, 128), (1, 64, 8, 1, 131072, 128), (1, 32, 8, 1, 4096, 128),
         (16, 32, 8, 1, 4096, 64), (32, 16, 16, 1, 2048, 128), (4, 64, 4, 1, 16384, 128), (8, 32, 8, 4, 8192, 128),
         (3, 40, 8, 1, 10007, 128), (8, 16, 2, 1, 8192, 256))
GRADIENTS = (("bf16", 4, 16, 4096, 128, False), ("bf16", 4, 16, 4096, 128, True), ("f32", 1, 8, 2048, 64, False),
             ("f32", 1, 8, 2048, 128, False), ("f32", 4, 16, 2048, 128, True))
# Gradients of bf16 by our kernels, as above.
BACKWARD = tuple(("bf16", *sizes, causal) for sizes in ((2, 16, 8192, 128), (4, 16, 4096, 64), (4, 16, 4096, 128))
                 for causal in (False, True))
CAUSAL = 1  # TN_MASK_CAUSAL
LEAST_SECONDS, LONG_SECONDS, ROUNDS_OF_LONG = 4e-3, 0.1, 15


class Gradients(ctypes.Structure):
    """tn_attention_backward_args."""
    _fields_ = [("struct_size", ctypes.c_size_t),
                *((name, ctypes.c_void_p) for name in
                  ("q", "k", "v", "out", "lse", "mask_tensor", "dout", "dq", "dk", "dv")),
                *((name, ctypes.c_double) for name in ("scale", "softcap", "dropout")),
                *((name, ctypes.c_uint64) for name in ("seed", "offset")),
                *((name, ctypes.c_int64) for name in ("window_left", "window_right")),
                *((name, ctypes.c_int32) for name in ("mask", "layout")),
                ("set", ctypes.c_uint32), ("backend", ctypes.c_int32),
                ("stream", ctypes.c_void_p), ("workspace", ctypes.c_void_p),
                ("workspace_bytes", ctypes.c_uint64)]


def name_of(row):
    heads = f"{row[1]}/{row[5]}" if len(row) > 5 and row[5] != row[1] else row[1]
    return f"({row[0]},{heads},{row[2]},{row[3]}{', causal' if row[4] else ''})"


def call_of(here, operation, kind, tensors, causal):
    """A call of tn_OPERATION with tensors by their names, and its kernel."""
    held = {name: here.tensor(it) for name, it in tensors.items()}
    arguments = kind(struct_size=ctypes.sizeof(kind), mask=CAUSAL if causal else 0, stream=here.stream)
    for name, tensor in held.items():
        setattr(arguments, name, ctypes.addressof(tensor.struct))
    call = here.call(f"tn_{operation}", ctypes.c_void_p, ctypes.POINTER(kind))
    kernel = here.kernel(operation, arguments)
    return (lambda kept=held: call(None, arguments)), kernel


def ours_of(here, tensors, causal):
    """A call of tn_attention with q, k, v, out and lse, if that is given, and its kernel."""
    return call_of(here, "attention", Arguments, dict(zip(("q", "k", "v", "out", "lse"), tensors)), causal)


def measure(here, row):
    batch, heads, length, size, causal, of_keys = row
    q, k, v = (torch.randn(batch, count, length, size, device="cuda", dtype=torch.bfloat16)
               for count in (heads, of_keys, of_keys))
    out, wanted = torch.empty_like(q), []
    ours, kernel = ours_of(here, (q, k, v, out), causal)

    def theirs():
        wanted[:] = [torch.nn.functional.scaled_dot_product_attention(
            q, k, v, is_causal=causal, enable_gqa=of_keys != heads)]

    ours()
    theirs()
    if not torch.allclose(out, wanted[0], atol=2e-2, rtol=2e-2):
        raise SystemExit(f"bench: tn_attention and PyTorch differ on {name_of(row)}")
    times = here.times_for(ours, LEAST_SECONDS)
    is_long = here.seconds(ours, 1) > LONG_SECONDS
    pairs.compare(f"{name_of(row)}, {kernel}",
                  4 * batch * heads * length**2 * size / (2 if causal else 1) / 1e3,
                  lambda: here.seconds(ours, times), "PyTorch", lambda: here.seconds(theirs, times), 1,
                  unit="TFLOP/s", rounds=ROUNDS_OF_LONG if is_long else pairs.ROUNDS)


def copy_speed(here):
    """Bytes per second that a copy reads and writes."""
    source = torch.empty(1 << 30, device="cuda", dtype=torch.uint8)
    target = torch.empty_like(source)
    return 2 * source.numel() / min(here.seconds(lambda: target.copy_(source), 4) for _ in range(5))


def measure_step(here, row, copies):
    batch, heads, of_keys, queries, keys, size = row
    q = torch.randn(batch, heads, queries, size, device="cuda", dtype=torch.bfloat16)
    k, v = (torch.randn(batch, of_keys, keys, size, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    out, wanted = torch.empty_like(q), []
    ours, kernel = ours_of(here, (q, k, v, out), False)

    def attend(backend):
        def theirs():
            with sdpa_kernel(backend):
                wanted[:] = [torch.nn.functional.scaled_dot_product_attention(q, k, v, enable_gqa=of_keys != heads)]
        return theirs

    rivals = [attend(backend) for backend in (SDPBackend.CUDNN_ATTENTION, SDPBackend.FLASH_ATTENTION)]
    times = here.times_for(ours, LEAST_SECONDS)
    by_each = [min(here.seconds(rival, times) for _ in range(3)) for rival in rivals]
    rival = rivals[by_each.index(min(by_each))]
    ours()
    rival()
    if not torch.allclose(out, wanted[0], atol=2e-3, rtol=2e-2):
        raise SystemExit(f"bench: tn_attention and PyTorch differ on {row}")
    work = 4 * batch * of_keys * keys * size
    share = work / min(here.seconds(ours, times) for _ in range(3)) / copies
    name = f"({batch},{heads}/{of_keys},{queries},{keys},{size}), {kernel}, {share:.0%} of a copy"
    pairs.compare(name, work, lambda: here.seconds(ours, times), "cuDNN" if rival is rivals[0] else "FlashAttention",
                  lambda: here.seconds(rival, times), 1)


def measure_gradients(here, row):
    dtype, batch, heads, length, size, causal = row
    q, k, v, dout = (torch.randn(batch, heads, length, size, device="cuda",
                                 dtype=torch.bfloat16 if dtype == "bf16" else torch.float32) for _ in range(4))
    out, lse = torch.empty_like(q), torch.empty(batch, heads, length, device="cuda")
    made = [torch.empty_like(q) for _ in range(3)]
    ours_of(here, (q, k, v, out, lse), causal)[0]()
    names = ("q", "k", "v", "out", "lse", "dout", "dq", "dk", "dv")
    ours, kernel = call_of(here, "attention_backward", Gradients,
                           dict(zip(names, (q, k, v, out, lse, dout, *made))), causal)
    given = [it.requires_grad_() for it in (q.clone(), k.clone(), v.clone())]
    backend = SDPBackend.CUDNN_ATTENTION if dtype == "bf16" else SDPBackend.EFFICIENT_ATTENTION
    with sdpa_kernel(backend):
        forward = torch.nn.functional.scaled_dot_product_attention(*given, is_causal=causal)

    def theirs():
        return torch.autograd.grad(forward, given, dout, retain_graph=True)

    ours()
    for mine, wanted in zip(made, theirs()):
        if not torch.allclose(mine, wanted, atol=5e-2 if dtype == "bf16" else 1e-3, rtol=2e-2):
            raise SystemExit(f"bench: tn_attention_backward and PyTorch differ on {row}")
    times = here.times_for(ours, LEAST_SECONDS)
    pairs.compare(f"gradients, {dtype} {name_of(row[1:])}, {kernel}",
                  10 * batch * heads * length**2 * size / (2 if causal else 1) / 1e3,
                  lambda: here.seconds(ours, times), "PyTorch", lambda: here.seconds(theirs, times), 1,
                  unit="TFLOP/s", rounds=ROUNDS_OF_LONG)


def measure_backward(here, row, kernels):
    for kernel in kernels:
        here.set(f"rules=prefer:cuda.attention-backward.{kernel}")
        measure_gradients(here, row)
    here.set("rules=")


def main():
    words = sys.argv[2:] or ["forward", "own", "decode", "gradients", "backward"]
    forward = [word for word in words if word in ("forward", "own")]
    kernels = ("own", "mma", "hopper") if "backward" in words else [word[9:] for word in words if word.startswith("backward.")]
    if not gpu.is_here():
        for row in ROWS if forward else ():
            pairs.compare(f"tn_attention, bf16 {name_of(row)}", 0, None, gpu.LACKING, None, 1)
        for row in STEPS if "decode" in words else ():
            pairs.compare(f"tn_attention, bf16 {row}", 0, None, gpu.LACKING, None, 1)
        for row in GRADIENTS if "gradients" in words else ():
            pairs.compare(f"tn_attention_backward, {row[0]} {name_of(row[1:])}", 0, None, gpu.LACKING, None, 1)
        for row in BACKWARD:
            for kernel in kernels:
                pairs.compare(f"tn_attention_backward by {kernel}, {row[0]} {name_of(row[1:])}", 0, None, gpu.LACKING, None, 1)
        return
    torch.manual_seed(1)
    here = gpu.Gpu(sys.argv[1])
    with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
        first = torch.randn(1, 2, 64, 64, device="cuda", dtype=torch.bfloat16)
        torch.nn.functional.scaled_dot_product_attention(first, first, first)
        ours_of(here, (first, first, first, torch.empty_like(first)), False)[0]()
        print(f"{here.device.name}; PyTorch {torch.__version__} with cuDNN {torch.backends.cudnn.version()}, "
              "ours {} ({})".format(*here.library("cudnn")))
        for word in forward:
            here.set("rules=require:cuda.attention.hopper" if word == "own" else "rules=")
            for row in ROWS:
                measure(here, row)
        here.set("rules=")
    if "decode" in words:
        copies = copy_speed(here)
        print(f"a copy: {copies / 1e12:.2f} TB/s")
        here.set("rules=require:cuda.attention.decode")
        for row in STEPS:
            measure_step(here, row, copies)
        here.set("rules=")
    for row in GRADIENTS if "gradients" in words else ():
        measure_gradients(here, row)
    for row in BACKWARD if kernels else ():
        measure_backward(here, row, kernels)


if __name__ == "__main__":
    main()
