"""Random calls of the Python package: right results against float64, a Python exception for everything that is wrong,
never a crash. With NumPy, and with PyTorch's tensors where it is installed.

    python3 tests/attack/python_calls.py BUILD SEED [DEVICE [-v]]
"""

import random
import sys

import numpy

import tenon

try:
    import torch
except ImportError:
    torch = None

ROUNDS = 300
UNARY = {"neg": numpy.negative, "abs": numpy.abs, "exp": numpy.exp, "tanh": numpy.tanh,
         "relu": lambda x: numpy.maximum(x, 0), "sigmoid": lambda x: 1 / (1 + numpy.exp(-x))}
BINARY = {"add": numpy.add, "sub": numpy.subtract, "mul": numpy.multiply, "max": numpy.maximum,
          "min": numpy.minimum}
REDUCE = {"sum": numpy.sum, "mean": numpy.mean, "max": numpy.max, "min": numpy.min}
TOLERANCE = {"float64": 1e-9, "float32": 1e-4, "float16": 3e-2, "bfloat16": 2e-1}


class Found(Exception):
    pass


class Caller:
    """Random arguments, as NumPy's arrays or PyTorch's tensors."""

    def __init__(self, seed, device):
        self.dice = random.Random(seed)
        self.numbers = numpy.random.default_rng(seed)
        self.device = device

    def size(self):
        return self.dice.choice((0, 1, 1, 2, 3, 5, 8, 16, 17, 33, 64))

    def shape(self, least=0):
        return tuple(self.size() for _ in range(self.dice.randrange(least, 4)))

    def array(self, shape):
        """Numbers of any layout, with their float64 twin."""
        name = self.dice.choice(("float32", "float32", "float64", "float16"))
        use_torch = torch is not None and self.dice.randrange(2)
        base = self.numbers.uniform(-2, 2, [n * 2 for n in shape]).astype(name)
        x = base[tuple(slice(None, None, 2) if self.dice.randrange(3) == 0 else slice(0, n) for n in shape)]
        if x.ndim > 1 and self.dice.randrange(3) == 0:
            x = numpy.ascontiguousarray(x.T).T
        if x.ndim and self.dice.randrange(6) == 0 and not use_torch and self.device == "cpu:0":
            x = x[::-1]
        if use_torch or self.device != "cpu:0":
            x = self.tensor(x)
        return x

    def tensor(self, x):
        made = torch.from_numpy(numpy.asarray(x))
        if self.dice.randrange(4) == 0:
            made = made.to(torch.bfloat16)
        if self.dice.randrange(5) == 0:
            made = torch.nn.Parameter(made, requires_grad=False)
        return made.to(self.device) if self.device != "cpu:0" else made

    def same_kind(self, x, shape):
        """Another operand of x's dtype and library."""
        y = self.numbers.uniform(-2, 2, shape)
        if torch is not None and isinstance(x, torch.Tensor):
            return torch.from_numpy(y).to(x.dtype).to(x.device)
        return y.astype(x.dtype)


def exact(x):
    """As float64."""
    if torch is not None and isinstance(x, torch.Tensor):
        return x.detach().double().cpu().numpy()
    return numpy.asarray(x).astype(numpy.float64)


def compare(what, got, expected, x):
    name = str(x.dtype).replace("torch.", "")
    bound = TOLERANCE[name] * (1 + numpy.abs(expected))
    got = exact(got)
    if got.shape != expected.shape:
        raise Found(f"{what}: expected shape {expected.shape}, got {got.shape}")
    if not numpy.all(numpy.abs(got - expected) <= bound):
        raise Found(f"{what}: expected {expected}, got {got}")


def call_matmul(c):
    m, n, k = c.size(), c.size(), c.size()
    batch = c.shape()[:2] if c.dice.randrange(3) == 0 else ()
    a = c.array((*batch, m, k))
    b = c.same_kind(a, (*batch, k, n))
    got = tenon.matmul(a, b)
    x, y = exact(a), exact(b)
    bound = TOLERANCE[str(a.dtype).replace("torch.", "")] * (1 + numpy.abs(x) @ numpy.abs(y))
    if exact(got).shape != (x @ y).shape or not numpy.all(numpy.abs(exact(got) - x @ y) <= bound):
        raise Found(f"matmul {x.shape} {y.shape} {a.dtype} is wrong")


def call_unary(c):
    kind = c.dice.choice(list(UNARY))
    x = c.array(c.shape())
    compare(f"unary {kind}", tenon.unary(kind, x), UNARY[kind](exact(x)), x)


def call_binary(c):
    kind = c.dice.choice(list(BINARY))
    x = c.array(c.shape())
    y = c.same_kind(x, tuple(x.shape))
    compare(f"binary {kind}", tenon.binary(kind, x, y), BINARY[kind](exact(x), exact(y)), x)


def call_reduce(c):
    kind = c.dice.choice(list(REDUCE))
    x = c.array(c.shape(1))
    if 0 in x.shape:
        return
    axis = c.dice.randrange(len(x.shape))
    expected = REDUCE[kind](exact(x), axis=axis)
    bound = numpy.sum(numpy.abs(exact(x)), axis=axis)
    got = exact(tenon.reduce(kind, x, axis))
    if not numpy.all(numpy.abs(got - expected) <= TOLERANCE[str(x.dtype).replace("torch.", "")] * (1 + bound)):
        raise Found(f"reduce {kind} of {x.shape} {x.dtype} is wrong")


def call_softmax(c):
    x = c.array(c.shape(1))
    if 0 in x.shape:
        return
    axis = c.dice.randrange(-len(x.shape), len(x.shape))
    e = numpy.exp(exact(x) - exact(x).max(axis=axis, keepdims=True))
    compare("softmax", tenon.softmax(x, axis), e / e.sum(axis=axis, keepdims=True), x)


def call_attention(c):
    b, h, lq, lk, d = c.dice.randrange(1, 3), c.dice.randrange(1, 3), c.size(), c.size(), c.dice.randrange(1, 40)
    q = c.array((b, h, lq, d))
    k, v = c.same_kind(q, (b, h, lk, d)), c.same_kind(q, (b, h, lk, d))
    got = exact(tenon.attention(q, k, v))
    if lk == 0:
        return
    scores = exact(q) @ exact(k).swapaxes(-1, -2) / d**0.5
    weights = numpy.exp(scores - scores.max(axis=-1, keepdims=True))
    expected = weights / weights.sum(axis=-1, keepdims=True) @ exact(v)
    compare("attention", got, expected, q)


def call_norm(c):
    x = c.array(c.shape(1))
    if 0 in x.shape:
        return
    y = exact(x)
    expected = y / numpy.sqrt((y * y).mean(axis=-1, keepdims=True) + 1e-5)
    compare("rms_norm", tenon.rms_norm(x), expected, x)


class Liar:
    """An object whose DLPack export, or array, is not what it says."""

    def __init__(self, dice):
        self.dice = dice
        self.shape, self.dtype = (2, 3), "float32"

    def __dlpack_device__(self):
        return self.dice.choice([(1, 0), (2, 0), (99, -1), None, "cpu", (1,), (2**40, 2**40)])

    def __dlpack__(self, **options):
        return self.dice.choice([None, 7, object(), numpy.zeros((2, 3), "float32"), "dltensor"])

    @property
    def __array_interface__(self):
        return self.dice.choice([None, {}, {"version": 3}, {"shape": (2, -3), "typestr": "<f4", "version": 3,
                                                            "data": (0, False)}])

    def data_ptr(self):
        return 16


def hostile(c):
    """Anything that is no tensor."""
    some = [None, 3, 2.5, "text", b"bytes", [], [[1.0, 2.0], [3.0]], {}, object(), type, Liar(c.dice),
            numpy.array("text"), numpy.array([object()]), numpy.zeros((2, 3), "datetime64[s]"),
            numpy.zeros((1,) * 20), numpy.broadcast_to(numpy.zeros(1, "float32"), (3, 4)),
            numpy.frombuffer(b"\0" * 33, "float32", offset=1, count=8),
            numpy.ma.masked_array([1.0, 2.0], [True, False]), numpy.zeros((2, 2), ">f4")]
    if torch is not None:
        some += [torch.zeros(2, 3, device="meta"), torch.eye(3).to_sparse(), torch.zeros(2, requires_grad=True),
                 torch.zeros(2, 2).conj(), torch.zeros(2, 2, dtype=torch.complex64).conj(),
                 torch._neg_view(torch.ones(2, 2)), torch.zeros(0)]
        some += wrappers()
    return c.dice.choice(some)


def wrappers():
    """PyTorch's tensors that stand for others and have no memory of their own."""
    made = []
    try:
        from torch._subclasses.fake_tensor import FakeTensorMode
        with FakeTensorMode():
            made.append(torch.ones(2, 3))
        from torch.distributed._functional_collectives import AsyncCollectiveTensor
        made += [AsyncCollectiveTensor(torch.randn(2, 3, 4)), AsyncCollectiveTensor(torch.randn(2, 3, 4))[1]]
    except (ImportError, RuntimeError):
        pass
    return made


def call_hostile(c):
    """Whatever is given, the call returns or raises an ordinary exception."""
    name = c.dice.choice(["matmul", "softmax", "unary", "binary", "reduce", "cast", "permute", "fill", "rms_norm",
                          "layer_norm", "attention", "rotary", "copy", "explain"])
    good = c.same_kind(numpy.zeros(1, "float32"), (3, 3))
    arguments = [hostile(c) if c.dice.randrange(2) else good for _ in range(c.dice.randrange(1, 5))]
    if name in ("unary", "binary", "reduce"):
        arguments.insert(0, c.dice.choice(["add", "exp", "sum", "max", "none", 3, None]))
    options = {}
    if c.dice.randrange(3) == 0:
        key = c.dice.choice(["out", "axis", "dtype", "bias", "mask", "scale", "alpha", "window", "layout", "size"])
        options[key] = hostile(c)
    try:
        function = tenon.explain if name == "explain" else getattr(tenon, name)
        function(*arguments, **options)
    except (tenon.Error, TypeError, ValueError, AttributeError, BufferError, RuntimeError, OverflowError,
            NotImplementedError):
        pass


CALLS = [call_matmul, call_unary, call_binary, call_reduce, call_softmax, call_attention, call_norm, call_hostile,
         call_hostile]


def main():
    device = sys.argv[3] if len(sys.argv) > 3 else "cpu:0"
    if device != "cpu:0" and torch is None:
        print("skipped: PyTorch is not here")
        return
    caller = Caller(int(sys.argv[2]), device)
    for turn in range(ROUNDS):
        call = caller.dice.choice(CALLS)
        if "-v" in sys.argv:
            print(turn, call.__name__, flush=True)  # the last line tells which call crashed
        try:
            call(caller)
        except Exception as found:
            sys.exit(f"FOUND by python {sys.argv[2]}, round {turn}, {call.__name__}: {type(found).__name__}: {found}")


if __name__ == "__main__":
    main()
