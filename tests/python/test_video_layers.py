"""The layers of FastVideo's sparse backends: classes that load, metadata that builders make, and results that are those of
tenon.video. And the backends that no class computes, with the reason."""

import importlib
import json
import pickle
import types

import numpy
import pytest

import tenon
from tenon import _video_sla, video
from tenon.platforms import AttentionBackendEnum, attention, platform
from tenon.platforms.interface import VIDEO_BACKENDS, WHY_MISSING
from test_video import libraries, load, normal

CANVAS = (3, 5, 7)
LATENT = {"raw_latent_shape": (3, 10, 14), "patch_size": (1, 2, 2)}


@pytest.fixture
def random():
    return numpy.random.default_rng(21)


@pytest.fixture
def given(random):
    return [normal(random, 1, 105, 2, 16) for _ in range(3)]


def layer_of(name, **options):
    return load(name).get_impl_cls()(num_heads=2, head_size=16, softmax_scale=0.3, prefix="blocks.4.attn1", **options)


def run(impl, step, given, *gate):
    tiled = [impl.preprocess_qkv(x, step) for x in (*given, *gate)]
    out = impl.forward(*tiled, step)
    return impl.postprocess_output(out, step)


def expect(name, step, wanted, given, *gate, **options):
    backend = load(name)
    assert backend.get_name() == name and isinstance(step, backend.get_metadata_cls())
    impl = layer_of(name, **options)
    for make in libraries():
        out = run(impl, step, [make(x) for x in given], *map(make, gate))
        assert type(out) is type(make(given[0]))
        out = out.detach() if hasattr(out, "detach") else out  # SLA_ATTN has parameters
        numpy.testing.assert_allclose(numpy.asarray(out), wanted, 1e-5, 1e-6)
    again = pickle.loads(pickle.dumps(impl))
    numpy.testing.assert_array_equal(run(again, step, given, *gate), run(impl, step, given, *gate))


def builder(name):
    made = load(name).get_builder_cls()()
    made.prepare()
    return made


def test_bsa(given):
    step = builder("BSA_ATTN").build(current_timestep=1, **LATENT, device="cpu", bsa_kv_cumulative_threshold=0.5,
                                     bsa_query_keep_ratio=0.3, bsa_min_kv_blocks=1)
    assert step.canvas == CANVAS and step.current_timestep == 1
    expect("BSA_ATTN", step, video.bsa_attention(*given, CANVAS, keep=0.3, mass=0.5, least=1, scale=0.3), given)
    assert load("BSA_ATTN").accept_output_buffer is False and load("BSA_ATTN").get_supported_head_sizes() == [64, 128]
    with pytest.raises(ValueError, match=r"raw_latent_shape: expected whole patches of \(1, 2, 2\), got \(3, 9, 14\)"):
        builder("BSA_ATTN").build(0, raw_latent_shape=(3, 9, 14), patch_size=(1, 2, 2))


def test_nabla(given, random):
    mask = random.random((1, 1, 2, 2)) < 0.5
    step = builder("NABLA_ATTN").build(current_timestep=0, sta_mask=mask, P=0.2, visual_shape=CANVAS)
    expect("NABLA_ATTN", step, video.nabla_attention(*given, 0.2, mask=mask, scale=0.3), given)
    assert load("NABLA_ATTN").get_supported_head_sizes() is None
    with pytest.raises(tenon.errors.UnsupportedError, match="causal: expected False for NABLA_ATTN"):
        layer_of("NABLA_ATTN", causal=True)


def test_vmoba(given):
    chunks = {"temporal_chunk_size": 1, "temporal_topk": 2, "spatial_chunk_size": (5, 1), "spatial_topk": 3,
              "st_chunk_size": (3, 5, 1), "st_topk": 1}
    for mode, scope in (("topk", "overall"), ("threshold", "block")):
        for turns, chunk, count in (((1, 1, 1), (5, 1), 3), ((5, 1, 1), 1, 2), ((1, 0, 2), (3, 5, 1), 1),
                                    ((2, 2, 2), (3, 5, 1), 1)):
            temporal, spatial, both = turns
            step = builder("VMOBA_ATTN").build(current_timestep=0, **LATENT, **chunks, moba_select_mode=mode, moba_threshold=0.4,
                                               moba_threshold_type=scope, temporal_layer=temporal, spatial_layer=spatial,
                                               st_layer=both)
            wanted = video.vmoba_attention(*given, CANVAS, chunk, select="top" if mode == "topk" else mode, count=count,
                                           threshold=0.4, scope=scope, scale=0.3)
            expect("VMOBA_ATTN", step, wanted, given)
    step.first_full_layer = 2  # of which layer 4 is the third
    expect("VMOBA_ATTN", step, video.vmoba_attention(*given, CANVAS, (5, 1), threshold=0.4, scope="block", scale=0.3), given)
    with pytest.raises(ValueError, match='prefix: expected "blocks.N" with the number of the layer'):
        load("VMOBA_ATTN").get_impl_cls()(2, 16, prefix="attn1")
    with pytest.raises(ValueError, match="patch_resolution: expected one in the metadata"):
        layer_of("VMOBA_ATTN").forward(*given, builder("VMOBA_ATTN").build(0))
    with pytest.raises(ValueError, match="temporal_layer, spatial_layer, st_layer: expected at least one"):
        step = builder("VMOBA_ATTN").build(0, canvas=CANVAS, temporal_layer=0, spatial_layer=0, st_layer=0)
        layer_of("VMOBA_ATTN").forward(*given, step)


def test_packed(random):
    q, k, v, gate = (normal(random, 1, 40 + 105, 2, 16) for _ in range(4))
    for options, mode, tile, sparsity in (({}, "exempt", (4, 8, 8), 0.5),
                                          ({"exempt": False, "tile_size": 64}, "compete", (4, 4, 4), 0.5),
                                          ({"dense_layers": (3, 4), "tile_size": 64}, "exempt", (4, 4, 4), 0)):
        step = builder("VIDEO_SPARSE_ATTN_H3").build(current_timestep=0, **LATENT, VSA_sparsity=0.5, prefix_segments=(10, 30),
                                                     device="cpu", **options)
        assert (step.total_seq_length, step.num_prefix_tiles) == (145, 2)
        for given in ((), (gate,)):
            wanted = video.video_sparse_h3_attention(q, k, v, CANVAS, sparsity, prefix=(10, 30), mode=mode, tile=tile, scale=0.3,
                                                     gate=gate if given else None)
            expect("VIDEO_SPARSE_ATTN_H3", step, wanted, (q, k, v), *given)
    with pytest.raises(ValueError, match="prefix: expected 145 tokens in dimension 1"):
        layer_of("VIDEO_SPARSE_ATTN_H3").preprocess_qkv(q[:, :9], step)
    with pytest.raises(ValueError, match="tile_size: expected 256 or 64, got 128"):
        builder("VIDEO_SPARSE_ATTN_H3").build(0, canvas=CANVAS, tile_size=128)
    with pytest.raises(ValueError, match="attn_metadata: expected PackedMetadata.*got NoneType"):
        layer_of("VIDEO_SPARSE_ATTN_H3").preprocess_qkv(q, None)


def test_sla(given):
    sparse, _ = _video_sla.sla_parts(*given, 0.4, (32, 16), "elu", 0.3)
    step = builder("SLA_ATTN").build(current_timestep=0, topk_ratio=0.4)
    expect("SLA_ATTN", step, sparse, given, feature_map="elu", BLKQ=32, BLKK=16)  # the projection is 0 at first
    impl = layer_of("SLA_ATTN", topk_ratio=0.4, feature_map="elu", BLKQ=32, BLKK=16)
    numpy.testing.assert_array_equal(impl.forward(*given), impl.forward(*given, step))  # without metadata, the layer's own
    assert builder("SLA_ATTN").build(0).topk_ratio == 0.5
    with pytest.raises(ValueError, match="feature_map: expected softmax, elu, relu"):
        layer_of("SLA_ATTN", feature_map="cos")


def test_projection_of_sla(given, random):
    """It is a parameter of the model's: loaded with it, in effect for NumPy, too, and trained."""
    torch = pytest.importorskip("torch")
    impl = layer_of("SLA_ATTN", BLKQ=32, BLKK=16)
    model = torch.nn.ModuleDict({"attn": impl})
    assert {name: tuple(x.shape) for name, x in model.state_dict().items()} == {"attn.proj_l.weight": (16, 16),
                                                                                "attn.proj_l.bias": (16,)}
    weight, bias = normal(random, 16, 16), normal(random, 16)
    model.load_state_dict({"attn.proj_l.weight": torch.from_numpy(weight), "attn.proj_l.bias": torch.from_numpy(bias)})
    step = builder("SLA_ATTN").build(0, topk_ratio=0.4)
    wanted = video.sla_attention(*given, 0.4, block=(32, 16), projection=(weight, bias), scale=0.3)
    numpy.testing.assert_allclose(impl.forward(*given, step), wanted, 1e-5, 1e-6)
    out = impl(*map(torch.from_numpy, given), step)
    numpy.testing.assert_allclose(out.detach().numpy(), wanted, 1e-5, 1e-6)
    out.square().sum().backward()
    _, linear = _video_sla.sla_parts(*given, 0.4, (32, 16), "softmax", 0.3)
    grad = numpy.einsum("blho,blhi->oi", 2 * wanted.astype("f8"), linear.astype("f8"))
    numpy.testing.assert_allclose(impl.proj_l.weight.grad.numpy(), grad, 1e-3, 1e-2)


@pytest.mark.parametrize("name", VIDEO_BACKENDS)
def test_what_layers_refuse(given, name):
    options = {"windows": (1, 1, 1)} if name == "SLIDING_TILE_ATTN" else {}
    for wrong in ({"causal": True}, {"dropout_p": 0.5}):
        with pytest.raises(NotImplementedError, match=f"{next(iter(wrong))}: expected .* for {name}"):
            layer_of(name, **options, **wrong)
    impl = layer_of(name, **options)
    step = builder(name).build(current_timestep=0, canvas=CANVAS, temporal_chunk_size=1, spatial_chunk_size=(5, 7))
    step.attn_mask = numpy.ones((1, 105))
    tiled = [impl.preprocess_qkv(x, step) for x in given]
    with pytest.raises(NotImplementedError, match=f"attn_mask: expected none for {name}"):
        impl.forward(*tiled, step)
    step.attn_mask = None
    if name not in ("VIDEO_SPARSE_ATTN", "VIDEO_SPARSE_ATTN_H3"):
        with pytest.raises(NotImplementedError, match=f"gate_compress: expected None for {name}"):
            impl.forward(*tiled, tiled[0], step)


@pytest.mark.parametrize("member", list(AttentionBackendEnum))
def test_every_name_has_an_answer(member):
    """A class that loads, or a reason."""
    cpu = platform("cpu")
    try:
        path = cpu.get_attn_backend_cls(member, 64, "float32")
    except ValueError as error:
        assert member.name in str(error) and member.name not in VIDEO_BACKENDS
        if member.name in WHY_MISSING:
            assert f"{member.name}: {WHY_MISSING[member.name]} ({member.name} is required" in str(error)
        return
    module, _, name = path.rpartition(".")
    backend = getattr(importlib.import_module(module), name)
    assert backend.get_name() == member.name and member.name not in WHY_MISSING
    assert issubclass(backend.get_metadata_cls(), attention.AttentionMetadata)
    assert isinstance(backend.get_builder_cls()().build(current_timestep=0, canvas=(1, 1, 1)), backend.get_metadata_cls())


@pytest.mark.parametrize("name", [*VIDEO_BACKENDS, "SAGE_ATTN"])
def test_the_setting_selects_them(name):
    cpu = platform("cpu")
    with tenon.settings.scope({"attention.backend": name}):
        assert cpu.get_attn_backend_cls(None, 64, "float32") == f"tenon.platforms.attention.{name}"
        assert cpu.get_attn_backend_cls("FLASH_ATTN", 64, "float32") == "tenon.platforms.attention.FLASH_ATTN"
        with pytest.raises((tenon.errors.UnsupportedError, tenon.errors.UnavailableError), match="expected cpu or cuda|platform mps is absent"):
            platform("mps").get_attn_backend_cls(None, 64, "float32")
    with tenon.settings.scope({"attention.backend": f"prefer:{name},FLASH_ATTN"}):
        assert cpu.get_attn_backend_cls(None, 64, "float32") == f"tenon.platforms.attention.{name}"
        assert cpu.get_attn_backend_cls(None, 64, "float64").endswith("FLASH_ATTN" if name == "SAGE_ATTN" else name)
    with tenon.settings.scope({"attention.backend": f"FLASH_ATTN,{name}"}):
        assert cpu.get_attn_backend_cls(None, 64, "float32").endswith("FLASH_ATTN")


def test_a_layer_that_computes_with_attention_under_the_setting(given):
    step = builder("VMOBA_ATTN").build(0, canvas=CANVAS, temporal_chunk_size=1, spatial_chunk_size=(5, 7), st_chunk_size=(1, 5, 7))
    wanted = run(layer_of("VMOBA_ATTN"), step, given)
    with tenon.settings.scope({"attention.backend": "VMOBA_ATTN"}):
        numpy.testing.assert_array_equal(run(layer_of("VMOBA_ATTN"), step, given), wanted)


@pytest.mark.parametrize("name", VIDEO_BACKENDS)
def test_what_is_not_tested_on_other_platforms(name):
    with pytest.raises(ValueError, match=f"{name}: expected cpu or cuda, got mps"):
        platform("mps").get_attn_backend_cls(name, 64, "float32")


# Windows of the step, and the search

def test_windows_of_the_step(given):
    """In place of the layer's own."""
    text = [numpy.concatenate([x, x[:, :5]], 1) for x in given]
    windows = [(1, 1, 1), (3, 1, 1)]
    step = builder("SLIDING_TILE_ATTN").build(current_timestep=0, canvas=(13, 5, 1), STA_param=[None] * 4 + [windows])
    q, k, v = (x[:, :65] for x in text)
    wanted = video.sliding_tile_attention(q, k, v, (13, 5, 1), windows, scale=0.3)
    expect("SLIDING_TILE_ATTN", step, wanted, (q, k, v), windows=(3, 3, 3))
    step.STA_param = [windows]
    with pytest.raises(ValueError, match="STA_param: expected windows for the layer of the prefix"):
        run(layer_of("SLIDING_TILE_ATTN", windows=(1, 1, 1)), step, (q, k, v))


def test_search_mode(random):
    """As FastVideo asks for it: fewer windows than heads, of which the last is the reference."""
    q, k, v = (normal(random, 1, 13 * 9 * 9 + 5, 4, 16) for _ in range(3))
    windows, canvas = [(1, 1, 1), (3, 1, 3), (3, 3, 3)], (13, 9, 9)
    batch = types.SimpleNamespace(STA_param=[[windows]], is_cfg_negative=False, mask_search_final_result_pos=[[]],
                                  mask_search_final_result_neg=None)
    impl = load("SLIDING_TILE_ATTN").get_impl_cls()(4, 16, softmax_scale=0.3, prefix="blocks.0", windows=(1, 1, 1))
    step = builder("SLIDING_TILE_ATTN").build(current_timestep=0, canvas=canvas, forward_batch=batch)
    tokens = [impl.preprocess_qkv(x[:, :-5], step) for x in (q, k, v)]
    out = impl.forward(*(numpy.concatenate(pair, 1) for pair in zip(tokens, (x[:, -5:] for x in (q, k, v)))), step)
    out = numpy.concatenate([impl.postprocess_output(out[:, :-5], step), out[:, -5:]], 1)
    exact = video.sliding_tile_attention(q, k, v, canvas, windows[-1], scale=0.3)
    numpy.testing.assert_array_equal(out, exact)
    (found,) = batch.mask_search_final_result_pos[0]
    for n, window in enumerate(windows[:-1]):
        difference = video.sliding_tile_attention(q, k, v, canvas, window, scale=0.3).astype("f8") - exact
        numpy.testing.assert_allclose(found["L2_loss"][n], (difference**2).mean((0, 1, 3)), 1e-3, 1e-6)
        numpy.testing.assert_allclose(found["L1_loss"][n], abs(difference).mean((0, 1, 3)), 1e-3, 1e-6)
    assert len(found["L2_loss"]) == 2 and all(round(x, 6) == x for losses in found["L1_loss"] for x in losses)
    step.search_results = None
    with pytest.raises(ValueError, match="search_results: expected a list that losses are appended to, as 3 windows for 4 heads"):
        impl.forward(*tokens, step)


def test_searched_windows_are_read(random, tmp_path, monkeypatch):
    """The file that is written from a search is what FASTVIDEO_ATTENTION_CONFIG reads."""
    q, k, v = (normal(random, 1, 13 * 9 * 9, 2, 16) for _ in range(3))
    tables = {(step, 4): video.search_windows(q, k, v, (13, 9, 9), [(1, 1, 1), (3, 1, 1), (1, 3, 1)], scale=0.3)
              for step in (0, 1)}
    file = tmp_path / "windows.json"
    video.write_windows(file, tables, full_steps=1, full=(3, 2, 2))
    best = tables[1, 4].best()
    assert json.loads(file.read_text()) == {"0_4_0": [3, 2, 2], "0_4_1": [3, 2, 2], "1_4_0": [*best[0]], "1_4_1": [*best[1]]}
    monkeypatch.setenv("FASTVIDEO_ATTENTION_CONFIG", str(file))
    impl = layer_of("SLIDING_TILE_ATTN")
    for number, wanted in ((0, (9, 9, 9)), (1, best)):
        step = builder("SLIDING_TILE_ATTN").build(current_timestep=number, canvas=(13, 9, 9))
        numpy.testing.assert_allclose(run(impl, step, (q, k, v)),
                                      video.sliding_tile_attention(q, k, v, (13, 9, 9), wanted, scale=0.3), 1e-5, 1e-6)
