"""Tenon: operators on the fastest kernel that is allowed, on anyone's arrays, with the reason for every
choice.

>>> import numpy, tenon
>>> q = numpy.ones((1, 8, 64, 32), "float32")
>>> out = tenon.attention(q, q, q, mask="causal")
>>> print(tenon.explain(tenon.attention, q, q, q, mask="causal").chosen.platform)
cpu
"""

from __future__ import annotations

from . import errors, settings
from ._library import VERSION as __version__
from ._library import lib as _lib
from .errors import Error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Where each name is, besides the operators, which operators.py lists; a module is imported when a name of it is first
# used.
_HOMES = {
    "Tensor": "_dlpack", "empty": "_dlpack",
    **dict.fromkeys(("Device", "Event", "Stream", "default_device", "describe", "device", "devices",
                     "seed_everything", "synchronize"), "_devices"),
    "Decision": "_explain", "explain": "_explain", "fallbacks": "_explain", "prepare": "_explain",
    "doctor": "_doctor", "libraries": "_doctor", "library": "_doctor",
}
_MODULES = ("backends", "device_interface", "integrations", "lock", "platforms")


def version() -> str:
    """The version of the library that is running.

    >>> import tenon
    >>> tenon.version() == tenon.__version__        # the package's own, which it has to agree with
    True
    """
    return _lib.tn_version().decode()


def _all_names() -> list[str]:
    """The value of __all__: every name but what needs PyTorch."""
    from .operators import __all__ as operators

    return ["Error", "errors", "settings", "version", "__version__", *_HOMES, *operators,
            *(name for name in _MODULES if name != "device_interface")]


def _is_operator(name: str) -> bool:
    if name.startswith("_"):
        return False
    from .operators import __all__ as operators

    return name in operators


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name == "__all__":
        value: Any = _all_names()
    elif name in _HOMES:
        value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    elif name in _MODULES:
        try:
            value = import_module(f"{__name__}.{name}")
        except ModuleNotFoundError as error:
            raise AttributeError(f"tenon.{name} needs {error.name}, which is not here") from error
    elif _is_operator(name):
        value = getattr(import_module(f"{__name__}.operators"), name)
    else:
        raise AttributeError(f"module 'tenon' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_all_names(), *_MODULES})
