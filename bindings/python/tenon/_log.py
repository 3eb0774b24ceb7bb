"""The library's log as Python's: its lines go to the logger "tenon", which `tenon.platforms.logger` is.

>>> import logging, tenon
>>> logging.getLogger("tenon") is tenon.platforms.logger
True
"""

from __future__ import annotations

import atexit
from ctypes import CFUNCTYPE, byref, c_char_p, c_int32, c_void_p

from . import _abi

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ctypes

NAME = "tenon"
_ERROR, _WARNING, _INFO, _DEBUG = 1, 2, 3, 4  # TN_LOG_...
_LEVELS = {_ERROR: "ERROR", _WARNING: "WARNING", _INFO: "INFO", _DEBUG: "DEBUG"}


def _write(_user: int | None, level: int, line: bytes) -> None:
    import logging  # only for a program that has something to log

    logging.getLogger(NAME).log(getattr(logging, _LEVELS[level]), "%s", line.decode("utf-8", "replace"))


# The library keeps the address of the sink, and calls the function, as long as the process.
_function = CFUNCTYPE(None, c_void_p, c_int32, c_char_p)(_write)
_kept: list[_abi.Sized] = []


def connect(library: ctypes.CDLL) -> None:
    """Sends the library's log to Python until the interpreter ends."""
    set_sink = library.tn_log_set
    set_sink.argtypes, set_sink.restype = [c_void_p, c_void_p], c_int32
    sink = _abi.LogSink()
    sink.write, sink.level = c_void_p.from_buffer(_function).value, _DEBUG
    _kept.append(sink)
    set_sink(byref(sink), None)
    atexit.register(set_sink, None, None)
