"""A Wan transformer of Diffusers with random weights, whose video attends to itself by each of the sparse backends, against
the same with dense attention."""
import functools

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not here")
diffusers = pytest.importorskip("diffusers", reason="Diffusers is not here")

import tenon  # noqa: E402
from diffusers.models import attention_dispatch  # noqa: E402
from tenon import video  # noqa: E402
from tenon.integrations import diffusers as tenon_diffusers  # noqa: E402
from tenon.platforms import platform  # noqa: E402
from test_video import load  # noqa: E402

CANVAS, HEADS, SIZE = (4, 8, 8), 2, 24
LATENT = {"raw_latent_shape": (4, 16, 16), "patch_size": (1, 2, 2)}
CHUNKS = {"temporal_chunk_size": 1, "spatial_chunk_size": (4, 4), "st_chunk_size": (2, 4, 4)}

# Of each backend: metadata with which it sees everything, sparse metadata, and the relative error that the latter may cause.
STEPS = {
    "SLIDING_TILE_ATTN": ({"STA_param": [[(9, 9, 9)] * HEADS] * 2}, {"STA_param": [[(1, 1, 1)] * HEADS] * 2}, 0),
    "VIDEO_SPARSE_ATTN_H3": ({}, {"VSA_sparsity": 0.5, "tile_size": 64}, 0.1),
    "BSA_ATTN": ({"bsa_query_keep_ratio": 1, "bsa_kv_cumulative_threshold": 1},
                 {"bsa_query_keep_ratio": 0.5, "bsa_kv_cumulative_threshold": 0.5, "bsa_min_kv_blocks": 1}, 0.1),
    "NABLA_ATTN": ({"P": 1.0}, {"P": 0.5}, 0.1),
    "SLA_ATTN": ({"topk_ratio": 1}, {"topk_ratio": 0.5}, 0.1),
    "VMOBA_ATTN": ({**CHUNKS, "moba_select_mode": "topk", "temporal_topk": 99, "spatial_topk": 99}, CHUNKS, 0.1),
}


@pytest.fixture(scope="module", autouse=True)
def active():
    before = attention_dispatch._AttentionBackendRegistry._active_backend
    yield
    attention_dispatch._AttentionBackendRegistry.set_active_backend(before)


@pytest.fixture(scope="module")
def wan():
    torch.manual_seed(0)
    model = diffusers.WanTransformer3DModel(
        num_attention_heads=HEADS, attention_head_dim=SIZE, in_channels=4, out_channels=4, text_dim=8, freq_dim=16, ffn_dim=32,
        num_layers=2, rope_max_seq_len=32).eval()
    for weight in model.parameters():
        torch.nn.init.normal_(weight, std=0.2)
    given = torch.randn(1, 4, *LATENT["raw_latent_shape"]), torch.tensor([500]), torch.randn(1, 5, 8)
    model.set_attention_backend(tenon_diffusers.register())
    with torch.no_grad():
        return model, given, model(*given).sample


def run(wan, attentions):
    """The model's result where block n attends to its video by attentions[n]."""
    model, given, _ = wan
    for n, (block, attention) in enumerate(zip(model.blocks, attentions)):
        block.attn1.set_attention_backend(tenon_diffusers.register(f"tenon-video-{n}", attention))
    before = tenon_diffusers.calls()
    with torch.no_grad():
        out = model(*given).sample
    assert tenon_diffusers.calls() - before == 4
    return out


def attend(impl, step, q, k, v):
    return impl.postprocess_output(impl.forward(*(impl.preprocess_qkv(x, step) for x in (q, k, v)), step), step)


def by_backend(wan, name, fields):
    backend = load(name)
    options = {"windows": (1, 1, 1)} if name == "SLIDING_TILE_ATTN" else {"BLKQ": 64, "BLKK": 32}
    step = backend.get_builder_cls()().build(current_timestep=0, **LATENT, **fields)
    return run(wan, [functools.partial(attend, backend.get_impl_cls()(HEADS, SIZE, prefix=f"blocks.{n}.attn1", **options), step)
                     for n in range(2)])


def error(found, wanted):
    return float((found - wanted).norm() / wanted.norm())


@pytest.mark.parametrize("name", STEPS)
def test_a_backend_that_sees_everything_is_dense(wan, name):
    assert error(by_backend(wan, name, STEPS[name][0]), wan[2]) < 1e-5


@pytest.mark.parametrize("name", STEPS)
def test_a_sparse_backend_is_near_dense(wan, name):
    most = STEPS[name][2]
    found = error(by_backend(wan, name, STEPS[name][1]), wan[2])
    if name == "SLIDING_TILE_ATTN":  # the canvas is one tile of it
        assert found < 1e-5
    else:
        assert 1e-4 < found < most


def test_video_sparse_attention_without_its_coarse_stage_is_near_dense(wan):
    """A gate of 0 leaves the coarse stage out."""
    for sparsity, least, most in ((0, 0, 1e-5), (0.5, 1e-4, 0.1)):
        found = run(wan, [lambda q, k, v, sparsity=sparsity: video.video_sparse_attention(
            q, k, v, CANVAS, sparsity, gate=torch.zeros_like(q))] * 2)
        assert least <= error(found, wan[2]) < most


def test_sliding_tiles_are_near_dense(wan):
    found = run(wan, [lambda q, k, v: video.sliding_tile_attention(q, k, v, CANVAS, [(3, 1, 3), (1, 3, 3)], tile=(2, 4, 2))] * 2)
    assert 1e-4 < error(found, wan[2]) < 0.1


def test_what_a_function_is_not_told_of_is_refused():
    name = tenon_diffusers.register("tenon-video-0", lambda q, k, v, scale=1.0: q * scale)
    q = torch.ones(1, 4, 2, 8)
    with attention_dispatch.attention_backend(name):
        assert attention_dispatch.dispatch_attention_fn(q, q, q, scale=3.0).max() == 3
        for options, told in (({"attn_mask": torch.ones(1, 1, 4, 4)}, "attn_mask: expected None"),
                              ({"is_causal": True}, "is_causal: expected"), ({"dropout_p": 0.5}, "dropout_p: expected 0")):
            with pytest.raises(tenon.errors.UnsupportedError, match=told):
                attention_dispatch.dispatch_attention_fn(q, q, q, **options)


def test_every_backend_of_the_cpu_is_tested_here():
    for name in STEPS:
        assert platform("cpu").get_attn_backend_cls(name, SIZE, "float32").endswith(name)
