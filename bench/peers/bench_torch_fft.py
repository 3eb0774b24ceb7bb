"""tn_fft on a GPU beside PyTorch's torch.fft in one process, by the device's clock. Both call cuFFT; plans are warm.

    python3 bench/peers/bench_torch_fft.py BUILD

Results are compared first. The rates count 5 n log2 n operations for n complex numbers, half for real ones.
"""

import ctypes
import math
import sys

import gpu
import pairs

if gpu.is_here():
    import torch

    gpu.WORDS.update({torch.complex64: "c64", torch.complex128: "c128", torch.float64: "f64"})

# Shape, transformed dimensions, kind.
ROWS = (((64, 1024, 1024), 2, "c64"), ((64, 1024, 1024), 2, "c64 inverse"), ((64, 1024, 1024), 2, "f32 to c64"),
        ((64, 1024, 1024), 2, "c64 to f32"), ((4096, 1024), 1, "c64"), ((64, 65536), 1, "c64"),
        ((4, 1048576), 1, "c64"), ((4096, 1009), 1, "c64"), ((4096, 1000), 1, "c64"), ((16, 128, 128, 128), 3, "c64"),
        ((16, 512, 512), 2, "c128"), ((1, 64), 1, "c64"))
LEAST_SECONDS = 4e-3


class Arguments(ctypes.Structure):
    """tn_fft_args."""
    _fields_ = [("struct_size", ctypes.c_size_t), *((name, ctypes.c_void_p) for name in ("in_", "out", "axes")),
                *((name, ctypes.c_int32) for name in ("axes_count", "direction", "norm", "reserved")),
                *((name, ctypes.c_void_p) for name in ("stream", "workspace")), ("workspace_bytes", ctypes.c_uint64)]


def operands_of(shape, dims, kind):
    """The input, the output, PyTorch's function and the direction."""
    half = (*shape[:-1], shape[-1] // 2 + 1)
    if kind == "f32 to c64":
        return torch.randn(shape, device="cuda"), torch.empty(half, device="cuda", dtype=torch.complex64), "rfftn", 0
    if kind == "c64 to f32":
        x = torch.fft.rfftn(torch.randn(shape, device="cuda"), dim=tuple(range(-dims, 0)))
        return x, torch.empty(shape, device="cuda"), "irfftn", 1
    dtype = torch.complex128 if kind == "c128" else torch.complex64
    x = torch.randn(shape, device="cuda", dtype=dtype)
    inverse = kind.endswith("inverse")
    return x, torch.empty_like(x), "ifftn" if inverse else "fftn", int(inverse)


def measure(here, shape, dims, kind):
    x, out, name, direction = operands_of(shape, dims, kind)
    axes = (ctypes.c_int32 * dims)(*range(len(shape) - dims, len(shape)))
    held = [here.tensor(it) for it in (x, out)]
    arguments = Arguments(ctypes.sizeof(Arguments), *(ctypes.addressof(it.struct) for it in held),
                          ctypes.addressof(axes), dims, direction, stream=here.stream)
    transform = here.call("tn_fft", ctypes.c_void_p, ctypes.POINTER(Arguments))
    kernel, function = here.kernel("fft", arguments), getattr(torch.fft, name)
    given = {"dim": tuple(axes), **({"s": shape[-dims:]} if name == "irfftn" else {})}
    transform(None, arguments)
    wanted = function(x, **given)
    if not torch.allclose(out, wanted, rtol=1e-3, atol=1e-3 * float(wanted.abs().max())):
        raise SystemExit(f"bench: tn_fft and torch.fft.{name} differ on {shape}")
    points = math.prod(shape[-dims:])
    work = (5 if "to" not in kind else 2.5) * math.prod(shape) * math.log2(points)
    times = here.times_for(lambda: transform(None, arguments), LEAST_SECONDS)
    pairs.compare(f"{kind} {shape}, {dims} dimensions, {kernel}", work / 1e3,
                  lambda: here.seconds(lambda: transform(None, arguments), times), "PyTorch",
                  lambda: here.seconds(lambda: function(x, **given), times), 1, unit="TFLOP/s")


def main():
    if not gpu.is_here():
        for shape, _, kind in ROWS:
            pairs.compare(f"tn_fft, {kind} {shape}", 0, None, gpu.LACKING, None, 1)
        return
    torch.manual_seed(1)
    here = gpu.Gpu(sys.argv[1])
    print(f"{here.device.name}; PyTorch {torch.__version__}, Python {sys.version.split()[0]}")
    measure(here, *ROWS[-1])
    print("cuFFT {} ({})".format(*here.library("cufft")))
    for row in ROWS:
        measure(here, *row)


if __name__ == "__main__":
    main()
