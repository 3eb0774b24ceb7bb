"""tn_attention on a GPU beside PyTorch's scaled_dot_product_attention, both by cuDNN, forward, in one process,
by the device's clock.

    python3 bench/peers/bench_torch_sdpa.py BUILD
"""

import ctypes
import sys

import gpu
import pairs
from bench_torch_attention import Arguments

if gpu.is_here():
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel

# Batch, heads, length, size of a head, causal; bf16.
ROWS = ((1, 24, 32760, 128, False), (1, 24, 115200, 128, False), (4, 16, 4096, 128, False),
        (4, 16, 4096, 128, True), (2, 16, 8192, 128, False), (2, 16, 8192, 128, True),
        (1, 16, 16384, 128, False), (1, 16, 16384, 128, True), (4, 32, 4096, 64, False),
        (4, 32, 4096, 64, True), (2, 8, 8192, 256, False), (1, 12, 32760, 128, False))
CAUSAL = 1  # TN_MASK_CAUSAL
LEAST_SECONDS, LONG_SECONDS, ROUNDS_OF_LONG = 4e-3, 0.1, 15


def name_of(row):
    return f"({','.join(map(str, row[:4]))}{', causal' if row[4] else ''})"


def ours_of(here, tensors, causal):
    """A call of tn_attention with q, k, v and out, and its kernel."""
    held = [here.tensor(it) for it in tensors]
    arguments = Arguments(struct_size=ctypes.sizeof(Arguments), mask=CAUSAL if causal else 0,
                          stream=here.stream)
    for name, tensor in zip(("q", "k", "v", "out"), held):
        setattr(arguments, name, ctypes.addressof(tensor.struct))
    call = here.call("tn_attention", ctypes.c_void_p, ctypes.POINTER(Arguments))
    kernel = here.kernel("attention", arguments)
    return (lambda kept=held: call(None, arguments)), kernel


def measure(here, row):
    batch, heads, length, size, causal = row
    q, k, v = (torch.randn(batch, heads, length, size, device="cuda", dtype=torch.bfloat16)
               for _ in range(3))
    out, wanted = torch.empty_like(q), []
    ours, kernel = ours_of(here, (q, k, v, out), causal)

    def theirs():
        wanted[:] = [torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)]

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


def main():
    if not gpu.is_here():
        for row in ROWS:
            pairs.compare(f"tn_attention, bf16 {name_of(row)}", 0, None, gpu.LACKING, None, 1)
        return
    torch.manual_seed(1)
    here = gpu.Gpu(sys.argv[1])
    with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
        first = torch.randn(1, 2, 64, 64, device="cuda", dtype=torch.bfloat16)
        torch.nn.functional.scaled_dot_product_attention(first, first, first)
        ours_of(here, (first, first, first, torch.empty_like(first)), False)[0]()
        print(f"{here.device.name}; PyTorch {torch.__version__} with cuDNN {torch.backends.cudnn.version()}, "
              "ours {} ({})".format(*here.library("cudnn")))
        for row in ROWS:
            measure(here, row)


if __name__ == "__main__":
    main()
