"""Tenon inside other people's programs: `tenon.integrations.torch`, `.torch_fft`, `.scipy_fft`, `.transformers` and
`.diffusers`."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["diffusers", "scipy_fft", "torch", "torch_fft", "transformers"]


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name not in __all__:
        raise AttributeError(f"module 'tenon.integrations' has no attribute {name!r}; there are: "
                             + ", ".join(__all__))
    try:
        return import_module(f"{__name__}.{name}")
    except ModuleNotFoundError as error:
        raise AttributeError(f"tenon.integrations.{name} needs {error.name}, which is not here") from error


def __dir__() -> list[str]:
    return __all__
