"""Tenon's attention for models of Diffusers.

>>> import torch
>>> from diffusers import WanTransformer3DModel
>>> from tenon.integrations import diffusers as tenon_diffusers
>>> tenon_diffusers.register()
'tenon'
>>> model = WanTransformer3DModel(num_attention_heads=2, attention_head_dim=16, in_channels=4, out_channels=4,
...                               text_dim=8, freq_dim=16, ffn_dim=32, num_layers=1, rope_max_seq_len=32).eval()
>>> model.set_attention_backend("tenon")
>>> before = tenon_diffusers.calls()
>>> with torch.no_grad():
...     out = model(torch.zeros(1, 4, 1, 4, 4), torch.zeros(1, dtype=torch.int64), torch.zeros(1, 3, 8)).sample
>>> tenon_diffusers.calls() - before         # of a block: to itself, and to the text
2

Every attention of such a model runs in Tenon; `calls()` counts them. `diffusers.models.attention_dispatch.attention_backend`
takes the name, too. Gradients, masks, grouped heads and dropout are honoured; Diffusers' context parallelism is refused,
with its own message.
"""

from __future__ import annotations

from typing import Any, Callable

import torch

from .. import errors
from . import torch as _torch

__all__ = ["calls", "forward", "register"]

_calls = 0


def calls() -> int:
    """How many attentions ran through `forward`, or were traced through it, in this process."""
    return _calls


def _mask_of(mask: torch.Tensor | None, query: torch.Tensor, key: torch.Tensor) -> torch.Tensor | None:
    """A mask of keys for each sequence, [batch, keys], as one of four dimensions."""
    if mask is not None and mask.dim() == 2 and mask.shape == (query.size(0), key.size(1)):
        return mask[:, None, None, :]
    return mask


def forward(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, attn_mask: torch.Tensor | None = None,
            dropout_p: float = 0.0, is_causal: bool = False, scale: float | None = None, enable_gqa: bool = False,
            return_lse: bool = False) -> Any:
    """What Diffusers calls: [batch, length, heads, size] in and out. The lse of return_lse is [batch, queries, heads], as
    Diffusers has it."""
    global _calls
    if not torch.compiler.is_compiling():
        _calls += 1
    mask = _mask_of(attn_mask, query, key)
    query, key, value = (x.transpose(1, 2) for x in (query, key, value))
    if return_lse:
        out, lse = _torch.attend_with_lse(query, key, value, mask, dropout_p, is_causal, scale)
        return out.transpose(1, 2), lse.transpose(1, 2)
    out = _torch.scaled_dot_product_attention(query, key, value, mask, dropout_p, is_causal, scale, enable_gqa)
    return out.transpose(1, 2)


def _name_backend(names: Any, name: str) -> Any:
    """The member of Diffusers' enum of backends with this name, added if there is none: Diffusers looks names up in it,
    and has no function that adds one."""
    if name in names._value2member_map_:
        return names(name)
    member = str.__new__(names, name)
    member._name_, member._value_ = name.upper(), name
    names._member_map_[member._name_] = names._value2member_map_[name] = member
    names._member_names_.append(member._name_)
    return member


def _forward_by(attention: Callable[..., Any]) -> Callable[..., Any]:
    """The same call by another function than attention over everything; what that is not told of is refused."""

    def forward_by(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, attn_mask: torch.Tensor | None = None,
                   dropout_p: float = 0.0, is_causal: bool = False, scale: float | None = None, enable_gqa: bool = False,
                   return_lse: bool = False) -> Any:
        global _calls
        for what, expected, given in (("attn_mask", "None", attn_mask is not None), ("dropout_p", "0", dropout_p),
                                      ("is_causal", "False", is_causal), ("return_lse", "False", return_lse)):
            if given:
                raise errors.UnsupportedError(f"{what}: expected {expected} for a backend that was registered with a function; "
                                              "select another one for this attention", "unsupported", "attention")
        if not torch.compiler.is_compiling():
            _calls += 1
        return attention(query, key, value) if scale is None else attention(query, key, value, scale=scale)

    return forward_by


def register(name: str = "tenon", attention: Callable[..., Any] | None = None) -> str:
    """Makes `model.set_attention_backend(name)` known to Diffusers, and gives the name. Diffusers looks for it in lower
    case. A name of its own, such as "native", is taken over: all models that ask for it then run in Tenon.

    With `attention`, the backend calls that function of query, key and value, [batch, length, heads, size] in and out: one
    of tenon.video's, for example. Select it for the attention of the video to itself alone, by
    `block.attn1.set_attention_backend(name)`; masks, dropout, `is_causal` and `return_lse` are refused. Where a model has
    a scale of its own, the function gets it as `scale`."""
    from diffusers.models import attention_dispatch

    member = _name_backend(attention_dispatch.AttentionBackendName, name.lower())
    attention_dispatch._AttentionBackendRegistry.register(member)(forward if attention is None else _forward_by(attention))
    return str(member.value)


def __dir__() -> list[str]:
    return __all__
