"""tn_matmul beside PyTorch's matmul of the same tensors, in its own memory, on as many threads.

    python3 bench/peers/bench_torch_matmul.py BUILD [SIDE | MxNxK]...

Whatever kernel Tenon chooses is what is timed; its name is printed. PyTorch's threads spin for a while after a
call: each operation is preceded by a pause that is not timed.
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

DTYPES = ("bf16", "f32", "f64")
SIZES = ("512", "1024", "2048", "16x768x768", "48x1024x1024", "16x4096x4096", "4096x16x4096", "1000x64x1000")
PAUSE = 0.02  # seconds


class Arguments(ctypes.Structure):
    """tn_matmul_args"""
    _fields_ = [("struct_size", ctypes.c_size_t), ("a", ctypes.c_void_p), ("b", ctypes.c_void_p),
                ("out", ctypes.c_void_p), ("bias", ctypes.c_void_p), ("alpha", ctypes.c_double),
                ("beta", ctypes.c_double), ("activation", ctypes.c_int32),
                ("transpose_a", ctypes.c_int32), ("transpose_b", ctypes.c_int32),
                ("acc", ctypes.c_uint32), ("set", ctypes.c_uint32), ("reserved", ctypes.c_uint32),
                ("stream", ctypes.c_void_p), ("workspace", ctypes.c_void_p),
                ("workspace_bytes", ctypes.c_uint64)]


class Candidate(ctypes.Structure):
    """The beginning of tn_candidate."""
    _fields_ = [("struct_size", ctypes.c_size_t), ("kernel", ctypes.c_char_p)]


def multiplier(tenon, operands):
    """A call of tn_matmul, and the name of the kernel that it takes."""
    tensors = [tenon.from_dlpack(operand) for operand in operands]
    args = Arguments(ctypes.sizeof(Arguments), *(ctypes.addressof(it.struct) for it in tensors))
    matmul = tenon._fallible("tn_matmul", [ctypes.c_void_p, ctypes.POINTER(Arguments)])
    explain = tenon._fallible("tn_matmul_explain", [ctypes.c_void_p, ctypes.POINTER(Arguments),
                                                    ctypes.POINTER(ctypes.c_void_p)])
    decision = ctypes.c_void_p()
    explain(None, args, ctypes.byref(decision))
    tenon.native.tn_decision_chosen.restype = ctypes.POINTER(Candidate)
    name = tenon.native.tn_decision_chosen(decision).contents.kernel.decode()
    tenon.native.tn_decision_release(decision)

    def multiply(kept=tensors):
        matmul(None, args)

    return multiply, name


def read(size):
    """m, n, k and how it is called."""
    m, _, rest = size.partition("x")
    if not rest:
        return (int(m),) * 3 + (f"{m} cubed",)
    n, _, k = rest.partition("x")
    return int(m), int(n), int(k), f"{m} x {n} x {k}"


def compare(tenon, word, size):
    dtype = {"bf16": torch.bfloat16, "f32": torch.float32, "f64": torch.float64}[word]
    m, n, k, name = read(size)
    torch.manual_seed(m)
    a, b = (torch.randn(*shape).to(dtype) for shape in ((m, k), (k, n)))
    out, wanted = (torch.empty(m, n, dtype=dtype) for _ in range(2))
    ours, kernel = multiplier(tenon, (a, b, out))
    theirs = lambda: torch.matmul(a, b, out=wanted)
    ours()
    theirs()
    if not torch.allclose(out.double(), wanted.double(), rtol=0.02, atol=0.05 * k ** 0.5):
        raise SystemExit(f"bench: {kernel} and PyTorch do not agree on {word} {name}")
    pairs.compare(f"{word} {name}, {torch.get_num_threads()} threads, {kernel}", 2 * m * n * k,
                  ours, "PyTorch", theirs, 1, unit="GFLOP/s", pause=PAUSE)


def main():
    sizes = sys.argv[2:] or SIZES
    if torch is None:
        for word in DTYPES:
            pairs.compare(f"tn_matmul, {word}", 0, None, "PyTorch (pip: torch)", None, 1)
        return
    tenon = harness.Library(sys.argv[1])
    torch.set_num_threads(tenon.native.tn_parallel_threads())
    print(f"PyTorch {torch.__version__}, Python {sys.version.split()[0]}")
    for word in DTYPES:
        for size in sizes:
            compare(tenon, word, size)


if __name__ == "__main__":
    main()
