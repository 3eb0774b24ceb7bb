"""NVIDIA's GPUs, as a class with FastVideo's names.

>>> from tenon.platforms import platform
>>> from tenon.platforms.cuda import CudaPlatform
>>> CudaPlatform() == platform("cuda")
True
"""

from __future__ import annotations

from .interface import Platform, platform

__all__ = ["CudaPlatform", "CudaPlatformBase", "NonNvmlCudaPlatform", "NvmlCudaPlatform"]


class CudaPlatform(Platform):
    """The platform cuda, whether this machine has it or not."""

    def __init__(self) -> None:
        self._init(platform("cuda").address)


# FastVideo has a class for each way of asking NVIDIA's driver. Tenon has one way.
CudaPlatformBase = NvmlCudaPlatform = NonNvmlCudaPlatform = CudaPlatform


def __dir__() -> list[str]:
    return __all__
