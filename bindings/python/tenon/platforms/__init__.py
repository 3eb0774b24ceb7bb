"""The kinds of hardware, under the names of FastVideo's platform interface.

Code that is written against it runs with one import changed:

>>> from tenon.platforms import current_platform
>>> current_platform.has_device_capability((8, 0)) or current_platform.is_cpu()
True

`current_platform` is resolved when it is first asked for, and lives as long as the process; Tenon never
replaces a platform that was asked for (TENON_PLATFORM) by another.
"""

from __future__ import annotations

from typing import Any

from .interface import (
    AttentionBackendEnum,
    CpuArchEnum,
    DeviceCapability,
    Platform,
    PlatformEnum,
    UnspecifiedPlatform,
    logger,
    platform,
    platforms,
    resolve_current,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    current_platform: Platform

# Upstream's own variable, which its tests and programs assign: what is assigned is current for Python.
_current_platform: Platform | None = None
_resolved: Platform | None = None

__all__ = ["AttentionBackendEnum", "CpuArchEnum", "DeviceCapability", "Platform", "PlatformEnum",
           "UnspecifiedPlatform", "current_platform", "logger", "platform", "platforms"]
_MODULES = ("attention", "cpu", "cuda", "mps", "npu", "rocm")  # imported when they are first used


def __getattr__(name: str) -> Any:
    global _current_platform, _resolved
    if name == "current_platform":
        if _current_platform is None or _current_platform is _resolved:  # nobody assigned another
            _current_platform = _resolved = resolve_current()
        return _current_platform
    if name in _MODULES:
        import importlib

        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
