"""The order in which einsum contracts. The two settings do not depend on each other."""

from __future__ import annotations

from typing import Any

from . import _views


def is_available() -> bool:
    """True: the search for the order of contraction is part of Tenon."""
    return _views.is_available("opt_einsum")


def get_opt_einsum() -> Any:
    """The package opt_einsum if it is installed, else an object of Tenon's with its functions `contract`,
    `contract_path` and the path functions of `paths`."""
    try:
        import opt_einsum
    except ImportError:
        from .._opt_einsum import stand_in

        return stand_in()
    return opt_einsum


def flags(enabled: bool | None = None, strategy: str | None = None) -> Any:
    """A scope that changes what is given and nothing else."""
    return _views.scope("opt_einsum", locals())


def set_flags(_enabled: bool | None = None, _strategy: str | None = None) -> tuple[Any, ...]:
    """Sets what is given for the process, and gives what both were before."""
    return _views.exchange("opt_einsum", {"enabled": _enabled, "strategy": _strategy})


enabled: bool
strategy: str
_views.install(__name__, enabled=_views.setting("opt_einsum.enabled"),
               strategy=_views.setting("opt_einsum.strategy"))
