"""tn_copy of tensors in the host's memory beside NumPy's copy of the same arrays.

    python3 bench/peers/bench_numpy_copy.py BUILD

Both run on the calling thread, between memory that was allocated and written before. What a call
through ctypes costs, some microseconds, is in ours; an operation takes milliseconds. Arrays take
turns, so that none is found in a cache.
"""

import itertools
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tests"))
import harness
import pairs

numpy = harness.import_numpy()

SETS = 3  # of arrays that take turns
SIDE = 4096  # 64 MiB of f32


def layouts(whole):
    """Windows of a square array: what is copied into a dense one of its shape."""
    yield "dense, 64 MiB", whole
    yield "rows of 4 KiB, every 16 KiB, 16 MiB", whole[:, :1024]
    yield "every other element of every row, 32 MiB", whole[:, ::2]
    cube = whole.reshape(64, 64, SIDE)
    yield "rows of 16 KiB in another order, 64 MiB", cube.transpose(1, 0, 2)
    yield "transposed, 16 MiB", whole[:2048, :2048].T


def tensor_of(tenon, array):
    """Over the array's memory, and holding it."""
    strides = [stride // array.itemsize for stride in array.strides]
    return tenon.wrap(array.ctypes.data, "f32", array.shape, strides, released=lambda: array)


def sides(tenon, sources):
    """Ours and NumPy's copy, each with targets of its own; and both checked to be copies."""
    ours = [numpy.zeros(source.shape, "float32") for source in sources]
    theirs = [numpy.zeros_like(target) for target in ours]
    jobs = itertools.cycle([(tensor_of(tenon, a), tensor_of(tenon, b))
                            for a, b in zip(sources, ours)])
    rivals = itertools.cycle(list(zip(theirs, sources)))

    def copy_ours():
        source, target = next(jobs)
        source.copy_to(target)

    def copy_theirs():
        numpy.copyto(*next(rivals))

    for _ in range(SETS):
        copy_ours()
        copy_theirs()
    for a, b, source in zip(ours, theirs, sources):
        if not (numpy.array_equal(a, source) and numpy.array_equal(b, source)):
            raise SystemExit("bench: a copy is not what was copied")
    return copy_ours, copy_theirs


def main():
    if numpy is None:
        for name in ("dense", "strided"):
            pairs.compare(f"tn_copy, {name}", 0, None, "NumPy (Debian: python3-numpy)", None, 1)
        return
    tenon = harness.Library(sys.argv[1])
    print(f"NumPy {numpy.__version__}, Python {sys.version.split()[0]}")
    wholes = [numpy.random.default_rng(i).random((SIDE, SIDE), "float32") for i in range(SETS)]
    for found in zip(*(layouts(whole) for whole in wholes)):
        name, sources = found[0][0], [source for _, source in found]
        ours, theirs = sides(tenon, sources)
        pairs.compare(f"tn_copy, {name}", sources[0].nbytes, ours, "NumPy", theirs, 1)


if __name__ == "__main__":
    main()
