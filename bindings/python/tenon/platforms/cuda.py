"""NVIDIA's GPUs, as a class with FastVideo's name.

>>> from tenon.platforms import platform
>>> from tenon.platforms.cuda import CudaPlatform
>>> CudaPlatform() == platform("cuda")
True
"""

from __future__ import annotations

from .interface import Platform, platform

__all__ = ["CudaPlatform"]


class CudaPlatform(Platform):
    """The platform cuda, whether this machine has it or not."""

    def __init__(self) -> None:
        super().__init__(platform("cuda").address)
