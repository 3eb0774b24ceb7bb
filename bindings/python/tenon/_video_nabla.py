"""Attention over the blocks that have most of the probability, or that are near (NABLA)."""

from __future__ import annotations

from math import prod

from . import errors
from ._video_blocks import (attend, block_means, block_scores, check_shapes, descending, host, probabilities, rounded,
                            scale_of, share, tile_means, unsorted)
from .video import TileGrid, box_of, grid_of, without_empty

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Sequence

TILE = (1, 8, 8)


def near_blocks(grid: TileGrid, window: Sequence[int]) -> Any:
    """NumPy's bool [tiles, tiles]: whether two tiles are within half a window (rounded down) of each other on every axis.
    At the ends of the canvas the window is cut off, not moved inward as that of sliding tiles is.

    >>> from tenon.video import TileGrid
    >>> near_blocks(TileGrid((1, 1, 12), (1, 1, 4)), (1, 1, 3)).astype(int)
    array([[1, 1, 0],
           [1, 1, 1],
           [0, 1, 1]])
    """
    import numpy

    near = numpy.ones((1, 1), bool)
    for count, size in zip(grid.counts, box_of("window", window)):
        at = numpy.arange(count)
        near = numpy.kron(near, abs(at[:, None] - at) <= size // 2)
    return near


def blocks_of_mass(weights: Any, mass: float) -> Any:
    """True for each block whose probability, with that of all smaller ones, is at least 1 - mass; the greatest is always
    kept. Of equal ones, later ones count as smaller."""
    import numpy

    order = descending(weights)
    kept = numpy.take_along_axis(weights, order, -1)[..., ::-1].cumsum(-1)[..., ::-1] >= 1 - mass
    kept[..., 0] = True
    return unsorted(kept, order)


def _checked_mask(mask: Any, shape: Sequence[int]) -> Any:
    import numpy

    found = host(mask).astype(bool)
    try:
        return numpy.broadcast_to(found, shape)
    except ValueError:
        raise errors.invalid(f"mask: expected one that broadcasts to [batch, heads, query blocks, key blocks], {tuple(shape)}; "
                             f"got {found.shape}") from None


def blocks_attention(q: Any, k: Any, v: Any, mass: float, masks: Sequence[Any], block: int, sizes: Any,
                     scale: float | None) -> Any:
    """NABLA of tokens in the order of blocks. `masks` are further blocks to see. `sizes` are the tokens of each block where
    some have empty slots, which are 0; None: only the last block may be shorter."""
    scale, mass = scale_of(q, scale), share("mass", mass)
    mean_q, mean_k = (block_means(x, block) if sizes is None else tile_means(x, block, sizes) for x in (q, k))
    kept = blocks_of_mass(probabilities(block_scores(mean_q, mean_k, scale)), mass)
    for mask in masks:
        kept |= _checked_mask(mask, kept.shape)
    return rounded(attend(q, k, v, kept, block, sizes, scale), q)


def nabla_attention(q: Any, k: Any, v: Any, mass: float = 0.9, *, canvas: Sequence[int] | None = None, window: Any = None,
                    mask: Any = None, tile: Sequence[int] = TILE, scale: float | None = None) -> Any:
    """Attention over the blocks that have `mass` of the probability, of [batch, length, heads, size].

    The probability of a block of keys is the softmax of scale times the product of the means of both blocks. A block of
    queries sees the fewest of the greatest ones that leave out less than 1 - mass: a block is kept if its probability
    and all smaller ones add up to at least 1 - mass. The greatest is always kept. Beside these it sees the blocks of
    `mask`, an array of bool that broadcasts to [batch, heads, blocks, blocks], and those near it: `window` is (frames, rows,
    columns) in tiles; see `near_blocks`.

    With a canvas, tokens are in raster order and blocks are its tiles; tiles at the ends may have fewer tokens. Without one,
    tokens are in the order of blocks, each of as many tokens as a tile has, and there is no window.

    >>> import numpy
    >>> from tenon.video import nabla_attention
    >>> q = k = v = numpy.ones((1, 2 * 16 * 24, 2, 16), "float32")
    >>> nabla_attention(q, k, v, 0.5, canvas=(2, 16, 24), window=(1, 3, 3)).shape
    (1, 768, 2, 16)
    """
    check_shapes(q, k, v)
    tile, masks = box_of("tile", tile), [] if mask is None else [mask]
    if canvas is None:
        if window is not None:
            raise errors.invalid("window: expected None without a canvas, as tiles are then unknown; got one. Give "
                                 "canvas=(frames, rows, columns), or the blocks in mask")
        return blocks_attention(q, k, v, mass, masks, prod(tile), None, scale)
    grid = grid_of(box_of("canvas", canvas), tile)
    if window is not None:
        masks.append(near_blocks(grid, window))
    q, k, v = (without_empty(grid, x) for x in (q, k, v))
    return grid.to_raster(blocks_attention(q, k, v, mass, masks, grid.slots, grid.sizes, scale))
