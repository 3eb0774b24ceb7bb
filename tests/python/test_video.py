"""Attention for video against loops over tokens: sliding tiles and video sparse attention, of NumPy and PyTorch, and the
layers of FastVideo's backends."""

import importlib
import itertools
import json
import pickle

import numpy
import pytest

import tenon
from tenon import video
from tenon.platforms import AttentionBackendEnum, platform

CANVASES = [((4, 6, 5), (2, 2, 2)), ((3, 5, 7), (2, 3, 4)), ((1, 1, 1), (6, 8, 8)), ((6, 2, 9), (1, 2, 3)),
            ((5, 5, 5), (5, 5, 5))]


@pytest.fixture
def random():
    return numpy.random.default_rng(int.from_bytes(pickle.dumps("video")[:4], "little"))


def libraries():
    torch = pytest.importorskip("torch") if importlib.util.find_spec("torch") else None
    return [numpy.asarray] + ([torch.from_numpy] if torch else [])


def normal(random, *shape, dtype="float32"):
    return random.standard_normal(shape).astype(dtype)


def attend(q, k, v, seen, scale=None):
    """Dense attention in float64; `seen` broadcasts to [batch, heads, queries, keys]."""
    q, k, v = (x.astype("float64").transpose(0, 2, 1, 3) for x in (q, k, v))
    scores = numpy.where(seen, q @ k.transpose(0, 1, 3, 2) * (scale or q.shape[-1] ** -0.5), -numpy.inf)
    weights = numpy.exp(scores - scores.max(-1, keepdims=True))
    return (weights / weights.sum(-1, keepdims=True) @ v).transpose(0, 2, 1, 3)


def tiles_of(canvas, tile):
    """The tile of each token, three numbers each, and how many there are along each axis."""
    tokens = numpy.array(list(itertools.product(*map(range, canvas)))).reshape(-1, 3)
    return tokens // numpy.array(tile), [-(-size // each) for size, each in zip(canvas, tile)]


def seen_by_window(canvas, tile, window, text):
    at, counts = tiles_of(canvas, tile)
    length = len(at)
    seen = numpy.ones((length + text, length + text), bool)
    for axis, (count, size) in enumerate(zip(counts, window)):
        half = size // 2
        for i in range(length):
            centre = max(half, min(at[i, axis], count - 1 - half))
            seen[i, :length] &= abs(at[:, axis] - centre) <= half
    return seen


@pytest.mark.parametrize("canvas, tile", CANVASES)
@pytest.mark.parametrize("text", [0, 3, 40])
def test_sliding_tiles(random, canvas, tile, text):
    length = int(numpy.prod(canvas)) + text
    q, k, v = (normal(random, 2, length, 3, 16) for _ in range(3))
    windows = [(3, 1, 3), (2, 4, 5), (1, 1, 1)]
    wanted = attend(q, k, v, numpy.stack([seen_by_window(canvas, tile, w, text) for w in windows]), 0.3)
    for make in libraries():
        out = video.sliding_tile_attention(*map(make, (q, k, v)), canvas, windows, tile=tile, scale=0.3)
        assert type(out) is type(make(q))
        numpy.testing.assert_allclose(numpy.asarray(out), wanted, 1e-4, 2e-6)


@pytest.mark.parametrize("tile", [(1, 1, 1), (2, 2, 2), (2, 3, 1)])
def test_small_canvases(random, tile):
    """Windows of every size on every small canvas; whole ones are dense attention."""
    for canvas in itertools.product((1, 3, 4), repeat=3):
        q, k, v = (normal(random, 1, int(numpy.prod(canvas)), 1, 4) for _ in range(3))
        for window in ((1, 1, 1), (3, 2, 1), (9, 9, 9)):
            out = video.sliding_tile_attention(q, k, v, canvas, window, tile=tile)
            numpy.testing.assert_allclose(out, attend(q, k, v, seen_by_window(canvas, tile, window, 0)), 1e-4, 2e-6)
        numpy.testing.assert_allclose(out, tenon.attention(q, k, v, layout="blhd"), 1e-4, 2e-6)


def coarse_and_fine(q, k, v, canvas, tile, sparsity, gate):
    """Video sparse attention by its definition, in float64."""
    at, counts = tiles_of(canvas, tile)
    cube = (at[:, 0] * counts[1] + at[:, 1]) * counts[2] + at[:, 2]
    cubes = int(numpy.prod(counts))
    share = numpy.stack([(cube == c) / (cube == c).sum() for c in range(cubes)])
    mean_q, mean_k, mean_v = (numpy.einsum("cl,blhd->bhcd", share, x.astype("float64")) for x in (q, k, v))
    scores = mean_q @ mean_k.transpose(0, 1, 3, 2) * q.shape[-1] ** -0.5
    weights = numpy.exp(scores - scores.max(-1, keepdims=True))
    coarse = (weights / weights.sum(-1, keepdims=True) @ mean_v)[:, :, cube].transpose(0, 2, 1, 3)
    count = min(max(int(numpy.ceil((1 - sparsity) * cubes - 1e-9)), 1), cubes)
    kept = numpy.zeros(scores.shape, bool)
    for row in numpy.ndindex(scores.shape[:3]):
        kept[row][sorted(range(cubes), key=lambda c: (-scores[row][c], c))[:count]] = True
    return attend(q, k, v, kept[:, :, cube][:, :, :, cube]) + coarse * (1 if gate is None else gate)


@pytest.mark.parametrize("canvas, tile", [*CANVASES[:4], ((4, 8, 8), (2, 4, 4))])
@pytest.mark.parametrize("sparsity", [0, 0.5, 0.9, 1])
def test_video_sparse(random, canvas, tile, sparsity):
    length = int(numpy.prod(canvas))
    q, k, v, gate = (normal(random, 2, length, 2, 16, dtype="float64") for _ in range(4))
    for given in (None, gate):
        wanted = coarse_and_fine(q, k, v, canvas, tile, sparsity, given)
        for make in libraries():
            out = video.video_sparse_attention(*map(make, (q, k, v)), canvas, sparsity, tile=tile,
                                               gate=None if given is None else make(given))
            numpy.testing.assert_allclose(numpy.asarray(out), wanted, 1e-9, 1e-11)


@pytest.mark.parametrize("canvas, tile", CANVASES)
def test_cubes_in_the_order_of_slots(random, canvas, tile):
    """The same numbers as in raster order; empty slots are 0."""
    grid = video.grid_of(canvas, tile)
    q, k, v, gate = (normal(random, 2, grid.length, 2, 16) for _ in range(4))
    wanted = video.video_sparse_attention(q, k, v, canvas, 0.5, tile=tile, gate=gate)
    for make in libraries():
        tiled = [video.without_empty(grid, make(x)) for x in (q, k, v, gate)]
        out = video.cubes_attention(grid, *tiled[:3], 0.5, tiled[3])
        numpy.testing.assert_array_equal(numpy.asarray(grid.to_raster(out)), wanted)
        assert (numpy.asarray(out)[:, list(grid.empty)] == 0).all()


@pytest.mark.parametrize("canvas, tile", CANVASES)
@pytest.mark.parametrize("sparsity", [0, 0.5, 0.9])
def test_selected_cubes(random, canvas, tile, sparsity):
    grid = video.grid_of(canvas, tile)
    q, k = (normal(random, 2, grid.length, 2, 16, dtype="float64") for _ in range(2))
    at, counts = tiles_of(canvas, tile)
    cube = (at[:, 0] * counts[1] + at[:, 1]) * counts[2] + at[:, 2]
    mean_q, mean_k = (numpy.stack([x[:, cube == n].mean(1) for n in range(grid.tiles)], 2) for x in (q, k))
    wanted = video.best_blocks(mean_q @ mean_k.transpose(0, 1, 3, 2) * 0.3, video.blocks_to_keep(sparsity, grid.tiles))
    for make in libraries():
        selected = video.select_cubes(grid, *(video.without_empty(grid, make(x)) for x in (q, k)), sparsity, 0.3)
        assert type(selected) is type(make(q))
        numpy.testing.assert_array_equal(numpy.asarray(selected), wanted)


def test_ties_take_the_first():
    scores = numpy.array([[1, 2, 2, 1, 2.0], [0, 0, 0, 0, 0], [-numpy.inf, 3, -numpy.inf, -numpy.inf, 1]])
    for make in libraries():
        for count, wanted in ((1, [[1], [0], [1]]), (2, [[1, 2], [0, 1], [1, 4]]), (3, [[1, 2, 4], [0, 1, 2], [0, 1, 4]])):
            numpy.testing.assert_array_equal(numpy.asarray(video.best_blocks(make(scores), count)), wanted)
    assert [video.blocks_to_keep(s, 10) for s in (0, 0.7, 0.75, 0.9, 0.95, 1)] == [10, 3, 3, 1, 1, 1]


def test_what_is_refused(random):
    q = normal(random, 1, 64, 2, 16)
    for call, told in ((lambda: video.sliding_tile_attention(q, q, q, (4, 4, 5), (1, 1, 1)), "at most the 64 tokens of q, got 80"),
                       (lambda: video.sliding_tile_attention(q, q, q, (4, 4, 4), [(1, 1, 1)] * 3),
                        "expected one window, or 2 windows, one for each head; got 3"),
                       (lambda: video.sliding_tile_attention(q, q, q, (4, 4), (1, 1, 1)), "canvas: expected three numbers"),
                       (lambda: video.sliding_tile_attention(q, q, q, (4, 4, 0), (1, 1, 1)), "canvas: expected .*1"),
                       (lambda: video.video_sparse_attention(q, q, q, (4, 4, 5), 0.5), "expected 80 tokens in dimension 1"),
                       (lambda: video.video_sparse_attention(q, q, q, (4, 4, 4), 1.5), "sparsity: expected 0 to 1, got 1.5")):
        with pytest.raises(tenon.errors.InvalidArgumentError, match=told):
            call()


def load(backend):
    path = platform("cpu").get_attn_backend_cls(backend, 16, "f32")
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name)


def test_a_layer_of_video_sparse_attention():
    torch = pytest.importorskip("torch")
    torch.manual_seed(5)
    backend = load(AttentionBackendEnum.VIDEO_SPARSE_ATTN)
    assert backend.get_name() == "VIDEO_SPARSE_ATTN" and backend.get_supported_head_sizes() == [64, 128]
    step = backend.get_builder_cls()().build(current_timestep=3, raw_latent_shape=(5, 14, 12), patch_size=(1, 2, 2),
                                             VSA_sparsity=0.5, device="cpu")
    assert isinstance(step, backend.get_metadata_cls()) and step.canvas == (5, 7, 6)
    impl = backend.get_impl_cls()(num_heads=2, head_size=16, softmax_scale=0.25, prefix="blocks.3.attn1")
    for dtype, near in ((torch.float32, 1e-5), (torch.bfloat16, 2e-2)):
        q, k, v, gate = (torch.randn(1, 210, 2, 16, dtype=dtype) for _ in range(4))
        tiled = impl.preprocess_qkv(torch.cat([q, k, v, gate]), step).chunk(4)
        out = impl.postprocess_output(impl.forward(*tiled, step), step)
        assert out.dtype == dtype
        wanted = video.video_sparse_attention(q, k, v, (5, 7, 6), 0.5, gate=gate)
        torch.testing.assert_close(out, wanted, rtol=0, atol=0)
        exact = coarse_and_fine(*(x.double().numpy() for x in (q, k, v)), (5, 7, 6), (4, 4, 4), 0.5, gate.double().numpy())
        assert abs(out.double().numpy() - exact).mean() < near
    again = pickle.loads(pickle.dumps(impl))
    torch.testing.assert_close(again.forward(*tiled, step), impl.forward(*tiled, step), rtol=0, atol=0)
    trained = [x.requires_grad_() for x in tiled]
    out = impl.forward(*trained, step)
    torch.testing.assert_close(out.detach(), impl.forward(*(x.detach() for x in tiled), step), rtol=1e-2, atol=1e-2)
    assert all(x.abs().sum() > 0 for x in torch.autograd.grad(out.sum(), trained))
    with pytest.raises(tenon.errors.UnsupportedError, match="attn_mask: expected none for VIDEO_SPARSE_ATTN"):
        impl.forward(*(x.detach() for x in tiled[:3]), backend.get_metadata_cls()(0, attn_mask=torch.ones(1, 4)))
    with pytest.raises(tenon.errors.UnsupportedError, match="causal: expected False"):
        backend.get_impl_cls()(2, 16, causal=True)


def test_a_layer_of_video_sparse_attention_of_arrays(random):
    backend = load(AttentionBackendEnum.VIDEO_SPARSE_ATTN)
    step = backend.get_builder_cls()().build(current_timestep=0, raw_latent_shape=(5, 14, 12), patch_size=(1, 2, 2),
                                             VSA_sparsity=0.5)
    impl = backend.get_impl_cls()(num_heads=2, head_size=16, softmax_scale=0.25)
    q, k, v = (normal(random, 1, 210, 2, 16) for _ in range(3))
    out = impl.postprocess_output(impl.forward(*(impl.preprocess_qkv(x, step) for x in (q, k, v)), None, step), step)
    numpy.testing.assert_array_equal(out, video.video_sparse_attention(q, k, v, (5, 7, 6), 0.5))


def test_a_layer_of_sliding_tiles(random, tmp_path, monkeypatch):
    backend = load(AttentionBackendEnum.SLIDING_TILE_ATTN)
    assert load("sliding_tile_attn") is backend
    make = backend.get_impl_cls()
    q, k, v = (normal(random, 1, 13 * 17 * 9 + 5, 2, 16) for _ in range(3))
    canvas, table = (13, 17, 9), {f"{t}_{n}_{h}": [1, 3, 1] if h == 0 else [3, 1, n + 1]
                                  for t in range(3) for n in range(3) for h in range(2)}
    nested = [[[table[f"{t}_{n}_{h}"] for h in range(2)] for n in range(3)] for t in range(3)]
    step = backend.get_builder_cls()().build(current_timestep=2, canvas=canvas)
    file = tmp_path / "windows.json"
    monkeypatch.setenv("FASTVIDEO_ATTENTION_CONFIG", str(file))
    for content in (table, nested, [[1, 3, 1], [3, 1, 3]]):
        file.write_text(json.dumps(content))
        impl = make(num_heads=2, head_size=16, softmax_scale=0.3, prefix="blocks.2.attn1")
        video_tokens = [impl.preprocess_qkv(x[:, :-5], step) for x in (q, k, v)]
        out = impl.forward(*(numpy.concatenate(pair, 1) for pair in zip(video_tokens, (x[:, -5:] for x in (q, k, v)))), step)
        out = numpy.concatenate([impl.postprocess_output(out[:, :-5], step), out[:, -5:]], 1)
        wanted = video.sliding_tile_attention(q, k, v, canvas, [(1, 3, 1), (3, 1, 3)], scale=0.3)
        numpy.testing.assert_array_equal(out, wanted)
    file.write_text(json.dumps({"0_0_0": [1, 1, 1]}))
    with pytest.raises(tenon.errors.InvalidArgumentError, match="expected one for 2_2_0, timestep, layer and head; got none"):
        make(2, 16, prefix="blocks.2").forward(*video_tokens, step)
    with pytest.raises(tenon.errors.InvalidArgumentError, match='prefix: expected "blocks.N"'):
        make(2, 16).forward(*video_tokens, step)
    with pytest.raises(tenon.errors.InvalidArgumentError, match="canvas: expected metadata with a canvas"):
        make(2, 16, windows=(1, 1, 1)).preprocess_qkv(q, None)
    file.write_text("{")
    with pytest.raises(tenon.errors.InvalidArgumentError, match="expected a JSON file with the windows"):
        make(2, 16)
    monkeypatch.delenv("FASTVIDEO_ATTENTION_CONFIG")
    with pytest.raises(tenon.errors.InvalidArgumentError, match="FASTVIDEO_ATTENTION_CONFIG: expected the name of a JSON file"):
        make(2, 16)


def test_canvases_that_upstream_knows():
    """The length alone says the canvas."""
    impl = load("SLIDING_TILE_ATTN").get_impl_cls()(1, 8, windows=(3, 3, 3))
    x = numpy.arange(69120, dtype="float32").reshape(1, -1, 1, 1)
    tiled = impl.preprocess_qkv(x, None)
    assert tiled[0, :10, 0, 0].tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 80, 81]
    numpy.testing.assert_array_equal(impl.postprocess_output(tiled, None), x)
