"""Attention over a mixture of chunks of a video (VMoBA): each query sees its own chunk and those that it selects."""

from __future__ import annotations

from typing import NamedTuple

from . import _given, errors, operators
from ._arrays import kind_of, view
from ._video_blocks import (best, check_shapes, descending, grouped, host, like, rounded, scale_of, share, tile_means, unsorted,
                            wide)
from .video import TileGrid, box_of, grid_of, without_empty

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterator, Sequence

    from .video import Box

SELECT = ("threshold", "top")
EQUAL = 1e-6  # gates whose range is at most this count as equal

# By scope: how gates [batch, heads, queries, chunks] are permuted, and how many of the first dimensions are groups.
SCOPES = {"query_head": ((0, 1, 2, 3), 3), "block": ((0, 3, 1, 2), 2), "overall": ((0, 3, 1, 2), 1),
          "head_global": ((0, 1, 3, 2), 2)}


def chunk_box(canvas: Box, chunk: Any) -> Box:
    """The size of a chunk as (frames, rows, columns), within the canvas: of a number of frames, of (rows, columns) for all
    frames, or of all three."""
    if not hasattr(chunk, "__len__"):
        given = (chunk, canvas[1], canvas[2])
    elif len(chunk) == 2:
        given = (canvas[0], *chunk)
    elif len(chunk) == 3:
        given = tuple(chunk)
    else:
        raise errors.invalid("chunk: expected a number of frames, (rows, columns) or (frames, rows, columns), got "
                             f"{len(chunk)} numbers")
    t, h, w = (min(size, most) for size, most in zip(box_of("chunk", given), canvas))
    return t, h, w


def chosen_by_threshold(gates: Any, own: Any, threshold: float) -> Any:
    """True for the greatest other entries of each row, as few as bring the share of own and chosen ones to `threshold`, at
    least one. Shares are of gates from 0 for the least of the row to 1 for the greatest; in a row of equal ones, all are
    chosen."""
    import numpy

    least = gates.min(-1, keepdims=True)
    span = gates.max(-1, keepdims=True) - least
    weights = numpy.where(span > EQUAL, (gates - least) / numpy.where(span > EQUAL, span, 1), 0)
    order = descending(numpy.where(own, -1, weights))
    others = numpy.maximum(numpy.take_along_axis(numpy.where(own, -1, weights), order, -1), 0)
    before = (weights * own).sum(-1, keepdims=True) + others.cumsum(-1) - others
    kept = (before < threshold * weights.sum(-1, keepdims=True)) | (span <= EQUAL)
    kept[..., 0] = True
    return unsorted(kept, order) & ~own


def chosen_by_count(gates: Any, own: Any, count: int) -> Any:
    """True for the other entries among the `count` greatest ones of each row, where own ones come first."""
    import numpy

    return best(numpy.where(own, numpy.inf, gates), count) & ~own


def chunks_to_add(gates: Any, own: Any, select: str, count: int, threshold: float, scope: str) -> Any:
    """NumPy's bool [batch, heads, queries, chunks]: which chunks are selected beside a query's own one."""
    import numpy

    order, groups = SCOPES[scope]
    moved = gates.transpose(order)
    rows = (*moved.shape[:groups], -1)
    flat, own = moved.reshape(rows), numpy.broadcast_to(own, gates.shape).transpose(order).reshape(rows)
    if select == "threshold":
        chosen = chosen_by_threshold(flat, own, threshold)
    else:  # as many entries as each query of the scope has on average
        queries = 1 if scope == "query_head" else gates.shape[2] * (gates.shape[1] if scope == "overall" else 1)
        chosen = chosen_by_count(flat, own, count * queries)
    return chosen.reshape(moved.shape).transpose(numpy.argsort(order))


class Round(NamedTuple):
    """Queries that each see one chunk: the numbers of their rows in [batch, length, heads], and where those of each chunk of
    each head of keys start."""

    rows: Any
    starts: Any


def rounds_of(own: Any, added: Any, key_heads: int) -> Iterator[Round]:
    """First all queries with their own chunk, then those with the first chunk that was added, the second, and so on."""
    import numpy

    batch, heads, length, chunks = added.shape
    turn = numpy.where(own, 0, numpy.where(added, added.cumsum(-1, dtype="int32"), -1))
    for nth in range(int(turn.max()) + 1):
        b, h, query, chunk = numpy.nonzero(turn == nth)
        sequence = (b * key_heads + h // (heads // key_heads)) * chunks + chunk
        order = sequence.argsort(kind="stable")
        counts = numpy.bincount(sequence, minlength=batch * key_heads * chunks)
        yield Round(((b * length + query) * heads + h)[order], numpy.concatenate(([0], counts.cumsum())).astype("int32"))


def attend_in_rounds(q: Any, k: Any, v: Any, grid: TileGrid, own: Any, added: Any, scale: float) -> Any:
    """Attention of each query over its chunks, in f32 or wider: one chunk after the other, merged by their log-sum-exp."""
    import numpy

    batch, length, heads, size = q.shape
    key_heads, word = k.shape[2], wide(q)
    by_chunk = numpy.delete(numpy.asarray(grid.tokens), numpy.asarray(grid.empty, "int64"))
    ends = numpy.concatenate(([0], numpy.cumsum(grid.sizes)))[:-1]
    starts_k = (numpy.arange(batch * key_heads)[:, None] * length + ends).reshape(-1)
    starts_k = like(q, numpy.append(starts_k, batch * key_heads * length).astype("int32"))
    keys, values = (operators.permute(x[:, like(x, by_chunk)], (0, 2, 1, 3)).reshape(-1, 1, x.shape[3]) for x in (k, v))
    queries = q.reshape(-1, 1, size)
    out = kind_of(q).empty(q, view(q), (batch * length * heads, 1, v.shape[3]), word)
    lse = kind_of(q).empty(q, view(q), (batch * length * heads,), word)
    for nth, (rows, starts) in enumerate(rounds_of(own, added, key_heads)):
        rows = like(q, rows)
        part, sums = operators.attention(queries[rows], keys, values, starts_q=like(q, starts), starts_k=starts_k, scale=scale,
                                         layout="blhd", lse=True, dtype=word)
        sums = sums.reshape(-1)
        if nth:
            part, sums = operators.attention_merge(out[rows][None], lse[rows][None, None], part[None], sums[None, None],
                                                   layout="blhd")
            part, sums = part[0], sums[0, 0]
        out[rows], lse[rows] = part, sums
    return out.reshape(batch, length, heads, v.shape[3])


def _check_selection(select: str, scope: str) -> None:
    if select not in SELECT:
        raise errors.invalid(f"select: expected {' or '.join(SELECT)}, got {select!r}")
    if scope not in SCOPES:
        raise errors.invalid(f"scope: expected {', '.join(SCOPES)}; got {scope!r}")
    if select == "top" and scope == "block":
        raise errors.invalid('scope: expected query_head, overall or head_global with select="top", as no number of queries is '
                             'defined for a chunk; got block')


def vmoba_attention(q: Any, k: Any, v: Any, canvas: Sequence[int], chunk: Any, *, select: str = "threshold", count: int = 1,
                    threshold: float = 0.25, scope: str = "query_head", scale: float | None = None) -> Any:
    """Attention over a mixture of chunks, of [batch, length, heads, size] in raster order.

    The canvas is cut into chunks: a number of frames, (rows, columns) that extend over all frames, or (frames, rows,
    columns). Those at the ends may be smaller. The gate of a query and a chunk is the product of the query and the mean of
    the chunk's keys. A query sees its own chunk, and those that its gates select:

    - with `select="threshold"`, the greatest gates, as few as bring the share of own and selected ones to `threshold`, at
      least one. Shares are of gates that are shifted and scaled to 0 to 1. If all gates are equal, all are selected.
    - with `select="top"`, the `count` greatest, own ones among them.

    `scope` says among which gates of a batch element: "query_head": the chunks of each query and head; "block": the queries
    and heads of each chunk; "head_global": the queries and chunks of each head; "overall": all. With "top", a scope has
    `count` gates for each of its queries, and "block" is not defined. Of equal gates, the first ones in the order chunk,
    head, query are selected. What a query sees is computed chunk by chunk and merged by the log-sum-exp.

    >>> import numpy
    >>> from tenon.video import vmoba_attention
    >>> q = k = v = numpy.random.default_rng(0).standard_normal((1, 4 * 6 * 8, 2, 16)).astype("float32")
    >>> vmoba_attention(q, k, v, (4, 6, 8), 1, threshold=0.5).shape              # chunks of one frame
    (1, 192, 2, 16)
    >>> alone = vmoba_attention(q, k, v, (4, 6, 8), (3, 4), select="top", count=1)
    >>> every = vmoba_attention(q, k, v, (4, 6, 8), (3, 4), select="top", count=4)
    >>> import tenon
    >>> numpy.allclose(every, tenon.attention(q, k, v, layout="blhd"), atol=1e-5), numpy.allclose(every, alone)
    (True, False)
    """
    import numpy

    check_shapes(q, k, v)
    _check_selection(select, scope)
    box, scale = box_of("canvas", canvas), scale_of(q, scale)
    grid = grid_of(box, chunk_box(box, chunk))
    means = tile_means(without_empty(grid, k), grid.slots, grid.sizes)
    queries = operators.permute(operators.cast(q, wide(q)), (0, 2, 1, 3))
    gates = operators.matmul(grouped(queries, k.shape[2]), means, transpose_b=True)
    gates = host(gates).reshape(q.shape[0], q.shape[2], q.shape[1], grid.tiles).astype("float64")
    own = numpy.arange(grid.tiles) == (numpy.asarray(grid.places) // grid.slots)[:, None]
    added = chunks_to_add(gates, own, select, _given.number("count", count, 1, _given.INT32[1]), share("threshold", threshold),
                          scope)
    return rounded(attend_in_rounds(q, k, v, grid, own, added, scale), q)
