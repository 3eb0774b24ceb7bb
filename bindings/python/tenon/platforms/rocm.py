"""AMD's GPUs, as a class with FastVideo's name.

>>> from tenon.platforms import platform
>>> from tenon.platforms.rocm import RocmPlatform
>>> RocmPlatform() == platform("rocm")
True
"""

from __future__ import annotations

from .interface import Platform, platform

__all__ = ["RocmPlatform"]


class RocmPlatform(Platform):
    """The platform rocm, whether this machine has it or not."""

    def __init__(self) -> None:
        self._init(platform("rocm").address)


def __dir__() -> list[str]:
    return __all__
