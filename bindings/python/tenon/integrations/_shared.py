"""What the functions with gradients for PyTorch's tensors share: autocasting, and the gradient of log-sum-exps."""

from __future__ import annotations

from typing import Any, List, Optional, Tuple

import torch

Tensor = torch.Tensor


def autocast_dtype(x: Tensor) -> torch.dtype:
    """The dtype in which torch.autocast, where it is on for the tensor's device, would have it; else its own."""
    place = x.device.type
    if x.is_meta or not torch.is_autocast_enabled(place) or not x.is_floating_point() or x.dtype == torch.float64:
        return x.dtype
    return torch.get_autocast_dtype(place)


def autocast(*operands: Optional[Tensor]) -> List[Any]:
    """Operands as torch.autocast gives them to PyTorch's own attention."""
    return [x if x is None or x.dtype == autocast_dtype(x) else x.to(autocast_dtype(x)) for x in operands]


def dense(x: Tensor) -> Tensor:
    """What is the same numbers over and over, as a sum's gradient is, is written out off the host, where kernels do
    not read such."""
    return x.contiguous() if x.device.type != "cpu" and 0 in x.stride() else x


_LSE_COLUMNS = 8  # at least 3, and a head size that kernels take


def with_lse_gradient(grad: Tensor, value: Tensor, out: Tensor, lse: Tensor,
                      lse_grad: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
    """The gradient of the scores is weights * (grad @ value.mT - sum(grad * out) + lse_grad). Kernels compute it without
    the last term, so columns are added that subtract it from the sum of a row: 1 in grad, 0 in value, and in out the
    parts of -lse_grad, which are rounded to out's dtype."""
    rest = torch.where(lse == float("-inf"), 0, -lse_grad)  # a query without keys has no weights
    parts = []
    for _ in range(3 if out.dtype.itemsize < 4 else 1):
        parts.append(rest.to(out.dtype))
        rest = rest - parts[-1]
    columns = torch.stack(parts, -1)
    empty = _LSE_COLUMNS - len(parts)
    pad = torch.nn.functional.pad
    return (torch.cat((grad, pad(torch.ones_like(columns), (0, empty))), -1), pad(value, (0, _LSE_COLUMNS)),
            torch.cat((out, pad(columns, (0, empty))), -1))
