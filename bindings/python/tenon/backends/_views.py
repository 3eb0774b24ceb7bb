"""Settings as attributes of modules, and scopes of several at once."""

from __future__ import annotations

import sys
import types
from typing import Any

from .. import _doctor, errors, settings


def check(key: str, value: Any) -> Any:
    """Switches take True and False and nothing else, as upstream's do."""
    if settings.info(key).kind == "bool" and not isinstance(value, bool):
        raise errors.invalid(f"{key} is True or False, not {value!r}")
    return value


def setting(key: str) -> property:
    """Reads what holds here; writes for the process."""
    doc = f"The setting {key}: read here, written for the whole process."
    return property(lambda self: settings.get(key),
                    lambda self, value: settings.set(key, check(key, value)), doc=doc)


class _Module(types.ModuleType):
    """One whose computed attributes alone can be set: a misspelt switch would be nobody's. It lists its own names, not
    those that it imports."""

    def __dir__(self) -> list[str]:
        own = [name for name, value in vars(self).items() if not name.startswith("_") and _is_own(value)]
        return [*own, *(name for name, value in vars(type(self)).items() if isinstance(value, property))]

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(getattr(type(self), name, None), property) or name.startswith("__") or isinstance(
                value, types.ModuleType):
            super().__setattr__(name, value)
            return
        if callable(vars(self).get(name)):
            raise AttributeError(f"{self.__name__}.{name} is a function; call it")
        import difflib

        near = difflib.get_close_matches(name, [key for key, found in vars(type(self)).items()
                                                if isinstance(found, property)], 1)
        raise AttributeError(f"{self.__name__} has no switch {name!r}" + (f"; did you mean {near[0]!r}?" if near else ""))


def _is_own(value: Any) -> bool:
    """Whether a value in a module of this package was made here; a number or text has no module."""
    home = getattr(value, "__name__" if isinstance(value, types.ModuleType) else "__module__", __name__)
    return str(home).startswith(__package__ or "")


def install(name: str, **properties: property) -> None:
    """Gives a module attributes that are computed, which it has annotations for. Others can be set no more."""
    module = sys.modules[name]
    module.__class__ = type(name.rpartition(".")[2], (_Module,), properties)


class Precision:
    """An object with the one attribute fp32_precision, a setting."""

    def __init__(self, key: str) -> None:
        self.__dict__["_key"] = key

    def __reduce__(self) -> tuple[Any, ...]:
        return Precision, (self._key,)

    def __getattr__(self, name: str) -> Any:
        if name != "fp32_precision":
            raise AttributeError(f"{self._key.rpartition('.')[0]} has no attribute {name!r}")
        return settings.get(self._key)

    def __setattr__(self, name: str, value: Any) -> None:
        if name != "fp32_precision":
            raise AttributeError(f"{self._key.rpartition('.')[0]} has no attribute {name!r}")
        settings.set(self._key, value)


def named(prefix: str, flags: dict[str, Any]) -> dict[str, Any]:
    """The settings of flags that were given; None is left alone."""
    return {f"{prefix}.{name}": check(f"{prefix}.{name}", value) for name, value in flags.items()
            if value is not None}


def scope(prefix: str, flags: dict[str, Any]) -> settings.scope:
    """Those for the code inside. What is not given stays what it is."""
    return settings.scope(named(prefix, flags))


def exchange(prefix: str, flags: dict[str, Any]) -> tuple[Any, ...]:
    """Sets those for the process, all or none, and gives what all of them were before."""
    before = tuple(settings.get(f"{prefix}.{name}") for name in flags)
    changes = named(prefix, flags)
    if changes:
        settings.set(changes)
    return before


def is_available(name: str) -> bool:
    """Whether a vendor's library opens here; opens it."""
    return _doctor.library(name, open=True).available == "yes"


def version(name: str) -> int | None:
    """As the vendor numbers it; None where it is not here."""
    return _doctor.library(name, open=True).version


def is_built(name: str) -> bool:
    """Whether a module here, or Tenon itself, has code for it."""
    return _doctor.library(name).built
