"""DLPack: tensors taken in from any library that speaks it, and given to any."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from ctypes import addressof, byref, c_char_p, c_int, c_int64, c_void_p, py_object

from . import _abi, _dtypes, errors
from ._buffers import dense_strides
from ._given import INT32, INT64, number
from ._handles import call, take
from ._library import lib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LEGACY, VERSIONED = b"dltensor", b"dltensor_versioned"
USED = {LEGACY: b"used_dltensor", VERSIONED: b"used_dltensor_versioned"}


def _python(name: str, result: Any, *arguments: Any) -> Any:
    function = ctypes.PYFUNCTYPE(result, *arguments)((name, ctypes.pythonapi))
    return function


_new = _python("PyCapsule_New", py_object, c_void_p, c_char_p, c_void_p)
_is = _python("PyCapsule_IsValid", c_int, py_object, c_char_p)
_get = _python("PyCapsule_GetPointer", c_void_p, py_object, c_char_p)
_rename = _python("PyCapsule_SetName", c_int, py_object, c_char_p)

_DELETER = ctypes.CFUNCTYPE(None, c_void_p)
FORMS: dict[bytes, Any] = {VERSIONED: _abi.DlpackVersioned, LEGACY: _abi.DlpackManaged}

# Capsules that were given out, and under which name. They have no destructor: one in Python would run while
# a consumer's exception is being raised, which Python does not allow, or after the interpreter's end. Those
# that nobody took are ended when the next one is given out.
_given: list[tuple[Any, bytes]] = []
_given_lock = threading.Lock()
_HELD_HERE = 3  # references to a capsule that only `_end_unused` has: the list's, its own, getrefcount's


def _renew_lock() -> None:
    """In a forked process, where whoever held it is not."""
    global _given_lock
    _given_lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)


def _end_unused() -> None:
    """Lets go of capsules that were taken, and of what is in those that nobody can take any more."""
    with _given_lock:
        for entry in [*_given]:
            capsule, name = entry
            del entry
            taken = not _is(capsule, name)
            if taken or sys.getrefcount(capsule) <= _HELD_HERE:
                _given.remove((capsule, name))
                if not taken:
                    address = _get(capsule, name)
                    _DELETER(FORMS[name].from_address(address).deleter)(address)


def give_out(managed: int, name: bytes) -> Any:
    """A capsule for a managed tensor, whose deleter is called if nobody takes it."""
    _end_unused()
    capsule = _new(managed, name, None)
    with _given_lock:
        _given.append((capsule, name))
    return capsule


class Owned:
    """A tn_tensor that shares the ownership of its memory until this is deleted. `keep` is what else the tensor points
    to."""

    def __init__(self, raw: _abi.Tensor, keep: Any = None) -> None:
        self.raw, self.keep = raw, keep
        self.shape = tuple((c_int64 * raw.ndim).from_address(raw.shape)) if raw.ndim else ()
        self._release = lib.tn_tensor_release

    def strides(self) -> tuple[int, ...]:
        """In elements."""
        raw = self.raw
        return tuple((c_int64 * raw.ndim).from_address(raw.strides)) if raw.strides else dense_strides(self.shape)

    def __del__(self) -> None:
        release = getattr(self, "_release", None)
        if release is not None:
            release(byref(self.raw))


def create(device: int | None, shape: tuple[int, ...], word: str) -> Owned:
    """Memory of its own, dense, not initialised."""
    raw = _abi.Tensor()
    sizes = (c_int64 * max(len(shape), 1))(*(number("a size", each, *INT64) for each in shape))
    call(lib.tn_tensor_create, device, _dtypes.NUMBER[word], sizes, len(shape), byref(raw))
    return Owned(raw)


def view_of(owned: Owned, first: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> Owned:
    """Elements of the same memory, which stays alive: with another shape, strides and, counted from the first element,
    first element."""
    raw, count = _abi.Tensor(), len(shape)
    call(lib.tn_tensor_view, byref(owned.raw), byref(raw))
    sizes = (c_int64 * (2 * count or 1))(*shape, *strides)
    raw.ndim, raw.shape = count, addressof(sizes)
    raw.strides = addressof(sizes) + 8 * count
    raw.byte_offset += first * _dtypes.BYTES[_dtypes.WORD[raw.dtype]]
    return Owned(raw, sizes)


def _place_of(array: Any) -> tuple[int, int]:
    """DLPack's numbers for the device that the array is on."""
    told = array.__dlpack_device__()
    if not isinstance(told, tuple) or len(told) != 2:
        raise TypeError(f"{type(array).__name__}.__dlpack_device__: expected two numbers, got {told!r}")
    return number("DLPack's type of device", told[0], *INT32), number("DLPack's device", told[1], *INT32)


def _capsule_of(array: Any, stream: int | None) -> Any:
    """The array's capsule, versioned where its library knows that form, its data ready on that stream
    or, with None, on the one that is current here."""
    kind, index = _place_of(array)
    options: dict[str, Any] = {}
    if kind not in (1, 3):
        raw = _raw_stream(kind, index) if stream is None else stream
        options["stream"] = raw or (1 if kind == 2 else 0)  # 1 is CUDA's default one
    try:
        return array.__dlpack__(max_version=(1, 1), **options)
    except TypeError:
        return array.__dlpack__(**options)


_NO_ELEMENTS = (c_int64 * 1)(0)


def _raw_stream(kind: int, index: int) -> int:
    """The vendor's handle of the current stream of the device that DLPack numbers so."""
    probe = _abi.Tensor(device_type=kind, device_id=index, ndim=1, dtype=_dtypes.NUMBER["u8"],
                        shape=addressof(_NO_ELEMENTS))
    return int(lib.tn_stream_raw_current(take(lib.tn_tensor_device, byref(probe))))


def take_in(array: Any, stream: int | None = None) -> Owned:
    """Any library's array, its data ready on that stream, a vendor's handle; None for the current one.
    Its capsule is used up, whatever happens."""
    capsule = _capsule_of(array, stream)
    for name, function in ((VERSIONED, "tn_dlpack_import"), (LEGACY, "tn_dlpack_import_legacy")):
        if _is(capsule, name):
            managed = _get(capsule, name)
            _rename(capsule, USED[name])
            raw = _abi.Tensor()
            call(getattr(lib, function), managed, byref(raw))
            return Owned(raw)
    raise errors.invalid(f"{type(array).__name__}.__dlpack__ gave no DLPack capsule, or a used one")
