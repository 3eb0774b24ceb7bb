"""What a call that fails raises: Error, or the class of its status.

Each has `status` (the word: "invalid-argument"), `message` (one line: what was asked, what there is and
the nearest), `where` (the call that failed), `native_code` (errno, CUresult ...; 0 for none) and
`problem` (the problem's text as tenon.explain takes it; "" when the error concerns none).

>>> import tenon
>>> try:
...     tenon.settings.get("cuda.flash_spd")
... except LookupError as error:
...     error.status, "cuda.flash_sdp" in error.message
('not-found', True)
"""

from __future__ import annotations

__all__ = ["AlreadyExistsError", "BusyError", "DeviceLostError", "Error", "FileError", "IncompatibleError",
           "InvalidArgumentError", "NotFoundError", "NotPermittedError", "NotReadyError", "OutOfMemoryError", "RefusedError",
           "TimedOutError", "UnavailableError", "UnsupportedError"]

from . import _abi
from ._library import lib, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterator


class Error(Exception):
    """Any failure that the library reports.

    >>> import numpy, tenon
    >>> a = numpy.ones((2, 3), "float32")
    >>> try:
    ...     tenon.matmul(a, a)
    ... except tenon.Error as error:        # a ValueError too, as it is wrong in itself
    ...     print(error.status, isinstance(error, ValueError), error.message, sep=", ")
    invalid-argument, True, b: expected 3 rows, as many as a has columns, got 2
    """

    def __init__(self, message: str, status: str = "internal", where: str = "",
                 native_code: int = 0) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.where = where
        self.native_code = native_code

    @property
    def problem(self) -> str:
        return problem_of(self.message)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.message, self.status, self.where, self.native_code)


class InvalidArgumentError(Error, ValueError):
    """The request is wrong in itself."""


class UnsupportedError(Error, NotImplementedError):
    """A sound request that nothing permitted here can serve."""


class UnavailableError(Error):
    """The hardware, driver or library is missing."""


class IncompatibleError(Error):
    """Present, but of another ABI, architecture or version."""


class NotFoundError(Error, LookupError):
    """Nothing of that name."""


class AlreadyExistsError(Error):
    """That name is taken."""


class RefusedError(Error):
    """A setting, rule or lock forbids it."""


class NotPermittedError(Error):
    """The system's permissions forbid it."""


class OutOfMemoryError(Error, MemoryError):
    """Not enough memory for the request."""


class TimedOutError(Error):
    """It did not finish within its time limit."""


class BusyError(Error):
    """In use now; the same call may succeed later."""


class NotReadyError(Error):
    """Not complete yet."""


class DeviceLostError(Error):
    """The device failed; results of its work are lost."""


class FileError(Error):
    """Reading or writing failed, or a file is damaged or has the wrong format."""


CLASSES: dict[int, type[Error]] = {
    1: InvalidArgumentError,
    2: UnsupportedError,
    3: UnavailableError,
    4: IncompatibleError,
    5: NotFoundError,
    6: AlreadyExistsError,
    7: RefusedError,
    8: NotPermittedError,
    9: OutOfMemoryError,
    10: TimedOutError,
    11: BusyError,
    12: NotReadyError,
    13: DeviceLostError,
    14: FileError,
    15: FileError,
}


def operator_names() -> Iterator[str]:
    """The names of the library's operators, as in problem texts."""
    number = lib.tn_op_next(0)
    while number:
        yield text(lib.tn_op_name(number))
        number = lib.tn_op_next(number)


def problem_of(message: str) -> str:
    """The problem's text at the end of a message, where there is one."""
    last = message.rsplit(" ", 1)[-1].strip("()\"';,")
    name, colon, _ = last.partition(":")
    return last if colon and name in operator_names() else ""


# Functions of C, apart from operators, that messages say to call, and those of this package that do the same.
_FUNCTIONS = {"tn_prepare": "tenon.prepare", "tn_settings_freeze": "tenon.settings.freeze",
              "call tn_platform_current or tn_platform_get":
              "use tenon.platforms.current_platform or tenon.platforms.platform(name)"}


def in_python(message: str) -> str:
    """A message of the library with the names that the functions have here."""
    if "tn_" not in message:
        return message
    for theirs, ours in _FUNCTIONS.items():
        message = message.replace(theirs, ours)
    for operator in operator_names():
        name = operator.replace("-", "_")
        message = message.replace(f"tn_{name}", f"tenon.{name}")
    return message


def make(err: _abi.Error, status: int | None = None) -> Error:
    """The exception for what a call left in its tn_error."""
    number = err.status if status is None else status
    return CLASSES.get(number, Error)(
        in_python(text(err.message)), text(lib.tn_status_name(number)), text(err.where), err.native_code
    )


def invalid(message: str, where: str = "tenon") -> InvalidArgumentError:
    """For what the package itself finds wrong, in the library's way."""
    return InvalidArgumentError(message, "invalid-argument", where)


def __dir__() -> list[str]:
    return __all__
