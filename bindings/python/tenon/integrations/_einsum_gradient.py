"""einsum for PyTorch with gradients, of any order: the gradient of an operand is an einsum of the result's gradient and the
other operands."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Tuple

import torch

from .. import _einsum

Tensor = torch.Tensor
Shapes = Tuple[Tuple[int, ...], ...]


@lru_cache(256)
def _explicit(equation: str, shapes: Shapes) -> tuple[tuple[str, ...], str, dict[str, int]]:
    """The labels of each operand and of the result, without "...", and their sizes."""
    operands, result = _einsum.einsum_path(equation, *shapes, strategy="left")[1].eq.split("->")
    parts = tuple(operands.split(","))
    sizes: dict[str, int] = {}
    for part, shape in zip(parts, shapes):
        for label, size in zip(part, shape):
            sizes[label] = size if sizes.get(label, 1) == 1 else sizes[label]
    return parts, result, sizes


def _gradient(at: int, equation: str, gradient: Tensor, operands: tuple[Tensor, ...]) -> Tensor:
    """The gradient of operand `at`."""
    parts, result, sizes = _explicit(equation, tuple(tuple(one.shape) for one in operands))
    shape = operands[at].shape
    own = dict(zip(parts[at], shape))
    others = [k for k in range(len(parts)) if k != at]
    present = {*result}.union(*(parts[k] for k in others))
    # Labels that the operand broadcasts are summed; those that no other has are repeated.
    kept = [label for label in own if label in present and own[label] == sizes[label]]
    text = ",".join([result, *(parts[k] for k in others)]) + "->" + "".join(kept)
    found = einsum(text, gradient, *(operands[k].conj() for k in others))
    for position, label in enumerate(own):
        if label not in kept:
            found = found.unsqueeze(position)
    found = found.expand([*own.values()])
    axes = [*own]  # labels of the dimensions of `found`
    for position, label in enumerate(parts[at]):
        if parts[at].index(label) < position:  # repeated: only the diagonal has a gradient
            before = axes.index(label)
            found = torch.diag_embed(found.movedim(before, -1), dim1=before, dim2=found.dim())
            axes.append(label)
    # Those that are repeated were added at the end: to their places.
    last = {label: [k for k, one in enumerate(axes) if one == label] for label in own}
    return found.permute([last[label].pop(0) for label in parts[at]])


def _plain(one: Any) -> Any:
    """An operand in memory as it is: not lazily conjugated or negated."""
    return one.detach().resolve_conj().resolve_neg() if isinstance(one, Tensor) else one


class _Einsum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, equation: str, options: dict[str, Any], *operands: Tensor) -> Tensor:
        ctx.equation = equation
        ctx.save_for_backward(*operands)
        return _einsum.einsum(equation, *map(_plain, operands), **options)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Any, ...]:
        operands = ctx.saved_tensors
        return (None, None, *(
            _gradient(at, ctx.equation, gradient, operands) if ctx.needs_input_grad[at + 2] else None
            for at in range(len(operands))))


def einsum(*given: Any, strategy: str | None = None, path: Any = None, memory_limit: int | None = None, seed: int = 0,
           search_time: float | None = None) -> Tensor:
    """tenon.einsum of PyTorch's tensors with gradients, also second ones; its options are those of tenon.einsum, without `out`.
    Backward passes compute einsums of the result's gradient and the other operands, in the settings that hold then, along
    paths of their own."""
    equation, operands = _einsum._parse(given)
    options = {"strategy": strategy, "path": path, "memory_limit": memory_limit, "seed": seed, "search_time": search_time}
    if torch.is_grad_enabled() and any(isinstance(one, Tensor) and one.requires_grad for one in operands):
        result: Tensor = _Einsum.apply(equation, options, *operands)  # type: ignore[no-untyped-call]
        return result
    return _einsum.einsum(equation, *map(_plain, operands), **options)
