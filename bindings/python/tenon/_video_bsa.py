"""Attention that is sparse in queries and in keys (BSA)."""

from __future__ import annotations

from math import floor

from . import _dtypes, _given, operators
from ._video_blocks import (attend, block_scores, check_shapes, descending, host, like, probabilities, rounded, scale_of, share,
                            tile_means, unsorted, wide)
from .video import CUBE, TileGrid, box_of, grid_of, is_torch, without_empty

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Sequence


def queries_to_keep(share_kept: float, tokens: int) -> int:
    """floor(share tokens), at least 1."""
    return max(floor(round(share_kept * tokens, 9)), 1)


def likeness(q: Any, sizes: Any) -> Any:
    """The cosine of the angle between each query and the middle one of its tile, [..., tiles, slots] of NumPy; of a query of
    zeros it is 0. `q` is [..., tiles, slots, size]; the middle of n tokens is token n // 2."""
    import numpy

    lengths = numpy.sqrt((q * q).sum(-1, keepdims=True))
    unit = q / numpy.maximum(lengths, 1e-12)
    middle = unit[..., numpy.arange(len(sizes)), sizes // 2, :]
    return (unit * middle[..., None, :]).sum(-1)


def kept_queries(q: Any, grid: TileGrid, keep: float) -> tuple[Any, Any]:
    """True for the queries that are kept, [batch, heads, tiles, slots], and how many they are in each tile. They are the ones
    that are least like the middle one, of equal ones the first."""
    import numpy

    sizes = numpy.asarray(grid.sizes)
    counts = numpy.array([queries_to_keep(keep, int(n)) for n in sizes])
    batch, _, heads, size = q.shape
    queries = host(operators.permute(operators.cast(q, wide(q)), (0, 2, 1, 3)))
    alike = likeness(queries.reshape(batch, heads, grid.tiles, grid.slots, size), sizes)
    alike = numpy.where(numpy.arange(grid.slots) < sizes[:, None], alike, numpy.inf)
    first = numpy.broadcast_to(numpy.arange(grid.slots) < counts[:, None], alike.shape)
    return unsorted(first, descending(-alike)), counts


def slots_of(kept: Any, counts: Any) -> Any:
    """The slots of the queries that are kept, ascending, [..., tiles, most]. Tiles that keep fewer than the most repeat the
    last one."""
    import numpy

    slots = numpy.argsort(~kept, -1, kind="stable")[..., :counts.max()]
    last = numpy.minimum(numpy.arange(counts.max()), counts[:, None] - 1)
    return numpy.take_along_axis(slots, numpy.broadcast_to(last, slots.shape), -1)


def nearest_kept(kept: Any) -> Any:
    """For each slot of a tile, how many queries are kept before the kept one that is nearest; of two, the one before it."""
    import numpy

    slots = numpy.arange(kept.shape[-1], dtype="int32")
    far = numpy.int32(2 * len(slots))
    before = numpy.maximum.accumulate(numpy.where(kept, slots, -far), -1)
    after = numpy.minimum.accumulate(numpy.where(kept, slots, far)[..., ::-1], -1)[..., ::-1]
    nearest = numpy.where(slots - before <= after - slots, before, after)
    return numpy.take_along_axis(kept.cumsum(-1, dtype="int32") - 1, nearest, -1)


def blocks_to_admit(weights: Any, mass: float, least: int) -> Any:
    """True for the greatest blocks: each one before which the sum is less than `mass`, and at least `least` ones."""
    import numpy

    order = descending(weights)
    sorted_ = numpy.take_along_axis(weights, order, -1)
    before = sorted_.cumsum(-1) - sorted_
    return unsorted((before < mass) | (numpy.arange(weights.shape[-1]) < max(least, 1)), order)


def gather(x: Any, index: Any) -> Any:
    """Rows of dimension 1 of [batch, length, heads, size], by NumPy's [batch, rows, heads]."""
    index = like(x, index)[..., None]
    if is_torch(x):
        return x.gather(1, index.expand(-1, -1, -1, x.shape[3]))
    import numpy

    return numpy.take_along_axis(x, index, 1)


def tiles_attention(grid: TileGrid, q: Any, k: Any, v: Any, keep: float, mass: float, least: int, scale: float | None) -> Any:
    """BSA of tokens in the order of slots; empty slots are 0."""
    import numpy

    scale, batch, heads = scale_of(q, scale), q.shape[0], q.shape[2]
    chosen, counts = kept_queries(q, grid, share("keep", keep))
    slots, most = slots_of(chosen, counts), int(counts.max())
    first = numpy.arange(grid.tiles).reshape(-1, 1) * grid.slots
    rows = (slots + first).reshape(batch, heads, -1).transpose(0, 2, 1)
    kept = gather(q, rows)
    alone = like(q, (numpy.arange(most) < counts[:, None]).astype(_dtypes.NAME[wide(q)]).reshape(-1, 1, 1))
    mean_q = tile_means(operators.cast(kept, wide(q)) * alone, most, counts)
    weights = probabilities(block_scores(mean_q, tile_means(k, grid.slots, grid.sizes), scale))
    seen = blocks_to_admit(weights, share("mass", mass), _given.number("least", least, 0, _given.INT32[1]))
    out = attend(kept, k, v, seen, (most, grid.slots), grid.sizes, scale)
    back = nearest_kept(chosen) + numpy.arange(grid.tiles).reshape(-1, 1) * most
    return rounded(gather(out, back.reshape(batch, heads, -1).transpose(0, 2, 1)), q)


def bsa_attention(q: Any, k: Any, v: Any, canvas: Sequence[int], *, keep: float = 0.5, mass: float = 0.9, least: int = 4,
                  tile: Sequence[int] = CUBE, scale: float | None = None) -> Any:
    """Attention of the queries that differ most, over the blocks that matter most, of [batch, length, heads, size] in raster
    order.

    In each tile of n tokens, the floor(keep n) queries are kept, at least one, whose cosine with the middle token, n // 2,
    is least; of equal ones the first. The probability of a block of keys is the softmax of scale times the product of the
    mean of the kept queries and the mean of the keys. Blocks are admitted from the greatest on, each one before which
    the sum is less than `mass`, and at least `least` of them. The result of a query that was not kept is that of the kept
    one that is nearest to it in its tile, of two the one before it.

    >>> import numpy
    >>> from tenon.video import bsa_attention
    >>> q = k = v = numpy.random.default_rng(0).standard_normal((1, 4 * 8 * 8, 2, 16)).astype("float32")
    >>> out = bsa_attention(q, k, v, (4, 8, 8), keep=0.25, mass=0.5, least=1)
    >>> out.shape, len(numpy.unique(out[0, :, 0, 0]))                  # 16 of 64 queries in each of 4 tiles
    ((1, 256, 2, 16), 64)
    """
    check_shapes(q, k, v)
    grid = grid_of(box_of("canvas", canvas), box_of("tile", tile))
    q, k, v = (without_empty(grid, x) for x in (q, k, v))
    return grid.to_raster(tiles_attention(grid, q, k, v, keep, mass, least, scale))
