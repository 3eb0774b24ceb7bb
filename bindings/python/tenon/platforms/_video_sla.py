"""The layers of FastVideo's backend SLA_ATTN."""

from __future__ import annotations

import dataclasses
import importlib
from types import SimpleNamespace
from typing import Any

from .. import _video_sla, errors, operators
from .._video_blocks import host, rounded, wide
from ..video import is_torch
from ._video_sparse import InOrderImpl
from .attention import AttentionMetadata, AttentionMetadataBuilder


def _find_torch() -> Any:
    try:
        return importlib.import_module("torch")
    except ImportError:
        return None


torch = _find_torch()
Module: Any = object if torch is None else torch.nn.Module


@dataclasses.dataclass
class SlaMetadata(AttentionMetadata):
    """What a step tells layers of SLA_ATTN: the share of key blocks that are seen, in place of the layer's own."""

    topk_ratio: float = 0.5


class SlaMetadataBuilder(AttentionMetadataBuilder):
    """Makes metadata for a step."""

    def build(self, current_timestep: int = 0, attn_mask: Any = None, *, topk_ratio: float = 0.5, **fields: Any) -> SlaMetadata:
        """Metadata of these. Other fields are ignored."""
        return SlaMetadata(current_timestep, attn_mask=attn_mask, topk_ratio=topk_ratio)


class SlaImpl(InOrderImpl, Module):  # type: ignore[misc]
    """A layer of SLA_ATTN, a module of PyTorch's where that is installed: its projection of the linear part, `proj_l`, is
    loaded and trained with the model. It begins as 0. `topk_ratio` is of calls without metadata."""

    def __init__(self, num_heads: int, head_size: int, softmax_scale: float | None = None, causal: bool = False,
                 num_kv_heads: int | None = None, prefix: str = "", dropout_p: float = 0.0, topk_ratio: float = 0.1,
                 feature_map: str = "softmax", BLKQ: int = 128, BLKK: int = 64, **extra: Any) -> None:
        if torch is not None:
            torch.nn.Module.__init__(self)
        super().__init__(num_heads, head_size, softmax_scale, causal, num_kv_heads, prefix, dropout_p, **extra)
        if feature_map not in _video_sla.FEATURE_MAPS:
            raise errors.invalid(f"feature_map: expected {', '.join(_video_sla.FEATURE_MAPS)}; got {feature_map!r}",
                                 "attention")
        self.topk_ratio, self.feature_map, self.block = topk_ratio, feature_map, (BLKQ, BLKK)
        self.proj_l = self._projection()

    def _projection(self) -> Any:
        """A linear layer of zeros: PyTorch's, or without it weight and bias of NumPy's."""
        if torch is None:
            import numpy

            return SimpleNamespace(weight=numpy.zeros((self.head_size, self.head_size), "float32"),
                                   bias=numpy.zeros(self.head_size, "float32"))
        layer = torch.nn.Linear(self.head_size, self.head_size)
        torch.nn.init.zeros_(layer.weight)
        torch.nn.init.zeros_(layer.bias)
        return layer

    def forward(self, query: Any, key: Any, value: Any, *given: Any, gate_compress: Any = None,
                attn_metadata: Any = None) -> Any:
        """Attention of tokens in the model's order. Parameters of `proj_l` get gradients, the query, key and value none."""
        if not any(one is not None for one in (*given, attn_metadata)):
            attn_metadata = SlaMetadata(0, topk_ratio=self.topk_ratio)
        step = self.ungated(query, key, value, given, gate_compress, attn_metadata, SlaMetadata)
        sparse, part = _video_sla.sla_parts(query, key, value, step.topk_ratio, self.block, self.feature_map,
                                            self.softmax_scale)
        weight, bias = self.proj_l.weight, self.proj_l.bias
        if is_torch(query):
            projected = torch.nn.functional.linear(part, weight.to(part.dtype), bias.to(part.dtype))
            return (sparse + projected).to(query.dtype)
        weight, bias = (operators.cast(host(x), wide(query)) for x in (weight, bias))
        return rounded(sparse + operators.matmul(part, weight, transpose_b=True, bias=bias), query)


LAYERS = {"SLA_ATTN": (SlaMetadata, SlaMetadataBuilder, SlaImpl)}
