"""The layer of FastVideo's backend with 8-bit queries and keys: SAGE_ATTN."""

from __future__ import annotations

from typing import Any

from .. import errors, operators
from .attention import AttentionImpl, given_of, is_differentiated


class QuantizedImpl(AttentionImpl):
    """A layer's attention with scores of 8-bit integers. `weights` is the precision of the second product, as
    tenon.attention_quantized has it. The scale and the causal mask are honoured; other masks, dropout and gradients are
    refused."""

    def __init__(self, num_heads: int, head_size: int, softmax_scale: float | None = None, causal: bool = False,
                 num_kv_heads: int | None = None, prefix: str = "", dropout_p: float = 0.0, weights: Any = "u8",
                 **extra: Any) -> None:
        super().__init__(num_heads, head_size, softmax_scale, causal, num_kv_heads, prefix, dropout_p, **extra)
        self.weights = weights
        if self.dropout_p:
            raise self._refusal("dropout_p: expected 0", str(self.dropout_p))

    def _refusal(self, expected: str, found: str) -> errors.UnsupportedError:
        return errors.UnsupportedError(f"{expected} for {self.backend}, got {found}", "unsupported", "attention")

    def forward(self, query: Any, key: Any, value: Any, *given: Any, gate_compress: Any = None,
                attn_metadata: Any = None) -> Any:
        """Attention of [batch, length, heads, size], in an array of the query's library."""
        gate, metadata = given_of(given, gate_compress, attn_metadata)
        if gate is not None:
            raise self._refusal("gate_compress: expected None", "an array")
        self._check(query, key, value)
        causal = self.causal or bool(getattr(metadata, "is_causal", False))
        if getattr(metadata, "attn_mask", None) is not None and not (causal and not self.causal):
            raise self._refusal("attn_mask: expected None, or a mask that is exactly causal, with is_causal", "a mask")
        if is_differentiated(query, key, value):
            raise self._refusal("query: expected tensors that require no gradients", "some that do; use torch.no_grad()")
        return operators.attention_quantized(query, key, value, weights=self.weights, causal=causal,
                                             scale=self.softmax_scale, layout="blhd")
