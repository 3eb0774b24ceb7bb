"""tn_matmul of 16-bit products with odd sizes on a GPU beside PyTorch's, in one process, by the device's clock.

    python3 bench/peers/bench_torch_odd_products.py BUILD [great] [random [SEED]] [aligned]      all without a word

great: 3333 x 5555 x 7777 in bf16 and f16, as selected by prediction; and what the copies move in a second, by the
difference to the aligned product of the next greater sizes. random: 100 products whose sizes are odd, as selected by
prediction, beside PyTorch's, which calls the library directly. aligned: products whose lines are aligned to 2, 4 and 8
bytes, and products with one misaligned operand, by PyTorch, by ours with copies, and by ours as selected. The cost
model (backends/cuda/lib/cublas/cublas_cost.c) should agree with these.
"""

import random
import statistics
import sys
import time

import gpu
import pairs
from bench_torch_products import Product

if gpu.is_here():
    import torch

GREAT, AIM = (3333, 5555, 7777), 3.5
SHAPES, LEAST, SEED = 100, 0.97, 20261119
LEAST_SECONDS, ROUNDS, ROUNDS_AGAIN = 1e-3, 7, 31
NEVER = "rules=forbid:cuda.matmul.cublaslt.half-reduced.padded,forbid:cuda.matmul.cublaslt.half.padded," \
        "forbid:cuda.matmul.cublaslt.half-whole.padded"
ALWAYS = "rules=require:cuda.matmul.cublaslt.half-reduced.padded"


class Checked:
    """A product whose results are held against PyTorch's."""

    def __init__(self, here, kind, m, n, k, transposed=False):
        self.here, self.product = here, Product(here, kind, m, n, k, transposed)
        self.product.theirs()()
        self.expected, self.product.wanted = self.product.wanted, self.product.out
        self.ours, self.theirs = self.product.ours(), self.product.theirs()

    def kernel(self):
        return self.here.kernel("matmul", self.product.arguments)

    def check(self):
        self.product.out.fill_(float("nan"))
        self.ours()
        self.product.wanted = self.expected
        self.product.check()

    def measure(self, rounds=ROUNDS):
        """Seconds of ours, PyTorch's and ours again, round by round."""
        self.check()
        times = self.here.times_for(self.ours, LEAST_SECONDS)
        return pairs.measure(lambda: self.here.seconds(self.ours, times),
                             lambda: self.here.seconds(self.theirs, times), rounds=rounds)


def ratio_of(taken):
    return statistics.median(b / a for a, b in zip(taken[0], taken[1]))


def rate_of(sides, seconds):
    return 2 * sides[0] * sides[1] * sides[2] / statistics.median(seconds) / 1e12


def bytes_copied(m, n, k):
    """Read and written, of three copies."""
    return 2 * 2 * (m * k + k * n + m * n)


def measure_great(here):
    for kind in ("bf16", "f16"):
        product = Checked(here, kind, *GREAT)
        product.check()
        times = here.times_for(product.ours, 4e-3)
        pairs.compare(f"{kind} {' x '.join(map(str, GREAT))}, {product.kernel()}",
                      2 * GREAT[0] * GREAT[1] * GREAT[2] / 1e3, lambda: here.seconds(product.ours, times), "PyTorch",
                      lambda: here.seconds(product.theirs, times), AIM, unit="TFLOP/s")
        aligned = Checked(here, kind, *(side // 8 * 8 + 8 for side in GREAT))
        taken = pairs.measure(lambda: here.seconds(product.ours, times), lambda: here.seconds(aligned.ours, times))
        both, alone = (statistics.median(side) for side in taken[:2])
        print(f"    {both * 1e6:.1f} us, aligned {alone * 1e6:.1f} us: the copies take {(both - alone) * 1e6:.1f} us, "
              f"{bytes_copied(*GREAT) / (both - alone) / 1e12:.2f} TB/s", flush=True)


def random_shapes(seed):
    """Kind, m, n, k, whether B is transposed: odd sides from 17 to 8191, by their logarithms."""
    draw = random.Random(seed)
    shapes = []
    while len(shapes) < SHAPES:
        kind = draw.choice(("bf16", "f16"))
        sides = [round(2 ** draw.uniform(4, 13)) // 2 * 2 + 1 for _ in range(3)]
        transposed = draw.random() < 0.5
        if 2 * sides[0] * sides[1] * sides[2] <= 2e11:
            shapes.append((kind, *sides, transposed))
    return shapes


def measure_random(here, seed):
    begin, ratios, copied = time.monotonic(), [], 0
    print(f"seed {seed}")
    for kind, m, n, k, transposed in random_shapes(seed):
        product = Checked(here, kind, m, n, k, transposed)
        kernel, taken = product.kernel(), product.measure()
        if ratio_of(taken) < 1:  # or is it the spread?
            taken = product.measure(ROUNDS_AGAIN)
        ratio = ratio_of(taken)
        us = [statistics.median(side) * 1e6 for side in taken]
        copied += kernel.endswith(".padded")
        ratios.append(ratio)
        print(f"    {kind} {m} x {n} x {k}{' transposed' if transposed else '':<12} {kernel:<44} ours {us[0]:8.2f} us  "
              f"PyTorch {us[1]:8.2f} us  ratio {ratio:6.3f}  A/A {100 * pairs.spread_of(taken[0], taken[2]):5.2f} %",
              flush=True)
    slower = sum(ratio < LEAST for ratio in ratios)
    print(f"{len(ratios)} products of odd sizes, {copied} with copies: {slower} below {LEAST}, from {min(ratios):.3f}, "
          f"median {statistics.median(ratios):.3f}, to {max(ratios):.2f}; {time.monotonic() - begin:.0f} s  "
          f"{'not reached' if slower else 'reached'}", flush=True)


def aligned_cases():
    """Name, sizes, whether B is transposed. Lines of A have k elements, those of B n, or k if transposed, of out n."""
    for side in (1024, 2048, 4096):
        for off, what in ((1, "2 bytes"), (2, "4 bytes"), (4, "8 bytes"), (8, "16 bytes")):
            yield what, (side + off, side + off, side + off), False
        yield "A alone, 2 bytes", (side, side, side + 1), False
        yield "out alone, 2 bytes", (side, side + 1, side), True
        yield "B and out, 2 bytes", (side, side + 1, side), False


def measure_aligned(here):
    print("aligned to, sizes: TFLOP/s of PyTorch, ours without copies, with copies, as selected")
    for what, sides, transposed in aligned_cases():
        product, rates = Checked(here, "bf16", *sides, transposed), []
        for rules in (NEVER, ALWAYS, "rules="):
            if rules == ALWAYS and what == "16 bytes":
                rates.append(float("nan"))
                continue
            here.set(rules)
            taken = product.measure(5)
            if not rates:
                rates.append(rate_of(sides, taken[1]))
            rates.append(rate_of(sides, taken[0]))
        print(f"    {what:<20} {' x '.join(map(str, sides)):<18} {'  '.join(f'{rate:6.1f}' for rate in rates)}  "
              f"{product.kernel()}", flush=True)


def main():
    words = sys.argv[2:]
    if not gpu.is_here():
        pairs.compare(f"tn_matmul, bf16 {' x '.join(map(str, GREAT))}", 0, None, gpu.LACKING, None, AIM)
        pairs.compare(f"tn_matmul, {SHAPES} products of odd sizes", 0, None, gpu.LACKING, None, LEAST)
        return
    torch.manual_seed(SEED)
    here = gpu.Gpu(sys.argv[1])
    print(f"{here.device.name}; PyTorch {torch.__version__}, Python {sys.version.split()[0]}")
    here.set("admission=never")  # correct results are checked here
    Product(here, "bf16", 64, 64, 64).ours()()
    if not words or "great" in words:
        measure_great(here)
    if not words or "random" in words:
        seeds = [int(word) for word in words if word.isdigit()]
        measure_random(here, seeds[0] if seeds else SEED)
    if not words or "aligned" in words:
        measure_aligned(here)


if __name__ == "__main__":
    main()
