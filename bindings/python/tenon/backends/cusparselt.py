"""cuSPARSELt."""

from __future__ import annotations

from . import _views


def is_available() -> bool:
    """Whether it opens here."""
    return _views.is_available("cusparselt")


def version() -> int | None:
    """As NVIDIA numbers it; None where it is not here."""
    return _views.version("cusparselt")


_views.install(__name__)
