"""Element types: Tenon's words and numbers, and what other libraries call them."""

from __future__ import annotations

import sys

from . import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# word: (DLPack's code, bits, the name in NumPy and PyTorch)
TABLE = {
    "i8": (0, 8, "int8"),
    "i16": (0, 16, "int16"),
    "i32": (0, 32, "int32"),
    "i64": (0, 64, "int64"),
    "u8": (1, 8, "uint8"),
    "u16": (1, 16, "uint16"),
    "u32": (1, 32, "uint32"),
    "u64": (1, 64, "uint64"),
    "f16": (2, 16, "float16"),
    "f32": (2, 32, "float32"),
    "f64": (2, 64, "float64"),
    "bf16": (4, 16, "bfloat16"),
    "c64": (5, 64, "complex64"),
    "c128": (5, 128, "complex128"),
    "bool": (6, 8, "bool"),
    "f8_e4m3fn": (10, 8, "float8_e4m3fn"),
    "f8_e4m3fnuz": (11, 8, "float8_e4m3fnuz"),
    "f8_e5m2": (12, 8, "float8_e5m2"),
    "f8_e5m2fnuz": (13, 8, "float8_e5m2fnuz"),
}

NUMBER = {word: code | bits << 8 | 1 << 16 for word, (code, bits, _) in TABLE.items()}
WORD = {number: word for word, number in NUMBER.items()}
BYTES = {word: bits // 8 for word, (_, bits, _) in TABLE.items()}
NAME = {word: name for word, (_, _, name) in TABLE.items()}
BY_NAME = {name: word for word, name in NAME.items()}

# The formats of Python's buffers, in native order.
FORMATS = {
    "b": "i8", "B": "u8", "c": "u8", "?": "bool", "e": "f16", "f": "f32", "d": "f64",
    "Zf": "c64", "Zd": "c128",
}
INTEGERS = {"h": "i", "H": "u", "i": "i", "I": "u", "l": "i", "L": "u", "q": "i", "Q": "u"}


def word_of(dtype: Any) -> str:
    """Tenon's word for a dtype in anyone's terms: "bf16", numpy.float32, torch.bfloat16.

    >>> word_of("float32"), word_of("bf16")
    ('f32', 'bf16')
    """
    if isinstance(dtype, str):
        library, _, name = dtype.rpartition(".")
        if library not in ("", "torch", "numpy", "np", "jnp", "jax.numpy", "cupy"):
            raise errors.invalid(f'no dtype "{dtype}"; there are: {", ".join(NUMBER)}')
        if name in ("float", "int"):
            raise errors.invalid(f'dtype "{dtype}" is of 32 bits in some libraries and of 64 in others: say which, as '
                                 f'"{name}32"')
    elif not getattr(dtype, "isnative", True):
        raise errors.invalid(f"dtype {dtype!r} is in another byte order than this machine's")
    elif isinstance(dtype, type):
        name = {float: "float64", int: "int64", bool: "bool", complex: "complex128"}.get(
            dtype, dtype.__name__)
    else:
        name = getattr(dtype, "name", None) or str(dtype)
    name = name.rpartition(".")[2]
    name = {"bool_": "bool", "half": "float16", "double": "float64", "long": "int64"}.get(name, name)
    word = name if name in NUMBER else BY_NAME.get(name)
    if word is None:
        raise errors.invalid(f'no dtype "{dtype}"; there are: {", ".join(NUMBER)}')
    return word


def format_word(format_: str, itemsize: int) -> str:
    """The word for an element of Python's buffer protocol; it must be in this machine's order."""
    order, letter = (format_[0], format_[1:]) if format_[:1] in "@=<>!" and format_ else ("@", format_)
    native = {"little": "@=<", "big": "@=>!"}[sys.byteorder]
    if order not in native and itemsize > 1:
        raise errors.invalid(
            f'elements of "{format_}" are in another byte order than this machine\'s; convert first')
    if letter in INTEGERS:
        return f"{INTEGERS[letter]}{8 * itemsize}"
    if letter not in FORMATS:
        raise errors.invalid(f'no dtype for elements of "{format_}"; there are: {", ".join(NUMBER)}')
    return FORMATS[letter]


_ORDER = {"little": "<", "big": ">"}

# Array-interface names of the dtypes that it has, in this machine's order.
TYPESTRS = {
    word: ("|" if bits == 8 else _ORDER[sys.byteorder])
    + {0: "i", 1: "u", 2: "f", 5: "c", 6: "b"}[code] + str(bits // 8)
    for word, (code, bits, _) in TABLE.items() if code in (0, 1, 2, 5, 6)
}
_BY_TYPESTR = {typestr: word for word, typestr in TYPESTRS.items()}


def typestr_word(typestr: str) -> str:
    """The word for an element of the array interface; it must be in this machine's order."""
    word = _BY_TYPESTR.get(typestr) or _BY_TYPESTR.get("|" + typestr[1:])
    if word is None:
        raise errors.invalid(
            f'no dtype for elements of "{typestr}" here; there are: {", ".join(_BY_TYPESTR)}')
    return word


def ml_dtype(word: str) -> Any:
    """NumPy's dtype for a word that NumPy itself has none for, from the package ml_dtypes."""
    try:
        import ml_dtypes
        import numpy
    except ImportError:
        raise errors.invalid(f"NumPy itself has no {word}; install the package ml_dtypes (pip install ml_dtypes), or ask "
                             "for another dtype") from None
    return numpy.dtype(getattr(ml_dtypes, NAME[word]))
