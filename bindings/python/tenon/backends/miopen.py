"""AMD's MIOpen."""

from __future__ import annotations

from typing import Any

from . import _views


def flags(immediate: bool | None = None) -> Any:
    """A scope; None changes nothing."""
    return _views.scope("miopen", locals())


def set_flags(immediate: bool | None = None) -> tuple[Any, ...]:
    """Sets it for the process, and gives what it was as a tuple of one."""
    return _views.exchange("miopen", locals())


immediate: bool
_views.install(__name__, immediate=_views.setting("miopen.immediate"))
