"""cuDNN. It is available when it opens here; upstream's is a matter of the build.

>>> from tenon.backends import cudnn
>>> with cudnn.flags(deterministic=True):
...     cudnn.deterministic, cudnn.enabled          # upstream's flags() would switch it off
(True, True)
>>> cudnn.determinstic = True
Traceback (most recent call last):
AttributeError: tenon.backends.cudnn has no switch 'determinstic'; did you mean 'deterministic'?
"""

from __future__ import annotations

from typing import Any

from . import _views

conv = _views.Precision("cudnn.conv.fp32_precision")
rnn = _views.Precision("cudnn.rnn.fp32_precision")


def is_available() -> bool:
    """Whether it opens here."""
    return _views.is_available("cudnn")


def version() -> int | None:
    """As NVIDIA numbers it: 91002 for 9.10.2; None where it is not here."""
    return _views.version("cudnn")


def flags(enabled: bool | None = None, benchmark: bool | None = None,
          benchmark_limit: int | None = None, deterministic: bool | None = None,
          allow_tf32: bool | None = None, fp32_precision: str | None = None,
          depthwise_kernel: str | None = None) -> Any:
    """A scope that changes what is given and nothing else."""
    return _views.scope("cudnn", locals())


def set_flags(enabled: bool | None = None, benchmark: bool | None = None,
              benchmark_limit: int | None = None, deterministic: bool | None = None,
              allow_tf32: bool | None = None, fp32_precision: str | None = None,
              depthwise_kernel: str | None = None) -> tuple[Any, ...]:
    """Sets what is given for the process, and gives what all were before."""
    return _views.exchange("cudnn", locals())


enabled: bool
benchmark: bool
benchmark_limit: int
deterministic: bool
allow_tf32: bool
fp32_precision: str
depthwise_kernel: str
_views.install(__name__, **{name: _views.setting(f"cudnn.{name}") for name in (
    "enabled", "benchmark", "benchmark_limit", "deterministic", "allow_tf32", "fp32_precision",
    "depthwise_kernel")})
