"""Intel's MKL."""

from __future__ import annotations

from typing import Any

from .. import settings
from . import _views

VERBOSE_OFF, VERBOSE_ON = 0, 1


def is_available() -> bool:
    """Whether it opens here."""
    return _views.is_available("mkl")


def verbose(enable: int) -> Any:
    """A scope in which MKL logs each call; it ends where it began."""
    return settings.scope({"mkl.verbose": int(enable)})


_views.install(__name__)
