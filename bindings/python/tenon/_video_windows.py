"""Windows of sliding tiles that were published, and the search for the windows of a model's heads."""

from __future__ import annotations

import json
from typing import NamedTuple

from . import _given, errors, operators
from ._video_blocks import check_shapes, host, wide
from .video import SLIDING_TILE, TileGrid, box_of, grid_of, joined, tiled_attention

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from typing import Any, Callable, Iterable, Mapping, Sequence

    from .video import Box

LOSSES = ("l1", "l2")


class WindowSet(NamedTuple):
    """Windows that were published for a model: its canvas and tile, whether text follows the video, the windows that its
    kernels were built for, and those that its published strategy chooses from after so many full steps."""

    canvas: Box
    tile: Box
    text: bool
    windows: tuple[Box, ...]
    chosen: tuple[Box, ...] = ()
    full_steps: int = 0


def _boxes(text: str) -> tuple[Box, ...]:
    return tuple(box_of("windows", [int(size) for size in one.split("x")]) for one in text.split())


# Facts of Sliding Tile Attention (arXiv 2502.04507) and of its kernels in FastVideo, until February 2026.
PUBLISHED = {
    "hunyuan": WindowSet(
        (30, 48, 80), SLIDING_TILE, True,
        _boxes("3x3x3 3x3x5 5x3x3 3x5x5 5x6x1 5x3x5 5x5x5 5x5x7 5x6x10 3x6x10 5x1x1 1x6x10 5x1x10"),
        _boxes("5x3x3 1x6x10 3x3x5 5x1x10 5x6x1"), 15),
    "wan": WindowSet(
        (18, 48, 80), SLIDING_TILE, False,
        _boxes("3x3x3 3x3x5 3x5x5 3x6x1 3x5x7 3x5x9 3x6x10 3x6x3 3x1x1 1x6x10 1x5x10 1x6x7 1x5x7 1x5x9 3x1x10 3x3x10 1x3x10 "
               "1x6x5")),
    "stepvideo": WindowSet(
        (36, 48, 48), SLIDING_TILE, False,
        _boxes("3x3x3 3x3x6 6x3x3 3x6x6 3x6x3 6x3x6 6x6x6 6x1x1 6x1x6 6x6x1 1x6x6 1x1x6 1x6x1")),
}


def published_windows(model: str) -> WindowSet:
    """The windows of sliding tiles that were published for "hunyuan", "wan" or "stepvideo".

    They are those of Sliding Tile Attention (arXiv 2502.04507) and of its kernels in FastVideo. Tenon computes any windows.

    >>> from tenon.video import published_windows
    >>> found = published_windows("wan")
    >>> found.canvas, found.tile, len(found.windows), found.windows[0]
    ((18, 48, 80), (6, 8, 8), 18, (3, 3, 3))
    """
    if model not in PUBLISHED:
        raise errors.NotFoundError(f"model: expected {', '.join(PUBLISHED)}; got {model!r}", "not-found", "published_windows")
    return PUBLISHED[model]


class WindowTable(NamedTuple):
    """What windows lose: `l1` and `l2` are the mean absolute and the mean squared difference from attention that sees
    everything, lists with a list for each head and in it a number for each window. `density` is the share of all pairs of
    tiles that a window sees."""

    windows: list[Box]
    density: list[float]
    l1: list[list[float]]
    l2: list[list[float]]

    def best(self, loss: str = "l2", within: float | None = None) -> list[Box]:
        """The window of each head with the least loss; or, with `within`, the least dense one whose loss is at most that, and
        if there is none the one with the least loss. Of equal ones the less dense, and of those the first.

        >>> table = WindowTable([(1, 1, 1), (3, 1, 1)], [0.2, 0.5], [[3.0, 1.0]], [[9.0, 2.0]])
        >>> table.best(), table.best("l1", within=4.0)
        ([(3, 1, 1)], [(1, 1, 1)])
        """
        if loss not in LOSSES:
            raise errors.invalid(f"loss: expected {' or '.join(LOSSES)}, got {loss!r}")
        most = None if within is None else _given.real("within", within)
        return [self.windows[self._best_of(losses, most)] for losses in (self.l1 if loss == "l1" else self.l2)]

    def _best_of(self, losses: list[float], within: float | None) -> int:
        allowed = [n for n, loss in enumerate(losses) if within is not None and loss <= within]
        if allowed:
            return min(allowed, key=lambda n: (self.density[n], losses[n]))
        return min(range(len(losses)), key=lambda n: (losses[n], self.density[n]))

    def __str__(self) -> str:
        """A line for each window and head."""
        lines = [f"{'window':12}{'density':>9}{'head':>6}{'l1':>12}{'l2':>12}"]
        for n, (window, density) in enumerate(zip(self.windows, self.density)):
            for head, (l1, l2) in enumerate(zip(self.l1, self.l2)):
                lines.append(f"{'x'.join(map(str, window)):12}{density:9.3f}{head:6}{l1[n]:12.6f}{l2[n]:12.6f}")
        return "\n".join(lines)


def mean_of_tables(tables: Sequence[WindowTable]) -> WindowTable:
    """The mean losses of tables of the same windows and heads: of several prompts, for example.

    >>> one = WindowTable([(1, 1, 1)], [0.5], [[1.0]], [[3.0]])
    >>> mean_of_tables([one, one._replace(l2=[[5.0]])]).l2
    [[4.0]]
    """
    if not tables:
        raise errors.invalid("tables: expected at least one, got none")
    first = tables[0]
    for table in tables:
        if table.windows != first.windows or len(table.l1) != len(first.l1) or table.density != first.density:
            raise errors.invalid("tables: expected the same windows and heads in all, got others")
    l1, l2 = ([[sum(losses) / len(tables) for losses in zip(*heads)] for heads in zip(*(getattr(table, loss) for table in tables))]
              for loss in LOSSES)
    return first._replace(l1=l1, l2=l2)


def density_of(grid: TileGrid, window: Box) -> float:
    """The share of all pairs of tiles that a window sees."""
    seen = 1.0
    for count, size in zip(grid.counts, window):
        seen *= min(size // 2 * 2 + 1, count) / count
    return seen


def head_losses(out: Any, exact: Any) -> tuple[list[float], list[float]]:
    """The mean absolute and the mean squared difference of each head, of [batch, length, heads, size]."""
    difference = operators.cast(out, wide(out)) - exact
    l1 = operators.reduce("mean", operators.unary("abs", difference), (0, 1, 3))
    l2 = operators.reduce("mean", difference * difference, (0, 1, 3))
    return [float(x) for x in host(l1)], [float(x) for x in host(l2)]


def losses_of_windows(grid: TileGrid, q: Any, k: Any, v: Any, windows: Sequence[Box], scale: float | None,
                      progress: Callable[[int, int], Any] | None = None,
                      reference: Box | None = None) -> tuple[WindowTable, Any]:
    """The table, and the attention that losses are against: that of the window `reference`, or of one that sees everything.
    Of [batch, slots and text, heads, size]; see `tiled_attention`."""
    heads, slots = q.shape[2], grid.tiles * grid.slots
    full = tiled_attention(grid, q, k, v, reference or grid.counts, scale)
    exact = operators.cast(_valid(grid, full, slots), wide(q))
    l1: list[list[float]] = [[] for _ in range(heads)]
    l2: list[list[float]] = [[] for _ in range(heads)]
    for done, window in enumerate(windows, 1):
        found = head_losses(_valid(grid, tiled_attention(grid, q, k, v, window, scale), slots), exact)
        for head in range(heads):
            l1[head].append(found[0][head])
            l2[head].append(found[1][head])
        if progress is not None:
            progress(done, len(windows))
    return WindowTable(list(windows), [density_of(grid, window) for window in windows], l1, l2), full


def _valid(grid: TileGrid, out: Any, slots: int) -> Any:
    """Without the empty slots."""
    return out if grid.is_whole else joined(grid.to_raster(out[:, :slots]), out[:, slots:])


def search_windows(q: Any, k: Any, v: Any, canvas: Sequence[int], windows: Iterable[Any], *, tile: Sequence[int] = SLIDING_TILE,
                   scale: float | None = None, progress: Callable[[int, int], Any] | None = None) -> WindowTable:
    """What each window of sliding tiles loses in each head, against attention that sees everything.

    Operands are those of `sliding_tile_attention`, with text behind the video or without. After each window
    `progress(done, total)` is called; an exception in it ends the search.

    >>> import numpy
    >>> from tenon.video import search_windows
    >>> q, k, v = numpy.random.default_rng(0).standard_normal((3, 1, 4 * 8 * 8, 2, 16)).astype("float32")
    >>> table = search_windows(q, k, v, (4, 8, 8), [(1, 1, 1), (3, 1, 3), (3, 3, 3)], tile=(2, 4, 4),
    ...                        progress=lambda done, total: print(done, "of", total))
    1 of 3
    2 of 3
    3 of 3
    >>> table.best(), [round(share, 3) for share in table.density]
    ([(3, 3, 3), (3, 3, 3)], [0.125, 0.5, 1.0])
    """
    check_shapes(q, k, v)
    grid = grid_of(box_of("canvas", canvas), box_of("tile", tile))
    boxes = [box_of("windows", window) for window in windows]
    if not boxes:
        raise errors.invalid("windows: expected at least one, got none")
    if q.shape[1] < grid.length:
        raise errors.invalid(f"canvas: expected at most the {q.shape[1]} tokens of q, got {grid.length}")
    q, k, v = (joined(grid.to_tiles(x[:, :grid.length]), x[:, grid.length:]) for x in (q, k, v))
    return losses_of_windows(grid, q, k, v, boxes, scale, progress)[0]


def write_windows(path: str | os.PathLike[str], tables: Mapping[tuple[int, int], Any], *, full_steps: int = 0, full: Any = None,
                  loss: str = "l2", within: float | None = None) -> None:
    """Writes the best windows as a file for FASTVIDEO_ATTENTION_CONFIG.

    `tables` has for each (timestep, layer) a WindowTable, or a list with the window of each head. In the first `full_steps`
    timesteps every head of these layers has the window `full`, in tiles. `loss` and `within` are those of `WindowTable.best`.

    >>> import json, os, tempfile
    >>> from tenon.video import write_windows
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "windows.json")
    ...     write_windows(path, {(0, 0): [(1, 1, 3)], (1, 0): [(1, 1, 3)]}, full_steps=1, full=(5, 6, 10))
    ...     with open(path) as file:
    ...         json.load(file)
    {'0_0_0': [5, 6, 10], '1_0_0': [1, 1, 3]}
    """
    steps = _given.number("full_steps", full_steps, 0, _given.INT32[1])
    if steps and full is None:
        raise errors.invalid("full: expected the window of the first steps, (frames, rows, columns) in tiles; got None")
    best = {key: table.best(loss, within) if isinstance(table, WindowTable) else table for key, table in tables.items()}
    heads = {layer: len(boxes) for (_, layer), boxes in sorted(best.items())}
    listed = {**{(step, layer): [full] * count for step in range(steps) for layer, count in heads.items()},
              **{key: boxes for key, boxes in best.items() if key[0] >= steps}}
    found = {f"{step}_{layer}_{head}": box_of("windows", window) for (step, layer), boxes in sorted(listed.items())
             for head, window in enumerate(boxes)}
    with open(path, "w", encoding="utf-8") as file:
        json.dump(found, file, indent=0)
        file.write("\n")
