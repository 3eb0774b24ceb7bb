"""Apple's GPUs, as a class with FastVideo's name.

>>> from tenon.platforms import platform
>>> from tenon.platforms.mps import MpsPlatform
>>> MpsPlatform() == platform("mps")
True
"""

from __future__ import annotations

from .interface import Platform, platform

__all__ = ["MpsPlatform"]


class MpsPlatform(Platform):
    """The platform mps, whether this machine has it or not."""

    def __init__(self) -> None:
        self._init(platform("mps").address)


def __dir__() -> list[str]:
    return __all__
