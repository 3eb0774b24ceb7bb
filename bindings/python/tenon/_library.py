"""Finds libtenon and opens it: once, at the first call that needs it.

Sought in this order, and the first that is there is taken:

1. the file that the variable TENON_LIBRARY names, and nothing else when it is set;
2. beside this package, where wheels carry it;
3. in build/ of the source tree, where the package is used in place;
4. where the system's loader looks.

Functions are bound when they are first used, so that importing the package costs little.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading

from . import _abi

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

VERSION = "0.1.0"
_KEPT = 4  # TN_LOG_DEBUG: _log.py passes lines on, and the program's logger decides which it wants

NAMES = {"darwin": ("libtenon.dylib",), "win32": ("tenon.dll", "libtenon.dll")}.get(
    sys.platform, ("libtenon.so.0", "libtenon.so")
)
PACKAGE = os.path.dirname(os.path.abspath(__file__))
FOLDER = os.path.join(PACKAGE, "lib")
IN_TREE = os.sep + os.path.join("bindings", "python", "tenon")


def folders() -> list[str]:
    """Where it may lie, without the loader's own."""
    in_tree = PACKAGE.endswith(IN_TREE)
    return [FOLDER, *([os.path.join(PACKAGE[: -len(IN_TREE)], "build")] if in_tree else ())]


def candidates() -> list[str]:
    """What is tried, in this order: paths, then bare names for the loader."""
    named = os.environ.get("TENON_LIBRARY")
    if named:
        return [named]
    paths = [os.path.join(folder, name) for folder in folders() for name in NAMES]
    return [path for path in paths if os.path.exists(path)] + list(NAMES)


def open_first(paths: list[str]) -> tuple[ctypes.CDLL, str]:
    """The first that opens, and its path. ImportError says what was tried and why each failed."""
    failures = []
    for path in paths:
        try:
            return ctypes.CDLL(path), path
        except OSError as error:
            failures.append(f"{path}: {error}")
    raise ImportError(
        "libtenon was not found; tried "
        + "; ".join(failures)
        + "; set TENON_LIBRARY to its file, or install a wheel that carries it, as `make wheel` writes one"
    )


def check_version(found: str, path: str) -> None:
    """ImportError unless the library has this package's major and minor numbers."""
    if found.split(".")[:2] != VERSION.split(".")[:2]:
        raise ImportError(f"{path} is Tenon {found}, this package is for {VERSION}")


class Library:
    """The library's functions as attributes, with their types; opened at the first one.

    Thread-safety: any thread; calls release the interpreter's lock.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._handle: ctypes.CDLL | None = None
        self._path = ""

    def _open(self) -> ctypes.CDLL:
        with self._lock:
            if self._handle is None:
                handle, path = open_first(candidates())
                if not hasattr(handle, "tn_version"):
                    raise ImportError(f"{path} is no library of Tenon's: it has no tn_version")
                handle.tn_version.restype = ctypes.c_char_p
                check_version(handle.tn_version().decode(), path)
                handle.tn_log_keep(_KEPT, None)
                self._path, self._handle = path, handle
        return self._handle

    def is_open(self) -> bool:
        """Whether anything was called yet."""
        return self._handle is not None

    @property
    def path(self) -> str:
        """The file as it was opened."""
        self._open()
        return self._path

    def __getattr__(self, name: str) -> Any:
        prototypes = _abi.prototypes()
        if name not in prototypes:
            raise AttributeError(name)
        function = getattr(self._open(), name)
        result, *arguments = map(_abi.type_of, prototypes[name].split())
        function.restype, function.argtypes = result, arguments
        setattr(self, name, function)
        return function


lib = Library()


def text(value: bytes | None) -> str:
    """A text of the library's; "" for NULL."""
    return value.decode("utf-8", "replace") if value else ""
