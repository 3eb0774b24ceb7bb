"""XNNPACK. `enabled` says whether a module here has code for it, and cannot be set."""

from __future__ import annotations

from . import _views

enabled: bool
_views.install(__name__, enabled=property(lambda self: _views.is_built("xnnpack"),
                                          doc="Whether a module here has code for it."))
