"""Elementwise functions and reductions by their kind: `unary`, `binary` and `reduce`.

The tables below have one row for each kind, in the order of the numbers in the C headers. `_named.py` makes a function
of each row, so that `tenon.gelu(x)` is `tenon.unary("gelu", x)`.
"""

from __future__ import annotations

import struct
from sys import byteorder
from typing import NamedTuple

from . import _abi, _dtypes, _given, errors
from ._arrays import kind_of, view
from ._calls import Call, broadcast, one_output, operator, word_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Row(NamedTuple):
    """What help() says about a kind: its result in words, and the result for the arguments of an example."""

    result: str
    example: tuple[Any, ...]
    gives: Any


UNARY = {
    "neg": Row("-x", ([1.0, -2.0],), [-1.0, 2.0]),
    "abs": Row("The absolute value of x", ([1.0, -2.0],), [1.0, 2.0]),
    "sqrt": Row("The square root of x", ([4.0, 9.0],), [2.0, 3.0]),
    "rsqrt": Row("1 / sqrt(x)", ([4.0, 16.0],), [0.5, 0.25]),
    "exp": Row("e to the power of x", ([0.0, 1.0],), [1.0, 2.718]),
    "log": Row("The natural logarithm of x", ([1.0, 2.0],), [0.0, 0.693]),
    "tanh": Row("The hyperbolic tangent of x", ([0.0, 1.0],), [0.0, 0.762]),
    "sigmoid": Row("1 / (1 + exp(-x))", ([0.0, 1.0],), [0.5, 0.731]),
    "relu": Row("The larger of x and 0", ([-1.0, 2.0],), [0.0, 2.0]),
    "gelu": Row("x (1 + erf(x / sqrt(2))) / 2", ([-1.0, 1.0],), [-0.159, 0.841]),
    "gelu-tanh": Row("The approximation of gelu by tanh: x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2",
                     ([-2.0, 2.0],), [-0.045, 1.955]),
    "silu": Row("x sigmoid(x)", ([-1.0, 1.0],), [-0.269, 0.731]),
}
BINARY = {
    "add": Row("x + other", ([1.0, 2.0], [10.0, 20.0]), [11.0, 22.0]),
    "sub": Row("x - other", ([1.0, 2.0], [10.0, 20.0]), [-9.0, -18.0]),
    "mul": Row("x times other", ([1.0, 2.0], [10.0, 20.0]), [10.0, 40.0]),
    "div": Row("x / other. Of integers, the quotient truncated towards 0, and 0 if other is 0",
               ([1.0, 2.0], [4.0, 4.0]), [0.25, 0.5]),
    "max": Row("The larger of x and other, element by element; NaN if one of them is NaN",
               ([1.0, 5.0], [3.0, 3.0]), [3.0, 5.0]),
    "min": Row("The smaller of x and other, element by element; NaN if one of them is NaN",
               ([1.0, 5.0], [3.0, 3.0]), [1.0, 3.0]),
}
REDUCTIONS = {
    "sum": Row("The sum of the elements", ([[1.0, 2.0], [3.0, 5.0]], 0), [4.0, 7.0]),
    "mean": Row("The mean of the elements", ([[1.0, 2.0], [3.0, 5.0]], 0), [2.0, 3.5]),
    "max": Row("The largest element; NaN if one is NaN", ([[1.0, 2.0], [3.0, 5.0]], 0), [3.0, 5.0]),
    "min": Row("The smallest element; NaN if one is NaN", ([[1.0, 2.0], [3.0, 5.0]], 0), [1.0, 2.0]),
    "prod": Row("The product of the elements", ([[1.0, 2.0], [3.0, 5.0]], 0), [3.0, 10.0]),
}

# By which struct writes a number of a dtype; that of bf16 is rounded once more.
_FORMATS = {"i8": "b", "i16": "h", "i32": "i", "i64": "q", "u8": "B", "u16": "H", "u32": "I", "u64": "Q", "f16": "e",
            "bf16": "f", "f32": "f", "f64": "d"}

_UNARY, _BINARY, _REDUCTIONS = [*UNARY], [*BINARY], [*REDUCTIONS]  # kinds by their number


def unary_call(kind: str, x: Any, out: Any, dtype: Any) -> Call:
    """The call of `unary`, with its options."""
    word = None if dtype is None else _dtypes.word_of(dtype)
    function = word_number("kind", _UNARY, kind)
    return one_output("tn_unary", _abi.UnaryArgs, x, view(x), out, None, word, {}, kind=function)


def _number_bytes(value: complex, word: str) -> bytes:
    """The number as an element of that dtype. Floats round; what an integer dtype does not hold is refused."""
    try:
        if word != "bf16":
            return struct.pack("=" + _FORMATS[word], value)
        bits = int.from_bytes(struct.pack("=f", value), byteorder)
        rounded = bits + 0x7FFF + (bits >> 16 & 1) if value == value else 0x7FC00000  # to nearest even
        return (rounded >> 16).to_bytes(2, byteorder)
    except (struct.error, TypeError, OverflowError):
        raise errors.invalid(f"other: expected a number that {word}, the dtype of x, holds; got {value!r}") from None


def _other_operand(x: Any, one: _abi.Tensor, other: Any) -> tuple[_abi.Tensor, tuple[tuple[_abi.Tensor, bytes], ...]]:
    """The second operand, and what its memory is set to if it is a number: it is then a scalar of x's dtype, beside x."""
    word = _dtypes.WORD[one.dtype]
    if not isinstance(other, (int, float, complex)) or hasattr(other, "dtype") or word not in _FORMATS:
        return view(other), ()
    pattern = _number_bytes(other, word)
    two = view(kind_of(x).empty(x, one, (), word))
    return two, ((two, pattern),)


def binary_call(kind: str, x: Any, other: Any, out: Any, dtype: Any) -> Call:
    """The call of `binary`, with its options."""
    word = None if dtype is None else _dtypes.word_of(dtype)
    function, one = word_number("kind", _BINARY, kind), view(x)
    two, preset = _other_operand(x, one, other)
    made = one_output("tn_binary", _abi.BinaryArgs, x, one, out, broadcast(one.dims, two.dims), word, {"other": two},
                      kind=function)
    made.preset = preset
    return made


def _reduced_axes(axes: Any, rank: int) -> set[int]:
    """The dimensions that `axes` names."""
    given = range(rank) if axes is None else axes if hasattr(axes, "__iter__") else (axes,)
    numbers = [_given.dimension("axes", axis, rank) for axis in given]
    if len(set(numbers)) < len(numbers) or (axes is not None and not numbers and rank):
        raise errors.invalid(f"axes: expected some of the {rank} dimensions, each once, got {axes}")
    return set(numbers)


def reduce_call(kind: str, x: Any, axes: Any, keepdims: bool, out: Any, dtype: Any) -> Call:
    """The call of `reduce`, with its options."""
    number, given = word_number("kind", _REDUCTIONS, kind), view(x)
    keep, places = _given.flag("keepdims", keepdims), _reduced_axes(axes, given.ndim)
    shape = tuple(1 if i in places else n for i, n in enumerate(given.dims) if keep or i not in places)
    word = _dtypes.WORD[given.dtype] if dtype is None else _dtypes.word_of(dtype)
    if dtype is None and word == "bool" and kind not in ("max", "min"):
        word = "i64"
    return one_output("tn_reduce", _abi.ReduceArgs, x, given, out, shape, word, {},
                      axes=sum(1 << place for place in places), kind=number, keep=keep)


@operator
def unary(kind: str, x: Any, *, out: Any = None, dtype: Any = None) -> Call:
    """kind(x): neg abs sqrt rsqrt exp log tanh sigmoid relu gelu gelu-tanh silu. Each is also a function of its own:
    `tenon.gelu_tanh(x)`. Integers support neg, abs and relu, in their own dtype; neg and abs of the least integer wrap
    around to itself.

    >>> import numpy, tenon
    >>> tenon.unary("rsqrt", numpy.array([1, 4, 16], "float32"))
    array([1.  , 0.5 , 0.25], dtype=float32)
    """
    return unary_call(kind, x, out, dtype)


@operator
def binary(kind: str, x: Any, other: Any, *, out: Any = None, dtype: Any = None) -> Call:
    """x kind other: add sub mul div max min. Each is also a function of its own: `tenon.add(x, other)`; max and min are
    `tenon.maximum` and `tenon.minimum`. The operands broadcast; `other` may be a number, which is taken as x's dtype.
    Integers keep their dtype and wrap around; quotients are truncated towards zero, and a quotient by 0 is 0.

    >>> import numpy, tenon
    >>> tenon.binary("div", numpy.array([7, -7, 7], "int32"), numpy.array([2, 2, 0], "int32"))
    array([ 3, -3,  0], dtype=int32)
    >>> tenon.binary("add", numpy.array([[1], [2]], "float32"), numpy.array([10, 20], "float32"))
    array([[11., 21.],
           [12., 22.]], dtype=float32)
    """
    return binary_call(kind, x, other, out, dtype)


@operator
def reduce(kind: str, x: Any, axes: Any = None, *, keepdims: bool = False, out: Any = None,
           dtype: Any = None) -> Call:
    """The sum, mean, max, min or prod over the dimensions `axes`, a number or several; None: all of them. Each kind is
    also a function of its own: `tenon.mean(x, axes)`.

    Integers keep their dtype, in which sums and products wrap around, unless `dtype` is "i64". The sum of bool is i64;
    integers and bool have no mean. Floats are added in f32 or wider and rounded once, to their own dtype or, for 16-bit
    floats, to `dtype` "f32"; the result is NaN if an element is. Over no elements the sum is 0, the product 1 and the
    mean NaN; max and min raise.

    >>> import numpy, tenon
    >>> tenon.reduce("mean", numpy.array([[1, 2], [3, 5]], "float32"), axes=0)
    array([2. , 3.5], dtype=float32)
    >>> small = numpy.array([200, 100], "uint8")
    >>> tenon.reduce("sum", small), tenon.reduce("sum", small, dtype="i64")
    (array(44, dtype=uint8), array(300))
    """
    return reduce_call(kind, x, axes, keepdims, out, dtype)
