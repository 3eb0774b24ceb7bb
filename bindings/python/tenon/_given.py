"""What callers give, checked before it goes to the library: C would cut a text at its first NUL, and ctypes a
number to the bits that there is room for."""

from __future__ import annotations

from operator import index

from . import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

INT32 = (-(1 << 31), (1 << 31) - 1)
INT64 = (-(1 << 63), (1 << 63) - 1)
UINT64 = (0, (1 << 64) - 1)


def text(what: str, value: Any) -> bytes:
    """A str as the library takes it. TypeError for what is none; `what` is the argument's name."""
    if not isinstance(value, str):
        raise TypeError(f"{what}: expected a str, got {type(value).__name__}")
    if "\0" in value:
        raise errors.invalid(f"{what}: expected a str without NUL, got {value!r}")
    return value.encode("utf-8", "surrogateescape")


def number(what: str, value: Any, least: int, most: int) -> int:
    """A whole number within bounds. TypeError for what is none."""
    try:
        whole = index(value)
    except TypeError:
        raise TypeError(f"{what}: expected a whole number, got {type(value).__name__}") from None
    if not least <= whole <= most:
        raise errors.invalid(f"{what}: expected {least} to {most}, got {whole}")
    return whole


def real(what: str, value: Any) -> float:
    """A number that is not complex. TypeError for what is none, texts of numbers among them."""
    found = scalar(what, value)
    if found.imag:
        raise TypeError(f"{what}: expected a real number, got {value!r}")
    return found.real


def flag(what: str, value: Any) -> bool:
    """True or False, also NumPy's. TypeError for all else: texts are true, "no" among them."""
    if not isinstance(value, bool) and type(value).__name__ not in ("bool_", "bool"):
        raise TypeError(f"{what}: expected True or False, got {value!r}")
    return bool(value)


def axis(what: str, value: Any) -> int:
    """The number of a dimension. TypeError for what is none, True and False among them."""
    if isinstance(value, bool):
        raise TypeError(f"{what}: expected an integer, got {value!r}")
    return number(what, value, *INT32)


def dimension(what: str, value: Any, rank: int) -> int:
    """The number of a dimension, from 0 on. A negative value counts from the last dimension."""
    given = axis(what, value)
    if not -rank <= given < rank:
        expected = f"{-rank} to {rank - 1}" if rank else "an array with dimensions"
        raise errors.invalid(f"{what}: expected {expected}, got {given if rank else 'a scalar'}")
    return given % rank


def permutation(what: str, value: Any, rank: int) -> list[int]:
    """The numbers of all dimensions, from 0 on, each once."""
    given = list(value)
    numbers = [axis(what, one) for one in given]
    places = [number + rank if number < 0 else number for number in numbers]
    if sorted(places) != list(range(rank)):
        raise errors.invalid(f"{what}: expected each of the {rank} dimensions once, got {tuple(given)}")
    return places


def scalar(what: str, value: Any) -> complex:
    """A number of any kind, also another library's. TypeError for what is none, texts of numbers among them."""
    try:
        if isinstance(value, (str, bytes)):
            raise TypeError
        number = complex(value)
    except (TypeError, ValueError):
        raise TypeError(f"{what}: expected a number, got {type(value).__name__}") from None
    except OverflowError:
        raise errors.invalid(f"{what}: expected a number that a double can hold, got an integer of {value.bit_length()} bits") from None
    if isinstance(value, int) and int(number.real) != value:
        raise errors.invalid(f"{what}: expected a number that a double can hold, got {value}; the nearest is "
                             f"{int(number.real)}")
    return number


def instance(what: str, value: Any, cls: type) -> Any:
    """An object of the class. TypeError for any other."""
    if not isinstance(value, cls):
        raise TypeError(f"{what}: expected {cls.__name__}, got {type(value).__name__}")
    return value
