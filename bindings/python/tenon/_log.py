"""The library's log as Python's: its lines go to the logger "tenon", which `tenon.platforms.logger` is.

The library keeps its lines, and Python takes them after the next call of this package: a sink of Python's would wait
for the interpreter's lock inside the library, and a fork would wait for both. The logger has a NullHandler, as libraries'
loggers do, so nothing is printed until the program sets logging up.

>>> import logging, tenon
>>> logging.getLogger("tenon") is tenon.platforms.logger
True
"""

from __future__ import annotations

import atexit
from ctypes import byref, c_int32, create_string_buffer

from ._library import lib

TYPE_CHECKING = False
if TYPE_CHECKING:
    import logging

NAME = "tenon"
_LEVELS = {1: "ERROR", 2: "WARNING", 3: "INFO", 4: "DEBUG"}  # by TN_LOG_...
_LINE = 1024


def logger() -> logging.Logger:
    """Returns the logger "tenon". If it has no handler, it gets one that prints nothing."""
    import logging  # only for a program that has something to log

    found = logging.getLogger(NAME)
    if not found.handlers:
        found.addHandler(logging.NullHandler())
    return found


def pass_on() -> None:
    """Writes the lines that the library has kept."""
    import logging

    level, line, to = c_int32(), create_string_buffer(_LINE), logger()
    while lib.tn_log_take(byref(level), line, _LINE):
        to.log(getattr(logging, _LEVELS[level.value]), "%s", line.value.decode("utf-8", "replace"))


def _pass_on_the_last() -> None:
    if lib.is_open() and lib.tn_log_kept():
        pass_on()


atexit.register(_pass_on_the_last)
