"""Gradient of attention's additive mask: the gradient of the scores, summed over what the mask has once for all.

No kernel computes it, as flash kernels never store scores; here PyTorch's operators compute them anew, some rows at a
time.
"""

from __future__ import annotations

import torch

Tensor = torch.Tensor

_MOST_SCORES = 1 << 22  # at a time: 16 MiB of float32


def _of_heads(x: Tensor, heads: int, dtype: torch.dtype) -> Tensor:
    """Keys or values, repeated for every query head."""
    return x.to(dtype).repeat_interleave(heads // x.size(1), 1)


def _scores(query: Tensor, key: Tensor, scale: float | None, softcap: float) -> Tensor:
    scores = query @ key.mT * (query.size(-1) ** -0.5 if scale is None else scale)
    return softcap * torch.tanh(scores / softcap) if softcap else scores


def mask_gradient(grad: Tensor, query: Tensor, key: Tensor, value: Tensor, out: Tensor, lse: Tensor, mask: Tensor,
                  causal: bool, scale: float | None, softcap: float) -> Tensor:
    """Gradient of a mask of four dimensions, in its dtype."""
    batch, heads, queries, _ = query.shape
    keys, wide = key.size(2), lse.dtype
    key, value = (_of_heads(x, heads, wide) for x in (key, value))
    result = torch.zeros(mask.shape, dtype=wide, device=mask.device)
    step = max(1, _MOST_SCORES // max(1, batch * heads * keys))
    for start in range(0, queries, step):
        rows = slice(start, min(start + step, queries))
        seen = mask if mask.size(2) == 1 else mask[:, :, rows]
        scores = _scores(query[:, :, rows].to(wide), key, scale, softcap) + seen.to(wide)
        if causal:
            at = torch.arange(queries, device=query.device)[rows]
            scores = scores.masked_fill(torch.arange(keys, device=query.device) > at[:, None], float("-inf"))
        weights = torch.exp(scores - lse[:, :, rows, None]).nan_to_num(0.0)  # 0 where a query sees no key
        given, made = grad[:, :, rows].to(wide), out[:, :, rows].to(wide)
        gradient = weights * (given @ value.mT - (given * made).sum(-1, keepdim=True))
        part = result if mask.size(2) == 1 else result[:, :, rows]
        part += gradient.sum_to_size(part.shape)
    return result.to(mask.dtype)
