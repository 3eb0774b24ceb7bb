"""Calls that give something or fail, and objects that hold what was given."""

from __future__ import annotations

from ctypes import byref, c_void_p

from . import _abi, _log, errors
from ._library import lib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, TypeVar

    T = TypeVar("T", bound="Made")


def call(function: Callable[..., int], *arguments: Any) -> None:
    """Calls a function whose last parameter is a tn_error, and raises what it reports."""
    err = _abi.Error()
    failed = function(*arguments, byref(err))
    if lib.tn_log_kept():
        _log.pass_on()
    if failed:
        raise errors.make(err)


def take(function: Callable[..., int], *arguments: Any) -> int:
    """The same for one that gives an address before its tn_error."""
    out = c_void_p()
    call(function, *arguments, byref(out))
    return out.value or 0


class Made:
    """A class whose objects only the package makes, by `_make`, which sets them up by `_init`. Its constructor, which a
    program would call with something else than the address or the struct that is needed, names what returns them."""

    __slots__ = ()
    _returned_by: str

    def __init__(self, *_: Any, **__: Any) -> None:
        raise TypeError(f"{type(self).__name__} has no constructor; use {self._returned_by}")

    def _init(self, *given: Any, **options: Any) -> None:
        """Sets the attributes."""
        raise NotImplementedError

    @classmethod
    def _make(cls: type[T], *given: Any) -> T:
        made = cls.__new__(cls)
        made._init(*given)
        return made


class Handle:
    """Holds an address until it is forgotten, and then gives it back by the function of that name.

    At the interpreter's end nothing is given back: the process ends anyway.
    """

    __slots__ = ("address", "_release", "__weakref__")

    def __init__(self, address: int, release: str) -> None:
        self.address = address
        self._release = getattr(lib, release)

    def __del__(self) -> None:
        release = getattr(self, "_release", None)
        if release is not None:
            release(self.address)


class Number(int):
    """The same as a number, which is the address itself: whoever has it, if only as an argument of a call that
    is under way, has the object alive. `generation` is the maker's to use."""

    generation: int
    _release: Any

    def __new__(cls, address: int, release: str) -> Number:
        made = super().__new__(cls, address)
        made._release = getattr(lib, release)
        return made

    def __del__(self) -> None:
        release = getattr(self, "_release", None)
        if release is not None:
            release(int(self))
