"""Block-sparse attention and the attentions of videos for PyTorch's tensors, with gradients.

Both passes of block-sparse attention are Tenon's kernels; the order of tiles, the means of cubes, the coarse stage and
the gate are PyTorch's operators, with its gradients. The selection of cubes is that of tenon.video.
"""

from __future__ import annotations

from typing import Any, Callable, Optional, Sequence, Tuple

import torch

from .. import errors, operators, settings, video
from ._shared import autocast, dense, with_lse_gradient

Tensor = torch.Tensor

_TABLES = ("block_mask", "starts", "blocks", "block_sizes")


class _SparseBackward(torch.autograd.Function):
    """The gradients of query, key and value."""

    @staticmethod
    def forward(grad: Tensor, query: Tensor, key: Tensor, value: Tensor, out: Tensor, lse: Tensor,
                options: dict[str, Any], *tables: Any) -> Tuple[Tensor, Tensor, Tensor]:
        into = tuple(torch.empty_like(x) for x in (query, key, value))
        result: Tuple[Tensor, Tensor, Tensor] = operators.attention_sparse_backward(
            dense(grad), query, key, value, out, lse, **dict(zip(_TABLES, tables)), **options, into=into)
        return result

    @staticmethod
    def setup_context(ctx: Any, inputs: Tuple[Any, ...], output: Tuple[Any, ...]) -> None:
        """There is no second backward pass that could need anything."""

    @staticmethod
    def backward(ctx: Any, *grads: Optional[Tensor]) -> Any:
        raise errors.UnsupportedError("no second derivatives of attention", "unsupported", "attention-sparse-backward")


class _Sparse(torch.autograd.Function):
    """attention_sparse of [batch, heads, length, size]: the result and its lse. Tables may be of any library."""

    @staticmethod
    def forward(query: Tensor, key: Tensor, value: Tensor, options: dict[str, Any], dtype: Any,
                *tables: Any) -> Tuple[Tensor, Tensor]:
        batch, heads, length, _ = query.shape
        # Stored as [batch, length, heads, size]: kernels accept the strides of both layouts.
        out = query.new_empty((batch, length, heads, value.size(-1)), dtype=dtype or query.dtype).transpose(1, 2)
        result: Tuple[Tensor, Tensor] = operators.attention_sparse(
            query, key, value, **dict(zip(_TABLES, tables)), **options, out=out, lse=True)
        return result

    @staticmethod
    def setup_context(ctx: Any, inputs: Tuple[Any, ...], output: Tuple[Any, ...]) -> None:
        ctx.set_materialize_grads(False)
        query, key, value, options, _, *tables = inputs
        ctx.options, ctx.settings = options, settings.current()
        ctx.tables = [None if isinstance(one, Tensor) else one for one in tables]
        ctx.save_for_backward(query, key, value, *output, *(one if isinstance(one, Tensor) else None for one in tables))

    @staticmethod
    def backward(ctx: Any, grad: Optional[Tensor], lse_grad: Optional[Tensor]) -> Tuple[Any, ...]:
        query, key, value, out, lse, *tables = ctx.saved_tensors
        if grad is None and lse_grad is None:
            return (None,) * (5 + len(tables))
        grad = torch.zeros_like(out) if grad is None else grad
        grad, out, size = grad.to(query.dtype), out.to(query.dtype), value.size(-1)
        if lse_grad is not None:
            grad, value, out = with_lse_gradient(grad, value, out, lse, lse_grad)
        tables = [kept if saved is None else saved for kept, saved in zip(ctx.tables, tables)]
        with settings.resume(ctx.settings):
            of_query, of_key, of_value = _SparseBackward.apply(  # type: ignore[no-untyped-call]
                grad, query, key, value, out, lse, ctx.options, *tables)
        return (of_query, of_key, of_value[..., :size], *(None,) * (2 + len(tables)))


def _outside_graphs(function: Callable[..., Any]) -> Callable[..., Any]:
    """torch.compile calls it between its graphs. Unlike torch.compiler.disable, this does not import the compiler now."""
    outside: Callable[..., Any] = torch._disable_dynamo(function)
    return outside


def attention_sparse(query: Tensor, key: Tensor, value: Tensor, block_mask: Any = None, *, block: int | tuple[int, int],
                     starts: Any = None, blocks: Any = None, block_sizes: Any = None, causal: bool = False,
                     mask: str | None = None, window: Sequence[int] | None = None, scale: float | None = None,
                     layout: str = "bhld", lse: bool = False, dtype: Any = None) -> Any:
    """tenon.attention_sparse with gradients. Tables may be PyTorch's or of another library; they must not change before
    the backward pass. With lse=True, a pair: the result and its log-sum-exp, [batch, heads, queries], both with gradients.
    `dtype` is one of PyTorch's. torch.compile calls this function outside its graphs.

    >>> import torch
    >>> from tenon.integrations.torch import attention_sparse
    >>> q = torch.ones(1, 1, 4, 16, requires_grad=True)
    >>> out = attention_sparse(q, q, q, torch.tensor([[True, False], [True, True]]), block=2)
    >>> out.sum().backward()
    >>> q.grad[0, 0, :, 0]
    tensor([1.5000, 1.5000, 0.5000, 0.5000])
    """
    query, key, value = autocast(query, key, value)
    turned = bool(operators.layout_number(layout))
    if turned:
        query, key, value = (x.transpose(1, 2) for x in (query, key, value))
    options = {"block": block, "causal": causal, "mask": mask, "window": window, "scale": scale}
    out, sums = _Sparse.apply(query, key, value, options, dtype, block_mask, starts, blocks,  # type: ignore[no-untyped-call]
                              block_sizes)
    out = out.transpose(1, 2) if turned else out
    return (out, sums) if lse else out


attention_sparse = _outside_graphs(attention_sparse)


def sliding_tile_attention(query: Tensor, key: Tensor, value: Tensor, canvas: Sequence[int], windows: Any, *,
                           tile: Sequence[int] = video.SLIDING_TILE, scale: float | None = None) -> Tensor:
    """tenon.video.sliding_tile_attention with gradients."""
    grid = video.grid_of(video.box_of("canvas", canvas), video.box_of("tile", tile))
    if query.size(1) < grid.length:
        raise errors.invalid(f"canvas: expected at most the {query.size(1)} tokens of q, got {grid.length}")
    ordered = (torch.cat((grid.to_tiles(x[:, :grid.length]), x[:, grid.length:]), 1) for x in (query, key, value))
    out = video.tiled_attention(grid, *ordered, windows, scale, attend=attention_sparse)
    slots = grid.tiles * grid.slots
    return torch.cat((grid.to_raster(out[:, :slots]), out[:, slots:]), 1)


class _Selection(torch.autograd.Function):
    """The cubes that tenon.video.cubes_attention selects. They have no gradients."""

    @staticmethod
    def forward(query: Tensor, key: Tensor, grid: video.TileGrid, sparsity: float, scale: float) -> Tensor:
        selected: Tensor = video.select_cubes(grid, query, key, sparsity, scale)
        return selected

    @staticmethod
    def setup_context(ctx: Any, inputs: Tuple[Any, ...], output: Tensor) -> None:
        ctx.mark_non_differentiable(output)

    @staticmethod
    def backward(ctx: Any, *grads: Optional[Tensor]) -> Any:
        return (None,) * 5


def _cubes(grid: video.TileGrid, query: Tensor, key: Tensor, value: Tensor, sparsity: float, gate: Tensor | None = None,
           scale: float | None = None) -> Tensor:
    """The same as cubes_attention; empty slots of the result have any numbers."""
    query, key, value, gate = autocast(query, key, value, gate)
    batch, _, heads, size = query.shape
    narrow, wide = query.dtype, torch.float64 if query.dtype == torch.float64 else torch.float32
    whole = (batch, grid.tiles, grid.slots, heads, -1)
    scale = size ** -0.5 if scale is None else scale
    sizes = torch.tensor(grid.sizes, dtype=wide, device=query.device).reshape(grid.tiles, 1, 1)
    means = ((x.reshape(whole).sum(2, dtype=wide) / sizes).to(narrow).to(wide).transpose(1, 2) for x in (query, key, value))
    coarse_query, coarse_key, coarse_value = means
    coarse = ((coarse_query @ coarse_key.mT * scale).softmax(-1) @ coarse_value).transpose(1, 2).unsqueeze(2)
    selected = _Selection.apply(query, key, grid, sparsity, scale)  # type: ignore[no-untyped-call]
    count = selected.size(-1)
    entries = batch * heads * grid.tiles * count
    starts = torch.arange(0, entries + 1, count, dtype=torch.int32, device=query.device)[:-1].reshape(batch, heads, grid.tiles)
    starts = torch.cat((starts, starts[..., -1:] + count), -1)
    fine = attention_sparse(query, key, value, block=grid.slots, starts=starts, blocks=selected.reshape(-1),
                            block_sizes=None if grid.is_whole else video.beside(query, grid.sizes), scale=scale,
                            layout="blhd", dtype=wide)
    out: Tensor = fine.reshape(whole) + (coarse if gate is None else coarse * gate.reshape(whole))
    return out.reshape(value.shape).to(narrow)


def cubes_attention(grid: video.TileGrid, query: Tensor, key: Tensor, value: Tensor, sparsity: float,
                    gate: Tensor | None = None, scale: float | None = None) -> Tensor:
    """tenon.video.cubes_attention with gradients: of [batch, slots, heads, size], whose empty slots are 0."""
    out: Tensor = video.clear_empty(grid, _cubes(grid, query, key, value, sparsity, gate, scale))
    return out


def video_sparse_attention(query: Tensor, key: Tensor, value: Tensor, canvas: Sequence[int], sparsity: float, *,
                           gate: Tensor | None = None, tile: Sequence[int] = video.CUBE) -> Tensor:
    """tenon.video.video_sparse_attention with gradients of the coarse stage, the gate and the fine stage. The selection of
    cubes has none; it is that of tenon.video.video_sparse_attention."""
    grid = video.grid_of(video.box_of("canvas", canvas), video.box_of("tile", tile))
    tiled = (video.without_empty(grid, x) for x in (query, key, value))
    out: Tensor = grid.to_raster(_cubes(grid, *tiled, sparsity, None if gate is None else grid.to_tiles(gate)))
    return out


sliding_tile_attention, cubes_attention, video_sparse_attention = map(
    _outside_graphs, (sliding_tile_attention, cubes_attention, video_sparse_attention))
