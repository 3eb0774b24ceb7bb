"""Attention for video, over blocks of tokens that are near or that matter most.

The tokens of a video are a grid of frames, rows and columns, in that order (raster order). They are put into tiles, boxes of
neighbouring tokens, so that a block of queries or keys is one tile. Tiles at the ends of the grid may have fewer tokens.

>>> import numpy
>>> from tenon.video import sliding_tile_attention
>>> q = k = v = numpy.ones((1, 4 * 8 * 8, 2, 16), "float32")                 # batch, length, heads, size
>>> sliding_tile_attention(q, k, v, (4, 8, 8), (3, 1, 3), tile=(2, 4, 4)).shape
(1, 256, 2, 16)
"""

from __future__ import annotations

from array import array
from ctypes import addressof, byref, c_int64
from functools import lru_cache
from math import ceil, prod

from . import _abi, _dtypes, _given, errors, operators
from ._arrays import kind_of, reference, view, view_or_none
from ._calls import Call, place, run, target
from ._handles import call
from ._library import lib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Sequence

    from ._video_bsa import bsa_attention
    from ._video_h3 import video_sparse_h3_attention
    from ._video_nabla import nabla_attention, near_blocks
    from ._video_sla import sla_attention
    from ._video_vmoba import vmoba_attention
    from ._video_windows import WindowSet, WindowTable, mean_of_tables, published_windows, search_windows, write_windows

    Box = tuple[int, int, int]
    Tables = tuple[memoryview, array[int]]

__all__ = ["TileGrid", "WindowSet", "WindowTable", "best_blocks", "bsa_attention", "mean_of_tables", "nabla_attention",
           "near_blocks", "published_windows", "search_windows", "sla_attention", "sliding_tile_attention",
           "video_sparse_attention", "video_sparse_h3_attention", "vmoba_attention", "window_blocks", "write_windows"]

# Names of modules that use this one, imported when they are first asked for.
_ELSEWHERE = {"bsa_attention": "_video_bsa", "video_sparse_h3_attention": "_video_h3", "nabla_attention": "_video_nabla",
              "near_blocks": "_video_nabla", "sla_attention": "_video_sla", "vmoba_attention": "_video_vmoba",
              **dict.fromkeys(("WindowSet", "WindowTable", "mean_of_tables", "published_windows", "search_windows",
                               "write_windows"), "_video_windows")}

SLIDING_TILE = (6, 8, 8)
CUBE = (4, 4, 4)


def box_of(name: str, value: Any) -> Box:
    """Three whole numbers of at least 1."""
    if isinstance(value, (str, bytes)) or not hasattr(value, "__len__"):
        raise TypeError(f"{name}: expected three whole numbers, (frames, rows, columns), got {value!r}")
    if len(value) != 3:
        raise errors.invalid(f"{name}: expected three numbers, (frames, rows, columns), got {len(value)}")
    t, h, w = (_given.number(name, one, 1, _given.INT32[1]) for one in value)
    return t, h, w


SLIDING, SPARSE = 0, 1  # tn_attention_video_args.kind


def _geometry(kind: int, canvas: Box, tile: Box, windows: Sequence[Box]) -> tuple[Any, Any]:
    """The args struct without tensors, and what it points to."""
    numbers = [(c_int64 * len(one))(*one) for one in (canvas, tile, [n for window in windows for n in window])]
    args = _abi.AttentionVideoArgs()
    args.kind, args.window_count, args.layout = kind, len(windows), operators.layout_number("blhd")
    args.canvas, args.tile = addressof(numbers[0]), addressof(numbers[1])
    args.windows = addressof(numbers[2]) if windows else None
    return args, numbers


def _tables(canvas: Box, tile: Box, windows: Sequence[Box], text: int, *wanted: str) -> list[array[int]]:
    """Tables of the tiles, by their names in tn_attention_video_tables."""
    args, _kept = _geometry(SLIDING, canvas, tile, windows)
    tables = _abi.AttentionVideoTables()
    tables.text = text
    call(lib.tn_attention_video_tables_get, byref(args), byref(tables))
    counts = {"order": tables.slots, "sizes": tables.blocks, "starts": len(windows) * (tables.blocks + 1),
              "listed": tables.entries}
    memory = {name: array("i", bytes(4 * counts[name])) for name in wanted}
    for name, numbers in memory.items():
        setattr(tables, name, numbers.buffer_info()[0] or None)
    call(lib.tn_attention_video_tables_get, byref(args), byref(tables))
    return [*memory.values()]


class TileGrid:
    """A canvas of (frames, rows, columns) tokens in tiles of that size.

    Each tile has `slots`, as many as a whole tile has tokens. The tokens of a tile are in its first slots, ordered by frame,
    row and column; the other slots of a tile that is not whole are empty.

    >>> grid = TileGrid((1, 2, 3), (1, 2, 2))
    >>> grid.counts, grid.tiles, grid.slots, list(grid.sizes)
    ((1, 1, 2), 2, 4, [4, 2])
    >>> list(grid.tokens)                                  # of each slot; an empty one has a token, too
    [0, 1, 3, 4, 2, 5, 2, 2]
    >>> list(grid.places)                                  # the slot of each token
    [0, 1, 4, 2, 3, 5]
    >>> list(grid.empty)                                   # the empty slots
    [6, 7]
    """

    def __init__(self, canvas: Sequence[int], tile: Sequence[int]) -> None:
        self.canvas, self.tile = box_of("canvas", canvas), box_of("tile", tile)
        self.counts: Box = tuple(ceil(c / t) for c, t in zip(self.canvas, self.tile))  # type: ignore[assignment]
        self.tiles, self.slots, self.length = prod(self.counts), prod(self.tile), prod(self.canvas)
        order, self.sizes = _tables(self.canvas, self.tile, (), 0, "order", "sizes")
        self.tokens, self.places, self.empty = array("q", order), array("q", bytes(8 * self.length)), array("q")
        for first, size in zip(range(0, len(order), self.slots), self.sizes):
            for slot in range(first, first + size):
                self.places[order[slot]] = slot
            self.empty.extend(range(first + size, first + self.slots))

    @property
    def is_whole(self) -> bool:
        """Whether no slot is empty."""
        return not self.empty

    def to_tiles(self, x: Any) -> Any:
        """The tokens of dimension 1 in the order of slots; empty slots repeat a token of their tile."""
        self._check(x, self.length, "tokens")
        return take(x, self.tokens)

    def to_raster(self, x: Any) -> Any:
        """What `to_tiles` gave, back in raster order."""
        self._check(x, self.tiles * self.slots, "slots")
        return take(x, self.places)

    def _check(self, x: Any, length: int, what: str) -> None:
        if x.shape[1] != length:
            raise errors.invalid(f"canvas: expected {length} {what} in dimension 1, those of a canvas of {self.canvas} in "
                                 f"tiles of {self.tile}; got {x.shape[1]}")


@lru_cache(16)
def grid_of(canvas: Box, tile: Box) -> TileGrid:
    """The same grid for equal arguments."""
    return TileGrid(canvas, tile)


def is_torch(x: Any) -> bool:
    """Whether it is a tensor of PyTorch's."""
    return hasattr(x, "requires_grad")


def take(x: Any, index: array[int]) -> Any:
    """Rows of dimension 1."""
    if is_torch(x):
        return x.index_select(1, _torch_index(index, x))
    return x.take(memoryview(index), axis=1)


def _torch_index(index: array[int], x: Any) -> Any:
    import torch

    return torch.frombuffer(index, dtype=torch.int64).to(x.device)


def _table(numbers: array[int], *shape: int) -> memoryview:
    return memoryview(numbers).cast("B").cast("i", shape)


def beside(q: Any, table: Any) -> Any:
    """A table of int32 on the host as one on q's device; None stays None."""
    if table is None or _is_on_host(q):
        return table
    if not is_torch(q):
        raise errors.UnsupportedError(f"q: expected an array on the host or a tensor of PyTorch's, got {type(q).__name__}",
                                      "unsupported", "attention")
    import torch

    numbers = memoryview(table)
    return torch.frombuffer(numbers.cast("B"), dtype=torch.int32).reshape(numbers.shape).to(q.device)


def windows_of(windows: Any, heads: int) -> list[Box]:
    """A window for each head, of one for all or of a list."""
    if len(windows) == 3 and not hasattr(windows[0], "__len__"):
        return [box_of("windows", windows)] * heads
    if len(windows) != heads:
        raise errors.invalid(f"windows: expected one window, or {heads} windows, one for each head; got {len(windows)}")
    return [box_of("windows", window) for window in windows]


def window_blocks(grid: TileGrid, windows: Any, heads: int, text: int = 0) -> Tables:
    """The lists of sliding tiles for `attention_sparse`: (starts, blocks), with a block for each tile and as many more as
    `text` tokens need.

    A tile of queries sees the tiles within half a window of it, counted in tiles and rounded down; at the ends of the
    canvas, the window is moved inward. All tiles see the text, and the text sees everything. `windows` is one window for
    all heads or a list of one for each.

    >>> starts, blocks = window_blocks(TileGrid((1, 1, 16), (1, 1, 4)), (1, 1, 3), heads=1)
    >>> [list(blocks[a:b]) for a, b in zip(starts.tolist()[0], starts.tolist()[0][1:])]
    [[0, 1, 2], [0, 1, 2], [1, 2, 3], [1, 2, 3]]
    """
    text = _given.number("text", text, 0, _given.INT32[1])
    starts, blocks = _tables(grid.canvas, grid.tile, windows_of(windows, heads), text, "starts", "listed")
    return _table(starts, heads, len(starts) // heads), blocks


def tiled_attention(grid: TileGrid, q: Any, k: Any, v: Any, windows: Any, scale: float | None = None,
                    lse: bool = False, attend: Callable[..., Any] = operators.attention_sparse) -> Any:
    """Attention of sliding tiles, of [batch, slots and text, heads, size]: the tiles' slots, then the text. `attend` is
    attention_sparse, with gradients or without."""
    heads, text = q.shape[2], q.shape[1] - grid.tiles * grid.slots
    if text < 0 or k.shape[1] != q.shape[1]:
        raise errors.invalid(f"q: expected at least the {grid.tiles * grid.slots} slots of the tiles, as many as k has; got "
                             f"{q.shape[1]} and k of {k.shape[1]}")
    starts, blocks = window_blocks(grid, windows, heads, text)
    sizes = None
    if not grid.is_whole:
        sizes = array("i", grid.sizes)
        sizes.extend(min(grid.slots, text - at) for at in range(0, text, grid.slots))
    starts, blocks, sizes = (beside(q, table) for table in (starts, blocks, sizes))
    return attend(q, k, v, block=grid.slots, starts=starts, blocks=blocks, block_sizes=sizes, scale=scale,
                  layout="blhd", lse=lse)


def joined(first: Any, second: Any) -> Any:
    """Two arrays, one behind the other along dimension 1."""
    if is_torch(first):
        import torch

        return torch.cat((first, second), 1)
    shape = (first.shape[0], first.shape[1] + second.shape[1], *first.shape[2:])
    out = kind_of(first).empty(first, view(first), shape, _dtypes.WORD[view(first).dtype])
    out[:, :first.shape[1]], out[:, first.shape[1]:] = first, second
    return out


def sliding_tile_attention(q: Any, k: Any, v: Any, canvas: Sequence[int], windows: Any, *,
                           tile: Sequence[int] = SLIDING_TILE, scale: float | None = None) -> Any:
    """Attention in which each tile sees the tiles near it, of [batch, length, heads, size] in raster order. Tokens behind
    those of the canvas are text: they see everything, and everything sees them. `windows` is (frames, rows, columns) in
    tiles, or a list with one for each head; see `window_blocks`.

    >>> import numpy
    >>> q = k = v = numpy.ones((1, 6 * 8 * 8 + 5, 2, 16), "float32")         # with five tokens of text
    >>> sliding_tile_attention(q, k, v, (6, 8, 8), [(1, 1, 1), (3, 3, 3)]).shape
    (1, 389, 2, 16)
    """
    windows = windows_of(windows, q.shape[2])
    if not _is_on_host(q):
        grid = grid_of(box_of("canvas", canvas), box_of("tile", tile))
        ordered = [joined(grid.to_tiles(x[:, :grid.length]), x[:, grid.length:]) for x in (q, k, v)]
        out = tiled_attention(grid, *ordered, windows, scale)
        slots = grid.tiles * grid.slots
        return joined(grid.to_raster(out[:, :slots]), out[:, slots:])
    if all(window == windows[0] for window in windows):
        del windows[1:]
    geometry = _geometry(SLIDING, box_of("canvas", canvas), box_of("tile", tile), windows)
    return _attended(geometry, q, k, v, None, scale)


def _computed(geometry: tuple[Any, Any], scale: float | None, result: str, shape: tuple[int, ...], word: str,
              **operands: Any) -> Any:
    """A call of tn_attention_video that writes the operand `result`."""
    args, numbers = geometry
    given = {name: view_or_none(x) for name, x in operands.items()}
    q, tq = operands["q"], given["q"]
    kind = kind_of(q)
    made, given[result] = target(kind, q, tq, None, shape, word)
    for name, tensor in given.items():
        setattr(args, name, reference(tensor))
    args.scale, args.set = 0.0 if scale is None else scale, scale is not None
    place(args, kind, q, tq)
    return run(Call("tn_attention_video", args, made, (given, numbers)))


def _attended(geometry: tuple[Any, Any], q: Any, k: Any, v: Any, gate: Any, scale: float | None) -> Any:
    """The attention that a call of tn_attention_video computes."""
    tq, tv = view(q), view(v)
    if tq.ndim != 4 or tv.ndim != 4:
        raise errors.invalid("q, v: expected the dimensions batch, length, heads and size, got the shapes "
                             f"{tq.dims} and {tv.dims}")
    return _computed(geometry, scale, "out", (*tq.dims[:3], tv.dims[3]), _dtypes.WORD[tq.dtype], q=q, k=k, v=v, gate=gate)


def best_blocks(scores: Any, count: int) -> Any:
    """The numbers of the `count` greatest scores of each row, ascending, as int32. Of equal scores the first ones are taken.

    >>> import numpy
    >>> best_blocks(numpy.array([[3.0, 5.0, 3.0, 3.0]]), 2)
    array([[0, 1]], dtype=int32)
    """
    if is_torch(scores):
        order = scores.sort(stable=True, dim=-1, descending=True).indices[..., :count]
        return order.sort(-1).values.int()
    order = (-scores).argsort(axis=-1, kind="stable")[..., :count]
    order.sort(axis=-1)
    return order.astype("int32")


def blocks_to_keep(sparsity: float, cubes: int) -> int:
    """ceil((1 - sparsity) cubes), from 1 to all."""
    if not 0 <= sparsity <= 1:
        raise errors.invalid(f"sparsity: expected 0 to 1, got {sparsity}")
    return min(max(ceil(round((1 - sparsity) * cubes, 9)), 1), cubes)


def cubes_attention(grid: TileGrid, q: Any, k: Any, v: Any, sparsity: float, gate: Any = None,
                    scale: float | None = None) -> Any:
    """Video sparse attention of [batch, slots, heads, size], in the order of slots; empty slots are 0, also in the result."""
    if not _is_on_host(q):
        return clear_empty(grid, _cubes_by_parts(grid, q, k, v, sparsity, gate, scale))
    tokens = [None if x is None else grid.to_raster(x) for x in (q, k, v, gate)]
    return without_empty(grid, _sparse(grid.canvas, grid.tile, *tokens, sparsity, scale))


def select_cubes(grid: TileGrid, q: Any, k: Any, sparsity: float, scale: float | None = None) -> Any:
    """The cubes of keys that each cube of queries sees in `cubes_attention` of equal arguments: int32 of [batch, heads, cubes,
    cubes to keep], ascending.

    >>> import numpy
    >>> q = numpy.ones((1, 3, 1, 16), "float32")
    >>> k = q * numpy.array([1, 3, 2], "float32").reshape(1, 3, 1, 1)
    >>> select_cubes(TileGrid((1, 1, 3), (1, 1, 1)), q, k, 0.5).tolist()
    [[[[1, 2], [1, 2], [1, 2]]]]
    """
    count = blocks_to_keep(sparsity, grid.tiles)
    if not _is_on_host(q):
        return best_blocks(_coarse_scores(grid, q, k, scale), count)
    shape = (q.shape[0], q.shape[2], grid.tiles, count)
    return _computed(_sparse_geometry(grid.canvas, grid.tile, sparsity), scale, "selected", shape, "i32",
                     q=grid.to_raster(q), k=grid.to_raster(k))


def _is_on_host(x: Any) -> bool:
    """Where tn_attention_video computes. Kernels of other devices do not support an order yet: elsewhere, tokens are copied into
    the order of the tiles."""
    return bool(x.device.type == "cpu" if is_torch(x) else view(x).device_type == 1)


def _means(grid: TileGrid, x: Any, sizes: Any) -> Any:
    """The mean of each cube's tokens, [batch, heads, cubes, size], rounded to x's dtype. Empty slots must be 0."""
    batch, _, heads, size = x.shape
    total = operators.reduce("sum", x.reshape(batch, grid.tiles, grid.slots, heads, size), 2, dtype=_wide(x))
    return operators.permute(operators.cast(total / sizes, _dtypes.WORD[view(x).dtype]), (0, 2, 1, 3))


def _coarse_scores(grid: TileGrid, q: Any, k: Any, scale: float | None) -> Any:
    """The scores of the coarse stage, [batch, heads, cubes, cubes]."""
    sizes = like(q, grid.sizes).reshape(grid.tiles, 1, 1)
    return operators.matmul(_means(grid, q, sizes), _means(grid, k, sizes), transpose_b=True,
                            alpha=q.shape[3] ** -0.5 if scale is None else scale, dtype=_wide(q))


def _cubes_by_parts(grid: TileGrid, q: Any, k: Any, v: Any, sparsity: float, gate: Any, scale: float | None) -> Any:
    """The same, of operators that are called one by one; empty slots of the result have any numbers."""
    batch, _, heads, size = q.shape
    scores = _coarse_scores(grid, q, k, scale)
    weights = operators.softmax(scores, -1)
    coarse_v = _means(grid, v, like(v, grid.sizes).reshape(grid.tiles, 1, 1))
    coarse = operators.matmul(weights, operators.cast(coarse_v, _wide(q)))
    count = blocks_to_keep(sparsity, grid.tiles)
    starts = array("i")
    for row in range(batch * heads):
        starts.extend(range(row * grid.tiles * count, (row + 1) * grid.tiles * count + 1, count))
    fine = operators.attention_sparse(
        q, k, v, block=grid.slots, starts=beside(q, _table(starts, batch, heads, grid.tiles + 1)),
        blocks=best_blocks(scores, count).reshape(-1), block_sizes=None if grid.is_whole else beside(q, grid.sizes), scale=scale,
        layout="blhd", dtype=_wide(q))
    whole = (batch, grid.tiles, grid.slots, heads, -1)
    spread = operators.permute(coarse, (0, 2, 1, 3)).reshape(batch, grid.tiles, 1, heads, -1)
    out = fine.reshape(whole) + (spread if gate is None else spread * gate.reshape(whole))
    return operators.cast(out.reshape(v.shape), _dtypes.WORD[view(q).dtype])


def _wide(x: Any) -> str:
    return "f64" if _dtypes.WORD[view(x).dtype] == "f64" else "f32"


def like(x: Any, numbers: array[int]) -> Any:
    """Whole numbers as an array of x's library, of f32."""
    if is_torch(x):
        import torch

        return torch.tensor(numbers, dtype=torch.float32, device=x.device)
    import numpy

    return numpy.asarray(numbers, "float32")


def _sparse_geometry(canvas: Box, tile: Box, sparsity: float) -> tuple[Any, Any]:
    geometry = _geometry(SPARSE, canvas, tile, ())
    geometry[0].keep = blocks_to_keep(_given.real("sparsity", sparsity), prod(ceil(c / t) for c, t in zip(canvas, tile)))
    return geometry


def _sparse(canvas: Box, tile: Box, q: Any, k: Any, v: Any, gate: Any, sparsity: float, scale: float | None = None) -> Any:
    return _attended(_sparse_geometry(canvas, tile, sparsity), q, k, v, gate, scale)


def clear_empty(grid: TileGrid, x: Any) -> Any:
    """x, of slots in dimension 1, with 0 in the empty ones."""
    if grid.is_whole:
        return x
    if is_torch(x):
        return x.index_fill_(1, _torch_index(grid.empty, x), 0)
    x[:, memoryview(grid.empty)] = 0
    return x


def without_empty(grid: TileGrid, x: Any) -> Any:
    """The tokens of dimension 1 in the order of slots; empty slots are 0."""
    return clear_empty(grid, grid.to_tiles(x))


def video_sparse_attention(q: Any, k: Any, v: Any, canvas: Sequence[int], sparsity: float, *, gate: Any = None,
                           tile: Sequence[int] = CUBE) -> Any:
    """Attention over the cubes that matter most, of [batch, length, heads, size] in raster order.

    A coarse stage computes attention of the means of the cubes. Each cube of queries then sees the cubes of keys with the
    greatest scores there: ceil((1 - sparsity) cubes), at least one; of equal scores the first ones. The result is that plus
    the coarse one, which `gate` is multiplied with: an array of q's shape; None: 1.

    >>> import numpy
    >>> q = k = v = numpy.ones((1, 4 * 8 * 8, 2, 16), "float32")
    >>> video_sparse_attention(q, k, v, (4, 8, 8), 0.75)[0, 0, 0, :2]
    array([2., 2.], dtype=float32)
    """
    if not _is_on_host(q):
        grid = grid_of(box_of("canvas", canvas), box_of("tile", tile))
        tiled = [without_empty(grid, x) for x in (q, k, v)]
        return grid.to_raster(_cubes_by_parts(grid, *tiled, sparsity, None if gate is None else grid.to_tiles(gate), None))
    return _sparse(box_of("canvas", canvas), box_of("tile", tile), q, k, v, gate, sparsity)


def __getattr__(name: str) -> Any:
    if name not in _ELSEWHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    found = globals()[name] = getattr(import_module(f"{__package__}.{_ELSEWHERE[name]}"), name)
    return found


def __dir__() -> list[str]:
    return __all__
