"""FastVideo's platform interface: every name of the seed, and a layer that runs through it."""
import importlib
import os
import pathlib
import pickle
import random as python_random
import re
import subprocess
import sys
import types

import numpy
import pytest
import tenon
import tenon.platforms
from tenon.platforms import (AttentionBackendEnum, CpuArchEnum, DeviceCapability, Platform, PlatformEnum,
                             UnspecifiedPlatform, current_platform, interface)

TABLE = pathlib.Path(__file__).resolve().parents[1] / "data" / "seed-names.tsv"


def names():
    for line in TABLE.read_text().splitlines()[1:]:
        name, seed, *_ = line.split("\t")
        if seed == "platforms":
            yield name


@pytest.mark.parametrize("name", list(names()))
def test_every_name_of_the_seed(name):
    found = interface
    for part in name.split("."):
        found = getattr(found, part)
    assert found is not None


def test_numbers_are_the_headers():
    text = (TABLE.parents[2] / "include/tenon/module/op/attention.h").read_text()
    for member in AttentionBackendEnum:
        assert f"TN_BACKEND_{member.name} = {member.value}," in text
    text = (TABLE.parents[2] / "include/tenon/module/platform.h").read_text()
    block = text[text.index("TN_PLATFORM_UNSPECIFIED"):text.index("TN_PLATFORM_KIND_COUNT")]
    assert re.findall(r"TN_PLATFORM_(\w+)", block) == [member.name for member in PlatformEnum]
    text = (TABLE.parents[2] / "include/tenon/cpu.h").read_text()
    assert re.findall(r"^    TN_CPU_ARCH_(\w+)", text, re.M) == [member.name for member in CpuArchEnum]


def test_capability():
    assert DeviceCapability(9, 0) >= (8, 9) and DeviceCapability(9, 0) == (9, 0)
    assert DeviceCapability(8, 6).as_version_str() == "8.6" and DeviceCapability(12, 1).to_int() == 121
    assert DeviceCapability(8, 12).to_int() < DeviceCapability(9, 0).to_int()
    assert hash(DeviceCapability(9, 0)) == hash((9, 0))


def test_current():
    cpu = tenon.platforms.current_platform
    assert cpu is current_platform and isinstance(cpu, Platform) and cpu in tenon.platforms.platforms()
    assert pickle.loads(pickle.dumps(cpu)) == cpu
    assert dir(tenon.platforms) == sorted(tenon.platforms.__all__)
    with pytest.raises(AttributeError):
        tenon.platforms.other_platform


@pytest.fixture
def cpu():
    return tenon.platforms.platform("cpu")


def test_words(cpu):
    assert (cpu.name, cpu.device_type, cpu.dispatch_key) == ("cpu", "cpu", "CPU")
    assert cpu.device_name == "CPU" and cpu.ray_device_key == "" and cpu.supported_quantization == []
    assert isinstance(cpu.simple_compile_backend, str) and cpu.additional_env_vars == []
    cuda = tenon.platforms.platform("cuda")
    assert {name: tenon.platforms.platform(name).device_name for name in ("cuda", "rocm", "mps", "npu")} == {
        "cuda": "cuda", "rocm": "rocm", "mps": "mps", "npu": "npu"}
    assert cuda.device_control_env_var == "CUDA_VISIBLE_DEVICES" and cuda.dispatch_key == "CUDA"


def test_predicates(cpu):
    names = [name for name in dir(Platform) if name.startswith("is_") and name not in (
        "is_async_output_supported", "is_device_capability", "is_device_capability_family", "is_full_nvlink")]
    assert [name for name in names if getattr(cpu, name)()] == ["is_cpu"]
    assert {name for name in names if getattr(tenon.platforms.platform("cuda"), name)()} == {
        "is_cuda", "is_cuda_alike"}
    assert not any(getattr(UnspecifiedPlatform(), name)() for name in names)


def test_queries(cpu):
    assert cpu.device_count() == 1 and cpu.get_device_name() and cpu.get_device_uuid()
    assert cpu.get_device_total_memory() > cpu.get_current_memory_usage() > 0
    assert cpu.get_device_capability() is None and not cpu.has_device_capability((1, 0))
    assert not cpu.has_device_capability(10) and not cpu.is_device_capability(10)
    assert not cpu.is_device_capability_family(90)
    assert cpu.get_cpu_architecture() in CpuArchEnum
    for eager in (False, True, None):
        assert cpu.is_async_output_supported(eager) is False  # as the page says; upstream's is True
    with pytest.raises(TypeError, match="enforce_eager: expected True or False, got 'no'"):
        cpu.is_async_output_supported("no")
    with pytest.raises(tenon.errors.NotFoundError):
        cpu.get_device_name(5)
    with pytest.raises(tenon.errors.UnsupportedError, match="."):
        cpu.get_device_communicator_cls()
    cpu.verify_quantization("fp8")
    cpu.verify_model_arch("Wan")


class Place:
    """Has of torch.device what is read."""

    def __init__(self, type, index=None):
        self.type, self.index = type, index

    def __str__(self):
        return self.type if self.index is None else f"{self.type}:{self.index}"


@pytest.mark.parametrize("device", [None, 0, numpy.int64(0), "cpu", "cpu:0", Place("cpu"), Place("cpu", 0)], ids=str)
def test_memory_in_use_of_a_device(cpu, device):
    assert cpu.get_current_memory_usage(device) > 0
    assert cpu.get_current_memory_usage(tenon.device("cpu")) > 0


@pytest.mark.parametrize("device", ["cuda:0", "meta", Place("cuda", 0), Place("mps")], ids=str)
def test_memory_in_use_of_another_platforms_device(cpu, device):
    with pytest.raises(tenon.errors.InvalidArgumentError, match=f'expected one of cpu, of the type cpu, got "{device}"$'):
        cpu.get_current_memory_usage(device)


def test_memory_in_use_of_no_device(cpu):
    for device, told in {"cpu:x": "expected a type and a number", "cpu:": "expected a type and a number"}.items():
        with pytest.raises(tenon.errors.InvalidArgumentError, match=told):
            cpu.get_current_memory_usage(device)
    for device in (1.5, [], b"cpu"):
        with pytest.raises(TypeError, match="device: expected a whole number, got"):
            cpu.get_current_memory_usage(device)
    for device in (5, "cpu:5"):
        with pytest.raises(tenon.errors.NotFoundError):
            cpu.get_current_memory_usage(device)
    with pytest.raises(tenon.errors.InvalidArgumentError, match='expected one of cuda, .* got "cpu:0"'):
        tenon.platforms.platform("cuda").get_current_memory_usage(tenon.device("cpu"))
    with pytest.raises(tenon.errors.InvalidArgumentError, match="expected one of rocm, of the type rocm or cuda, got"):
        tenon.platforms.platform("rocm").get_current_memory_usage("cpu")


def test_memory_in_use_is_of_the_current_device(script, stubs):
    script("""
import tenon
cuda = tenon.platforms.platform("cuda")
asked = []
ask = type(cuda)._device
type(cuda)._device = lambda self, number: asked.append(number) or ask(self, number)
for device in (None, "cuda", "cuda:0", 1):
    cuda.get_current_memory_usage(device)
with tenon.device("cuda:1"):
    for device in (None, "cuda", "cuda:0"):
        cuda.get_current_memory_usage(device)
assert asked == [0, 0, 0, 1, 1, 1, 0], asked
""", **stubs)


@pytest.mark.parametrize("asked", ["9.0", 9.0, None])
def test_what_is_no_capability(cpu, asked):
    for ask in (cpu.has_device_capability, cpu.is_device_capability, cpu.is_device_capability_family):
        with pytest.raises(TypeError, match="capability: expected a whole number, got"):
            ask(asked)
        with pytest.raises((TypeError, ValueError), match="capability: expected"):
            ask((9, 0, 0))
    assert not cpu.has_device_capability(numpy.int64(90)) and not cpu.has_device_capability([9, 0])


def test_nvlink(cpu, script, stubs):
    assert cpu.is_full_nvlink([0]) is False
    with pytest.raises(TypeError, match="physical_device_ids: expected a whole number, got str"):
        cpu.is_full_nvlink("0")
    out = script("""
import logging, sys
import tenon
from tenon.platforms import interface
logging.basicConfig(stream=sys.stdout, format="%(levelname)s %(message)s")
cuda = tenon.platforms.platform("cuda")
assert cuda.is_full_nvlink([0]) and cuda.is_full_nvlink([])
assert cuda.is_full_nvlink([0, 1]) is False      # the stub's are joined by the bus
try:
    cuda.is_full_nvlink([0, 9])
    raise SystemExit("found")
except tenon.errors.NotFoundError as error:
    assert "number 9; there are: 0, 1" in error.message, error
asked, link = [], interface._link
interface._link = lambda one, other: asked.append((one.index, other.index)) or 3
assert cuda.is_full_nvlink([1, 0]) is True and asked == [(1, 0)]
def fail(one, other):
    raise tenon.errors.UnsupportedError("nobody knows")
interface._link = fail
assert cuda.is_full_nvlink([0, 1]) is False
""", **stubs)
    assert out == "ERROR whether devices are joined by NVLink is unknown: nobody knows\n"


def test_the_number_of_nvlink_is_the_headers():
    text = (TABLE.parents[2] / "include/tenon/module/device.h").read_text()
    block = text[text.index("TN_LINK_UNKNOWN"):text.index("TN_LINK_FABRIC") + 20]
    assert re.findall(r"TN_LINK_(\w+)", block)[interface._FABRIC] == "FABRIC"


def test_capabilities_of_a_described_device(script):
    script(f"""
import tenon
tenon.describe({str(TABLE.parents[2] / "backends/described/devices/h200.device")!r})
cuda = tenon.platforms.platform("cuda")
assert cuda.device_count() == 1 and tenon.device("cuda:0").plans_only
assert cuda.get_device_capability() == (9, 0)
assert cuda.has_device_capability((9, 0)) and cuda.has_device_capability(89)
assert not cuda.has_device_capability((9, 1)) and not cuda.has_device_capability(91)
assert cuda.is_device_capability((9, 0)) and cuda.is_device_capability(90)
assert not cuda.is_device_capability(80) and cuda.is_device_capability_family(95)
assert not cuda.is_device_capability_family(100)
assert tenon.explain("softmax:f32:shape=8x8@cuda:0").problem.endswith("@cuda:0")
try:
    tenon.Stream("cuda:0")
    raise SystemExit("made")
except tenon.errors.UnavailableError:
    pass
""", CUDA_VISIBLE_DEVICES="")


def test_unspecified():
    none = UnspecifiedPlatform()
    assert none.device_type == "" and none._enum is PlatformEnum.UNSPECIFIED and none.dispatch_key == "CPU"
    with pytest.raises(tenon.errors.UnavailableError):
        none.get_device_name()


def test_methods_that_a_class_does_not_override():
    """Are named with the class; what no class stands for is told in words of Python."""
    class Mine(Platform):
        _enum = PlatformEnum.OOT

        def get_device_name(self, device_id=0):
            return "mine"

    assert Mine().get_device_name() == "mine" and Mine.has_device_capability(80) is False
    for query in ("get_device_total_memory", "get_device_uuid", "get_current_memory_usage", "get_device_communicator_cls"):
        for of in (Mine, Mine()):
            with pytest.raises(tenon.Error, match=f"^Mine does not override {query}, .* _enum, OOT$"):
                getattr(of, query)()
        with pytest.raises(tenon.Error, match="^no platform is selected: use tenon.platforms.current_platform or"):
            getattr(UnspecifiedPlatform(), query)()


def test_no_capability_without_devices():
    """get_device_capability, has_device_capability"""
    for place in (UnspecifiedPlatform(), tenon.platforms.platform("rocm"), tenon.platforms.platform("npu")):
        assert place.device_count() == 0 and place.get_device_capability() is None
        assert place.has_device_capability((1, 0)) is False and place.has_device_capability(10, 3) is False
        with pytest.raises(TypeError, match="device_id: expected a whole number"):
            place.get_device_capability("0")


@pytest.mark.parametrize("name, kind", [("cpu", "CpuPlatform"), ("cuda", "CudaPlatform"), ("rocm", "RocmPlatform"),
                                        ("mps", "MpsPlatform"), ("npu", "NPUPlatform"), ("cuda", "CudaPlatformBase"),
                                        ("cuda", "NvmlCudaPlatform"), ("cuda", "NonNvmlCudaPlatform")])
def test_classes_of_upstream(name, kind):
    found = load(f"tenon.platforms.{name}.{kind}")()
    assert isinstance(found, Platform) and found == tenon.platforms.platform(name) and found.name == name


def test_modules_need_no_import_of_their_own(script):
    script("""
import tenon
assert tenon.platforms.cuda.CudaPlatform().name == "cuda" and tenon.platforms.attention.FLASH_ATTN
assert not hasattr(tenon.platforms, "no_such_module")
""")


def test_the_current_platform_can_be_assigned(monkeypatch):
    """As upstream's tests do."""
    real, other = tenon.platforms.current_platform, tenon.platforms.platform("rocm")
    monkeypatch.setattr(tenon.platforms, "_current_platform", other)
    assert tenon.platforms.current_platform is other
    monkeypatch.setattr(tenon.platforms, "_current_platform", None)  # resolved anew
    assert tenon.platforms.current_platform is real
    monkeypatch.undo()
    assert tenon.platforms.current_platform is real


def test_the_library_logs_to_python(script):
    """tenon.platforms.logger gets the lines of the library, from whichever thread, until the program ends."""
    out = script("""
import logging, sys
from tenon import platforms, settings
handler = logging.StreamHandler(sys.stdout)
handler.setFormatter(logging.Formatter("%(name)s %(levelname)s %(message)s"))
platforms.logger.addHandler(handler)
platforms.logger.propagate = False
assert settings.get("inference") is False          # the settings are read: one is wrong
platforms.logger.setLevel(logging.INFO)
platforms.current_platform
""", TENON_DEBUG_SYNC="perhaps")
    first, *others = out.splitlines()
    assert first.startswith("tenon WARNING settings: TENON_DEBUG_SYNC: debug.sync cannot be \"perhaps\"")
    assert any(line.startswith("tenon INFO the current platform is ") for line in others)


def test_the_log_is_quiet_until_logging_is_set_up():
    """A library does not print: neither the lines of the C library, nor those of the package, nor at the end."""
    text = """
import sys, tenon
if "set-up" in sys.argv:
    import logging
    logging.basicConfig(stream=sys.stderr)
tenon.settings.get("inference")
tenon.platforms.logger.warning("of the package")
"""
    wrong = {**os.environ, "TENON_DEBUG_SYNC": "perhaps"}
    quiet, loud = (subprocess.run([sys.executable, "-c", text, *arguments], env=wrong, check=True, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                   for arguments in ((), ("set-up",)))
    assert (quiet.stdout, quiet.stderr) == ("", "")
    assert "WARNING:tenon:of the package" in loud.stderr
    assert 'WARNING:tenon:settings: TENON_DEBUG_SYNC: debug.sync cannot be "perhaps"' in loud.stderr


def test_inference_mode(cpu):
    with cpu.inference_mode():
        assert tenon.settings.get("inference") is True
    assert tenon.settings.get("inference") is False


def test_seed_everything(cpu):
    def draw():
        cpu.seed_everything(11)
        return python_random.random(), numpy.random.random()

    assert draw() == draw()
    cpu.seed_everything(numpy.int64(11))
    assert python_random.random() == draw()[0]
    before = python_random.getstate()
    cpu.seed_everything(None)
    assert python_random.getstate() == before


def load(path):
    """As FastVideo does."""
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name)


@pytest.mark.parametrize("selected", [None, AttentionBackendEnum.FLASH_ATTN, AttentionBackendEnum.TORCH_SDPA,
                                      "torch_sdpa"])
@pytest.mark.parametrize("causal", [False, True])
def test_a_layer(cpu, random, selected, causal):
    backend = load(cpu.get_attn_backend_cls(selected, 16, numpy.dtype("float32")))
    if selected is not None:
        assert backend.get_name() == str(selected).upper()
    impl = backend.get_impl_cls()(num_heads=4, head_size=16, softmax_scale=0.2, causal=causal,
                                  num_kv_heads=2, prefix="blocks.3", anything=1)
    q = random.standard_normal((2, 9, 4, 16)).astype("f4")
    k, v = (random.standard_normal((2, 9, 2, 16)).astype("f4") for _ in range(2))
    meta = backend.get_builder_cls()().build(current_timestep=3, VSA_sparsity=0.5)
    assert isinstance(meta, backend.get_metadata_cls()) and meta.current_timestep == 3
    assert meta.asdict_zerocopy({"attn_mask", "is_causal"}) == {"current_timestep": 3, "VSA_sparsity": 0.5}
    qkv = impl.preprocess_qkv(q, meta)
    out = impl.postprocess_output(impl.forward(qkv, k, v, meta), meta)
    wanted = tenon.attention(q, k, v, mask="causal" if causal else None, scale=0.2, layout="blhd")
    numpy.testing.assert_allclose(out, wanted, 1e-4, 1e-5)


@pytest.mark.parametrize("shape", [(2, 5), (2, 5, 5), (2, 1, 5, 5)])
def test_masks_of_layers(cpu, random, shape):
    backend = load(cpu.get_attn_backend_cls(None, 8, "f32"))
    impl = backend.get_impl_cls()(2, 8)
    q, k, v = (random.standard_normal((2, 5, 2, 8)).astype("f4") for _ in range(3))
    mask = (random.random(shape) < 0.6).astype("i4")
    mask[..., 0] = 1
    full = numpy.broadcast_to(mask.reshape({2: (2, 1, 1, 5), 3: (2, 1, 5, 5), 4: (2, 1, 5, 5)}[mask.ndim]),
                              (2, 2, 5, 5))
    out = impl.forward(q, k, v, backend.get_metadata_cls()(0, attn_mask=mask))
    wanted = tenon.attention(q, k, v, mask=full != 0, layout="blhd")
    numpy.testing.assert_allclose(out, wanted, 1e-4, 1e-5)


def test_what_cannot_be_taken(cpu):
    with pytest.raises(ValueError, match="SAGE_ATTN_THREE.*Blackwell"):
        cpu.get_attn_backend_cls(AttentionBackendEnum.SAGE_ATTN_THREE, 64, "bf16")
    with pytest.raises(ValueError, match="expected f32, f16 or bf16, got f64"):
        cpu.get_attn_backend_cls(AttentionBackendEnum.SAGE_ATTN, 64, "f64")
    with pytest.raises(ValueError, match="NO_ATTENTION"):
        cpu.get_attn_backend_cls(AttentionBackendEnum.NO_ATTENTION, 64, "bf16")
    with pytest.raises(LookupError, match="FLASH_ATTN"):
        cpu.get_attn_backend_cls("FLASH_ATN", 64, "bf16")


@pytest.fixture
def fastvideo(monkeypatch):
    """A stand-in of FastVideo with three of its classes of attention. ATTN_QAT_INFER is available once the list is not
    empty."""
    available = []

    class Backend:
        get_supported_head_sizes = staticmethod(lambda: None)

    class SizedBackend:
        get_supported_head_sizes = staticmethod(lambda: [64, 128])

    for name, names in {
            "": {}, ".attention": {}, ".attention.backends": {}, ".attention.backends.sdpa": {"SDPABackend": Backend},
            ".attention.backends.sla": {"SageSLAAttentionBackend": Backend},
            ".attention.backends.attn_qat_infer": {"AttnQatInferBackend": SizedBackend,
                                                   "is_attn_qat_infer_available": lambda: bool(available)}}.items():
        module = types.ModuleType("fastvideo" + name)
        vars(module).update(names)
        monkeypatch.setitem(sys.modules, module.__name__, module)
    return available


def test_backends_that_only_fastvideo_computes(fastvideo, caplog):
    mps, cuda = (tenon.platforms.platform(name) for name in ("mps", "cuda"))
    path = "fastvideo.attention.backends.sdpa.SDPABackend"
    assert mps.get_attn_backend_cls(AttentionBackendEnum.TORCH_SDPA, 80, "bf16") == path
    assert caplog.records[-1].levelname == "WARNING"
    assert caplog.messages[-1].startswith(f"attention: TORCH_SDPA by FastVideo's own class, {path}, because Tenon does not "
                                          "compute it: platform mps is ")
    fastvideo.append(True)
    assert cuda.get_attn_backend_cls("attn_qat_infer", 128, "bf16").endswith(".attn_qat_infer.AttnQatInferBackend")


def test_backends_that_fastvideo_does_not_compute_either(fastvideo, cpu):
    mps, cuda = (tenon.platforms.platform(name) for name in ("mps", "cuda"))
    for asked, backend, told in [(mps, "VIDEO_SPARSE_ATTN", r"FastVideo has TORCH_SDPA on mps$"),
                                 (cpu, "ATTN_QAT_INFER", r"FastVideo has no backend on cpu$"),
                                 (cuda, "SAGE_SLA_ATTN", r"SageSLAAttentionBackend cannot be imported: .*spas_sage_attn"),
                                 (cuda, "ATTN_QAT_TRAIN", r"AttnQatTrainBackend cannot be imported: .*attn_qat_train"),
                                 (cuda, "ATTN_QAT_INFER", r"AttnQatInferBackend is not available on this machine$")]:
        with pytest.raises(ImportError, match=rf"^{backend} selected but Tenon does not compute it \(.+\) and .*{told}") as error:
            asked.get_attn_backend_cls(backend, 64, "bf16")
        assert isinstance(error.value, NotImplementedError) and error.value.msg == error.value.message
        assert pickle.loads(pickle.dumps(error.value)).message == error.value.message
    fastvideo.append(True)
    with pytest.raises(ImportError, match="AttnQatInferBackend has the head sizes 64, 128$"):
        cuda.get_attn_backend_cls("ATTN_QAT_INFER", 80, "bf16")


def test_fastvideo_answers_what_was_selected_alone(fastvideo, cpu, monkeypatch):
    assert cpu.get_attn_backend_cls("TORCH_SDPA", 64, "f32") == "tenon.platforms.attention.TORCH_SDPA"
    mps = tenon.platforms.platform("mps")
    for asked, backend in ((mps, None), (mps, "NO_ATTENTION"), (mps, "TORCH_SPDA"), (cpu, "NO_ATTENTION")):
        with pytest.raises(tenon.Error) as error:
            asked.get_attn_backend_cls(backend, 64, "f32")
        assert not isinstance(error.value, ImportError)
    monkeypatch.delitem(sys.modules, "fastvideo")
    with pytest.raises(tenon.errors.UnavailableError, match="platform mps is "):
        mps.get_attn_backend_cls("TORCH_SDPA", 64, "f32")


def test_sizes_of_heads_are_checked(cpu):
    for size in (0, -8):
        with pytest.raises(tenon.errors.InvalidArgumentError, match=f"^head_size: expected 1 to .* got {size}$"):
            cpu.get_attn_backend_cls(None, size, "f32")


def test_quantized(cpu, random):
    from tenon.platforms import attention

    path = cpu.get_attn_backend_cls("SAGE_ATTN", 64, "float32")
    assert path == "tenon.platforms.attention.SAGE_ATTN"
    backend = attention.SAGE_ATTN
    q = random.standard_normal((1, 200, 4, 64)).astype("f4")
    k, v = (random.standard_normal((1, 170, 2, 64)).astype("f4") for _ in range(2))
    step = backend.get_builder_cls()().build(current_timestep=0)
    for options in ({}, {"softmax_scale": 0.3}, {"causal": True}, {"weights": "f32"}):
        impl = backend.get_impl_cls()(4, 64, num_kv_heads=2, **options)
        out = impl.forward(q, k, v, step)
        assert out.shape == q.shape
        wanted = tenon.attention(q, k, v, layout="blhd", causal=options.get("causal", False),
                                 scale=options.get("softmax_scale"))
        assert 0 < numpy.abs(out - wanted).sum() < 0.05 * numpy.abs(wanted).sum()
    impl = backend.get_impl_cls()(4, 64, num_kv_heads=2)
    causal = impl.forward(q, k, v, backend.get_metadata_cls()(0, attn_mask=numpy.tri(200, 170)[None], is_causal=True))
    numpy.testing.assert_array_equal(causal, backend.get_impl_cls()(4, 64, causal=True, num_kv_heads=2).forward(q, k, v, None))
    with pytest.raises(tenon.errors.UnsupportedError, match="attn_mask: expected None.*SAGE_ATTN, got a mask"):
        impl.forward(q, k, v, backend.get_metadata_cls()(0, attn_mask=numpy.ones((1, 170))))
    with pytest.raises(tenon.errors.UnsupportedError, match="gate_compress: expected None for SAGE_ATTN"):
        impl.forward(q, k, v, q, None)
    with pytest.raises(tenon.errors.UnsupportedError, match="dropout_p: expected 0 for SAGE_ATTN, got 0.5"):
        backend.get_impl_cls()(4, 64, dropout_p=0.5)


def test_classes_are_of_backends_alone():
    from tenon.platforms import attention

    for member in AttentionBackendEnum:
        if member is not AttentionBackendEnum.NO_ATTENTION:
            assert getattr(attention, member.name).get_name() == member.name
    for name, near in (("NONSENSE", "."), ("FLASH_ATN", "FLASH_ATTN"), ("TORCH_SPDA", "TORCH_SDPA"), ("MATH", "."),
                       ("NO_ATTENTION", ".")):
        with pytest.raises(AttributeError, match=f"{name}.*did you mean {near}"):
            getattr(attention, name)
    with pytest.raises(AttributeError, match="no attribute 'flash_attn'$"):
        attention.flash_attn


def test_classes_of_a_stranger(monkeypatch):
    """A backend that a module brought for its own platform, which the processor does not have."""
    from tenon.platforms import attention

    def choose(self, *layer):
        assert tenon.settings.get("attention.backend").lower() == "require:acme_attn"
        raise tenon.errors.UnsupportedError("no kernel on cpu goes by acme_attn", "unsupported", "attention")

    monkeypatch.setattr(Platform, "attention_choice", choose)
    assert attention.ACME_ATTN.get_name() == attention.ACME_ATTN.get_impl_cls().backend == "ACME_ATTN"
    impl = pickle.loads(pickle.dumps(attention.ACME_ATTN.get_impl_cls()(2, 8)))
    assert type(impl) is attention.ACME_ATTN_Impl
    for name in ("ACME_ATTN", "ACME_ATTN_Impl"):
        monkeypatch.delitem(vars(attention), name)
    assert attention.ACME_ATTN_Impl is attention.ACME_ATTN.get_impl_cls()  # whichever is asked for first
    for name in ("ACME_ATTN", "ACME_ATTN_Impl"):
        monkeypatch.delitem(vars(attention), name)


def test_settings_choose(cpu):
    with tenon.settings.scope({"attention.backend": "require:TORCH_SDPA"}):
        assert cpu.get_attn_backend_cls(None, 64, "f32").endswith(".TORCH_SDPA")
    assert cpu.get_attn_backend_cls(None, 64, "f32").endswith(".FLASH_ATTN")


@pytest.mark.parametrize("asked", ["require:ref", "prefer:ref"])
def test_the_reference_is_a_backend(cpu, random, asked):
    """It has a name and no number: its class is there, and takes it and nothing else."""
    with tenon.settings.scope({"attention.backend": asked}):
        backend = load(cpu.get_attn_backend_cls(None, 8, "f32"))
    assert backend.get_name() == "ref"
    q, k, v = (random.standard_normal((2, 5, 2, 8)).astype("f4") for _ in range(3))
    impl = backend.get_impl_cls()(2, 8, causal=True)
    out = impl.forward(q, k, v)
    with tenon.settings.scope({"attention.backend": "require:ref"}):
        numpy.testing.assert_array_equal(out, tenon.attention(q, k, v, mask="causal", scale=8**-0.5, layout="blhd"))
    with tenon.settings.scope({"rules": "forbid:attention/cpu.attention.ref"}):  # forward's own request is nearer
        numpy.testing.assert_array_equal(out, impl.forward(q, k, v))
    with tenon.settings.scope({"cuda.math_sdp": False}):  # no request turns a switch on
        with pytest.raises(tenon.errors.RefusedError, match="ref"):
            impl.forward(q, k, v)
    from tenon.platforms import attention

    for name in ("flash", "math", "mem_efficient", "cudnn", "reff"):  # a family's, or nobody's
        assert not hasattr(attention, name)


def test_flash_attention_on_cuda(script, stubs):
    """By the kernel for Hopper or by cuDNN, each with its own switch."""
    script("""
import tenon
from tenon.platforms import AttentionBackendEnum, platform
tenon.settings.set("admission", "never")
cuda, flash = platform("cuda"), AttentionBackendEnum.FLASH_ATTN
assert cuda.get_attn_backend_cls(flash, 64, "bf16") == "tenon.platforms.attention.FLASH_ATTN"
assert cuda.get_attn_backend_cls(None, 64, "bf16") == "tenon.platforms.attention.TORCH_SDPA"
for switch in ("cuda.cudnn_sdp", "cuda.flash_sdp"):
    with tenon.settings.scope({switch: False}):
        assert cuda.get_attn_backend_cls(flash, 64, "bf16") == "tenon.platforms.attention.FLASH_ATTN"
for dtype, setting, why in (("bf16", {"cuda.cudnn_sdp": False, "cuda.flash_sdp": False}, "_sdp is off"), ("f32", {}, "f32")):
    with tenon.settings.scope(setting):
        try:
            raise SystemExit(cuda.get_attn_backend_cls(flash, 64, dtype))
        except (ValueError, tenon.Error) as error:
            assert why in str(error), error
""", **stubs)


def test_metadata_as_upstream_gives_it(cpu, random):
    """A mask by its position; one that is exactly causal; a gate before the metadata."""
    backend = load(cpu.get_attn_backend_cls(None, 8, "f32"))
    impl = backend.get_impl_cls()(2, 8)
    q, k, v = (random.standard_normal((2, 5, 2, 8)).astype("f4") for _ in range(3))
    mask = numpy.tril(numpy.ones((2, 5, 5), bool))
    meta = backend.get_builder_cls()().build(3, mask)
    assert meta.current_timestep == 3 and meta.attn_mask is mask and meta.is_causal is False
    wanted = tenon.attention(q, k, v, mask="causal", layout="blhd")
    numpy.testing.assert_allclose(impl.forward(q, k, v, meta), wanted, 1e-4, 1e-5)
    numpy.testing.assert_allclose(impl.forward(q, k, v, None, meta), wanted, 1e-4, 1e-5)
    meta = backend.get_metadata_cls()(3, attn_mask=numpy.zeros((2, 9)), is_causal=True)  # a mask that is not read
    numpy.testing.assert_array_equal(impl.forward(q, k, v, attn_metadata=meta), wanted)
    for given in ((q, meta), (q,)):
        with pytest.raises(tenon.errors.UnsupportedError, match="gate_compress: expected the compression branch"):
            impl.forward(q, k, v, *given[:1], *(given[1:] or (None,)))
    with pytest.raises(TypeError, match="got 6 arguments"):
        impl.forward(q, k, v, None, meta, meta)


class Accelerator(Platform):
    """As somebody outside of FastVideo writes one."""

    _enum = PlatformEnum.OOT
    device_name = "acme"
    device_type = "acme"
    supported_quantization = ["w8"]

    @classmethod
    def get_device_capability(cls, device_id=0):
        return DeviceCapability(7, 5)

    @classmethod
    def get_attn_backend_cls(cls, selected_backend, head_size, dtype):
        return "acme.Attention"


def test_platforms_in_python():
    mine = Accelerator()
    for one in (mine, Accelerator):  # queries are the class's, too
        assert one.is_out_of_tree() and not one.is_cuda() and one.device_name == one.device_type == "acme"
        assert one.get_device_capability() == (7, 5) and one.get_attn_backend_cls(None, 64, None) == "acme.Attention"
        assert one.get_cpu_architecture() is current_platform.get_cpu_architecture()
        assert one.has_unified_memory() is False and one.device_count() == 0
    assert Accelerator.has_device_capability((7, 0)) and not Accelerator.has_device_capability(80)
    assert pickle.loads(pickle.dumps(mine)) == mine and isinstance(pickle.loads(pickle.dumps(mine)), Accelerator)


def test_classes_of_platforms_answer():
    class Processor(Platform):
        _enum = PlatformEnum.CPU

    assert Processor.is_cpu() and Processor.device_type == "cpu" and Processor.device_count() == 1
    assert Processor.get_device_name() == tenon.platforms.platform("cpu").get_device_name()
    assert Processor.get_attn_backend_cls("TORCH_SDPA", 64, "f32").endswith(".TORCH_SDPA")
    assert Platform.has_unified_memory() is False and not UnspecifiedPlatform.is_cuda_alike()
