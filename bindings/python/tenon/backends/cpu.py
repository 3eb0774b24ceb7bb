"""The processor.

>>> import numpy, tenon
>>> from tenon.backends import cpu
>>> cpu.fft_plan_cache.max_size = 2                            # plans of Fourier transforms that are kept
>>> for n in (64, 96, 100):
...     spectrum = tenon.fft.fft(numpy.ones(n))
>>> cpu.fft_plan_cache.size
2
>>> cpu.fft_plan_cache.clear()
>>> cpu.fft_plan_cache.size
0
>>> cpu.fft_plan_cache.max_size = 4096
"""

from __future__ import annotations

from .._library import lib, text
from . import _views
from ._plan_cache import PlanCache

fft_plan_cache = PlanCache("cpu", "fft_plan_cache")


def get_cpu_capability() -> str:
    """The level of vector instructions, in PyTorch's words: "AVX512"."""
    return text(lib.tn_cpu_capability())


_views.install(__name__)
