"""What the Python package adds to a call of the library, and to the start of a program.

    python3 bench/peers/bench_python.py BUILD

A call's cost is the whole call from Python less the C function itself: a call with ready arguments through
ctypes, less an empty one. Operands of 8 x 8, where next to nothing is computed. Each figure is the median of
rounds that run in turn, beside an A/A pair of the same whole call. With the extension where a compiler makes
it; through ctypes alone always. On a GPU, where PyTorch has one, operands are of bf16 and just large enough that
its kernels take them; a call is what it costs the processor to queue it, and nothing is queued when a sample begins.
Attention there also stands beside PyTorch's own. The start is `import tenon` above `import ctypes`, in processes of
their own, by the time of the processor, as nothing is waited for.
"""

import importlib
import os
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "tests"))
PACKAGE = os.path.abspath(os.path.join(HERE, "..", "..", "bindings", "python"))
sys.path.insert(0, PACKAGE)
import harness
import pairs

numpy = harness.import_numpy()
CALLS = 300
STARTS = 21


def micros(call, settle=lambda: None):
    """Microseconds of one call, over many, by the clock of this thread, which does all of it."""
    settle()
    start = time.thread_time_ns()
    for _ in range(CALLS):
        call()
    return (time.thread_time_ns() - start) / CALLS / 1e3


def bare_calls(operator, arrays):
    """The C function with ready arguments, and an empty one, both through ctypes."""
    from ctypes import byref

    from tenon import _abi
    from tenon._calls import MAKERS
    from tenon._library import lib

    ready = MAKERS[operator](*arrays)
    args, err = byref(ready.args), byref(_abi.Error())
    function, empty = getattr(lib, ready.name), lib.tn_decision_release
    return (lambda kept=ready: function(None, args, err)), (lambda: empty(None))


def compare(name, aim, operator, *arrays, settle=lambda: None):
    bare, empty = bare_calls(operator, arrays)
    sides = [lambda: operator(*arrays), bare, empty, lambda: operator(*arrays)]
    for _ in range(pairs.REPEATS):
        taken = [[] for _ in sides]
        for turn in range(pairs.ROUNDS):
            for i in range(len(sides)):
                which = (i + turn) % len(sides)
                taken[which].append(micros(sides[which], settle))
        spread = pairs.spread_of(taken[0], taken[3])
        if spread <= pairs.WIDEST:
            break
    added = statistics.median(w - (c - e) for w, c, e in zip(*taken[:3]))
    verdict = ("not measurable here" if spread > pairs.WIDEST else
               "reached" if added <= aim * (1 + spread) else "not reached")
    print(f"{name:<44} adds {added:6.2f} us  whole call {statistics.median(taken[0]):6.2f} us  "
          f"A/A spread {100 * spread:4.1f} %  aim <= {aim:g} us  {verdict}", flush=True)


def use_extension():
    """Whether it could be made and is in use."""
    import tenon
    from tenon import _arrays, operators

    backend = importlib.import_module("build_backend")
    folder = tempfile.mkdtemp(prefix="tenon-extension-")
    if backend.make_extension(folder) is None:
        return False
    tenon.__path__.append(folder)
    operators._fast = operators._load_fast()
    _arrays._kinds.clear(), _arrays._made.clear()
    return operators._fast is not None


def queue_on_gpu(torch, how):
    """What a call on PyTorch's tensors on a GPU costs the processor."""
    import tenon
    from tenon.integrations.torch import scaled_dot_product_attention as ours
    from torch.nn.functional import scaled_dot_product_attention as theirs

    settle = torch.cuda.synchronize
    a, b = (torch.randn(64, 64, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    q = torch.randn(1, 2, 64, 64, device="cuda", dtype=torch.bfloat16)
    aim = 3 if how == "with the extension" else 25
    compare(f"matmul, PyTorch on CUDA, {how}", aim, tenon.matmul, a, b, settle=settle)
    compare(f"attention, PyTorch on CUDA, {how}", aim, tenon.attention, q, q, q, settle=settle)
    pairs.compare(f"queueing attention, {how}", 1e6, lambda: micros(lambda: ours(q, q, q), settle) / 1e6, "PyTorch",
                  lambda: micros(lambda: theirs(q, q, q), settle) / 1e6, 1, unit="k/s")


def start(text):
    """Milliseconds of the processor, and KiB, of a process that runs the text."""
    program = (f"{text}; import time; t = time.process_time(); "
               "print(1e3 * t, open('/proc/self/status').read().split('VmHWM:')[1].split()[0])")
    done = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, check=True,
                          env=dict(os.environ, PYTHONPATH=PACKAGE))
    ms, kib = done.stdout.split()
    return float(ms), int(kib)


def compare_starts():
    texts = ("import ctypes, tenon", "import ctypes", "import ctypes, tenon; tenon.version()")
    for text in texts:
        start(text)
    taken = [[start(text) for text in texts] for _ in range(STARTS)]
    for which, name in ((0, "import tenon"), (2, "import tenon and open the library")):
        ms = statistics.median(row[which][0] - row[1][0] for row in taken)
        mib = statistics.median(row[which][1] - row[1][1] for row in taken) / 1024
        print(f"{name:<44} adds {ms:6.2f} ms, {mib:5.2f} MiB  aim <= 30 ms, 5 MiB  "
              f"{'reached' if ms <= 30 and mib <= 5 else 'not reached'}", flush=True)


def main():
    os.environ["TENON_LIBRARY"] = os.path.join(os.path.abspath(sys.argv[1]), "libtenon.so")
    compare_starts()
    if numpy is None:
        print("lacking: NumPy (Debian: python3-numpy); not reached: nothing to call with")
        return
    import tenon

    random = numpy.random.default_rng(1)
    a, b = (random.standard_normal((8, 8), "float32") for _ in range(2))
    q = random.standard_normal((1, 1, 8, 8), "float32")
    compare("matmul, NumPy, ctypes alone", 15, tenon.matmul, a, b)
    compare("attention, NumPy, ctypes alone", 15, tenon.attention, q, q, q)
    try:
        import torch
    except ImportError:
        torch = None
    gpu = torch is not None and torch.cuda.is_available()
    if gpu:
        queue_on_gpu(torch, "ctypes alone")
    if not use_extension():
        print("lacking: a C compiler and Python's headers; not reached: no extension")
        return
    compare("matmul, NumPy, with the extension", 2, tenon.matmul, a, b)
    compare("attention, NumPy, with the extension", 2, tenon.attention, q, q, q)
    if torch:
        compare("matmul, PyTorch, with the extension", 3, tenon.matmul, *map(torch.from_numpy, (a, b)))
        compare("attention, PyTorch, with the extension", 3, tenon.attention, *[torch.from_numpy(q)] * 3)
        if gpu:
            queue_on_gpu(torch, "with the extension")
        else:
            print("PyTorch's tensors on CUDA: lacking: a GPU that PyTorch sees")
    else:
        print("PyTorch's tensors, with the extension: lacking: PyTorch")


if __name__ == "__main__":
    main()
