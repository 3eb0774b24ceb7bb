"""tenon.einsum beside numpy.einsum with the same path, and torch.einsum.

    OMP_NUM_THREADS=N python3 bench/peers/bench_einsum.py BUILD [f32] [random N SEED]

Each is called as Python calls it, with its result made anew; NumPy gets Tenon's path. Tenon's extension for Python is built first.
The time of the same call of tn_einsum, without Python, stands above each pair. Results of NumPy and PyTorch that would be views of
the operand are copied. `random` times N random equations of f32, f64, complex64 and int64 instead, and ends with the ten lowest
ratios and the median; each is timed in 5 rounds only.
"""

import ctypes
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
    ("complex matrix product", "ij,jk->ik", (128, 128), (128, 128), "complex128"),
    ("complex elementwise", "ij,ij->ij", (256, 256), (256, 256), "complex64"),
    ("integer matrix product", "ij,jk->ik", (128, 128), (128, 128), "int64"),
    ("four-index transformation", "pqrs,pi,qj->ijrs", (16, 16, 16, 16), (16, 16), (16, 16)),
)
VIEWS = ("diagonal", "transpose")
SAMPLE = 5e-3  # seconds, about


class InC:
    """A call of tn_einsum with everything made before."""

    def __init__(self, equation, operands):
        self.call = _einsum._einsum_call(equation, *operands)
        self.context, self.err = settings.context(), _abi.Error()

    def __call__(self):
        if lib.tn_einsum(self.context, ctypes.byref(self.call.args), ctypes.byref(self.err)):
            raise RuntimeError(self.err.message)


def compare(name, ours, rival_name, rival, aim, rounds=11):
    mine, its, ratio, spread, words = pairs.judge(pairs.sampled(ours, SAMPLE), pairs.sampled(rival, SAMPLE), aim,
                                                  rounds=rounds, repeats=2)
    print(f"{name:<26} ours {1e6 * mine:9.1f} us  {rival_name} {1e6 * its:9.1f} us  ratio {ratio:6.2f}  "
          f"A/A spread {100 * spread:4.1f} %  aim >= {aim:g}  {words}", flush=True)
    return ratio


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


def make_operands(random, shapes, dtype):
    if dtype == "int64":
        return [random.integers(-9, 9, shape) for shape in shapes]
    operands = [random.standard_normal(shape) for shape in shapes]
    if dtype.startswith("complex"):
        operands = [one + 1j * random.standard_normal(one.shape) for one in operands]
    return [one.astype(dtype) for one in operands]


def random_case(random):
    """An equation of up to 4 operands with about 1e5 to 1e8 products, some with a diagonal, and the shapes."""
    while True:
        labels = "abcdefg"[:random.integers(2, 8)]
        parts = ["".join(random.choice([*labels], min(len(labels), random.integers(1, 5)), replace=False))
                 for _ in range(random.choice([1, 2, 2, 2, 3, 4]))]
        known = sorted({*"".join(parts)})
        out = "".join(random.permutation(known)[:random.integers(0, 4)])
        if random.integers(8) == 0:
            parts[0] += parts[0][-1]
        each = 10 ** (random.uniform(5, 8) / len(known))
        sizes = {label: max(2, int(each * random.uniform(0.5, 2))) for label in known}
        shapes = [tuple(sizes[label] for label in part) for part in parts]
        if all(numpy.prod(shape, dtype=float) < 4e6 for shape in shapes) and numpy.prod([sizes[one] for one in out]) < 4e6:
            return ",".join(parts) + "->" + out, shapes


def measure_random(count, seed):
    random = numpy.random.default_rng(seed)
    found = {"NumPy": [], "PyTorch": []}
    for number in range(count):
        equation, shapes = random_case(random)
        dtype = str(random.choice(["float32", "float64", "float64", "complex64", "int64"]))
        operands = make_operands(random, shapes, dtype)
        path = ["einsum_path", *tenon.einsum_path(equation, *operands)[0]]
        optimize = path if len(operands) > 2 else len(operands) > 1
        name = f"{equation} {dtype} {' '.join('x'.join(map(str, shape)) for shape in shapes)}"
        ratio = compare(name, lambda: tenon.einsum(equation, *operands), "NumPy",
                        lambda: numpy.ascontiguousarray(numpy.einsum(equation, *operands, optimize=optimize)), 1.5, 5)
        found["NumPy"].append((ratio, name))
        if torch and not (dtype == "int64" and len(operands) > 1):  # its integer products are not worth a comparison
            tensors = [torch.from_numpy(one) for one in operands]
            ratio = compare(name, lambda: tenon.einsum(equation, *tensors), "PyTorch",
                            lambda: torch.einsum(equation, *tensors).contiguous(), 1, 5)
            found["PyTorch"].append((ratio, name))
    for rival, rows in found.items():
        if rows:
            print(f"{rival}: median {statistics.median(ratio for ratio, _ in rows):.2f}; the lowest:")
        for ratio, name in sorted(rows)[:10]:
            print(f"  {ratio:6.2f}  {name}")


def measure_all(how):
    random = numpy.random.default_rng(5)
    usual = "float32" if "f32" in sys.argv else "float64"
    print(f"NumPy {numpy.__version__}, PyTorch {torch and torch.__version__}, {usual}, {how}")
    if "random" in sys.argv:
        count, seed = sys.argv[sys.argv.index("random") + 1:][:2]
        measure_random(int(count), int(seed))
        return
    for name, equation, *shapes in CASES:
        dtype = shapes.pop() if isinstance(shapes[-1], str) else usual
        operands = make_operands(random, shapes, dtype)
        path = ["einsum_path", *tenon.einsum_path(equation, *operands)[0]]
        in_c = pairs.sampled(InC(equation, operands), SAMPLE)
        print(f"{name:<26} {equation}; in C {1e6 * statistics.median(in_c() for _ in range(9)):9.1f} us")
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
