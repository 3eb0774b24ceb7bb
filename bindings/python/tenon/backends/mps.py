"""Apple's Metal. Tenon has no module for it: `tenon.library("mps").reason` says what is missing."""

from __future__ import annotations

from . import _views


def is_built() -> bool:
    """Whether a module here has code for it."""
    return _views.is_built("mps")


def is_available() -> bool:
    """Whether it opens here."""
    return _views.is_available("mps")


_views.install(__name__)
