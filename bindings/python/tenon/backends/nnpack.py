"""NNPACK."""

from __future__ import annotations

from typing import Any

from . import _views


def is_available() -> bool:
    """Whether it opens here."""
    return _views.is_available("nnpack")


def flags(enabled: bool | None = None) -> Any:
    """A scope; None changes nothing, where upstream's default switches off."""
    return _views.scope("nnpack", locals())


def set_flags(enabled: bool) -> tuple[Any, ...]:
    """Sets it for the process, and gives what it was as a tuple of one."""
    return _views.exchange("nnpack", locals())


enabled: bool
_views.install(__name__, enabled=_views.setting("nnpack.enabled"))
