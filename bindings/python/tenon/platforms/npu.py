"""Huawei's NPUs, as a class with FastVideo's name.

>>> from tenon.platforms import platform
>>> from tenon.platforms.npu import NPUPlatform
>>> NPUPlatform() == platform("npu")
True
"""

from __future__ import annotations

from .interface import Platform, platform

__all__ = ["NPUPlatform"]


class NPUPlatform(Platform):
    """The platform npu, whether this machine has it or not."""

    def __init__(self) -> None:
        self._init(platform("npu").address)


def __dir__() -> list[str]:
    return __all__
