"""Attentions of videos and their layers on a GPU, beside the same on the host."""

import importlib

import numpy
import pytest
import tenon
from tenon import video
from tenon.platforms import platform
from tenon.platforms.interface import VIDEO_BACKENDS
from test_video_sparse import EVERY, operands

torch = pytest.importorskip("torch", reason="PyTorch is not here")
try:
    DEVICE = tenon.device("cuda:0")
except tenon.Error as error:
    pytest.skip(f"no device of cuda: {error.message}", allow_module_level=True)
if not torch.cuda.is_available():
    pytest.skip("PyTorch sees no GPU", allow_module_level=True)

CANVAS, TILE = (3, 5, 7), (2, 3, 4)
ALL = {
    **{name: call for name, call in EVERY.items() if name != "vmoba"},
    "sliding": lambda *x: video.sliding_tile_attention(*x, CANVAS, (3, 1, 3), tile=TILE),
    "video sparse": lambda q, k, v: video.video_sparse_attention(q[:, :, :2], k, v, CANVAS, 0.5, tile=TILE, gate=q[:, :, 2:]),
}


@pytest.fixture
def given():
    """Queries, and keys and values of fewer heads, in f64: what decides between blocks is not rounded."""
    return [torch.from_numpy(x) for x in operands(numpy.random.default_rng(22), 105)]


@pytest.mark.parametrize("name", ALL)
def test_same_as_on_the_host(given, name):
    out = ALL[name](*(x.cuda() for x in given))
    assert out.is_cuda and out.dtype == torch.float64
    torch.testing.assert_close(out.cpu(), ALL[name](*given), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_other_dtypes(given, name, dtype):
    """Nearly all numbers are near those of f64: of two blocks with nearly the same score, rounding may choose the other."""
    narrow = [x.to(dtype) for x in given]
    out, wanted = ALL[name](*(x.cuda() for x in narrow)), ALL[name](*(x.double() for x in narrow))
    assert out.is_cuda and out.dtype == dtype
    off = (out.cpu().double() - wanted).abs()
    assert (off > (1e-3 if dtype == torch.float32 else 5e-2)).double().mean() < 0.05


def test_text_behind_the_video(given):
    q, k, v = (torch.cat((x, x[:, :9]), 1) for x in given)
    wanted = video.sliding_tile_attention(q, k, v, CANVAS, [(1, 1, 1), (3, 3, 3)] * 2, tile=TILE)
    out = video.sliding_tile_attention(*(x.cuda() for x in (q, k, v)), CANVAS, [(1, 1, 1), (3, 3, 3)] * 2, tile=TILE)
    torch.testing.assert_close(out.cpu(), wanted, rtol=1e-9, atol=1e-9)


OPTIONS = {"VIDEO_SPARSE_ATTN": {"VSA_sparsity": 0.5}, "VIDEO_SPARSE_ATTN_H3": {"VSA_sparsity": 0.5, "tile_size": 64}}


def test_what_has_no_kernel(given):
    """VMoBA merges parts, for which CUDA has no kernel yet."""
    with pytest.raises(tenon.errors.UnsupportedError, match="no kernel for attention-merge"):
        EVERY["vmoba"](*(x.cuda() for x in given))
    with pytest.raises(ValueError, match="VMOBA_ATTN computes with tenon.attention_merge: .*no kernel for attention-merge"):
        platform("cuda").get_attn_backend_cls("VMOBA_ATTN", 64, "bf16")


@pytest.mark.parametrize("name", [name for name in VIDEO_BACKENDS if name != "VMOBA_ATTN"])
def test_layers(name):
    """As FastVideo calls them, in bf16 with heads of 64, beside the same layer on the host in f32."""
    path = platform("cuda").get_attn_backend_cls(name, 64, "bf16")
    module, _, of = path.rpartition(".")
    backend = getattr(importlib.import_module(module), of)
    options = {"windows": (1, 3, 3)} if name == "SLIDING_TILE_ATTN" else {}
    layer = backend.get_impl_cls()(num_heads=2, head_size=64, softmax_scale=0.125, prefix="blocks.1.attn1", **options)
    canvas = (6, 16, 16)
    step = backend.get_builder_cls()().build(current_timestep=0, canvas=canvas, **OPTIONS.get(name, {}))
    torch.manual_seed(3)
    tokens = [torch.randn(1, numpy.prod(canvas), 2, 64).bfloat16() for _ in range(3)]
    results = []
    for place, dtype in (("cuda", torch.bfloat16), ("cpu", torch.float32)):
        if hasattr(layer, "to"):
            layer = layer.to(place)  # SLA_ATTN has parameters
        with torch.no_grad():
            tiled = [layer.preprocess_qkv(x.to(place, dtype), step) for x in tokens]
            results.append(layer.postprocess_output(layer.forward(*tiled, step), step))
    out, wanted = results
    assert out.is_cuda and out.dtype == torch.bfloat16
    off = (out.cpu().float() - wanted).abs()
    assert off.mean() < 0.01 * wanted.abs().max() and (off > 0.1).float().mean() < 0.02


def test_gradients_are_refused(given):
    """Until there is a kernel, with a reason."""
    q, k, v = (x.float().cuda().requires_grad_() for x in given)
    from tenon.integrations.torch import sliding_tile_attention

    out = sliding_tile_attention(q, k, v, CANVAS, (3, 1, 3), tile=TILE)
    with pytest.raises(tenon.errors.UnsupportedError, match="attention-sparse-backward"):
        out.sum().backward()
