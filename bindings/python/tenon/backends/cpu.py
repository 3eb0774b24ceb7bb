"""The processor."""

from __future__ import annotations

from .._library import lib, text
from . import _views


def get_cpu_capability() -> str:
    """The level of vector instructions, in PyTorch's words: "AVX512"."""
    return text(lib.tn_cpu_capability())


_views.install(__name__)
