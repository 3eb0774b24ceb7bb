"""A function for each kind of `unary`, `binary` and `reduce`: `tenon.gelu(x)`, `tenon.add(x, y)`, `tenon.mean(x, 0)`.

They are made from the tables of _elementwise.py. `_named.pyi` declares them for checkers of types.

>>> import numpy, tenon
>>> tenon.gelu_tanh(numpy.array([-2.0, 2.0])).round(3)
array([-0.045,  1.955])
"""

from __future__ import annotations

from . import _elementwise
from ._calls import Call, operator

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

__all__: list[str] = []

_BINARY_NAMES = {"max": "maximum", "min": "minimum"}  # as in NumPy and PyTorch, where max and min are reductions
_OPTIONS = {
    "unary": "`out` is an array to write to, `dtype` the dtype of the result.",
    "binary": "The operands broadcast; `other` may be a number. `out` is an array to write to, `dtype` the dtype of the result.",
    "reduce": "`axes` is a dimension or several; None: all of them. With `keepdims=True` they are kept, with size 1. `out` "
              "is an\n    array to write to, `dtype` the dtype of the result.",
}


def _unary_maker(kind: str) -> Callable[..., Call]:
    def maker(x: Any, *, out: Any = None, dtype: Any = None) -> Call:
        return _elementwise.unary_call(kind, x, out, dtype)

    return maker


def _binary_maker(kind: str) -> Callable[..., Call]:
    def maker(x: Any, other: Any, *, out: Any = None, dtype: Any = None) -> Call:
        return _elementwise.binary_call(kind, x, other, out, dtype)

    return maker


def _reduce_maker(kind: str) -> Callable[..., Call]:
    def maker(x: Any, axes: Any = None, *, keepdims: bool = False, out: Any = None, dtype: Any = None) -> Call:
        return _elementwise.reduce_call(kind, x, axes, keepdims, out, dtype)

    return maker


def _document(name: str, of: str, kind: str, row: _elementwise.Row) -> str:
    """The docstring of a function."""
    given = ", ".join(f"numpy.array({one})" if isinstance(one, list) else str(one) for one in row.example)
    return f"""{row.result}. The same as `tenon.{of}("{kind}", ...)`, which describes integers and NaN.

    {_OPTIONS[of]}

    >>> import numpy, tenon
    >>> tenon.{name}({given}).round(3).tolist()
    {row.gives}
    """


def _define(of: str, rows: dict[str, _elementwise.Row], make: Callable[[str], Callable[..., Call]],
            names: dict[str, str]) -> None:
    for kind, row in rows.items():
        name = names.get(kind, kind.replace("-", "_"))
        maker = make(kind)
        maker.__name__ = maker.__qualname__ = name
        maker.__doc__ = _document(name, of, kind, row)
        globals()[name] = operator(maker)
        __all__.append(name)


_define("unary", _elementwise.UNARY, _unary_maker, {})
_define("binary", _elementwise.BINARY, _binary_maker, _BINARY_NAMES)
_define("reduce", _elementwise.REDUCTIONS, _reduce_maker, {})
