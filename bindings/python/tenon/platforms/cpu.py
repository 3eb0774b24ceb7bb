"""The processor, as a class with FastVideo's name.

>>> from tenon.platforms import platform
>>> from tenon.platforms.cpu import CpuPlatform
>>> CpuPlatform() == platform("cpu")
True
"""

from __future__ import annotations

from .interface import Platform, platform

__all__ = ["CpuPlatform"]


class CpuPlatform(Platform):
    """The platform cpu, whether this machine has it or not."""

    def __init__(self) -> None:
        self._init(platform("cpu").address)


def __dir__() -> list[str]:
    return __all__
