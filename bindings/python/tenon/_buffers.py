"""Python's buffer protocol, also of memory that is read-only, which ctypes itself does not lend."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, byref, c_char_p, c_int, c_ssize_t, c_void_p

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FULL_READ_ONLY = 0x011C  # PyBUF_FULL_RO: strides, format and suboffsets, writable or not


class PyBuffer(ctypes.Structure):
    """Py_buffer, as the stable ABI has it."""

    _fields_ = [
        ("buf", c_void_p), ("obj", c_void_p), ("len", c_ssize_t), ("itemsize", c_ssize_t),
        ("readonly", c_int), ("ndim", c_int), ("format", c_char_p), ("shape", POINTER(c_ssize_t)),
        ("strides", POINTER(c_ssize_t)), ("suboffsets", POINTER(c_ssize_t)), ("internal", c_void_p),
    ]


_get = ctypes.pythonapi.PyObject_GetBuffer
_get.restype, _get.argtypes = c_int, [ctypes.py_object, c_void_p, c_int]
_release = ctypes.pythonapi.PyBuffer_Release
_release.restype, _release.argtypes = None, [c_void_p]
_check = ctypes.pythonapi.PyObject_CheckBuffer
_check.restype, _check.argtypes = c_int, [ctypes.py_object]


def has_buffer(array: Any) -> bool:
    """Whether it lends its memory."""
    return bool(_check(array))


def dense_strides(shape: tuple[int, ...], unit: int = 1) -> tuple[int, ...]:
    """The last dimension fastest, in elements, or in bytes with their size as the unit."""
    strides, step = [], unit
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


class Buffer:
    """Memory that an object lends, until this is forgotten. Raises what the object raises."""

    def __init__(self, array: Any) -> None:
        raw = PyBuffer()
        _get(array, byref(raw), FULL_READ_ONLY)
        self._raw = raw
        if raw.suboffsets:
            raise BufferError("a buffer that goes through pointers cannot be a tensor")
        self.address = raw.buf or 0
        self.itemsize, self.readonly = raw.itemsize, bool(raw.readonly)
        self.format = (raw.format or b"B").decode()
        self.shape = tuple(raw.shape[: raw.ndim]) if raw.ndim else ()
        self.strides = tuple(raw.strides[: raw.ndim]) if raw.strides else (
            dense_strides(self.shape, self.itemsize))  # as ctypes' arrays give none

    def __del__(self) -> None:
        raw = getattr(self, "_raw", None)
        if raw is not None and _release is not None:
            _release(byref(raw))
