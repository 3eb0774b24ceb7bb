"""What a server computes on the processor beside PyTorch: products with few rows, with packed weights and of random sizes,
squares of bf16, elementwise functions, sums and maxima, casts.

    python3 bench/peers/bench_torch_serving.py BUILD [TABLE]... [processor] [seed=N] [dtype=f32,bf16,int8] [m=1,7,64] [side=4096]

The tables are few, cold, packed, random, squares, functions, sums and casts; all but cold without a word. Ours, PyTorch's
and ours again (the A/A pair) run in turn on as many threads. Before each sample there is a pause that is not timed,
because PyTorch's threads spin for a while after a call. `processor` measures the processor time of one thread instead of
elapsed time, for a machine that is busy. A table ends with its least and median ratio and with the number of rows below
the aim less the spread.

cold: as few, but each call has other weights, of 512 MiB together, as the layers of a model have: no cache holds them.
packed: PyTorch gets the weights as they are; Tenon's were packed by tn_matmul_pack.
"""

import package  # noqa: F401, I001  # makes `import tenon` possible

import ctypes
import os
import random
import statistics
import sys
import time

import pairs

try:
    import torch
except ImportError:
    torch = None

TABLES = ("few", "packed", "random", "squares", "functions", "sums", "casts")
ROWS, PACKED_ROWS, SIDES = (2, 4, 7, 16, 33, 64), (1, 2, 4, 7, 16, 33, 64), (1024, 3000, 4096, 8192)
SHAPES, SEED, COLD_BYTES = 100, 33, 512 << 20
PAUSE, SAMPLE, ROUNDS, AGAIN = 0.02, 2e-3, 11, 31  # seconds; seconds of calls in a sample; rounds, and of a doubtful row
AIMS = {"few": 1.05, "cold": 1.05, "packed": 1.3, "random": 1.05, "squares": 1.1, "functions": 1, "sums": 1, "casts": 1}


class Options:
    def __init__(self, words):
        given = dict(word.split("=", 1) for word in words if "=" in word)
        plain = [word for word in words if "=" not in word]
        self.processor = "processor" in plain
        self.tables = [word for word in plain if word != "processor"] or list(TABLES)
        self.seed = int(given.pop("seed", SEED))
        self.dtypes = given.pop("dtype", "f32,bf16,int8").split(",")
        self.rows = [int(m) for m in given["m"].split(",")] if given.get("m") else None
        self.sides = [int(side) for side in given["side"].split(",")] if given.get("side") else SIDES
        unknown = [word for word in [*given, *self.tables] if word not in (*TABLES, "cold", "m", "side")]
        if unknown:
            raise SystemExit(f"bench: expected tables of {', '.join((*TABLES, 'cold'))}, and processor, seed=, dtype=, m= "
                             f"or side=; got {unknown[0]}")


def call_of(operator, *arrays, **options):
    """The C function with ready arguments."""
    from tenon import _abi
    from tenon._calls import MAKERS
    from tenon._library import lib

    ready, err = MAKERS[operator](*arrays, **options), _abi.Error()
    function, args, its_err = getattr(lib, ready.name), ctypes.byref(ready.args), ctypes.byref(err)

    def call(kept=ready):
        if function(None, args, its_err):
            raise SystemExit(f"bench: {err.message.decode()}")

    return call


def packed_call(a, b, out, transposed):
    import tenon

    from tenon import _abi
    from tenon._library import lib

    packed = tenon.matmul_pack(a, b, out=out, transpose_b=transposed)
    ready, err = packed._ready(a, out), _abi.Error()
    args, its_err, handle = ctypes.byref(ready.args), ctypes.byref(err), packed._handle.address

    def call(kept=(packed, ready)):
        if lib.tn_matmul_packed(handle, args, its_err):
            raise SystemExit(f"bench: {err.message.decode()}")

    return call


class Bench:
    def __init__(self, options):
        self.options, self.clock = options, time.process_time if options.processor else time.perf_counter
        self.ratios, self.below = [], 0

    def seconds(self, call, times):
        if not self.options.processor:
            time.sleep(PAUSE)
        start = self.clock()
        for _ in range(times):
            call()
        return (self.clock() - start) / times

    def compare(self, name, aim, ours, theirs):
        """Prints one row."""
        ours()
        theirs()
        times = max(1, round(SAMPLE / max(self.seconds(theirs, 1), 1e-7)))
        sides = (lambda: self.seconds(ours, times)), (lambda: self.seconds(theirs, times))
        for rounds in (ROUNDS, AGAIN):
            mine, its, ratio, spread, verdict = pairs.judge(*sides, aim, rounds=rounds, repeats=1)
            if spread <= pairs.WIDEST:
                break
        self.ratios.append(ratio)
        self.below += verdict == "not reached"
        print(f"    {name:<46} ours {1e6 * mine:10.1f} us  PyTorch {1e6 * its:10.1f} us  ratio {ratio:5.2f}  "
              f"A/A {100 * spread:4.1f} %  {verdict}", flush=True)

    def end(self, table, aim):
        if self.ratios:
            print(f"{table}: ratio {min(self.ratios):.2f} to {max(self.ratios):.2f}, median "
                  f"{statistics.median(self.ratios):.2f}; {self.below} of {len(self.ratios)} below {aim:g}", flush=True)
        self.ratios, self.below = [], 0


def numbers(dtype, *shape):
    if dtype == "int8":
        return torch.randint(-128, 128, shape, dtype=torch.int8)
    return torch.randn(*shape).to({"bf16": torch.bfloat16, "f16": torch.float16}.get(dtype, torch.float32))


def check(name, out, wanted, k):
    if not torch.allclose(out.double(), wanted.double(), rtol=0.02, atol=0.05 * k**0.5):
        raise SystemExit(f"bench: Tenon and PyTorch do not agree on {name}")


class Product:
    """Calls of a product, ours and PyTorch's, with one matrix of weights or several in turn."""

    def __init__(self, dtype, m, n, k, transposed, matrices=1, packed=False):
        import tenon

        self.name = f"{dtype} {m} x {n} x {k}{' transposed' if transposed else ''}"
        self.a = numbers(dtype, m, k)
        weights = [numbers(dtype, *((n, k) if transposed else (k, n))) for _ in range(matrices)]
        kind = torch.int32 if dtype == "int8" else self.a.dtype
        self.out, self.wanted = (torch.zeros(m, n, dtype=kind) for _ in range(2))
        multiply = torch._int_mm if dtype == "int8" else torch.matmul
        views = [b.t() if transposed else b for b in weights]
        theirs = [lambda b=b: multiply(self.a, b, out=self.wanted) for b in views]
        ours = [packed_call(self.a, b, self.out, transposed) if packed else
                call_of(tenon.matmul, self.a, b, out=self.out, transpose_b=transposed) for b in weights]
        self.ours, self.theirs = self.in_turn(ours), self.in_turn(theirs)
        ours[0]()
        theirs[0]()
        check(self.name, self.out, self.wanted, k)

    @staticmethod
    def in_turn(calls):
        if len(calls) == 1:
            return calls[0]
        state = [0]

        def call():
            state[0] = (state[0] + 1) % len(calls)
            calls[state[0]]()

        return call


def add_product(bench, aim, *shape, **options):
    try:
        product = Product(*shape, **options)
    except RuntimeError as error:  # PyTorch's int8 does not have every shape
        print(f"    {shape}: lacking in PyTorch: {str(error).splitlines()[0]}", flush=True)
        return
    bench.compare(product.name, aim, product.ours, product.theirs)


def measure_few(bench, options, table):
    for dtype in options.dtypes:
        for side in options.sides:
            bytes_of_one = side * side * {"f32": 4, "int8": 1}.get(dtype, 2)
            matrices = max(2, COLD_BYTES // bytes_of_one) if table == "cold" else 1
            for m in options.rows or (PACKED_ROWS if table == "packed" else ROWS):
                for transposed in (False, True):
                    add_product(bench, AIMS[table], dtype, m, side, side, transposed, matrices=matrices,
                                packed=table == "packed")


def measure_random(bench, options, _):
    draw = random.Random(options.seed)
    print(f"    seed {options.seed}")
    for _ in range(SHAPES):
        dtype = draw.choice([word for word in options.dtypes if word != "int8"] or ["f32"])
        sides = [draw.randint(100, 3000) for _ in range(3)]
        add_product(bench, AIMS["random"], dtype, *sides, draw.random() < 0.5)


def measure_squares(bench, _, table):
    for side in (512, 1024, 2048, 4096):
        add_product(bench, AIMS[table], "bf16", side, side, side, False)


SHAPES_OF_ROWS = ((64, 1024), (1024, 1024), (4096, 1024), (4096, 4096), (300, 5000))


def measure_functions(bench, options, table):
    import tenon

    theirs = {"gelu": torch.nn.functional.gelu, "silu": torch.nn.functional.silu, "exp": torch.exp, "tanh": torch.tanh}
    for dtype in (word for word in options.dtypes if word != "int8"):
        for rows, columns in SHAPES_OF_ROWS:
            x = numbers(dtype, rows, columns)
            y = torch.empty_like(x)
            for name, function in theirs.items():
                def call(function=function, name=name):
                    if name in ("exp", "tanh"):
                        function(x, out=y)
                    elif name == "gelu":
                        torch.ops.aten.gelu.out(x, out=y)
                    else:
                        torch.ops.aten.silu.out(x, out=y)

                bench.compare(f"{name} {dtype} {rows} x {columns}", AIMS[table], call_of(tenon.unary, name, x, out=y), call)


def measure_sums(bench, options, table):
    import tenon

    for dtype in (word for word in options.dtypes if word != "int8"):
        for rows, columns in SHAPES_OF_ROWS:
            x = numbers(dtype, rows, columns)
            for axis, word in ((1, "rows"), (0, "columns")):
                out = torch.empty(x.shape[1 - axis], dtype=x.dtype)
                for name, function in (("sum", torch.sum), ("max", torch.amax)):
                    bench.compare(f"{name} of {word} {dtype} {rows} x {columns}", AIMS[table],
                                  call_of(tenon.reduce, name, x, axis, out=out),
                                  lambda axis=axis, out=out, function=function: function(x, axis, out=out))


def measure_casts(bench, _, table):
    import tenon

    for one, other in (("f32", "bf16"), ("bf16", "f32"), ("f32", "f16"), ("f16", "f32")):
        for rows, columns in SHAPES_OF_ROWS:
            x = numbers(one, rows, columns)
            y = numbers(other, rows, columns)
            bench.compare(f"{one} to {other} {rows} x {columns}", AIMS[table], call_of(tenon.cast, x, out=y),
                          lambda x=x, y=y: y.copy_(x))


MEASURES = {"few": measure_few, "cold": measure_few, "packed": measure_few, "random": measure_random,
            "squares": measure_squares, "functions": measure_functions, "sums": measure_sums, "casts": measure_casts}


def main():
    options = Options(sys.argv[2:])
    if torch is None:
        for table in options.tables:
            pairs.compare(table, 0, None, "PyTorch (pip: torch)", None, AIMS[table])
        return
    import tenon

    threads = 1 if options.processor else len(os.sched_getaffinity(0))
    torch.set_num_threads(threads)
    tenon.settings.set("cpu.threads", threads)
    torch.manual_seed(options.seed)
    measured = "processor time" if options.processor else "elapsed time"
    print(f"PyTorch {torch.__version__}, Python {sys.version.split()[0]}, {threads} threads, {measured}")
    with torch.inference_mode():
        for table in options.tables:
            print(f"{table}, aim {AIMS[table]:g}", flush=True)
            bench = Bench(options)
            MEASURES[table](bench, options, table)
            bench.end(table, AIMS[table])


if __name__ == "__main__":
    main()
