"""Tenon's attention for models of Transformers.

>>> import torch, transformers
>>> from tenon.integrations import transformers as tenon_transformers
>>> tenon_transformers.register()
'tenon'
>>> config = transformers.LlamaConfig(vocab_size=16, hidden_size=32, intermediate_size=32, num_hidden_layers=2,
...                                   num_attention_heads=4, num_key_value_heads=2)
>>> model = transformers.LlamaForCausalLM._from_config(config, attn_implementation="tenon").eval()
>>> before = tenon_transformers.calls()
>>> with torch.no_grad():
...     scores = model(torch.zeros(1, 8, dtype=torch.int64)).logits
>>> tenon_transformers.calls() - before
2

Every attention of such a model runs in Tenon; `calls()` counts them; `from_pretrained` takes the same option. Grouped
heads, masks, soft caps and sinks are honoured; the weights themselves (output_attentions) are refused.
"""

from __future__ import annotations

from typing import Any

import torch

from .. import errors
from . import torch as _torch

__all__ = ["calls", "forward", "register"]

_calls = 0


def calls() -> int:
    """How many attentions ran through `forward`, or were traced through it, in this process."""
    return _calls


def forward(module: torch.nn.Module, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor,
            attention_mask: torch.Tensor | None, dropout: float = 0.0, scaling: float | None = None,
            is_causal: bool | None = None, softcap: float | None = None,
            s_aux: torch.Tensor | None = None, position_bias: torch.Tensor | None = None,
            **kwargs: Any) -> tuple[torch.Tensor, None]:
    """What Transformers calls: [batch, heads, length, size] in, [batch, length, heads, size] out."""
    global _calls
    if not torch.compiler.is_compiling():
        _calls += 1
    if kwargs.get("output_attentions"):
        raise errors.UnsupportedError("no weights of attention (output_attentions=True); models with "
                                      'attn_implementation="eager" give them', "unsupported", "transformers")
    if kwargs.get("cache") is not None:
        raise errors.UnsupportedError("no paged caches of Transformers yet; leave them out",
                                      "unsupported", "transformers")
    causal = getattr(module, "is_causal", True) if is_causal is None else is_causal
    causal = attention_mask is None and bool(causal) and query.size(2) > 1
    mask = attention_mask if position_bias is None else _with_bias(attention_mask, position_bias)
    if mask is not None and not query.is_cpu:
        mask = added(mask, _torch.autocast_dtype(query))  # once for all layers, where a kernel would make it in each
    out = _torch.attend(query, key, value, mask, dropout, causal, scaling, "", softcap or 0.0, s_aux, True)
    return out.contiguous(), None


def added(mask: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """A mask of bool as one that is added to the scores. What it has once for all queries or heads, as
    padding is, it has once afterwards. It is kept with the mask, which every layer is given."""
    if mask.dtype != torch.bool:
        return mask
    known = None  # of what a compiler traces, or of an inference tensor, no changes are counted
    captured = mask.is_cuda and torch.cuda.is_current_stream_capturing()  # a replay makes it anew
    if not torch.compiler.is_compiling() and not mask.is_inference() and not captured:
        known = (dtype, mask._version)
        kept = getattr(mask, "_tenon_added", None)
        if kept and kept[0] == known:
            before: torch.Tensor = kept[1]
            return before
    once = mask[tuple(slice(0, 1) if step == 0 else slice(None) for step in mask.stride())]
    made = torch.zeros(once.shape, dtype=dtype, device=mask.device).masked_fill_(~once, float("-inf"))
    wide = made.expand(mask.shape)
    if known:
        mask._tenon_added = (known, wide)  # type: ignore[attr-defined]
    return wide


def _with_bias(mask: torch.Tensor | None, bias: torch.Tensor) -> torch.Tensor:
    """A bias of positions is added to the scores, on top of the mask."""
    if mask is None:
        return bias
    if mask.dtype == torch.bool:
        return torch.where(mask, bias, float("-inf"))
    return mask + bias


def register(name: str = "tenon") -> str:
    """Makes `attn_implementation=name` known to Transformers, masks included, and gives the name."""
    from transformers import AttentionInterface
    from transformers.masking_utils import AttentionMaskInterface, sdpa_mask

    AttentionInterface.register(name, forward)
    AttentionMaskInterface.register(name, sdpa_mask)
    return name


def __dir__() -> list[str]:
    return __all__
