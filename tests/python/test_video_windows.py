"""The search for windows of sliding tiles: losses against dense attention, the best windows, files; and published windows."""

import json

import numpy
import pytest

import tenon
from tenon import video
from test_video import attend, libraries, normal, seen_by_window

CANVAS, TILE, TEXT = (5, 6, 7), (2, 3, 4), 4
WINDOWS = [(1, 1, 1), (3, 1, 1), (1, 3, 3), (2, 1, 3), (9, 9, 9)]


@pytest.fixture
def random():
    return numpy.random.default_rng(22)


def test_losses(random):
    q, k, v = (normal(random, 2, 210 + TEXT, 2, 8) for _ in range(3))
    dense = attend(q, k, v, True, 0.7)
    for make in libraries():
        told = []
        table = video.search_windows(*map(make, (q, k, v)), CANVAS, iter(WINDOWS), tile=TILE, scale=0.7,
                                     progress=lambda *at: told.append(at))
        assert told == [(n, 5) for n in range(1, 6)] and table.windows == WINDOWS
        for n, window in enumerate(WINDOWS):
            seen = seen_by_window(CANVAS, TILE, window, TEXT)
            difference = attend(q, k, v, seen, 0.7) - dense
            numpy.testing.assert_allclose([head[n] for head in table.l2], (difference**2).mean((0, 1, 3)), 1e-4, 1e-9)
            numpy.testing.assert_allclose([head[n] for head in table.l1], abs(difference).mean((0, 1, 3)), 1e-4, 1e-6)
            assert 0 < table.density[n] <= 1
        assert table.density[-1] == 1 and table.l2[0][-1] < 1e-9
        assert table.best() == [WINDOWS[-1]] * 2
        lines = str(table).splitlines()
        assert len(lines) == 1 + 5 * 2 and lines[0].split() == ["window", "density", "head", "l1", "l2"]
        assert lines[3].split()[:3] == ["3x1x1", f"{table.density[1]:.3f}", "0"]


def test_density_is_the_share_of_tiles():
    grid = video.TileGrid((8, 15, 4), (2, 3, 4))
    for window in [(1, 1, 1), (3, 1, 1), (2, 3, 1), (5, 5, 5), (4, 4, 1)]:
        starts, _ = video.window_blocks(grid, window, 1)
        q = numpy.ones((1, 480, 1, 1), "float32")
        table = video.search_windows(q, q, q, (8, 15, 4), [window], tile=(2, 3, 4))
        assert table.density[0] == pytest.approx(starts.tolist()[0][-1] / grid.tiles**2)


def test_best_of_equal_ones():
    table = video.WindowTable([(1, 1, 3), (3, 1, 1), (1, 3, 1)], [0.5, 0.2, 0.2], [[1, 1, 1], [3, 2, 1]], [[1, 2, 3], [5, 5, 6]])
    assert table.best() == [(1, 1, 3), (3, 1, 1)] and table.best("l1") == [(3, 1, 1), (1, 3, 1)]
    assert table.best(within=2) == [(3, 1, 1), (3, 1, 1)]  # the second head has none: the least loss
    assert table.best(within=1) == [(1, 1, 3), (3, 1, 1)]
    with pytest.raises(ValueError, match="loss: expected l1 or l2, got 'l3'"):
        table.best("l3")


def test_progress_ends_the_search(random):
    q = normal(random, 1, 210, 1, 8)
    told = []

    def progress(done, total):
        told.append(done)
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        video.search_windows(q, q, q, CANVAS, WINDOWS, tile=TILE, progress=progress)
    assert told == [1, 2]


def test_files(tmp_path):
    table = video.WindowTable([(1, 1, 3), (3, 1, 1)], [0.5, 0.2], [[1, 2], [2, 1]], [[1, 2], [2, 1]])
    path = tmp_path / "windows.json"
    video.write_windows(path, {(3, 0): table, (1, 1): [(1, 1, 1)]}, full_steps=2, full=(5, 6, 10))
    assert json.loads(path.read_text()) == {
        **{f"{step}_0_{head}": [5, 6, 10] for step in (0, 1) for head in (0, 1)}, "0_1_0": [5, 6, 10], "1_1_0": [5, 6, 10],
        "3_0_0": [1, 1, 3], "3_0_1": [3, 1, 1]}
    video.write_windows(path, {(0, 0): table}, within=2)
    assert json.loads(path.read_text()) == {"0_0_0": [3, 1, 1], "0_0_1": [3, 1, 1]}
    before = path.read_text()
    for wrong, told in (({"full_steps": 1}, "full: expected the window of the first steps"),
                        ({"loss": "l3"}, "loss: expected l1 or l2")):
        with pytest.raises(ValueError, match=told):
            video.write_windows(path, {(0, 0): table}, **wrong)
    with pytest.raises(ValueError, match="windows: expected 1 to"):
        video.write_windows(path, {(0, 0): [(0, 1, 1)]})
    assert path.read_text() == before


def test_mean_of_tables():
    one = video.WindowTable([(1, 1, 1), (3, 1, 1)], [0.5, 1.0], [[1, 2], [3, 4]], [[5, 6], [7, 8]])
    other = one._replace(l1=[[3, 2], [5, 0]])
    assert video.mean_of_tables([one, other]).l1 == [[2, 2], [4, 2]] and video.mean_of_tables([one, other]).l2 == one.l2
    for tables in ([], [one, one._replace(windows=[(1, 1, 1), (5, 1, 1)])], [one, one._replace(l1=[[1, 2]])]):
        with pytest.raises(ValueError, match="tables: expected"):
            video.mean_of_tables(tables)


@pytest.mark.parametrize("model, counts, windows, tokens", [("hunyuan", (5, 6, 10), 13, 115200), ("wan", (3, 6, 10), 18, 69120),
                                                           ("stepvideo", (6, 6, 6), 13, 82944)])
def test_published_windows(model, counts, windows, tokens):
    found = video.published_windows(model)
    assert len(set(found.windows)) == len(found.windows) == windows and set(found.chosen) <= {*found.windows}
    grid = video.TileGrid(found.canvas, found.tile)
    assert grid.counts == counts and grid.is_whole and grid.length == tokens
    assert all(size <= most for window in found.windows for size, most in zip(window, counts))


def test_the_published_strategy_is_as_dense_as_published():
    """Of (3, 3, 3) on Hunyuan's canvas, 27 of 300 tiles."""
    found = video.published_windows("hunyuan")
    grid = video.TileGrid(found.canvas, found.tile)
    starts, _ = video.window_blocks(grid, (3, 3, 3), 1)
    assert starts.tolist()[0][-1] / grid.tiles**2 == pytest.approx(27 / 300)
    assert found.full_steps == 15 and len(found.chosen) == 5


def test_what_is_refused(random):
    q = normal(random, 1, 210, 2, 8)
    for call, told in ((lambda: video.search_windows(q, q, q, CANVAS, []), "windows: expected at least one, got none"),
                       (lambda: video.search_windows(q, q, q, CANVAS, [(1, 1)]), "windows: expected three numbers"),
                       (lambda: video.search_windows(q, q, q, (5, 6, 8), WINDOWS),
                        "canvas: expected at most the 210 tokens of q, got 240"),
                       (lambda: video.search_windows(q, q[:, :9], q, CANVAS, WINDOWS), "k: expected the batch and length of q")):
        with pytest.raises(tenon.errors.InvalidArgumentError, match=told):
            call()
    with pytest.raises(LookupError, match="model: expected hunyuan, wan, stepvideo; got 'sora'"):
        video.published_windows("sora")
