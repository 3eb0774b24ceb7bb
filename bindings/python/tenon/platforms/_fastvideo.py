"""FastVideo's own classes of attention.

A program that uses FastVideo on Tenon's platforms may request a backend by name that Tenon does not compute there. If
FastVideo has a class for it, on that platform and machine, the request is answered by that class, and the logger says so.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any, NamedTuple

from .. import _dtypes, errors
from .interface import MissingBackend, logger


class _Class(NamedTuple):
    """Where a class is, below fastvideo.attention.backends, and the module that it needs, "" for none."""

    module: str
    name: str
    needs: str = ""


_CLASSES = {
    "TORCH_SDPA": _Class("sdpa", "SDPABackend"),
    "FLASH_ATTN": _Class("flash_attn", "FlashAttentionBackend", "flash_attn"),
    "SAGE_ATTN": _Class("sage_attn", "SageAttentionBackend", "sageattention"),
    "SAGE_ATTN_THREE": _Class("sage_attn3", "SageAttention3Backend", "sageattn3"),
    "VIDEO_SPARSE_ATTN": _Class("video_sparse_attn", "VideoSparseAttentionBackend", "fastvideo_kernel"),
    "VIDEO_SPARSE_ATTN_H3": _Class("video_sparse_attn_h3", "MiniMaxH3VSABackend", "fastvideo_kernel.block_sparse_attn_256"),
    "ATTN_QAT_INFER": _Class("attn_qat_infer", "AttnQatInferBackend"),
    "ATTN_QAT_TRAIN": _Class("attn_qat_train", "AttnQatTrainBackend"),
    "BSA_ATTN": _Class("bsa_attn", "BSAAttentionBackend"),
    "VMOBA_ATTN": _Class("vmoba", "VMOBAAttentionBackend", "fastvideo_kernel"),
    "SLA_ATTN": _Class("sla", "SLAAttentionBackend"),
    "SAGE_SLA_ATTN": _Class("sla", "SageSLAAttentionBackend", "spas_sage_attn"),
    "NABLA_ATTN": _Class("nabla", "NablaAttentionBackend", "torch.nn.attention.flex_attention"),
}
# The backends that FastVideo has on each platform.
_BACKENDS = {"cuda": tuple(_CLASSES), "rocm": ("TORCH_SDPA", "FLASH_ATTN"), "mps": ("TORCH_SDPA",), "npu": ("TORCH_SDPA",)}


def is_imported() -> bool:
    """Whether the program uses FastVideo."""
    return "fastvideo" in sys.modules


def class_for(platform: str, backend: str, head_size: int, dtype: Any, error: errors.Error) -> str:
    """The dotted path of the class. `error` is why Tenon does not compute the backend; MissingBackend, with the reasons of
    both, if FastVideo does not either."""
    found = _CLASSES.get(backend)
    reason = _lack(platform, backend, head_size, dtype)
    if found is None or reason:
        raise MissingBackend(f"{backend} selected but Tenon does not compute it ({error.message}) and {reason}", error.status,
                             error.where)
    path = f"fastvideo.attention.backends.{found.module}.{found.name}"
    logger.warning("attention: %s by FastVideo's own class, %s, because Tenon does not compute it: %s", backend, path,
                   error.message)
    return path


def _lack(platform: str, backend: str, head_size: int, dtype: Any) -> str:
    """Why FastVideo does not compute the backend; "" if it does."""
    names = _BACKENDS.get(platform, ())
    if backend not in names:
        return f"FastVideo has {', '.join(names) or 'no backend'} on {platform}"
    found = _CLASSES[backend]
    try:
        module = importlib.import_module(f"fastvideo.attention.backends.{found.module}")
        if found.needs:
            importlib.import_module(found.needs)
    except ImportError as error:
        return f"FastVideo's {found.name} cannot be imported: {error}"
    is_available = getattr(module, f"is_{backend.lower()}_available", None)
    if is_available is not None and not is_available():
        return f"FastVideo's {found.name} is not available on this machine"
    sizes = getattr(module, found.name).get_supported_head_sizes()
    if sizes and head_size not in sizes:
        return f"FastVideo's {found.name} has the head sizes {', '.join(map(str, sizes))}"
    if backend == "FLASH_ATTN" and _dtypes.word_of(dtype) not in ("f16", "bf16"):
        return f"FastVideo's {found.name} has the dtypes f16 and bf16"
    return ""


def __dir__() -> list[str]:
    return []
