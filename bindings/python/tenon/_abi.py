"""The library's types and functions, as its headers declare them.

Structures are made when they are first used: `_abi.MatmulArgs` is `tn_matmul_args`. Fields that are pointers are plain
addresses. Wheels carry what the headers declare as _abi_tables.py; in the source tree _headers.py reads include/tenon.
"""

from __future__ import annotations

import os
from ctypes import (
    Structure,
    c_char,
    c_char_p,
    c_double,
    c_float,
    c_int32,
    c_int64,
    c_size_t,
    c_ubyte,
    c_uint32,
    c_uint64,
    c_void_p,
    sizeof,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

TYPES: dict[str, Any] = {
    "v": None,
    "c": c_char,
    "B": c_ubyte,
    "i": c_int32,
    "I": c_uint32,
    "l": c_int64,
    "L": c_uint64,
    "z": c_size_t,
    "f": c_float,
    "d": c_double,
    "p": c_void_p,  # every pointer but one to text
    "s": c_char_p,
}


def _read_tables() -> tuple[dict[str, Any], dict[str, str]]:
    try:
        from . import _abi_tables  # type: ignore[attr-defined]
    except ImportError:
        from . import _headers

        package = os.path.dirname(os.path.abspath(__file__))
        folder = os.path.normpath(os.path.join(package, "..", "..", "..", "include", "tenon"))
        if not os.path.isdir(folder):
            raise ImportError(f"expected _abi_tables.py in {package} or the C headers in {folder}, got neither; "
                              "install a wheel, as `make wheel` writes one") from None
        return _headers.read(folder).tables()
    return _abi_tables.STRUCTS, _abi_tables.PROTOTYPES


_tables: list[Any] = []  # once they are read
_classes: dict[str, Any] = {}  # by the name of the struct


def structs() -> dict[str, list[tuple[str, str]]]:
    """Of each struct the fields, with their types. A type is a letter of TYPES or the name of a struct, and ends with
    an array's sizes."""
    if not _tables:
        _tables[:] = _read_tables()
    return _tables[0]  # type: ignore[no-any-return]


def prototypes() -> dict[str, str]:
    """Of each function the types of the result and of the parameters."""
    structs()
    return _tables[1]  # type: ignore[no-any-return]


class Sized(Structure):
    """A structure whose first field, struct_size, is set when it is made."""

    def __init__(self, *values: Any, **fields: Any) -> None:
        if not values:
            fields.setdefault("struct_size", sizeof(type(self)))
        super().__init__(*values, **fields)


def type_of(text: str) -> Any:
    """The ctypes type of a type in the tables."""
    name, *sizes = text.replace("]", "").split("[")
    found = TYPES[name] if name in TYPES else class_of(name)
    for size in reversed(sizes):
        found = found * int(size)
    return found


# What Python keeps with a struct.
_SLOTS = {"tn_tensor": ("keep", "dims", "source")}


def class_of(struct: str) -> Any:
    """The class of a struct, the same for all threads."""
    if struct not in _classes:
        fields = [(name, type_of(text)) for name, text in structs()[struct]]
        name = "".join(word.capitalize() for word in struct[3:].split("_"))
        body: dict[str, Any] = {"_fields_": fields, "__module__": __name__}
        if struct in _SLOTS:
            body["__slots__"] = _SLOTS[struct]
        _classes.setdefault(struct, type(name, (Sized if fields[0][0] == "struct_size" else Structure,), body))
    return _classes[struct]


def __getattr__(name: str) -> Any:
    struct = "tn" + "".join("_" + letter.lower() if letter.isupper() else letter for letter in name)
    if not name[0].isupper() or struct not in structs():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return globals().setdefault(name, class_of(struct))


def device_numbers() -> list[str]:
    """The fields of DeviceProperties that are numbers, in the order of their bits in `known`."""
    return [name for name, text in structs()["tn_device_properties"] if text == "l"]


CAPABILITY_BIT = 63  # in DeviceProperties.known
