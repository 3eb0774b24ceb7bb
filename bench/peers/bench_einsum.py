"""tenon.einsum beside numpy.einsum with the same path, and torch.einsum.

    OMP_NUM_THREADS=N python3 bench/peers/bench_einsum.py BUILD [f32]

Each is called as Python calls it, with its result made anew; NumPy gets Tenon's path. Tenon's extension for Python is built first.
The time of the same call of tn_einsum, without Python, stands above each pair. Results of NumPy and PyTorch that would be views of
the operand are copied.
"""

import ctypes
import itertools
import statistics
import sys
import tempfile

import package  # first: it sets the path
import build_backend
import numpy
import pairs
import tenon
from tenon import _abi, _einsum, operators, settings
from tenon._library import lib

try:
    import torch
except ImportError:
    torch = None

CASES = (
    ("matrix product", "ij,jk->ik", (256, 256), (256, 256)),
    ("small matrix product", "ij,jk->ik", (8, 8), (8, 8)),
    ("batched", "bij,bjk->bik", (32, 64, 64), (32, 64, 64)),
    ("attention scores", "bhqd,bhkd->bhqk", (2, 8, 128, 64), (2, 8, 128, 64)),
    ("attention, heads last", "bqhd,bkhd->bhqk", (2, 128, 8, 64), (2, 128, 8, 64)),
    ("linear layer", "bsi,oi->bso", (4, 64, 256), (512, 256)),
    ("outer product", "i,j->ij", (1000,), (1000,)),
    ("elementwise", "ijk,ijk->ijk", (64, 64, 64), (64, 64, 64)),
    ("inner product", "ijk,ijk->", (64, 64, 64), (64, 64, 64)),
    ("bilinear", "bi,oij,bj->bo", (64, 64), (32, 64, 64), (64, 64)),
    ("tensor network", "abcd,efcd,fgb,gha->eh", (8, 8, 16, 16), (16, 16, 16, 16), (16, 16, 8), (16, 8, 8)),
    ("chain", "ab,bc,cd,de->ae", (64, 128), (128, 96), (96, 128), (128, 32)),
    ("diagonal", "ii->i", (1000, 1000)),
    ("trace", "ii->", (1000, 1000)),
    ("sum of rows", "ij->i", (512, 512)),
    ("transpose", "ijk->kij", (64, 64, 64)),
    ("four-index transformation", "pqrs,pi,qj->ijrs", (16, 16, 16, 16), (16, 16), (16, 16)),
)
VIEWS = ("diagonal", "transpose")


class InC:
    """A call of tn_einsum with everything made before."""

    def __init__(self, equation, operands):
        self.call = _einsum._einsum_call(equation, *operands)
        self.context, self.err = settings.context(), _abi.Error()

    def __call__(self):
        if lib.tn_einsum(self.context, ctypes.byref(self.call.args), ctypes.byref(self.err)):
            raise RuntimeError(self.err.message)


def repeated(call, times):
    def operation():
        for _ in itertools.repeat(None, times):
            call()
    return operation


def fit(call):
    call()
    call()
    return max(1, int(5e-3 / max(pairs.seconds(call), 1e-7)))


def compare(name, ours, rival_name, rival, aim):
    times = (fit(ours), fit(rival))
    spread = float("inf")
    for _ in range(2):
        taken = pairs.measure(repeated(ours, times[0]), repeated(rival, times[1]), rounds=11)
        spread = pairs.spread_of(taken[0], taken[2])
        if spread <= pairs.WIDEST:
            break
    us = [statistics.median(side) * 1e6 / n for side, n in zip(taken, times)]
    ratio = statistics.median(b / times[1] / (a / times[0]) for a, b in zip(taken[0], taken[1]))
    print(f"{name:<26} ours {us[0]:9.1f} us  {rival_name} {us[1]:9.1f} us  ratio {ratio:6.2f}  "
          f"A/A spread {100 * spread:4.1f} %  aim >= {aim:g}  {pairs.verdict(ratio, spread, aim)}", flush=True)


def use_extension(folder):
    """Builds the extension, as a wheel has it."""
    if build_backend.make_extension(folder) is None:
        return "without the extension"
    tenon.__path__.append(folder)
    operators._fast = operators._load_fast()
    return "with the extension" if operators._fast is not None else "without the extension"


def main():
    with tempfile.TemporaryDirectory() as folder:
        measure_all(use_extension(folder))


def measure_all(how):
    random = numpy.random.default_rng(5)
    dtype = "float32" if "f32" in sys.argv else "float64"
    print(f"NumPy {numpy.__version__}, PyTorch {torch and torch.__version__}, {dtype}, {how}")
    for name, equation, *shapes in CASES:
        operands = [random.standard_normal(shape).astype(dtype) for shape in shapes]
        path = ["einsum_path", *tenon.einsum_path(equation, *operands)[0]]
        in_c = InC(equation, operands)
        times = fit(in_c)
        us = 1e6 / times * statistics.median(pairs.seconds(repeated(in_c, times)) for _ in range(9))
        print(f"{name:<26} {equation}; in C {us:9.1f} us")
        optimize = path if len(operands) > 2 else len(operands) > 1
        views = name in VIEWS
        compare(name, lambda: tenon.einsum(equation, *operands), "NumPy",
                lambda: numpy.einsum(equation, *operands, optimize=optimize).copy("C") if views
                else numpy.einsum(equation, *operands, optimize=optimize), 1.5)
        if torch:
            tensors = [torch.from_numpy(one) for one in operands]
            compare(name, lambda: tenon.einsum(equation, *tensors), "PyTorch",
                    lambda: torch.einsum(equation, *tensors).clone(memory_format=torch.contiguous_format) if views else torch.einsum(equation, *tensors), 1)


if __name__ == "__main__":
    main()
