"""Gradients of block-sparse attention and of the attentions of videos, against finite differences and dense attention."""
import itertools

import numpy
import pytest
import tenon
from tenon.platforms import AttentionBackendEnum, platform

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from tenon.integrations import _sparse_gradient  # noqa: E402
from tenon.integrations.torch import (attention, attention_sparse, sliding_tile_attention,  # noqa: E402
                                      video_sparse_attention)


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(7)


def tensors(*shapes, dtype=torch.float64):
    return [torch.randn(shape, dtype=dtype, requires_grad=True) for shape in shapes]


def check(function, given):
    """Finite differences along a random direction."""
    assert torch.autograd.gradcheck(function, given, fast_mode=True)


def lists_of(seen):
    """(starts, blocks) of a mask of four dimensions."""
    counts = seen.sum(-1).reshape(-1, seen.shape[2])
    ends = numpy.cumsum(counts).reshape(counts.shape)
    starts = numpy.concatenate([ends[:, :1] - counts[:, :1], ends], 1).astype("int32")
    return starts.reshape(*seen.shape[:2], -1), numpy.nonzero(seen)[3].astype("int32")


def dense(seen, block, queries, keys):
    return seen.repeat(block[0], 2).repeat(block[1], 3)[:, :, :queries, :keys]


@pytest.mark.parametrize("layout", ["bhld", "blhd"])
def test_gradients_are_finite_differences(layout):
    shapes = [(1, 4, 7, 3), (1, 2, 9, 3), (1, 2, 9, 2)]
    if layout == "blhd":
        shapes = [(b, length, heads, size) for b, heads, length, size in shapes]
    seen = torch.rand(1, 4, 3, 3) < 0.6
    for options in ({}, {"causal": True, "scale": 0.3}, {"window": (4, 2)}):
        check(lambda *given: attention_sparse(*given, seen, block=(3, 4), layout=layout, **options), tensors(*shapes))
    all_see = seen | torch.tensor([True, False, False])  # the lse of a query without keys is -infinity
    check(lambda *given: attention_sparse(*given, all_see, block=(3, 4), layout=layout, lse=True), tensors(*shapes))
    sizes = numpy.array([2, 0, 1], "int32")
    starts, blocks = lists_of(seen.numpy())
    check(lambda *given: attention_sparse(*given, block=(3, 4), starts=starts, blocks=torch.from_numpy(blocks),
                                          block_sizes=sizes, layout=layout), tensors(*shapes))


@pytest.mark.parametrize("dtype, near", [(torch.float32, 1e-5), (torch.bfloat16, 3e-2), (torch.float16, 4e-3)])
def test_gradients_are_those_of_a_mask(dtype, near):
    block = (16, 10)
    q, k, v = tensors((2, 4, 70, 24), (2, 2, 95, 24), (2, 2, 95, 16), dtype=dtype)
    seen = numpy.random.default_rng(1).random((2, 4, 5, 10)) < 0.5
    mask = torch.from_numpy(dense(seen, block, 70, 95))
    grad = torch.randn(2, 4, 70, 16).to(dtype)
    for causal in (False, True):
        wanted = torch.autograd.grad(attention(q, k, v, mask, causal=causal), (q, k, v), grad)
        for wide in (None, torch.float32):
            out = attention_sparse(q, k, v, seen, block=block, causal=causal, dtype=wide)
            assert out.dtype == (wide or dtype)
            for one, other in zip(torch.autograd.grad(out, (q, k, v), grad.to(out.dtype)), wanted):
                assert one.dtype == dtype
                torch.testing.assert_close(one, other, rtol=near, atol=near)


def test_of_arrays():
    """The operator itself, without PyTorch's autograd."""
    block, shape = (8, 7), (1, 2, 30, 16)
    q, k, v, dout = (x.detach().numpy() for x in tensors(*[shape] * 4))
    seen = numpy.random.default_rng(2).random((1, 2, 4, 5)) < 0.5
    starts, blocks = lists_of(seen)
    options = {"block": block, "starts": starts, "blocks": blocks, "causal": True}
    out, lse = tenon.attention_sparse(q, k, v, lse=True, **options)
    found = tenon.attention_sparse_backward(dout, q, k, v, out, lse, **options)
    wanted = tenon.attention_backward(dout, q, k, v, out, lse, causal=True, mask=dense(seen, block, 30, 30))
    for one, other in zip(found, wanted):
        numpy.testing.assert_allclose(one, other, 1e-9, 1e-12)
    into = tuple(numpy.empty_like(x) for x in (q, k, v))
    again = tenon.attention_sparse_backward(dout, q, k, v, out, lse, into=into, **options)
    assert all(one is other for one, other in zip(again, into))
    numpy.testing.assert_array_equal(into[0], found[0])
    assert "bq=8,bk=7" in tenon.explain(tenon.attention_sparse_backward, dout, q, k, v, out, lse, **options).problem
    blocks[0] = 5
    with pytest.raises(tenon.errors.InvalidArgumentError, match=r"blocks\[0\]: expected at least 0 and below 5, got 5"):
        tenon.attention_sparse_backward(dout, q, k, v, out, lse, **options)
    with pytest.raises(TypeError, match="into: expected a tuple of three arrays, got 2 of them"):
        tenon.attention_sparse_backward(dout, q, k, v, out, lse, block=8, into=into[:2])


def test_what_has_no_gradient():
    q, k, v = tensors(*[(1, 1, 8, 4)] * 3)
    seen = torch.tensor([[False, False], [True, False]])
    out = attention_sparse(q, k, v, seen, block=4)
    of_q, of_k, of_v = torch.autograd.grad(out.sum(), (q, k, v), create_graph=True)
    assert (of_q[:, :, :4] == 0).all() and (of_k[:, :, 4:] == 0).all() and (of_v[:, :, 4:] == 0).all()
    assert (of_v[:, :, :4] != 0).all()
    with pytest.raises(tenon.errors.UnsupportedError, match="no second derivatives of attention"):
        of_v.sum().backward()
    assert not attention_sparse(q.detach(), k.detach(), v.detach(), seen, block=4).requires_grad
    with torch.no_grad():
        assert not attention_sparse(q, k, v, seen, block=4).requires_grad
    with pytest.raises(tenon.errors.InvalidArgumentError, match="requires gradients would lose them here"):
        tenon.attention_sparse(q, k, v, seen, block=4)
    attention_sparse(q, k, v, seen, block=4).sum().backward(inputs=[k])
    assert k.grad is not None and q.grad is None
    changed = attention_sparse(q, k, v, seen, block=4)
    seen[0, 0] = True
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        changed.sum().backward()


def test_autocast_and_the_settings_of_the_forward_pass():
    q, k, v = tensors(*[(1, 2, 40, 16)] * 3, dtype=torch.float32)
    seen = torch.ones(3, 3, dtype=torch.bool)
    with torch.autocast("cpu", torch.bfloat16):
        out = attention_sparse(q, k, v, seen, block=16)
    assert out.dtype == torch.bfloat16
    assert all(x.dtype == torch.float32 for x in torch.autograd.grad(out.sum(), (q, k, v), retain_graph=True))
    with tenon.settings.scope({"attention.backend": "require:NO_ATTENTION"}):
        torch.autograd.grad(out.sum(), (q, k, v))
        with pytest.raises(tenon.errors.RefusedError):
            attention_sparse(q, k, v, seen, block=16)


def test_compiled():
    q, k, v = tensors(*[(1, 2, 40, 16)] * 3, dtype=torch.float32)
    seen = torch.ones(3, 3, dtype=torch.bool)
    run = torch.compile(lambda *given: attention_sparse(*given, seen, block=16) * 2, backend="eager")
    found = torch.autograd.grad(run(q, k, v).sum(), (q, k, v))
    for one, other in zip(found, torch.autograd.grad(attention_sparse(q, k, v, seen, block=16).sum(), (q, k, v))):
        torch.testing.assert_close(one, 2 * other)


CANVASES = [((2, 3, 5), (1, 2, 2), 3), ((2, 2, 4), (2, 2, 2), 0), ((1, 1, 3), (2, 2, 2), 5)]


@pytest.mark.parametrize("canvas, tile, text", CANVASES)
def test_sliding_tiles(canvas, tile, text):
    length = int(numpy.prod(canvas)) + text
    windows = [(1, 3, 1), (3, 1, 2)]
    q, k, v = tensors(*[(1, length, 2, 3)] * 3)
    check(lambda *given: sliding_tile_attention(*given, canvas, windows, tile=tile, scale=0.4), (q, k, v))
    out = sliding_tile_attention(q, k, v, canvas, windows, tile=tile)
    plain = tenon.video.sliding_tile_attention(*(x.detach() for x in (q, k, v)), canvas, windows, tile=tile)
    torch.testing.assert_close(out.detach(), plain)
    with pytest.raises(tenon.errors.InvalidArgumentError, match="canvas: expected at most"):
        sliding_tile_attention(q, k, v, (9, 9, 9), windows, tile=tile)


@pytest.mark.parametrize("canvas, tile", [(canvas, tile) for canvas, tile, _ in CANVASES])
@pytest.mark.parametrize("gated", [False, True])
def test_video_sparse(canvas, tile, gated):
    """Small steps select the same cubes, as scores of random means are not that near each other."""
    given = tensors(*[(2, int(numpy.prod(canvas)), 2, 3)] * (4 if gated else 3))

    def run(q, k, v, gate=None):
        return video_sparse_attention(q, k, v, canvas, 0.6, gate=gate, tile=tile)

    check(run, given)
    q, k, v, *gate = (x.detach() for x in given)
    plain = tenon.video.video_sparse_attention(q, k, v, canvas, 0.6, gate=gate[0] if gate else None, tile=tile)
    torch.testing.assert_close(run(*given).detach(), plain)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_the_same_cubes_are_selected(dtype):
    """Cubes with the same keys in another order have scores that only rounding tells apart. The first columns of v are
    the cubes, so without the coarse stage a result is above 0 for the selected ones."""
    canvas, tile = (4, 8, 16), (4, 4, 4)
    grid = tenon.video.grid_of(canvas, tile)
    cubes = torch.eye(grid.tiles, 16, dtype=dtype).repeat_interleave(grid.slots, 0)
    for keep in range(1, 2 * grid.tiles + 1):
        sparsity = 1 - (keep % grid.tiles + 1) / grid.tiles
        q, keys = torch.randn(2, 512, 2, 16), torch.randn(2, grid.slots, 2, 16)
        k = torch.cat([keys[:, torch.randperm(grid.slots)] for _ in range(grid.tiles)], 1)
        v = cubes[None, :, None].expand(2, -1, 2, -1)
        q, k, v = (grid.to_raster(x.to(dtype)) for x in (q, k, v))
        gate = torch.zeros_like(v)
        trained = video_sparse_attention(*(x.clone().requires_grad_() for x in (q, k, v)), canvas, sparsity, gate=gate, tile=tile)
        plain = tenon.video.video_sparse_attention(q, k, v, canvas, sparsity, gate=gate, tile=tile)
        torch.testing.assert_close(trained.detach() > 0, plain > 0, rtol=0, atol=0)
        assert ((plain > 0).sum(-1) == keep % grid.tiles + 1).all()
        selected = tenon.video.select_cubes(grid, grid.to_tiles(q), grid.to_tiles(k), sparsity)
        seen = torch.zeros(2, 2, grid.tiles, grid.tiles, dtype=torch.bool).scatter_(-1, selected.long(), True)
        seen = seen.repeat_interleave(grid.slots, 2).transpose(1, 2)
        torch.testing.assert_close(grid.to_raster(seen), plain[..., :grid.tiles] > 0, rtol=0, atol=0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_results_with_and_without_gradients_are_alike(dtype):
    canvas, tile = (3, 5, 6), (2, 2, 4)
    grid = tenon.video.grid_of(canvas, tile)
    for sparsity in (0, 0.3, 0.6, 0.9):
        q, k, v, gate = (tenon.video.without_empty(grid, torch.randn(2, 90, 2, size).to(dtype)) for size in (16, 16, 8, 8))
        plain = tenon.video.cubes_attention(grid, q, k, v, sparsity, gate, 0.3)
        given = [x.clone().requires_grad_() for x in (q, k, v, gate)]
        trained = _sparse_gradient.cubes_attention(grid, *given[:3], sparsity, given[3], 0.3)
        near = {torch.float32: 1e-5, torch.bfloat16: 2e-2, torch.float16: 2e-3}[dtype]
        torch.testing.assert_close(trained.detach(), plain, rtol=near, atol=near)
        empty = list(grid.empty)
        assert empty and (plain[:, empty] == 0).all() and (trained[:, empty] == 0).all()
        assert all(x.abs().sum() > 0 for x in torch.autograd.grad(trained.sum(), given))


@pytest.mark.parametrize("name", ["SLIDING_TILE_ATTN", "VIDEO_SPARSE_ATTN"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_layers_give_gradients(name, dtype):
    canvas = (4, 9, 10)
    path = platform("cpu").get_attn_backend_cls(AttentionBackendEnum[name], 64, torch.float32)
    backend = getattr(tenon.platforms.attention, path.rpartition(".")[2])
    options = {"windows": (1, 3, 1)} if name == "SLIDING_TILE_ATTN" else {}
    impl = backend.get_impl_cls()(num_heads=2, head_size=16, softmax_scale=0.25, prefix="blocks.0", **options)
    step = backend.get_builder_cls()().build(0, canvas=canvas, VSA_sparsity=0.5)
    q, k, v = tensors(*[(1, 360, 2, 16)] * 3, dtype=dtype)
    out = impl.postprocess_output(impl.forward(*(impl.preprocess_qkv(x, step) for x in (q, k, v)), step), step)
    grad = torch.randn_like(out)
    found = torch.autograd.grad(out, (q, k, v), grad)
    if name == "SLIDING_TILE_ATTN":
        wanted = sliding_tile_attention(q, k, v, canvas, (1, 3, 1), scale=0.25)
    else:
        wanted = video_sparse_attention(q, k, v, canvas, 0.5)
    torch.testing.assert_close(out, wanted, rtol=0, atol=0)
    for one, other in itertools.zip_longest(found, torch.autograd.grad(wanted, (q, k, v), grad)):
        torch.testing.assert_close(one, other, rtol=0, atol=0)
