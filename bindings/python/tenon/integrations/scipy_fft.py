"""Tenon as a backend of scipy.fft: SciPy's functions, by Tenon's kernels.

>>> import numpy, scipy.fft
>>> from tenon.integrations import scipy_fft
>>> with scipy.fft.set_backend(scipy_fft, only=True):
...     scipy.fft.rfft(numpy.array([1.0, 2.0, 3.0, 4.0]))
array([10.+0.j, -2.+2.j, -2.+0.j])

It computes all discrete Fourier transforms of f16, bf16, f32, f64, integers, c64 and c128. Other functions and dtypes (dct,
dst, fht, longdouble) fail here; without `only=True`, SciPy's own backend computes them. For the whole process, call
`scipy.fft.set_global_backend(scipy_fft)`, and `scipy.fft.register_backend("scipy")` so that SciPy computes the others.

`calls()` counts the transforms that Tenon computed. `workers` is checked and not used: `cpu.threads` says how many threads
there are. `overwrite_x` is ignored.
"""

from __future__ import annotations

from inspect import Signature, signature
from os import cpu_count
from typing import Any, Callable, Dict, Optional, Sequence, Union

import numpy
import scipy.fft

from .. import _given, errors
from .. import fft as _fft

__all__ = ["calls"]

__ua_domain__ = "numpy.scipy.fft"

Numbers = Optional[Union[int, Sequence[int]]]

_calls = 0


def calls() -> int:
    """How many transforms of scipy.fft Tenon computed in this process."""
    return _calls


def _array(x: Any) -> Any:
    """An array of any library as it is; else NumPy's, in this machine's byte order. None for dtypes that Tenon lacks."""
    if hasattr(x, "__dlpack__") and not isinstance(x, numpy.ndarray):
        return x
    array = numpy.asarray(x)
    if array.dtype.kind not in "biufc" or array.dtype.itemsize > (16 if array.dtype.kind == "c" else 8):
        return array if array.dtype.name == "bfloat16" else None
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def _check_options(workers: Optional[int], plan: Any) -> None:
    """As SciPy checks them."""
    if plan is not None:
        raise NotImplementedError("plan: expected None, got a precomputed plan; Tenon keeps its plans itself")
    if workers is None:
        return
    count = cpu_count() or 1
    number = _given.number("workers", workers, *_given.INT64)
    if number == 0 or number < -count:
        raise errors.invalid(f"workers: expected a number of threads, or -{count} to -1, got {number}")


def _listed(value: Numbers) -> Any:
    return [value] if isinstance(value, (int, numpy.integer)) else value


def _bind_1d(x: Any, n: Optional[int] = None, axis: int = -1, norm: Optional[str] = None, overwrite_x: bool = False,
          workers: Optional[int] = None, *, plan: Any = None) -> Dict[str, Any]:
    """Returns tenon.fft's arguments for a transform of one dimension."""
    _check_options(workers, plan)
    return {"a": x, "n": n, "axis": axis, "norm": norm}


def _bind_nd(x: Any, s: Numbers = None, axes: Numbers = None, norm: Optional[str] = None, overwrite_x: bool = False,
           workers: Optional[int] = None, *, plan: Any = None) -> Dict[str, Any]:
    """Returns tenon.fft's arguments for a transform of several dimensions."""
    _check_options(workers, plan)
    axes = _listed(axes)
    if axes is not None and len({one % max(x.ndim, 1) for one in axes}) < len(axes):
        raise errors.invalid(f"axes: expected different dimensions, got {tuple(axes)}")
    return {"a": x, "s": _listed(s), "axes": axes, "norm": norm}


def _bind_2d(x: Any, s: Numbers = None, axes: Numbers = (-2, -1), norm: Optional[str] = None, overwrite_x: bool = False,
           workers: Optional[int] = None, *, plan: Any = None) -> Dict[str, Any]:
    """Returns tenon.fft's arguments for a transform of the last two dimensions."""
    return _bind_nd(x, s, axes, norm, overwrite_x, workers, plan=plan)


_FORMS: Dict[str, Callable[..., Dict[str, Any]]] = {
    **dict.fromkeys(("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"), _bind_1d),
    **dict.fromkeys(("fft2", "ifft2", "rfft2", "irfft2", "hfft2", "ihfft2"), _bind_2d),
    **dict.fromkeys(("fftn", "ifftn", "rfftn", "irfftn", "hfftn", "ihfftn"), _bind_nd)}
_SIGNATURES: Dict[Any, Signature] = {form: signature(form) for form in (_bind_1d, _bind_2d, _bind_nd)}


def __ua_function__(method: Any, args: Any, kwargs: Any) -> Any:
    """What scipy.fft calls for each of its functions. NotImplemented: the next backend computes it."""
    global _calls
    name = method.__name__
    form = _FORMS.get(name)
    if form is None or method is not getattr(scipy.fft, name):
        return NotImplemented
    given = _SIGNATURES[form].bind(*args, **kwargs).arguments
    given["x"] = _array(given["x"])
    if given["x"] is None:
        return NotImplemented
    result = getattr(_fft, name)(**form(given.pop("x"), **given))
    _calls += 1
    return result


def __dir__() -> list[str]:
    return __all__
