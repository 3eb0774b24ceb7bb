"""oneDNN."""

from __future__ import annotations

from typing import Any

from .. import settings
from . import _views

VERBOSE_OFF, VERBOSE_ON, VERBOSE_ON_CREATION = 0, 1, 2

matmul = _views.Precision("mkldnn.matmul.fp32_precision")
conv = _views.Precision("mkldnn.conv.fp32_precision")
rnn = _views.Precision("mkldnn.rnn.fp32_precision")


def is_available() -> bool:
    """Whether it opens here."""
    return _views.is_available("mkldnn")


def is_acl_available() -> bool:
    """Whether Arm's compute library opens here."""
    return _views.is_available("acl")


def verbose(level: int) -> Any:
    """A scope in which oneDNN tells what it runs, and with 2 also what it builds; it ends where it
    began."""
    return settings.scope({"mkldnn.verbose": int(level)})


def flags(enabled: bool | None = None, deterministic: bool | None = None,
          allow_tf32: bool | None = None, fp32_precision: str | None = None) -> Any:
    """A scope that changes what is given and nothing else."""
    return _views.scope("mkldnn", locals())


def set_flags(enabled: bool | None = None, deterministic: bool | None = None,
              allow_tf32: bool | None = None, fp32_precision: str | None = None) -> tuple[Any, ...]:
    """Sets what is given for the process, and gives what all were before."""
    return _views.exchange("mkldnn", locals())


enabled: bool
deterministic: bool
allow_tf32: bool
fp32_precision: str
_views.install(__name__, **{name: _views.setting(f"mkldnn.{name}") for name in (
    "enabled", "deterministic", "allow_tf32", "fp32_precision")})
