"""The reference kernels against NumPy: random arrays, windows and orders of them."""

import ctypes
import os
import random
import sys
from ctypes import c_double, c_int32, c_int64, c_size_t, c_uint32, c_uint64, c_void_p

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness
import script

numpy = harness.import_numpy()

MATMUL, PERMUTE, CAST, FILL, UNARY, BINARY, REDUCE, SOFTMAX, NORM, ROTARY = range(1, 11)
ATTENTION, ATTENTION_BACKWARD, ATTENTION_MERGE = range(11, 14)
WORDS = {"int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64", "uint8": "u8",
         "uint16": "u16", "uint32": "u32", "uint64": "u64", "float16": "f16", "float32": "f32",
         "float64": "f64", "complex64": "c64", "complex128": "c128", "bool": "bool"}
WHOLE = [name for name in WORDS if "int" in name]
FLOATS = ["float16", "float32", "float64"]
USES_LOG = 1 << 4
OPERANDS = 24


class Layout(ctypes.Structure):
    _fields_ = [("dtype", c_uint32), ("rank", c_int32), ("alignment", c_int64),
                ("shape", c_int64 * 8), ("stride", c_int64 * 8)]


class Matmul(ctypes.Structure):
    _fields_ = [("m", c_int64), ("n", c_int64), ("k", c_int64), ("matrices", c_int64),
                ("batch_rank", c_int32), ("activation", c_int32), ("acc", c_uint32),
                ("reserved", c_int32), ("alpha", c_double), ("beta", c_double)]


class Each(ctypes.Structure):
    _fields_ = [("kind", c_int32), ("axes", c_int32), ("elements", c_int64), ("rows", c_int64),
                ("size", c_int64), ("value", c_double), ("imaginary", c_double)]


class Attention(ctypes.Structure):
    _fields_ = [(name, c_int64) for name in ("batch", "heads", "groups", "queries", "keys", "size",
                                             "value_size", "page", "left", "right", "shift")] + [
                    ("corner", c_int32), ("reserved", c_int32), ("scale", c_double),
                    ("softcap", c_double), ("dropout", c_double), ("seed", c_uint64),
                    ("offset", c_uint64)]


class Words(ctypes.Union):
    _fields_ = [("matmul", Matmul), ("each", Each), ("attention", Attention),
                ("room", c_int64 * 32)]


class Op(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("kind", c_int32), ("count", c_int32),
                ("uses", c_uint64), ("operand", Layout * OPERANDS), ("words", Words)]


def layout(array):
    if array is None:
        return Layout()
    return Layout(harness.dtype_number(WORDS[array.dtype.name]), array.ndim, 1,
                  (c_int64 * 8)(*array.shape),
                  (c_int64 * 8)(*(stride // array.itemsize for stride in array.strides)))


class Case(script.Case):
    def setUp(self):
        super().setUp()
        if numpy is None:
            self.skipTest("NumPy is not here (Debian: python3-numpy)")
        if script.build.sanitizers:
            self.skipTest("a library with a sanitizer cannot be opened by a Python without")
        self.door = ctypes.CDLL(os.path.join(script.build.folder, "tests", "kernels", "ref_door.so"))
        self.numbers = numpy.random.default_rng(7)
        self.dice = random.Random(7)

    def run_op(self, op_kind, arrays, uses=0, **words):
        op = Op(ctypes.sizeof(Op), op_kind, len(arrays), uses,
                (Layout * OPERANDS)(*map(layout, arrays)))
        part = op.words.matmul if op_kind == MATMUL else op.words.attention \
            if op_kind in (ATTENTION, ATTENTION_BACKWARD) else op.words.each
        for name, value in words.items():
            setattr(part, name, value)
        data = (c_void_p * OPERANDS)(*(None if a is None or a.size == 0 else a.ctypes.data for a in arrays))
        why = ctypes.create_string_buffer(256)
        status = self.door.ref_run(ctypes.byref(op), data, why, c_size_t(256))
        self.assertEqual(status, 0, why.value.decode())

    def random(self, name, shape):
        dtype = numpy.dtype(name)
        if dtype.kind in "iu":
            limits = numpy.iinfo(dtype)
            return self.numbers.integers(limits.min, limits.max, shape, dtype, endpoint=True)
        if dtype.kind == "b":
            return self.numbers.integers(0, 2, shape).astype(bool)
        values = self.numbers.normal(size=shape)
        if dtype.kind == "c":
            values = values + 1j * self.numbers.normal(size=shape)
        return values.astype(dtype)

    def window(self, name, shape):
        """Random numbers of that shape in memory of any order, with steps of any sign."""
        steps = [self.dice.choice((1, 1, 2, -1, -3)) for _ in shape]
        whole = self.random(name, [n * abs(step) for n, step in zip(shape, steps)])
        order = self.dice.sample(range(len(shape)), len(shape))
        whole = whole.transpose(order).copy().transpose([order.index(i) for i in range(len(order))])
        return whole[tuple(slice(None, None, step) for step in steps)]

    def shape(self):
        return [self.dice.randint(1, 6) for _ in range(self.dice.randint(1, 5))]

    def each(self, op_kind, arrays, function=0, uses=0, last=0, **words):
        out = arrays[1]
        rows = int(numpy.prod(out.shape[:out.ndim - last]))
        words.setdefault("size", out.size // max(rows, 1))
        self.run_op(op_kind, arrays, uses, kind=function, elements=out.size, rows=rows, **words)
        return out

    def assert_close(self, got, want, of, noise=0):
        """Within two units of the last place of what `of` names, and as much of the greatest."""
        of = numpy.finfo(of)
        limit = 2 * of.eps * (abs(want) + abs(want).max(initial=0)) + of.tiny + noise
        worst = abs(got.astype(want.dtype) - want) - limit
        self.assertLessEqual(worst.max(initial=0), 0)


class Products(Case):
    def test_matmul(self):
        for turn in range(120):
            name = ["float32", "float64", "float16", "complex64", "complex128"][turn % 5]
            batch = self.shape()[:2] if turn % 2 else []
            m, n, k = (self.dice.choice((1, 2, 7, 31, 33, 65)) for _ in range(3))
            a, b = self.window(name, [*batch, m, k]), self.window(name, [*batch, k, n])
            out = self.window(name, [*batch, m, n])
            alpha, beta = self.dice.choice(((1, 0), (1, 1), (-0.5, 2)))
            wide = "clongdouble" if "complex" in name else "longdouble"
            want = alpha * (a.astype(wide) @ b.astype(wide)) + (beta * out.astype(wide) if beta else 0)
            self.run_op(MATMUL, [a, b, out, None], m=m, n=n, k=k, matrices=int(numpy.prod(batch)),
                        batch_rank=len(batch), acc=layout(a).dtype, alpha=alpha, beta=beta)
            self.assert_close(out, want, out.real.dtype)

    def test_int8(self):
        a, b = self.window("int8", (33, 70)), self.window("int8", (70, 9))
        out = numpy.full((33, 9), -1, "int32")
        self.run_op(MATMUL, [a, b, out, None], m=33, n=9, k=70, matrices=1,
                    acc=harness.dtype_number("i32"), alpha=1)
        numpy.testing.assert_array_equal(out, a.astype("int32") @ b.astype("int32"))


class Elements(Case):
    def test_permute(self):
        for name in WORDS:
            for _ in range(20):
                shape = self.shape()
                source, target = self.window(name, shape), self.window(name, shape)
                self.each(PERMUTE, [source, target])
                numpy.testing.assert_array_equal(target, source)

    def test_f16(self):
        """Every f16, and what lies around it."""
        every = numpy.arange(65536, dtype="uint16").view("float16")
        wide = self.each(CAST, [every, numpy.empty(65536, "float64")])
        numpy.testing.assert_array_equal(wide, every.astype("longdouble"))
        with numpy.errstate(all="ignore"):
            for factor in (1 + 2**-11, 1 + 2**-12, 1 - 2**-12, 1 + 2**-11 + 2**-40, 1.7):
                there = self.each(CAST, [wide * factor, numpy.empty(65536, "float16")])
                numpy.testing.assert_array_equal(there, (wide * factor).astype("float16"))

    def test_cast(self):
        """Where NumPy, which cuts and wraps, must agree: numbers that both sides have."""
        for source in WORDS:
            for target in WORDS:
                value = self.numbers.integers(0, 100, (7, 9)).astype(source)[::-1, ::2]
                out = self.window(target, value.shape)
                self.each(CAST, [value, out])
                numpy.testing.assert_array_equal(out, value.real.astype(target))

    def test_whole_to_floats(self):
        for source in ("int64", "uint64"):
            value = self.random(source, 20000)
            for target in ("float32", "float64"):
                out = self.each(CAST, [value, numpy.empty(20000, target)])
                numpy.testing.assert_array_equal(out, value.astype(target))

    def test_binary(self):
        functions = [numpy.add, numpy.subtract, numpy.multiply, numpy.divide, numpy.maximum,
                     numpy.minimum]
        for kind, function in enumerate(functions):
            for name in [*WHOLE, *FLOATS]:
                if name in WHOLE and kind == 3:
                    continue
                shape = self.shape()
                a, b, out = (self.window(name, shape) for _ in range(3))
                b = numpy.broadcast_to(b[:1], shape)
                self.each(BINARY, [a, out, b], kind)
                numpy.testing.assert_array_equal(out, function(a, b))

    def test_unary(self):
        functions = [numpy.negative, numpy.abs, numpy.sqrt, lambda x: 1 / numpy.sqrt(x), numpy.exp,
                     numpy.log, numpy.tanh, lambda x: 1 / (1 + numpy.exp(-x)),
                     lambda x: numpy.maximum(x, 0)]
        for kind, function in enumerate(functions):
            for name in FLOATS:
                x = numpy.abs(self.window(name, self.shape())) if kind in (2, 3, 5) \
                    else self.window(name, self.shape())
                out = self.each(UNARY, [x, numpy.empty(x.shape, name)], kind)
                self.assert_close(out, function(x.astype("longdouble")), name)


class Rows(Case):
    def test_reduce(self):
        functions = [numpy.sum, numpy.mean, numpy.max, numpy.min, numpy.prod]
        for kind, function in enumerate(functions):
            for name in [*WHOLE, *FLOATS]:
                x = self.window(name, self.shape())
                axes = self.dice.randint(0, x.ndim)
                kept = x.shape[:x.ndim - axes]
                target = "float64" if kind == 1 else name
                out = numpy.empty((*kept, *([1] * axes)), target)
                self.each(REDUCE, [x, out], kind, axes=axes, size=x.size // max(out.size, 1))
                dims = tuple(range(x.ndim - axes, x.ndim))
                if name in WHOLE and kind != 1:
                    want = function(x, dims, keepdims=True)
                    numpy.testing.assert_array_equal(out, want.astype(name))
                else:
                    want = function(x.astype("longdouble"), dims, keepdims=True)
                    self.assert_close(out, want, target if kind == 1 else name)

    def test_softmax(self):
        for turn in range(60):
            name = FLOATS[turn % 3]
            x = self.window(name, [*self.shape(), 1 + turn * 17])
            out = numpy.empty(x.shape, name)
            self.each(SOFTMAX, [x, out], uses=USES_LOG if turn % 2 else 0, last=1)
            wide = x.astype("longdouble")
            wide = wide - wide.max(-1, keepdims=True)
            total = numpy.exp(wide).sum(-1, keepdims=True)
            want = wide - numpy.log(total) if turn % 2 else numpy.exp(wide) / total
            self.assert_close(out, want, name)

    def test_norm(self):
        for turn in range(60):
            name = FLOATS[turn % 3]
            x = self.window(name, [*self.shape(), 2 + turn * 11])
            weight, bias = self.random(name, x.shape[-1]), self.random(name, x.shape[-1])
            out = numpy.empty(x.shape, name)
            self.each(NORM, [x, out, numpy.broadcast_to(weight, x.shape),
                             numpy.broadcast_to(bias, x.shape)], turn % 2, last=1, value=1e-3)
            wide = x.astype("longdouble")
            wide = wide if turn % 2 else wide - wide.mean(-1, keepdims=True)
            want = wide / numpy.sqrt((wide * wide).mean(-1, keepdims=True) + 1e-3)
            want = want * weight.astype("longdouble") + bias.astype("longdouble")
            self.assert_close(out, want, name)

    def test_rotary(self):
        for turn in range(40):
            name = FLOATS[turn % 3]
            half = 1 + turn % 7
            x = self.window(name, [*self.shape(), 2 * half + turn % 3])
            out = numpy.empty(x.shape, name)
            angle = self.numbers.normal(size=(*x.shape[:-1], half))
            cos, sin = numpy.cos(angle).astype(name), numpy.sin(angle).astype(name)
            self.each(ROTARY, [x, out, cos, sin], turn % 2, last=1, size=2 * half)
            wide = x.astype("longdouble")
            first = slice(0, 2 * half, 2) if turn % 2 else slice(0, half)
            second = slice(1, 2 * half, 2) if turn % 2 else slice(half, 2 * half)
            want = wide.copy()
            want[..., first] = wide[..., first] * cos - wide[..., second] * sin
            want[..., second] = wide[..., first] * sin + wide[..., second] * cos
            self.assert_close(out, want, name)


if __name__ == "__main__":
    script.main()
