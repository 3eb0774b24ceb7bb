"""OpenMP."""

from __future__ import annotations

from . import _views


def is_available() -> bool:
    """Whether it opens here."""
    return _views.is_available("openmp")


_views.install(__name__)
