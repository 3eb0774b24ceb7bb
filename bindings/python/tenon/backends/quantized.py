"""Which kernels PyTorch's quantised operators take. Tenon has none of these operators: the choice is stored and checked, and
changes nothing yet. "default" takes it back."""

from __future__ import annotations

from . import _views


def _supported(self: object) -> list[str]:
    libraries = {"qnnpack": "qnnpack", "onednn": "mkldnn", "x86": "fbgemm", "fbgemm": "fbgemm"}
    return [engine for engine, library in libraries.items() if _views.is_available(library)]


engine: str
supported_engines: list[str]
_views.install(__name__, engine=_views.setting("quantized.engine"),
               supported_engines=property(_supported, doc="Those whose library opens here."))
