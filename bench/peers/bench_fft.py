"""tn_fft beside numpy.fft and torch.fft (which has MKL), of the same arrays into arrays that are there already.

    python3 bench/peers/bench_fft.py BUILD [KERNEL] [DTYPE:SHAPE[:DIMS]]...

With a KERNEL, such as cpu.fft.mkl, that kernel is the rival of what Tenon chooses without it. c8 and c16 are complex, f4 and
f8 real (rfft). All on one thread, whose processor time is measured. Ours is the call of C with arguments that are there
already, through ctypes, which takes about a microsecond of it; the rivals are called as Python calls them.
"""

import math
import os
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


def ours(name, array, out, rule=""):
    """The call in settings with a rule."""
    import tenon
    from tenon import _calls, settings
    from tenon._library import lib

    call = _calls.make(_calls.MAKERS[getattr(tenon.fft, name)], (array,), {"out": out})
    with settings.scope(rules=rule):
        context, arguments, function = settings.context(), byref(call.args), lib.tn_fft
    run = lambda: function(context, arguments, None)
    run.keeps = call
    if run():
        raise SystemExit(f"tn_fft fails for {name} of {array.shape} with the rule {rule!r}")
    return run


def rivals(name, array):
    """Their operations and aims."""
    to = getattr(numpy.fft, name)(array)
    prime = array.shape[-1] in (1009, 10007)
    yield "NumPy", lambda: getattr(numpy.fft, name)(array, out=to), PRIME if prime else 2
    if torch:
        torch.set_num_threads(1)
        tensor = torch.from_numpy(array)
        result = getattr(torch.fft, name)(tensor)
        yield "PyTorch", lambda: getattr(torch.fft, name)(tensor, out=result), 1


def flops(array, dims):
    """The usual count: 5 n log2 n for n complex numbers, half of that for real ones."""
    points = math.prod(array.shape[-dims:])
    return (5 if array.dtype.kind == "c" else 2.5) * array.size * math.log2(points)


def main():
    if numpy is None or int(numpy.__version__.split(".")[0]) < 2:
        pairs.compare("fft", 0, None, "NumPy 2", None, 2)
        return
    kernel = next((word for word in sys.argv[2:] if word.startswith("cpu.")), None)
    print(f"NumPy {numpy.__version__}, PyTorch {torch.__version__ if torch else 'is not here'}, load "
          f"{os.getloadavg()[0]:.1f}")
    for case in [word for word in sys.argv[2:] if word != kernel] or CASES:
        dtype, sizes, *dims = case.split(":")
        shape = tuple(map(int, sizes.split("x")))
        array = numpy.random.default_rng(0).standard_normal(shape).astype(dtype)
        name = ("rfft" if dtype[0] == "f" else "fft") + ("2" if dims else "")
        out = numpy.empty_like(getattr(numpy.fft, name)(array))
        found = [(kernel, ours(name, array, out, f"require:{kernel}"), 1)] if kernel else rivals(name, array)
        mine = ours(name, array, out, f"forbid:{kernel}" if kernel else "")
        for rival_name, rival, aim in found:
            samples = [pairs.sampled(call, SAMPLE, time.thread_time_ns) for call in (mine, rival)]
            pairs.compare(case, flops(array, 2 if dims else 1), samples[0], rival_name, samples[1], aim, "GFLOP/s",
                          rounds=15)


if __name__ == "__main__":
    main()
