"""tn_matmul on a GPU beside PyTorch's and beside cuBLASLt itself, in one process, by the device's clock.

    python3 bench/peers/bench_torch_products.py BUILD [large] [finished] [random [SEED]]      all without a word

large: 8192 cubed of every kind of number, as the heuristics answer first. finished: with a bias and a function, beside
PyTorch's two calls. random: 100 products of random sizes, tuned, each with operands and both sides' workspaces at
PLACES places of memory, as two kernels may lead one another by turns with that alone. The ratio is the mean of the
places' medians. A shape is not slower where that is at least one less the spread, which is that of ours beside itself,
or what the mean of so many places is sure to (two standard errors), if that is more; how many are slower by the first
alone is said, too. One that seems slower is measured again in more rounds, which then decide.
"""

import collections
import ctypes
import random
import statistics
import sys
import time

import gpu
import pairs
from bench_torch_matmul import Arguments

if gpu.is_here():
    import cublaslt
    import torch

SIDE, SHAPES, SEED = 8192, 100, 20261116
LEAST_SECONDS = 4e-3
PLACES, ROUNDS_OF_PLACE, ROUNDS_AGAIN = 8, 5, 15
WORKSPACE, THEIR_WORKSPACE = 33 << 20, 32 << 20  # bytes: no less than we take; what PyTorch does from Hopper on

# Kind, aim beside PyTorch; B lies transposed where numbers have 8 bits.
LARGE = (("bf16", 1), ("f16", 1), ("tf32", 1), ("f32", 1), ("fp8", 1), ("int8", 1.3))


# Kind, m, n, k of products with a bias and a function.
FINISHED = (("bf16", 4096, 4096, 4096), ("bf16", 2048, 11008, 4096), ("bf16", 8192, 8192, 8192),
            ("f16", 4096, 4096, 4096), ("f32", 4096, 4096, 4096))
FUNCTIONS = {"relu": 1, "gelu": 2, "silu": 4}  # and tn_activation's number


class Scaled(Arguments):
    """tn_matmul_args, whole."""
    _fields_ = [("scale_a", ctypes.c_void_p), ("scale_b", ctypes.c_void_p)]


class Product:
    """A product's tensors, and calls of it."""

    def __init__(self, here, kind, m, n, k, transposed=False):
        self.here, self.kind, self.transposed = here, kind, transposed
        shapes = ((m, k), (n, k) if transposed else (k, n))
        self.a, self.b = (self.numbers(shape) for shape in shapes)
        dtype = {"fp8": torch.bfloat16, "int8": torch.int32}.get(kind, self.a.dtype)
        self.out, self.wanted = (torch.zeros(m, n, dtype=dtype, device="cuda") for _ in range(2))
        self.scales = [torch.ones(1, 1, device="cuda") for _ in range(2)] if kind == "fp8" else []
        self.arguments = self.given()

    def numbers(self, shape):
        if self.kind == "int8":
            return torch.randint(-128, 128, shape, dtype=torch.int8, device="cuda")
        dtype = {"bf16": torch.bfloat16, "f16": torch.float16, "fp8": torch.float8_e4m3fn}
        return torch.randn(*shape, device="cuda").to(dtype.get(self.kind, torch.float32))

    def given(self):
        self.held = [self.here.tensor(it) for it in (self.a, self.b, self.out, *self.scales)]
        at = [ctypes.addressof(it.struct) for it in self.held]
        given = Scaled(ctypes.sizeof(Scaled), *at[:3], transpose_b=int(self.transposed),
                       stream=self.here.stream)
        if self.scales:
            given.scale_a, given.scale_b = at[3:]
        return given

    def ours(self):
        multiply = self.here.call("tn_matmul", ctypes.c_void_p, ctypes.POINTER(Scaled))
        return lambda: multiply(None, self.arguments)

    def theirs(self, fast=False):
        b = self.b.t() if self.transposed else self.b
        if self.kind == "fp8":
            scales = [it.reshape(()) for it in self.scales]
            return lambda: torch._scaled_mm(self.a, b, *scales, out_dtype=torch.bfloat16,
                                            use_fast_accum=fast, out=self.wanted)
        if self.kind == "int8":
            return lambda: torch._int_mm(self.a, b, out=self.wanted)
        return lambda: torch.matmul(self.a, b, out=self.wanted)

    def check(self):
        """That both agree; then they write to one place, so that where a result lies is no difference."""
        k = self.a.shape[1]
        if not torch.allclose(self.out.double(), self.wanted.double(), rtol=0.02, atol=0.05 * k ** 0.5):
            raise SystemExit(f"bench: Tenon and PyTorch do not agree on {self.kind}, {tuple(self.out.shape)}")
        self.wanted = self.out


def measure_large(here):
    for kind, aim in LARGE:
        torch.backends.cuda.matmul.allow_tf32 = kind == "tf32"
        here.set(f"cuda.matmul.allow_tf32={'true' if kind == 'tf32' else 'false'}")
        product = Product(here, kind, SIDE, SIDE, SIDE, kind in ("fp8", "int8"))
        ours, theirs = product.ours(), product.theirs()
        kernel = here.kernel("matmul", product.arguments)
        times = here.times_for(ours, LEAST_SECONDS)
        theirs()
        product.check()
        direct = cublaslt.Direct(here.library("cublaslt")[1], here.raw).product(
            product.a, product.b, product.wanted, product.transposed, kind == "tf32", product.scales)
        rivals = [("PyTorch", theirs, aim), ("cublasLtMatmul", direct, 1)]
        if kind == "fp8":
            rivals.append(("PyTorch, fast sums", product.theirs(True), 1))
        if kind == "int8":
            by_rows = product.b.t().contiguous()
            rivals.append(("PyTorch, B by rows",
                           lambda: torch._int_mm(product.a, by_rows, out=product.wanted), aim))
        for name, rival, wanted in rivals:
            pairs.compare(f"{kind} {SIDE} cubed, {kernel}", 2 * SIDE**3 / 1e3,
                          lambda: here.seconds(ours, times), name,
                          lambda rival=rival: here.seconds(rival, times), wanted, unit="TFLOP/s")
    torch.backends.cuda.matmul.allow_tf32 = False
    here.set("cuda.matmul.allow_tf32=false")


def random_shapes(seed):
    """Kind, m, n, k, whether B is transposed: sides from 16 to 8192, by their logarithms, three quarters of them
    multiples of 8."""
    draw = random.Random(seed)
    shapes = []
    while len(shapes) < SHAPES:
        kind = draw.choice(("bf16", "bf16", "f16", "f32"))
        sides = [round(2 ** draw.uniform(4, 13)) for _ in range(3)]
        if draw.random() < 0.75:
            sides = [side // 8 * 8 for side in sides]
        transposed = draw.random() < 0.5
        if 2 * sides[0] * sides[1] * sides[2] <= (2e10 if kind == "f32" else 2e11):
            shapes.append((kind, *sides, transposed))
    return shapes


class AtPlaces:
    """One product, with its operands and workspaces at several places."""

    def __init__(self, here, kind, m, n, k, transposed):
        self.here = here
        self.products = [Product(here, kind, m, n, k, transposed) for _ in range(PLACES)]
        begin = time.monotonic()
        self.kernel = here.kernel("matmul", self.products[0].arguments)
        self.tuning = time.monotonic() - begin
        self.times = here.times_for(self.products[0].ours(), LEAST_SECONDS / 8)
        self.kept = []
        for product in self.products:
            needed = WORKSPACE + 2 * sum(it.nbytes for it in (product.a, product.b, product.out))  # with copies
            self.kept.append(torch.empty(needed, dtype=torch.uint8, device="cuda"))
            product.arguments.workspace = self.kept[-1].data_ptr()
            product.arguments.workspace_bytes = needed
            product.ours()()
            product.theirs()()
            product.check()

    def move_theirs(self):
        """Has PyTorch take its workspace anew, and elsewhere: where it was another lies then, of the same size."""
        torch._C._cuda_clearCublasWorkspaces()
        self.kept.append(torch.empty(THEIR_WORKSPACE, dtype=torch.uint8, device="cuda"))

    def measure(self, rounds):
        """Seconds of ours, PyTorch's and ours again; keeps the ratios of places and the spread."""
        all_taken = ([], [], [])
        self.ratios = []
        for product in self.products:
            self.move_theirs()
            ours, theirs = product.ours(), product.theirs()
            taken = pairs.measure(lambda: self.here.seconds(ours, self.times),
                                  lambda: self.here.seconds(theirs, self.times), rounds=rounds)
            self.ratios.append(statistics.median(b / a for a, b in zip(taken[0], taken[1])))
            for kept, side in zip(all_taken, taken):
                kept += side
        self.spread = pairs.spread_of(all_taken[0], all_taken[2])
        self.ratio = statistics.mean(self.ratios)
        self.doubt = 2 * statistics.stdev(self.ratios) / PLACES**0.5
        return all_taken

    def is_sure(self):
        return max(self.spread, self.doubt) <= pairs.WIDEST

    def is_slower(self):
        return self.ratio < 1 - max(self.spread, self.doubt)


Found = collections.namedtuple("Found", "ratio spread doubt is_slower tuning")


def measure_shape(here, shape):
    kind, m, n, k, transposed = shape
    found = AtPlaces(here, kind, m, n, k, transposed)
    taken = found.measure(ROUNDS_OF_PLACE)
    if found.is_slower() or not found.is_sure():
        taken = found.measure(ROUNDS_AGAIN)
    us = [statistics.median(side) * 1e6 for side in taken]
    name = f"{kind} {m} x {n} x {k}{' transposed' if transposed else ''}"
    print(f"    {name:<36} {found.kernel:<40} ours {us[0]:8.2f} us  PyTorch {us[1]:8.2f} us  ratio {found.ratio:6.3f}, "
          f"{min(found.ratios):.3f} to {max(found.ratios):.3f}, sure to {100 * found.doubt:4.2f} %  "
          f"A/A {100 * found.spread:5.2f} %", flush=True)
    return Found(found.ratio, found.spread, found.doubt, found.is_slower(), found.tuning)


def verdict_of(count, slower, wide):
    if slower:
        return "not reached"
    return "reached" if count == SHAPES and not wide else "not measurable here"


def measure_random(here, seed):
    here.set("tuning.enabled=true")
    here.set("tuning.limit=0")
    begin = time.monotonic()
    print(f"seed {seed}")
    found = []
    try:
        for shape in random_shapes(seed):
            found.append(measure_shape(here, shape))
    except KeyboardInterrupt:
        print("interrupted: the rest was not measured")
    here.set("tuning.enabled=false")
    if not found:
        return
    wide = sum(max(it.spread, it.doubt) > pairs.WIDEST for it in found)
    slower = sum(it.is_slower for it in found)
    seem = sum(it.ratio < 1 - it.spread for it in found)
    ratios = sorted(it.ratio for it in found)
    print(f"tuning one took {statistics.median(it.tuning for it in found):.2f} s, at most "
          f"{max(it.tuning for it in found):.2f} s; {seem} have ratios below one less the A/A spread alone")
    print(f"the tuned pick on {len(found)} random products: {slower} slower than PyTorch by more than "
          f"the spread, {wide} not measurable here; ratios from {ratios[0]:.3f}, median "
          f"{statistics.median(ratios):.3f}, to {ratios[-1]:.2f}; {time.monotonic() - begin:.0f} s  "
          f"{verdict_of(len(found), slower, wide)}", flush=True)


def measure_finished(here):
    for kind, m, n, k in FINISHED:
        product = Product(here, kind, m, n, k)
        bias = torch.randn(n, device="cuda").to(product.a.dtype)
        held = here.tensor(bias)
        product.arguments.bias = ctypes.addressof(held.struct)
        for name, number in FUNCTIONS.items():
            product.arguments.activation = number
            ours, function = product.ours(), getattr(torch.nn.functional, name)
            kernel = here.kernel("matmul", product.arguments)
            wanted = function((product.a.double() @ product.b.double() + bias.double()))
            times = here.times_for(ours, LEAST_SECONDS)
            # Sums of 16 bits may be rounded in parts where the library has the function itself.
            apart = 0.5 if name == "relu" else 0.02
            if not torch.allclose(product.out.double(), wanted, rtol=2**-7, atol=apart):
                raise SystemExit(f"bench: {kind} with {name} is wrong")
            pairs.compare(f"{kind} {m} x {n} x {k}, {name}, {kernel}", 2 * m * n * k / 1e3,
                          lambda: here.seconds(ours, times), "addmm, then the function",
                          lambda: here.seconds(lambda: function(torch.addmm(bias, product.a, product.b)), times), 1,
                          unit="TFLOP/s")


def main():
    words = sys.argv[2:]
    if not gpu.is_here():
        for kind, aim in LARGE:
            pairs.compare(f"tn_matmul, {kind} {SIDE} cubed", 0, None, gpu.LACKING, None, aim)
        pairs.compare(f"tn_matmul, {SHAPES} random products", 0, None, gpu.LACKING, None, 1)
        return
    torch.manual_seed(SEED)
    here = gpu.Gpu(sys.argv[1])
    print(f"{here.device.name}; PyTorch {torch.__version__}, Python {sys.version.split()[0]}")
    Product(here, "bf16", 64, 64, 64).ours()()
    print("cuBLASLt {} ({})".format(*here.library("cublaslt")))
    if not words or "large" in words:
        measure_large(here)
    if not words or "finished" in words:
        measure_finished(here)
    if not words or "random" in words:
        seeds = [int(word) for word in words if word.isdigit()]
        measure_random(here, seeds[0] if seeds else SEED)


if __name__ == "__main__":
    main()
