"""CUDA: precision, preferred libraries, and the family of scaled-dot-product attention, whose switches
hold on every platform.

>>> from tenon.backends import cuda
>>> with cuda.sdp_kernel(enable_math=False):
...     cuda.math_sdp_enabled(), cuda.flash_sdp_enabled()
(False, True)
>>> cuda.math_sdp_enabled(), cuda.preferred_blas_library()
(True, 'default')
"""

from __future__ import annotations

import warnings
from ctypes import byref, c_int32
from typing import Any

from .. import _abi, _arrays, settings
from .._handles import call
from .._library import lib, text
from . import _views
from ._plan_cache import PlanCache

_REDUCTIONS = ("allow_fp16_reduced_precision_reduction", "allow_bf16_reduced_precision_reduction")
_SWITCHES = ("allow_tf32", "allow_fp16_accumulation", "prefer_cublaslt_grouped_gemm", "fp32_precision",
            *_REDUCTIONS, *(name + "_split_k" for name in _REDUCTIONS))


def is_built() -> bool:
    """Whether a module here has code for CUDA; devices are another question."""
    return _views.is_built("cuda")


class _Matmul:
    """The settings of cuda.matmul as attributes."""

    def __getattr__(self, name: str) -> Any:
        if name not in _SWITCHES:
            raise AttributeError(f"cuda.matmul has no attribute {name!r}")
        return settings.get(f"cuda.matmul.{name}")

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in _SWITCHES:
            raise AttributeError(f"cuda.matmul has no attribute {name!r}")
        if name in _REDUCTIONS and isinstance(value, (tuple, list)):
            self._set_pair(name, tuple(value))
            return
        settings.set(f"cuda.matmul.{name}", _views.check(f"cuda.matmul.{name}", value))

    def _set_pair(self, name: str, pair: tuple[bool, ...]) -> None:
        """(allowed, split-K allowed), as upstream takes it."""
        if len(pair) not in (1, 2) or not all(isinstance(one, bool) for one in pair):
            raise TypeError(f"cuda.matmul.{name} is a bool or one or two of them, not {pair!r}")
        settings.set({f"cuda.matmul.{name}": pair[0], f"cuda.matmul.{name}_split_k": (*pair, True)[1]})


matmul = _Matmul()
cufft_plan_cache = PlanCache("cuda", "cufft_plan_cache")


def _preferred(key: str, library: str | None) -> str:
    if library is not None:
        settings.set(key, getattr(library, "name", str(library)).lower())
    return str(settings.get(key))


def preferred_blas_library(backend: str | None = None) -> str:
    """The library that matmul takes where it can; sets it when one is given. Reading changes nothing."""
    return _preferred("cuda.preferred_blas_library", backend)


def preferred_linalg_library(backend: str | None = None) -> str:
    """The same for factorisations."""
    return _preferred("cuda.preferred_linalg_library", backend)


def preferred_rocm_fa_library(backend: str | None = None) -> str:
    """The same for flash attention on ROCm."""
    return _preferred("cuda.preferred_rocm_fa_library", backend)


def _enable(key: str, enabled: bool) -> None:
    settings.set(key, _views.check(key, enabled))


def flash_sdp_enabled() -> bool:
    """Whether attention may take flash kernels."""
    return bool(settings.get("cuda.flash_sdp"))


def enable_flash_sdp(enabled: bool) -> None:
    """Sets that for the process."""
    _enable("cuda.flash_sdp", enabled)


def mem_efficient_sdp_enabled() -> bool:
    """Whether attention may take memory-efficient kernels."""
    return bool(settings.get("cuda.mem_efficient_sdp"))


def enable_mem_efficient_sdp(enabled: bool) -> None:
    """Sets that for the process."""
    _enable("cuda.mem_efficient_sdp", enabled)


def math_sdp_enabled() -> bool:
    """Whether attention may take the plain computation."""
    return bool(settings.get("cuda.math_sdp"))


def enable_math_sdp(enabled: bool) -> None:
    """Sets that for the process."""
    _enable("cuda.math_sdp", enabled)


def cudnn_sdp_enabled() -> bool:
    """Whether attention may use cuDNN kernels."""
    return bool(settings.get("cuda.cudnn_sdp"))


def enable_cudnn_sdp(enabled: bool) -> None:
    """Sets that for the process."""
    _enable("cuda.cudnn_sdp", enabled)


def fp16_bf16_reduction_math_sdp_allowed() -> bool:
    """Whether the plain computation may stay in 16 bits."""
    return bool(settings.get("cuda.allow_fp16_bf16_reduction_math_sdp"))


def allow_fp16_bf16_reduction_math_sdp(enabled: bool) -> None:
    """Sets that for the process."""
    _enable("cuda.allow_fp16_bf16_reduction_math_sdp", enabled)


def sdp_kernel(enable_flash: bool = True, enable_math: bool = True,
               enable_mem_efficient: bool = True, enable_cudnn: bool = True) -> Any:
    """A scope with the four switches. The fifth, of platforms out of tree, stays as it is."""
    flags = {"flash_sdp": enable_flash, "math_sdp": enable_math,
             "mem_efficient_sdp": enable_mem_efficient, "cudnn_sdp": enable_cudnn}
    return _views.scope("cuda", flags)


def is_flash_attention_available() -> bool:
    """Whether a flash kernel of the current platform could run."""
    out = c_int32()
    call(lib.tn_is_flash_attention_available, None, byref(out), None)
    return bool(out.value)


def is_ck_sdpa_available(debug: bool = False) -> bool:
    """Whether one of ROCm's goes through the library ck; with `debug` a warning says why not."""
    out, why = c_int32(), _abi.Refusal()
    call(lib.tn_is_ck_sdpa_available, byref(out), byref(why))
    if debug and not out.value:
        warnings.warn(text(why.text), stacklevel=2)
    return bool(out.value)


class SDPAParams:
    """A call of scaled-dot-product attention, described. Fields are as they were given, and read-only.

    >>> import numpy
    >>> from tenon.backends import cuda
    >>> q = numpy.ones((1, 2, 4, 64), "float32")
    >>> params = cuda.SDPAParams(q, q, q, None, 0.0, is_causal=True)
    >>> params.raw.is_causal, cuda.can_use_cudnn_attention(params)     # cuDNN's takes no f32
    (1, False)
    """

    __slots__ = ("query", "key", "value", "attn_mask", "dropout", "is_causal", "enable_gqa", "raw",
                 "_views")

    def __init__(self, query: Any, key: Any, value: Any, attn_mask: Any, dropout: float,
                 is_causal: bool, enable_gqa: bool = False) -> None:
        given = {"query": query, "key": key, "value": value, "attn_mask": attn_mask}
        views = [None if array is None else _arrays.view(_detached(array)) for array in given.values()]
        raw = _abi.SdpaParams()
        call(lib.tn_sdpa_params_get, *(view and byref(view) for view in views), dropout,
             bool(is_causal), bool(enable_gqa), byref(raw))
        for name, array in given.items():
            getattr(raw, name).requires_grad = bool(getattr(array, "requires_grad", False))
        fields = {**given, "dropout": dropout, "is_causal": is_causal, "enable_gqa": enable_gqa, "raw": raw,
                  "_views": views}
        for name, field in fields.items():
            object.__setattr__(self, name, field)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"SDPAParams.{name} is read-only: make new SDPAParams for another call")


def _detached(array: Any) -> Any:
    return array.detach() if getattr(array, "requires_grad", False) else array


def _can_use(name: str, params: SDPAParams, debug: bool) -> bool:
    out = _abi.SdpaReport()
    call(getattr(lib, name), settings.context(), byref(params.raw), byref(out))
    if debug and out.first >= 0:
        failed = out.checks[out.first]
        warnings.warn(f"{text(failed.name)}: {text(failed.why.text) or text(failed.why.what)}",
                      stacklevel=3)
    return bool(out.usable)


def can_use_flash_attention(params: SDPAParams, debug: bool = False) -> bool:
    """Whether flash attention could be used for such a call; with `debug` a warning says why not."""
    return _can_use("tn_can_use_flash_attention", params, debug)


def can_use_efficient_attention(params: SDPAParams, debug: bool = False) -> bool:
    """The same for memory-efficient attention."""
    return _can_use("tn_can_use_efficient_attention", params, debug)


def can_use_cudnn_attention(params: SDPAParams, debug: bool = False) -> bool:
    """The same for cuDNN's."""
    return _can_use("tn_can_use_cudnn_attention", params, debug)


fp32_precision: str
_views.install(__name__, fp32_precision=_views.setting("cuda.fp32_precision"))
