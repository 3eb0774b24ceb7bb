"""Operators on small arrays beside NumPy's, as each is called: tn_softmax and the others in C, NumPy in
Python.

    python3 bench/peers/bench_numpy_small.py BUILD

Ours are timed by BUILD/bench/small_calls, which a Python between them would be charged to; what Python
itself costs NumPy, some tens of nanoseconds a call, is part of using it. Squares of f32 that stay in the
caches, with results in arrays that are there already; softmax and layer norm are the expressions that one
writes with NumPy. Ours may use its threads; it does from 256 KiB on.
"""

import itertools
import os
import statistics
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tests"))
import harness
import pairs

numpy = harness.import_numpy()

SIDES = (8, 32, 128, 512)
SAMPLE = 2e6  # nanoseconds, about
AIM = 1


class Calls:
    """The program that calls the library."""

    def __init__(self, folder):
        path = os.path.join(folder, "bench", "small_calls")
        self.process = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True)

    def time(self, operation, side, times):
        """Seconds of that many."""
        self.process.stdin.write(f"{operation} {side} {times}\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline()) * times / 1e9

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def softmax(x):
    e = numpy.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def layer_norm(x, weight, bias):
    return (x - x.mean(axis=-1, keepdims=True)) / numpy.sqrt(
        x.var(axis=-1, keepdims=True) + 1e-5) * weight + bias


def rivals(side):
    """What is called with what."""
    random = numpy.random.default_rng(side)
    x, other = (random.standard_normal((side, side), "float32") for _ in range(2))
    weight, bias = (random.standard_normal(side, "float32") for _ in range(2))
    out, half, wide = (numpy.zeros((side, side), dtype) for dtype in ("f4", "f2", "f8"))
    sums = numpy.zeros(side, "f4")
    yield "transpose", numpy.copyto, (out, x.T)
    yield "to_f16", lambda: numpy.copyto(half, x, casting="same_kind"), ()
    yield "to_f64", numpy.copyto, (wide, x)
    yield "add", numpy.add, (x, other, out)
    yield "mul", numpy.multiply, (x, other, out)
    yield "exp", numpy.exp, (x, out)
    yield "sum", numpy.add.reduce, (x, 1, None, sums)
    yield "softmax", softmax, (x,)
    yield "layer_norm", layer_norm, (x, weight, bias)


def repeated(call, arguments, times):
    def operation():
        for _ in itertools.repeat(None, times):
            call(*arguments)
    return operation


def fit(seconds_of):
    """How many fill a sample."""
    times = 1
    while (taken := seconds_of(times) * 1e9) < SAMPLE / 2:
        times = max(2 * times, min(int(times * SAMPLE / 2 / max(taken, 1)), 64 * times))
    return times


def compare(calls, operation, side, call, arguments):
    ours = fit(lambda times: calls.time(operation, side, times))
    theirs = fit(lambda times: pairs.seconds(repeated(call, arguments, times)))
    rival, spread = repeated(call, arguments, theirs), float("inf")
    for _ in range(pairs.REPEATS):
        taken = pairs.measure(lambda: calls.time(operation, side, ours), rival)
        spread = pairs.spread_of(taken[0], taken[2])
        if spread <= pairs.WIDEST:
            break
    ns = [statistics.median(side) * 1e9 / n for side, n in zip(taken, (ours, theirs))]
    ratio = statistics.median(b / theirs / (a / ours) for a, b in zip(taken[0], taken[1]))
    verdict = pairs.verdict(ratio, spread, AIM)
    print(f"{operation:<12} {side:>4} x {side:<4} ours {ns[0]:10.0f} ns  NumPy {ns[1]:10.0f} ns  "
          f"ratio {ratio:6.2f}  A/A spread {100 * spread:4.1f} %  aim ratio >= {AIM:g}  {verdict}",
          flush=True)


def main():
    if numpy is None:
        pairs.compare("operators on small arrays", 0, None, "NumPy (Debian: python3-numpy)", None,
                      AIM)
        return
    calls = Calls(sys.argv[1])
    print(f"NumPy {numpy.__version__}, Python {sys.version.split()[0]}")
    for side in SIDES:
        for operation, call, arguments in rivals(side):
            compare(calls, operation, side, call, arguments)
    calls.end()


if __name__ == "__main__":
    main()
