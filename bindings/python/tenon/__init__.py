"""Tenon: operators on the fastest kernel that is allowed, on arrays of any library, with the reason for every choice.

>>> import numpy, tenon
>>> q = numpy.ones((1, 8, 64, 32), "float32")
>>> out = tenon.attention(q, q, q, causal=True)
>>> print(tenon.explain(tenon.attention, q, q, q, causal=True).chosen.platform)
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

# The module of each name, except the operators, which operators.py and _named.py list. A module is imported when a name
# of it is first used.
_HOMES = {
    "Tensor": "_tensor", "empty": "_tensor",
    **dict.fromkeys(("Device", "Event", "Stream", "default_device", "describe", "device", "devices",
                     "seed_everything", "synchronize"), "_devices"),
    "einsum": "_einsum", "einsum_path": "_einsum",
    "Decision": "_explain", "explain": "_explain", "fallbacks": "_explain", "prepare": "_explain",
    "Packed": "_packed", "matmul_pack": "_packed",
    "doctor": "_doctor", "libraries": "_doctor", "library": "_doctor",
}
_MODULES = ("backends", "device_interface", "fft", "integrations", "lock", "platforms", "video")


def version() -> str:
    """The version of the library that is running.

    >>> import tenon
    >>> tenon.version() == tenon.__version__        # the package's own, which it has to agree with
    True
    """
    return _lib.tn_version().decode()


def _operators() -> dict[str, str]:
    """The module of each operator."""
    from ._named import __all__ as named
    from .operators import __all__ as operators

    return {**dict.fromkeys(operators, "operators"), **dict.fromkeys(named, "_named")}


def _all_names() -> list[str]:
    """The value of __all__: every name but what needs PyTorch."""
    return ["Error", "errors", "settings", "version", "__version__", *_HOMES, *_operators(),
            *(name for name in _MODULES if name != "device_interface")]


def __getattr__(name: str) -> Any:
    from importlib import import_module

    home = _HOMES.get(name)
    if name == "__all__":
        value: Any = _all_names()
    elif name in _MODULES:
        try:
            value = import_module(f"{__name__}.{name}")
        except ModuleNotFoundError as error:
            raise AttributeError(f"tenon.{name} needs {error.name}, which is not here") from error
    elif home or not name.startswith("_") and (home := _operators().get(name)):
        value = getattr(import_module(f"{__name__}.{home}"), name)
    else:
        raise AttributeError(f"module 'tenon' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*(name for name in globals() if name.startswith("__")), *_all_names(), *_MODULES})
