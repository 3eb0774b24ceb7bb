"""Multi-head attention's fast path."""

from __future__ import annotations

from .. import settings
from . import _views


def get_fastpath_enabled() -> bool:
    """Whether multi-head attention may run as one fused call in inference."""
    return bool(settings.get("mha.fastpath_enabled"))


def set_fastpath_enabled(value: bool) -> None:
    """Sets it for the process."""
    settings.set("mha.fastpath_enabled", _views.check("mha.fastpath_enabled", value))


_views.install(__name__)
