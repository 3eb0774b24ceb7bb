"""Layers of tenon.platforms.attention: what they were made for, masks of fewer keys, copies, and PyTorch's tensors."""
import copy
import importlib
import pickle

import numpy
import pytest
import tenon
from tenon.platforms import AttentionBackendEnum, attention, platform

FLASH = attention.FLASH_ATTN.get_impl_cls()


def ones(*shape):
    return numpy.ones(shape, "f4")


@pytest.mark.parametrize("given,told", [
    ({"num_heads": 0}, "num_heads: expected 1 to .* got 0"), ({"num_heads": -4}, "num_heads: expected"),
    ({"head_size": 0}, "head_size: expected 1 to"), ({"num_kv_heads": 0}, "num_kv_heads: expected 1 to"),
    ({"num_kv_heads": 3}, "num_kv_heads: expected a number that divides num_heads, 4; got 3"),
    ({"num_kv_heads": 8}, "num_kv_heads: expected a number that divides num_heads, 4; got 8"),
    ({"dropout_p": 1.5}, "dropout_p: expected 0 to 1, got 1.5"), ({"dropout_p": -0.1}, "dropout_p: expected 0 to 1")], ids=str)
def test_no_layer_is_made_of_wrong_numbers(given, told):
    with pytest.raises(tenon.errors.InvalidArgumentError, match=told):
        FLASH(**{"num_heads": 4, "head_size": 16, **given})


@pytest.mark.parametrize("given,told", [
    ({"causal": "no"}, "causal: expected True or False, got 'no'"), ({"causal": None}, "causal: expected True or False"),
    ({"num_heads": "4"}, "num_heads: expected a whole number, got str"), ({"head_size": 1.5}, "head_size: expected a whole"),
    ({"softmax_scale": "x"}, "softmax_scale: expected a number, got str"), ({"dropout_p": "x"}, "dropout_p: expected")], ids=str)
def test_no_layer_is_made_of_wrong_types(given, told):
    with pytest.raises(TypeError, match=told):
        FLASH(**{"num_heads": 4, "head_size": 16, **given})


def test_what_upstream_makes_layers_of():
    impl = FLASH(num_heads=numpy.int64(4), head_size=16, causal=numpy.bool_(True), softmax_scale=1, num_kv_heads=None,
                 prefix="blocks.3.impl", nvfp4_fa4=False, anything=object())
    assert (impl.num_heads, impl.num_kv_heads, impl.causal, impl.softmax_scale) == (4, 4, True, 1.0)
    assert FLASH(4, 16).softmax_scale == 0.25 and FLASH(4, 16, num_kv_heads=1).num_kv_heads == 1


WRONG = {
    "query: expected 4 heads, got 2: .*of a layer of 4 heads and 2 of keys": (ones(1, 5, 2, 16), ones(1, 5, 2, 16)),
    "query: expected 4 heads, got 8": (ones(1, 5, 8, 16), ones(1, 5, 2, 16)),
    "query: expected 4 heads, got 5": (ones(1, 4, 5, 16), ones(1, 2, 5, 16)),  # [batch, heads, length, size]
    "query: expected heads of size 16, got 8": (ones(1, 5, 4, 8), ones(1, 5, 2, 8)),
    "key: expected heads of size 16, got 32": (ones(1, 5, 4, 16), ones(1, 5, 2, 32)),
    "key: expected 2 heads, got 4": (ones(1, 5, 4, 16), ones(1, 5, 4, 16)),
    "key: expected 2 heads, got 1": (ones(1, 5, 4, 16), ones(1, 5, 1, 16)),
    "query: expected 4 dimensions, .* got 3": (ones(5, 4, 16), ones(5, 2, 16)),
}


@pytest.mark.parametrize("told", WRONG)
def test_what_a_layer_was_not_made_for(told):
    query, key = WRONG[told]
    with pytest.raises(tenon.errors.InvalidArgumentError, match=told):
        FLASH(4, 16, num_kv_heads=2).forward(query, key, key)


def test_values_a_layer_was_not_made_for():
    impl = FLASH(4, 16, num_kv_heads=2)
    with pytest.raises(tenon.errors.InvalidArgumentError, match="value: expected 2 heads, got 4"):
        impl.forward(ones(1, 5, 4, 16), ones(1, 5, 2, 16), ones(1, 5, 4, 16))
    assert impl.forward(ones(1, 5, 4, 16), ones(1, 7, 2, 16), ones(1, 7, 2, 8)).shape == (1, 5, 4, 8)  # of their own size
    with pytest.raises(TypeError, match=r"k: expected an array \(with .*, got list;"):
        impl.forward(ones(1, 5, 4, 16), [1.0], ones(1, 5, 2, 16))


def test_arrays_without_a_shape_are_the_operators_to_check():
    class Bare:
        def __init__(self, array):
            self.array = array

        def __dlpack__(self, **options):
            return self.array.__dlpack__()

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    x = ones(1, 5, 4, 16)
    assert tuple(FLASH(4, 16).forward(x, Bare(x), Bare(x)).shape) == x.shape


def fields_of(impl):
    """A layer's fields; a projection as its numbers, as arrays and modules of PyTorch's are not compared by ==."""
    fields = {name: x for name, x in vars(impl).items() if name not in ("proj_l", "_modules")}
    if hasattr(impl, "proj_l"):
        fields["proj_l"] = impl.proj_l.weight.tolist(), impl.proj_l.bias.tolist()
    return fields


@pytest.mark.parametrize("name", [*attention.BACKENDS, "ref"])
def test_layers_are_pickled_and_copied(name):
    options = {"windows": (3, 1, 3)} if name in attention.VIDEO_BACKENDS else {"causal": True}
    impl = getattr(attention, name).get_impl_cls()(4, 16, num_kv_heads=2, prefix="blocks.3", **options)
    assert getattr(attention, type(impl).__name__) is type(impl)
    layer = {"attn_impl": impl}
    for made in (*(pickle.loads(pickle.dumps(layer, protocol)) for protocol in range(pickle.HIGHEST_PROTOCOL + 1)),
                 copy.deepcopy(layer), copy.copy(layer)):
        assert type(made["attn_impl"]) is type(impl) and fields_of(made["attn_impl"]) == fields_of(impl)


@pytest.mark.parametrize("name", ["FLASH_ATTN", "ref"])
def test_layers_are_unpickled_by_a_process_that_knows_nothing(script, tmp_path, name):
    (tmp_path / "layer").write_bytes(pickle.dumps(getattr(attention, name).get_impl_cls()(2, 8)))
    script(f"""
import pickle
impl = pickle.load(open({str(tmp_path / "layer")!r}, "rb"))
assert impl.backend == {name!r} and impl.head_size == 8
""")


def test_no_class_of_layers_of_nothing():
    for name in ("NONSENSE_Impl", "flash_attn_Impl", "_Impl", "math_Impl"):
        assert not hasattr(attention, name)


def test_head_sizes():
    """None: every one; else those in the list are taken where the processor has the backend."""
    cpu = platform("cpu")
    for name in attention.BACKENDS:
        sizes = getattr(attention, name).get_supported_head_sizes()
        assert sizes is None or 128 in sizes and 100 not in sizes
        if name in ("FLASH_ATTN", "TORCH_SDPA"):
            for size in sizes or (1, 8, 80, 100, 512):
                assert cpu.get_attn_backend_cls(name, size, "f32").endswith(name)
    assert attention.TORCH_SDPA.get_supported_head_sizes() is None and attention.ref.get_supported_head_sizes() is None
    assert attention.FLASH_ATTN.get_supported_head_sizes() == [32, 64, 96, 128, 160, 192, 224, 256]
    attention.FLASH_ATTN.get_supported_head_sizes().clear()
    assert 64 in attention.FLASH_ATTN.get_supported_head_sizes()  # each gets a list of their own
    assert {member.name for member in AttentionBackendEnum} > set(attention.HEAD_SIZES)


def masks(random, shape):
    """By the kind of mask: one of fewer keys, and the same of all 7."""
    seen = random.random(shape) < 0.5
    front = numpy.ones((*shape[:-1], 7 - shape[-1]), bool)
    whole = numpy.concatenate((front, seen), -1)
    added = random.standard_normal(shape).astype("f4")
    return {"bool": (seen, whole), "int": (seen.astype("i8"), whole),
            "float": (added, numpy.concatenate((numpy.zeros(front.shape, "f4"), added), -1))}


@pytest.mark.parametrize("kind", ["bool", "int", "float"])
@pytest.mark.parametrize("shape", [(2, 3), (2, 5, 3), (2, 1, 5, 3), (2, 4, 1, 6), (2, 1), (2, 0), (2, 7)], ids=str)
@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_masks_of_fewer_keys_are_of_the_last(random, shape, kind, library):
    of = pytest.importorskip(library, reason=f"{library} is not here").asarray
    impl = attention.TORCH_SDPA.get_impl_cls()(4, 8)
    q, k, v = (random.standard_normal((2, n, 4, 8)).astype("f4") for n in (5, 7, 7))
    short, whole = masks(random, shape)[kind]
    meta = attention.AttentionMetadata
    out = impl.forward(*map(of, (q, k, v)), meta(0, attn_mask=of(short)))
    whole = whole.reshape({2: (2, 1, 1, 7), 3: (2, 1, -1, 7), 4: whole.shape}[whole.ndim])
    wanted = tenon.attention(q, k, v, mask=numpy.ascontiguousarray(numpy.broadcast_to(whole, (2, 4, 5, 7))), layout="blhd")
    numpy.testing.assert_allclose(numpy.asarray(out), wanted, 1e-4, 1e-5)


def test_masks_of_more_keys_are_refused():
    x = ones(1, 5, 2, 8)
    with pytest.raises(tenon.errors.InvalidArgumentError, match="attn_mask: expected at most 5 keys, .* got 6"):
        attention.FLASH_ATTN.get_impl_cls()(2, 8).forward(x, x, x, attention.AttentionMetadata(0, attn_mask=ones(1, 6)))


def test_short_masks_of_what_has_no_functions_are_refused():
    class Mask:
        __module__, dtype, ndim, shape = "tenon", "bool", 2, (1, 3)

    x = ones(1, 5, 2, 8)
    with pytest.raises(tenon.errors.InvalidArgumentError, match="attn_mask: expected 5 keys, .* Mask; got 3"):
        FLASH(2, 8).forward(x, x, x, attention.AttentionMetadata(0, attn_mask=Mask()))


@pytest.fixture
def torch():
    return pytest.importorskip("torch", reason="torch is not here")


def test_modules_that_hold_a_layer(torch, tmp_path):
    module = torch.nn.Module()
    module.attn_impl = FLASH(4, 16)
    torch.save(module, tmp_path / "module")
    q = torch.randn(1, 5, 4, 16)
    for made in (copy.deepcopy(module), torch.load(tmp_path / "module", weights_only=False)):
        assert made.attn_impl is not module.attn_impl
        torch.testing.assert_close(made.attn_impl.forward(q, q, q), module.attn_impl.forward(q, q, q))


def test_layers_that_are_trained_are_checked_too(torch):
    x = torch.ones(1, 5, 2, 16, requires_grad=True)
    with pytest.raises(tenon.errors.InvalidArgumentError, match="query: expected 4 heads, got 2"):
        FLASH(4, 16).forward(x, x, x)
    with torch.autocast("cpu", dtype=torch.bfloat16), pytest.raises(ValueError, match="query: expected 4 heads, got 2"):
        FLASH(4, 16).forward(x, x, x)


def test_memory_in_use_of_a_torch_device(torch):
    cpu = platform("cpu")
    for device in (torch.device("cpu"), torch.device("cpu", 0)):
        assert cpu.get_current_memory_usage(device) > 0
    with pytest.raises(tenon.errors.InvalidArgumentError, match='expected one of cpu, .* got "cuda:0"'):
        cpu.get_current_memory_usage(torch.device("cuda", 0))


def test_shares_of_heads_where_processes_share_them(torch, script):
    """After FastVideo's exchange each process has all of the sequence and its share of the heads that the layer has."""
    importlib.import_module("torch.distributed")
    if not torch.distributed.is_available():
        pytest.skip("this PyTorch has no torch.distributed")
    script("""
import warnings
warnings.simplefilter("ignore")
import torch, torch.distributed as dist
from torch.testing._internal.distributed.fake_pg import FakeStore
import tenon
from tenon.platforms.attention import FLASH_ATTN

def run(heads, kv, impl):
    q, k = torch.ones(1, 5, heads, 16), torch.ones(1, 5, kv, 16)
    try:
        return impl.forward(q, k, k).shape[2]
    except tenon.errors.InvalidArgumentError as error:
        return ": ".join(error.message.split(": ")[:2])

plain, grouped = FLASH_ATTN.get_impl_cls()(12, 16), FLASH_ATTN.get_impl_cls()(12, 16, num_kv_heads=2)
assert run(3, 3, plain) == "query: expected 12 heads, got 3"
dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=4)
assert run(12, 12, plain) == 12 and run(3, 3, plain) == 3 and run(6, 6, plain) == 6
assert run(6, 1, grouped) == 6 and run(3, 1, grouped) == 3 and run(12, 2, grouped) == 12
assert run(4, 4, plain) == "query: expected 12 heads, got 4"     # of 3 processes; there are 4
assert run(5, 5, plain) == "query: expected 12 heads, got 5"
assert run(24, 24, plain) == "query: expected 12 heads, got 24"
assert run(6, 1, FLASH_ATTN.get_impl_cls()(12, 16, num_kv_heads=3)) == "query: expected 12 heads, got 6"
assert run(6, 2, grouped) == "key: expected 1 heads, got 2", run(6, 2, grouped)
""")
