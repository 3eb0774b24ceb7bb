"""Searches for einsum's order of contraction beside opt_einsum's and cotengrust's.

    python3 bench/peers/bench_einsum_paths.py BUILD [--markdown] [--slow]

Two figures of Tenon for each equation: `C` is tn_einsum_search, from the equation and the shapes to the path; `data` is
tenon.einsum_path, which explains the kernels of each step as well. opt_einsum's contract_path and cotengrust's functions
are called as Python calls them. The costs of the paths are compared too. A rival that is not installed is left out. --markdown
prints the table of docs/benchmarks.md instead; --slow times opt_einsum's `optimal` of more than 8 operands too, which takes seconds.
"""

import ctypes
import itertools
import statistics
import sys
import time

import package  # first: it sets the path
import numpy
import pairs
import tenon
from tenon import _abi, _einsum
from tenon._library import lib

try:
    import opt_einsum
except ImportError:
    opt_einsum = None
try:
    import cotengrust
except ImportError:
    cotengrust = None


SAMPLE = 4e-3  # seconds, about


def symbol(number):
    return chr(97 + number) if number < 26 else chr(0xC0 + number)


def network(random, terms, degree):
    """A random network of so many operands, each with about `degree` labels that another one has too, and the shapes."""
    parts = [[] for _ in range(terms)]
    ends = list(itertools.chain.from_iterable([term] * degree for term in range(terms)))
    random.shuffle(ends)
    sizes = {}
    for number, (a, b) in enumerate(zip(ends[::2], ends[1::2])):
        label = symbol(number)
        sizes[label] = int(random.integers(2, 6))
        for term in {a, b}:
            parts[term].append(label)
    return ",".join(map("".join, parts)) + "->", [tuple(sizes[one] for one in part) for part in parts], sizes


class Ours:
    """A call of tn_einsum_search, repeated."""

    def __init__(self, equation, shapes, strategy, path=None):
        tensors = [_einsum._shaped(shape) for shape in shapes]
        self.args, self.kept = _einsum._make_args(equation, tensors, strategy, path, None, 0, None)
        self.path = (ctypes.c_int32 * (4 * len(shapes)))()
        self.steps, self.cost, self.err = ctypes.c_int32(), ctypes.c_double(), _abi.Error()

    def __call__(self):
        if lib.tn_einsum_search(None, ctypes.byref(self.args), self.path, ctypes.byref(self.steps),
                                ctypes.byref(self.cost), ctypes.byref(self.err)):
            raise RuntimeError(self.err.message)


def compare(ours, rival, aim):
    """Microseconds of both, the ratio, the spread of ours, and the verdict; of processor time of this thread."""
    rounds = 3 if pairs.seconds(rival) > 0.5 else 11
    samples = [pairs.sampled(call, SAMPLE, time.thread_time_ns) for call in (ours, rival)]
    mine, its, *found = pairs.judge(*samples, aim, rounds=rounds, repeats=1)
    return 1e6 * mine, 1e6 * its, *found


def counted(equation, shapes, path):
    search = Ours(equation, shapes, None, path)
    search()
    return search.cost.value


def rivals(equation, shapes, sizes, strategy):
    """Name, call, aim and the cost of its path."""
    if opt_einsum and (strategy != "optimal" or len(shapes) <= 8 or "--slow" in sys.argv):  # it takes seconds beyond
        def theirs():
            return opt_einsum.contract_path(equation, *shapes, shapes=True, optimize=strategy)
        yield "opt_einsum", theirs, 50, float(theirs()[1].opt_cost)
    functions = {"greedy": "optimize_greedy", "dp": "optimize_optimal", "optimal": "optimize_optimal"}
    if cotengrust and strategy in functions:
        inputs = [[*part] for part in equation.split("->")[0].split(",")]
        function = getattr(cotengrust, functions[strategy])
        more = {"search_outer": True} if strategy == "optimal" else {}

        def theirs():
            return function(inputs, [], sizes, **more)
        yield "cotengrust", theirs, 1, counted(equation, shapes, theirs())


def time_data(equation, shapes, strategy):
    """Microseconds of tenon.einsum_path; None for results that no address space has room for."""
    try:
        return 1e6 * statistics.median(pairs.seconds(lambda: tenon.einsum_path(equation, *shapes, strategy=strategy))
                                       for _ in range(9))
    except tenon.errors.OutOfMemoryError:
        return None


CASES = ((6, ("auto", "optimal", "dp", "greedy", "branch-2", "branch-all")),
         (10, ("auto", "optimal", "dp", "greedy", "branch-1", "branch-2", "random-greedy")),
         (14, ("auto", "dp", "greedy", "branch-1")),
         (20, ("auto", "dp", "greedy")),
         (200, ("auto", "greedy")),
         (1000, ("greedy",)))


def write_time(us):
    for limit, scale, unit in ((1e3, 1, "us"), (1e6, 1e3, "ms"), (float("inf"), 1e6, "s")):
        if us < limit:
            return f"{us / scale:.3g} {unit}"


def write_rival(found, cost, aim):
    """The cells of a rival: its time, the ratio, and what its path costs; a ratio below 1 is bold, one below the aim in italics."""
    if found is None:
        return "| - | - | - "
    mark = "" if found[2] >= aim else "*" if found[2] >= 1 else "**"
    return f"| {write_time(found[1])} | {mark}{found[2]:.3g}{mark} | {found[5] / cost:.3g} "


def main():
    markdown = "--markdown" in sys.argv
    random = numpy.random.default_rng(7)
    if markdown:
        print("| operands | strategy | Tenon | opt_einsum | ratio | cost of its path | cotengrust | ratio | cost of its path |\n"
              "|---|---|---|---|---|---|---|---|---|")
    for terms, strategy in ((terms, strategy) for terms, strategies in CASES for strategy in strategies):
        equation, shapes, sizes = network(random, terms, 3)
        search = Ours(equation, shapes, strategy)
        search()
        found, own = {}, None
        for name, theirs, aim, cost in rivals(equation, shapes, sizes, strategy):
            found[name] = (*compare(search, theirs, aim), cost)
            us, rival_us, ratio, spread, verdict, _ = found[name]
            own = us
            if not markdown:
                print(f"{f'{terms} {strategy} C':<26} ours {us:9.1f} us, cost {search.cost.value:.4g}  {name} {rival_us:10.1f} us, "
                      f"cost {cost:.4g}  ratio {ratio:8.2f}  A/A spread {100 * spread:4.1f} %  aim >= {aim:g}  {verdict}", flush=True)
        if markdown and own:
            print(f"| {terms} | `{strategy}` | {write_time(own)} {write_rival(found.get('opt_einsum'), search.cost.value, 50)}"
                  f"{write_rival(found.get('cotengrust'), search.cost.value, 1)}|", flush=True)
        elif not markdown:
            us = time_data(equation, shapes, strategy)
            print(f"{f'{terms} {strategy} data':<26} {f'ours {us:9.1f} us' if us else 'an intermediate result is too large'}", flush=True)


if __name__ == "__main__":
    main()
