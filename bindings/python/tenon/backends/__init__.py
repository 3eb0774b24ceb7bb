"""torch.backends' names over Tenon's settings.

Reading gives what holds here, scopes included; writing is for the whole process. `flags(...)` is a scope
that changes what it is given and nothing else, for this thread or task alone. docs/python.md lists where
that differs from upstream.

>>> from tenon import backends
>>> with backends.cudnn.flags(benchmark=True):
...     backends.cudnn.benchmark, backends.cudnn.enabled
(True, True)
>>> backends.cuda.matmul.allow_tf32
False
"""

from __future__ import annotations

from typing import Any

from .. import settings
from . import (
    _views,
    cpu,
    cuda,
    cudnn,
    cusparselt,
    kleidiai,
    mha,
    miopen,
    mkl,
    mkldnn,
    mps,
    nnpack,
    openmp,
    opt_einsum,
    quantized,
    xnnpack,
)

__all__ = ["cpu", "cuda", "cudnn", "cusparselt", "kleidiai", "mha", "miopen", "mkl", "mkldnn", "mps",
           "nnpack", "openmp", "opt_einsum", "quantized", "xnnpack", "disable_global_flags", "flags",
           "flags_frozen", "set_flags"]


def disable_global_flags() -> None:
    """Forbids every change for the process from now on, through whatever name; scopes go on."""
    settings.freeze()


def flags_frozen() -> bool:
    """Whether that was called."""
    return settings.frozen()


def flags(fp32_precision: str | None = None) -> Any:
    """A scope for the precision that all of float32 inherits."""
    return settings.scope({} if fp32_precision is None else {"fp32_precision": fp32_precision})


def set_flags(fp32_precision: str | None = None) -> tuple[Any, ...]:
    """Sets it for the process and gives what it was."""
    before = (settings.get("fp32_precision"),)
    if fp32_precision is not None:
        settings.set("fp32_precision", fp32_precision)
    return before


fp32_precision: str
_views.install(__name__, fp32_precision=_views.setting("fp32_precision"))
