"""tn_fft beside numpy.fft and torch.fft (which has MKL), of the same arrays into arrays that are there already.

    python3 bench/peers/bench_fft.py BUILD [DTYPE:SHAPE[:DIMS]]...

c8 and c16 are complex, f4 and f8 real (rfft). All on one thread, whose processor time is measured, so that other work on the
machine disturbs little. Ours is the call of C with arguments that are there already, through ctypes, which takes about a
microsecond of it; the rivals are called as Python calls them.
"""

import itertools
import os
import statistics
import sys
import time
from ctypes import byref

BUILD = sys.argv[1] if len(sys.argv) > 1 else "build"
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "..", "tests"), os.path.join(HERE, "..", "..", "bindings", "python")]
os.environ["TENON_LIBRARY"] = os.path.join(os.path.abspath(BUILD), "libtenon.so.0")
os.environ["TENON_CPU_THREADS"] = "1"
import harness
import pairs

numpy = harness.import_numpy()
try:
    import torch
except ImportError:
    torch = None

CASES = ("c8:64", "c8:1024", "c8:65536", "c8:1048576", "c8:4194304", "c8:64x1024", "c8:64x1000", "c8:1000", "c8:64x1009",
         "c8:10007", "c8:512x512:2", "c8:2048x2048:2", "c16:1024", "c16:65536", "c16:1048576", "c16:64x1000", "f4:1024",
         "f4:1048576", "f4:64x1024", "f8:64x1024", "f4:1024x1024:2")
SAMPLE = 2e-3  # seconds, about
PRIME = 1.2    # the aim for 1009 and 10007


def repeated(operation, times):
    def run():
        start = time.thread_time_ns()
        for _ in itertools.repeat(None, times):
            operation()
        return (time.thread_time_ns() - start) / 1e9
    return run


def fit(operation):
    """How many fill a sample."""
    times = 1
    while (taken := repeated(operation, times)()) < SAMPLE / 2:
        times = max(2 * times, min(int(times * SAMPLE / max(taken, 1e-9)), 64 * times))
    return times


def ours(name, array, out):
    import tenon
    from tenon import _calls, settings
    from tenon._library import lib

    call = _calls.make(_calls.MAKERS[getattr(tenon.fft, name)], (array,), {"out": out})
    context, arguments, function = settings.context(), byref(call.args), lib.tn_fft
    run = lambda: function(context, arguments, None)
    run.keeps = call
    if run():
        raise SystemExit(f"tn_fft fails for {name} of {array.shape}")
    return run


def rivals(name, array):
    """Their operations and aims."""
    to = getattr(numpy.fft, name)(array)
    yield "NumPy", lambda: getattr(numpy.fft, name)(array, out=to), 2
    if torch:
        torch.set_num_threads(1)
        tensor = torch.from_numpy(array)
        result = getattr(torch.fft, name)(tensor)
        yield "PyTorch", lambda: getattr(torch.fft, name)(tensor, out=result), 1


def compare(case, mine, rival_name, rival, aim):
    counts = fit(mine), fit(rival)
    spread = float("inf")
    for _ in range(pairs.REPEATS):
        taken = pairs.measure(repeated(mine, counts[0]), repeated(rival, counts[1]), rounds=15)
        spread = pairs.spread_of(taken[0], taken[2])
        if spread <= pairs.WIDEST:
            break
    us = [statistics.median(side) * 1e6 / n for side, n in zip(taken, counts)]
    ratio = statistics.median(b / counts[1] / (a / counts[0]) for a, b in zip(taken[0], taken[1]))
    print(f"{case:<16} ours {us[0]:9.2f} us  {rival_name:<8} {us[1]:9.2f} us  ratio {ratio:6.2f}  "
          f"A/A spread {100 * spread:4.1f} %  aim ratio >= {aim:g}  {pairs.verdict(ratio, spread, aim)}", flush=True)


def main():
    if numpy is None or int(numpy.__version__.split(".")[0]) < 2:
        pairs.compare("fft", 0, None, "NumPy 2", None, 2)
        return
    print(f"NumPy {numpy.__version__}, PyTorch {torch.__version__ if torch else 'is not here'}, load "
          f"{os.getloadavg()[0]:.1f}")
    for case in sys.argv[2:] or CASES:
        dtype, sizes, *dims = case.split(":")
        shape = tuple(map(int, sizes.split("x")))
        array = numpy.random.default_rng(0).standard_normal(shape).astype(dtype)
        name = ("rfft" if dtype[0] == "f" else "fft") + ("2" if dims else "")
        mine = ours(name, array, numpy.empty_like(getattr(numpy.fft, name)(array)))
        for rival_name, rival, aim in rivals(name, array):
            prime = rival_name == "NumPy" and shape[-1] in (1009, 10007)
            compare(case, mine, rival_name, rival, PRIME if prime else aim)


if __name__ == "__main__":
    main()
