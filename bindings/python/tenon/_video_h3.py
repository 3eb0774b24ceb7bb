"""Video sparse attention of packed sequences: text and other segments in front of a video (VIDEO_SPARSE_ATTN_H3)."""

from __future__ import annotations

from array import array
from functools import lru_cache

from . import _given, errors, operators
from ._video_blocks import (attend, best, block_scores, check_shapes, grouped, host, rounded, scale_of, tile_means, wide)
from .video import TileGrid, blocks_to_keep, box_of, without_empty

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Sequence

    from .video import Box

MODES = ("exempt", "compete")
TILE = (4, 8, 8)


class PackedGrid(TileGrid):
    """Segments of tokens, each in tiles of its own, and behind them a canvas in tiles.

    >>> grid = PackedGrid((1, 1, 3), (1, 1, 2), [3, 1])
    >>> grid.prefix_tiles, grid.tiles, list(grid.sizes), list(grid.tokens)
    (3, 5, [2, 1, 1, 2, 1], [0, 1, 2, 2, 3, 3, 4, 5, 6, 6])
    """

    def __init__(self, canvas: Sequence[int], tile: Sequence[int], prefix: Sequence[int]) -> None:
        super().__init__(canvas, tile)
        tokens, sizes, places = array("q"), array("i"), array("q")
        for segment in prefix:
            self._add_segment(segment, tokens, sizes, places)
        self.prefix_length, self.prefix_tiles = len(places), len(sizes)
        shift = len(tokens)
        self.empty = array("q", [slot for slot in range(shift) if slot % self.slots >= sizes[slot // self.slots]] +
                           [slot + shift for slot in self.empty])
        self.tokens = tokens + array("q", [token + self.prefix_length for token in self.tokens])
        self.places = places + array("q", [place + shift for place in self.places])
        self.sizes, self.tiles, self.length = sizes + self.sizes, self.tiles + len(sizes), self.length + len(places)

    def _add_segment(self, segment: int, tokens: array[int], sizes: array[int], places: array[int]) -> None:
        first = len(places)
        for at in range(first, first + segment, self.slots):
            size = min(self.slots, first + segment - at)
            places.extend(range(len(tokens), len(tokens) + size))
            tokens.extend([*range(at, at + size), *[at] * (self.slots - size)])
            sizes.append(size)

    def _check(self, x: Any, length: int, what: str) -> None:
        if x.shape[1] != length:
            raise errors.invalid(f"prefix: expected {length} {what} in dimension 1, those of {self.prefix_length} tokens and "
                                 f"of a canvas of {self.canvas} in tiles of {self.tile}; got {x.shape[1]}")


@lru_cache(16)
def packed_grid_of(canvas: Box, tile: Box, prefix: tuple[int, ...]) -> PackedGrid:
    """The same grid for equal arguments."""
    return PackedGrid(canvas, tile, prefix)


def segments_of(prefix: Any) -> tuple[int, ...]:
    """The lengths of the segments; empty ones are left out."""
    given = (prefix,) if not hasattr(prefix, "__iter__") else prefix
    return tuple(size for size in (_given.number("prefix", one, 0, _given.INT32[1]) for one in given) if size)


def blocks_to_see(scores: Any, prefix: int, sparsity: float, mode: str) -> Any:
    """NumPy's bool of scores [..., tiles, tiles] whose first `prefix` tiles are not video."""
    if mode not in MODES:
        raise errors.invalid(f"mode: expected {' or '.join(MODES)}, got {mode!r}")
    tiles = scores.shape[-1]
    count = blocks_to_keep(sparsity, tiles - prefix)
    if mode == "compete":
        seen = best(scores, count + prefix)
    else:
        seen = best(scores, tiles)
        seen[..., prefix:] = best(scores[..., prefix:], count)
    seen[..., :prefix, :] = True
    return seen


def packed_attention(grid: PackedGrid, q: Any, k: Any, v: Any, sparsity: float, mode: str = "exempt", gate: Any = None,
                     scale: float | None = None) -> Any:
    """Video sparse attention of tokens in the order of slots; empty slots are 0."""
    batch, length, heads, _ = q.shape
    scale = scale_of(q, scale)
    mean_q, mean_k = (tile_means(x, grid.slots, grid.sizes) for x in (q, k))
    scores = block_scores(mean_q, mean_k, scale)
    seen = blocks_to_see(host(scores), grid.prefix_tiles, sparsity, mode)
    out = attend(q, k, v, seen, grid.slots, grid.sizes, scale)
    if gate is not None:
        mean_v = tile_means(v, grid.slots, grid.sizes)
        weights = grouped(operators.softmax(scores, -1), mean_v.shape[1])
        coarse = operators.matmul(weights, mean_v).reshape(batch, heads, grid.tiles, -1)
        spread = operators.permute(coarse, (0, 2, 1, 3)).reshape(batch, grid.tiles, 1, heads, -1)
        gates = operators.cast(gate, wide(q)).reshape(batch, grid.tiles, grid.slots, heads, -1)
        out = out + (spread * gates).reshape(out.shape)
    return rounded(out, q)


def video_sparse_h3_attention(q: Any, k: Any, v: Any, canvas: Sequence[int], sparsity: float, *, prefix: Any = (),
                              mode: str = "exempt", gate: Any = None, tile: Sequence[int] = TILE,
                              scale: float | None = None) -> Any:
    """Video sparse attention of a packed sequence, of [batch, length, heads, size]: first the segments of `prefix`, a number
    of tokens or several (text, frames of a condition, sound), then the video in raster order.

    Each segment is cut into tiles of its own, with as many tokens as a tile of the video has; the last one may have fewer.
    The score of two tiles is scale times the product of the means of queries and keys. Queries of the prefix see everything.
    Queries of the video see the ceil((1 - sparsity) tiles) best tiles of the video, at least one, and with mode "exempt"
    the whole prefix; with "compete" the same number plus that of the prefix's tiles, the best of all tiles. Of equal scores
    the first ones are taken.

    With a gate, an array of q's shape, the result is that plus the gate times the coarse stage, attention of the tiles'
    means; without one, the coarse stage is left out.

    >>> import numpy
    >>> from tenon.video import video_sparse_h3_attention
    >>> q = k = v = numpy.ones((1, 20 + 7 + 4 * 16 * 16, 2, 16), "float32")
    >>> video_sparse_h3_attention(q, k, v, (4, 16, 16), 0.75, prefix=(20, 7))[0, 0, 0, :2]
    array([1., 1.], dtype=float32)
    >>> video_sparse_h3_attention(q, k, v, (4, 16, 16), 0.75, prefix=(20, 7), gate=q)[0, 0, 0, :2]
    array([2., 2.], dtype=float32)
    """
    check_shapes(q, k, v)
    grid = packed_grid_of(box_of("canvas", canvas), box_of("tile", tile), segments_of(prefix))
    if gate is not None and tuple(gate.shape[:3]) != tuple(q.shape[:3]):
        raise errors.invalid(f"gate: expected the shape of q, {tuple(q.shape)}, got {tuple(gate.shape)}")
    q, k, v = (without_empty(grid, x) for x in (q, k, v))
    gate = None if gate is None else grid.to_tiles(gate)
    return grid.to_raster(packed_attention(grid, q, k, v, sparsity, mode, gate, scale))
