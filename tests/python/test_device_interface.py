"""The seed's sample device, as a module of Tenon's, through PyTorch's device interface: every member, and a
model compiled up to generated code."""
import gc
import inspect
import os
import pathlib
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not here")
pytest.importorskip("triton", reason="Triton is not here")

MODULE = pathlib.Path(os.environ["TENON_LIBRARY"]).parent / "tests/conformance/modules/tenon-seed-sample.so"
if not MODULE.exists():
    pytest.skip(f"{MODULE} is not built", allow_module_level=True)

import tenon  # noqa: E402
from tenon import device_interface  # noqa: E402
from tenon._handles import call  # noqa: E402
from tenon._library import lib  # noqa: E402

call(lib.tn_module_file_add, str(MODULE).encode(), 1)


@pytest.fixture(scope="module")
def sample():
    return device_interface.interface("sample")


def names():
    table = pathlib.Path(__file__).resolve().parents[1] / "data" / "seed-names.tsv"
    rows = [line.split("\t") for line in table.read_text().splitlines()]
    return [row[0] for row in rows if row[1] == "device_interface"]


@pytest.mark.parametrize("name", names())
def test_every_name_of_the_seed(sample, name):
    first, _, last = name.partition(".")
    if name in ("Event.enable_timing", "Event.blocking", "Event.interprocess"):
        assert last in inspect.signature(sample.Event.__init__).parameters
    elif first == "DeviceProperties":
        assert getattr(sample.get_device_properties(), last) is not None
    elif name.startswith("register_"):
        assert callable(getattr(device_interface, name))
    else:
        holder = getattr(sample, first) if last else sample
        assert callable(getattr(holder, last or first))


def test_members(sample):
    assert sample.is_available() is True and sample.device_count() == 1
    assert sample.current_device() == 0
    sample.set_device(0)
    sample.set_device("privateuseone:0")
    assert sample.exchange_device(0) == 0 and sample.maybe_exchange_device(-1) == 0
    with pytest.raises(tenon.errors.NotFoundError):
        sample.exchange_device(1)
    with sample.device(0) as device:
        assert device.platform == "sample"
    assert isinstance(sample.get_raw_stream(0), int)
    sample.synchronize()
    sample.synchronize("privateuseone:0")
    assert sample.get_compute_capability() == 0
    assert isinstance(sample.is_triton_capable(), bool) and isinstance(sample.memory_allocated(), int)
    with sample.stream(sample.current_stream()):
        pass


def test_properties(sample):
    for found in (sample.get_device_properties(), sample.Worker.get_device_properties("privateuseone:0")):
        assert found.multi_processor_count == 80 and found.max_threads_per_multi_processor == 1
        assert (found.major, found.minor) == (0, 0) and found.name == "Seed sample"
    cpu = device_interface.interface("cpu").get_device_properties()
    assert (cpu.major, cpu.minor) == (None, None)  # processors have no such number, and the field is there
    sample.Worker.set_device(0)
    assert sample.Worker.current_device() == 0


def test_dtypes(sample):
    """The sample names no dtypes, and what is unknown is no refusal; bf16 must be known to be there."""
    assert sample.is_dtype_supported(torch.float32) is True and sample.is_dtype_supported(torch.complex64) is True
    assert sample.is_bf16_supported() is False and sample.is_dtype_supported(torch.bfloat16) is False
    cpu = device_interface.interface("cpu")  # which names its own
    for dtype, word in ((torch.float32, "f32"), (torch.complex128, "c128"), (torch.float8_e4m3fnuz, "f8_e4m3fnuz")):
        assert cpu.is_dtype_supported(dtype) is (word in tenon.device("cpu").properties.dtypes)


def in_a_child(question):
    """Whether it holds in a forked process."""
    child = os.fork()
    if child == 0:
        answer = 2
        try:
            answer = 0 if question() else 1
        finally:
            os._exit(answer)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, 1)
    return status == 0


def test_bad_forks(sample):
    """Devices of a driver are of no use in a forked process; the processor is."""
    module = device_interface.device_module(sample, "privateuseone")
    assert module._is_in_bad_fork() is False
    assert in_a_child(lambda: module._is_in_bad_fork() is True and module.is_initialized() is False)
    cpu = device_interface.device_module(device_interface.interface("cpu"), "cpu")
    assert in_a_child(lambda: cpu._is_in_bad_fork() is False and cpu.is_initialized() is True)


def test_seeds_of_pytorch(sample):
    """They may be negative."""
    module = device_interface.device_module(sample, "privateuseone")
    for seed in (-1, 0, 2**64 - 1, -(2**63)):
        module.manual_seed_all(seed)
    with pytest.raises(tenon.errors.InvalidArgumentError, match="seed: expected"):
        module.manual_seed_all(2**64)


def test_worker_in_a_child(sample):
    sample.Worker.get_device_properties()
    assert in_a_child(lambda: sample.Worker.get_device_properties().multi_processor_count == 80)


def test_events(sample):
    start, stop = (sample.Event(enable_timing=True) for _ in range(2))
    start.record()
    start.record()
    stop.record()
    stop.synchronize()
    assert start.query() is True and start.elapsed_time(stop) >= 0


def test_unknown_platforms_are_told():
    with pytest.raises(tenon.errors.NotFoundError, match="sample"):
        device_interface.interface("sampel")


def test_inductor_writes_code(sample, monkeypatch):
    """A small model on the sample's devices, up to the program that Inductor would run. Triton's driver, which
    a machine without a GPU lacks, is asked for nothing but a part of the cache's key."""
    monkeypatch.setattr("torch.utils._triton.triton_hash_with_backend", lambda *_: "any")
    from torch._dynamo.device_interface import get_interface_for_device
    from torch._inductor.codegen.common import get_device_op_overrides, get_scheduling_for_device
    from torch._inductor.debug import DebugContext
    from torch._inductor.graph import GraphLowering
    from torch._inductor.virtualized import V
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.proxy_tensor import make_fx

    made = device_interface.register("sample", "privateuseone")
    assert get_interface_for_device("privateuseone") is made
    assert get_scheduling_for_device("privateuseone") is not None
    assert "get_raw_stream" in get_device_op_overrides("privateuseone").import_get_raw_stream_as("get_raw_stream")

    def model(x, w):
        return torch.relu(torch.sin(x) * w + x.sum(-1, keepdim=True))

    with FakeTensorMode() as mode:
        given = [torch.empty(8, 64, device="privateuseone") for _ in range(2)]
        traced = make_fx(model)(*given)
        graph = GraphLowering(traced, shape_env=None)
        with V.set_fake_mode(mode), V.set_graph_handler(graph), V.set_debug_handler(DebugContext()):
            graph.run(*given)
            code = graph.codegen()[0]
    code = getattr(code, "value", code)
    assert "@triton.jit" in code and "tl_math.sin" in code and "interface('sample')" in code
    assert "multi_processor_count=80" in code
    compile(code, "generated", "exec")


def generated(device_type, model, given):
    """The program that Inductor writes for a model."""
    from torch._inductor.debug import DebugContext
    from torch._inductor.graph import GraphLowering
    from torch._inductor.virtualized import V
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.proxy_tensor import make_fx

    with FakeTensorMode() as mode:
        fakes = [torch.empty(shape, device=f"{device_type}:0") for shape in given]
        graph = GraphLowering(make_fx(model)(*fakes), shape_env=None)
        with V.set_fake_mode(mode), V.set_graph_handler(graph), V.set_debug_handler(DebugContext()):
            graph.run(*fakes)
            code = graph.codegen()[0]
    return getattr(code, "value", code)


def test_devices_that_run_triton_are_guarded(sample, monkeypatch):
    """Inductor treats them as accelerators."""
    from torch._inductor import utils

    monkeypatch.setattr("torch.utils._triton.triton_hash_with_backend", lambda *_: "any")
    monkeypatch.setattr("torch._inductor.scheduler.has_triton", lambda: True)
    assert sample.is_gpu() is False and device_interface.interface("cpu").is_gpu() is False
    monkeypatch.setattr(sample, "is_triton_capable", classmethod(lambda cls, device=None: True))
    assert sample.is_gpu() is True
    monkeypatch.setattr(utils, "GPU_TYPES", [*utils.GPU_TYPES])
    device_interface.register("sample", "privateuseone")
    assert utils.is_gpu("privateuseone") and utils.device_need_guard("privateuseone")
    code = generated("privateuseone", lambda x: torch.sin(x) + 1, [(8, 64)])
    assert "with __import__('tenon.device_interface').device_interface.interface('sample').device(0):" in code
    monkeypatch.undo()
    device_interface.register("sample", "privateuseone")


def test_what_changes_the_code_is_in_the_key_of_the_cache(sample):
    import json

    told = sample.get_cache_system_info()
    assert json.loads(json.dumps(told)) == told and told["platform"] == "sample"
    assert told["devices"] == [{"name": "Seed sample", "architecture": "", "multi_processor_count": 80,
                                "capability": [0, 0]}]


def test_code_generators_are_passed():
    from torch._inductor.codegen.common import (get_wrapper_codegen_for_device, init_backend_registration)
    from torch._inductor.codegen.cpp_wrapper_cpu import CppWrapperCpu
    from torch._inductor.codegen.wrapper_fxir import WrapperFxCodegen

    class Cpp(CppWrapperCpu):
        pass

    class Fx(WrapperFxCodegen):
        pass

    init_backend_registration()
    device_interface.register("sample", "privateuseone", cpp_wrapper=Cpp, fx_wrapper=Fx)
    assert get_wrapper_codegen_for_device("privateuseone", cpp_wrapper=True) is Cpp
    assert get_wrapper_codegen_for_device("privateuseone", fx_wrapper=True) is Fx
    device_interface.register("sample", "privateuseone")
    assert get_wrapper_codegen_for_device("privateuseone", cpp_wrapper=True) is not Cpp
    assert get_wrapper_codegen_for_device("privateuseone", fx_wrapper=True) is WrapperFxCodegen


TEXTS = ["cpp_device_guard", "cpp_aoti_device_guard", "cpp_stream_guard", "cpp_aoti_stream_guard", "cpp_getStreamFromExternal",
         "kernel_header", "kernel_driver", "cpp_stream_type", "aoti_get_stream", "cpp_kernel_type", "cpp_device_ptr",
         "tma_descriptor_helpers"]


def test_texts_in_c():
    """What a program names is in its header; of PyTorch's own devices the texts are PyTorch's."""
    from torch._inductor.codegen.common import get_device_op_overrides

    ours = device_interface.OpOverrides("sample", "privateuseone")
    header = ours.kernel_header()
    for name in TEXTS:
        assert isinstance(getattr(ours, name)(), str), name
    for name in ("cpp_device_guard", "cpp_stream_guard", "cpp_getStreamFromExternal", "aoti_get_stream"):
        assert getattr(ours, name)() in header, name
    assert ours.aten_device_type() == "at::kPrivateUse1" and "at::kPrivateUse1" in header and "DEVICE_TYPE" not in header
    theirs, cuda = get_device_op_overrides("cuda"), device_interface.OpOverrides("cuda", "cuda")
    for name in ("cpp_device_guard", "kernel_header", "cpp_stream_type"):
        assert getattr(cuda, name)() == getattr(theirs, name)(), name
    assert cuda.aten_device_type() == "at::kCUDA"  # which PyTorch 2.11 takes from a table of its own


WRONG = {
    "platform: expected a str, got NoneType": lambda: device_interface.interface(None),
    r"platform: expected a str without NUL, got 'cpu\\x00junk'": lambda: device_interface.interface("cpu\0junk"),
    "platform: expected a str, got bytes": lambda: device_interface.register(b"cpu"),
    "device_type: expected a str, got int": lambda: device_interface.register("cpu", 7),
    "device_type is needed beside a class": lambda: device_interface.register(device_interface.TenonInterface),
    "device: expected a whole number, got float": lambda: device_interface.interface("cpu").set_device(1.5),
    "device: expected a whole number, got list": lambda: device_interface.interface("cpu").exchange_device([0]),
    "device: expected a whole number, got dict": lambda: device_interface.interface("cpu").maybe_exchange_device({}),
    "device: expected a whole number, got bytes": lambda: device_interface.interface("cpu").Worker.set_device(b"0"),
    "device: expected -2147483648 to": lambda: device_interface.interface("cpu").get_raw_stream(2**40),
    "device: expected .* got 1099511627776": lambda: device_interface.interface("cpu").Worker.get_device_properties(2**40),
}


@pytest.mark.parametrize("told", WRONG)
def test_what_is_given_is_checked(told):
    with pytest.raises((TypeError, tenon.errors.InvalidArgumentError), match=told):
        WRONG[told]()


def test_registering_before_the_first_look():
    """PyTorch enters its own devices at the first look, which must not take this one's place."""
    script = """
from tenon import device_interface
from torch._inductor.codegen.cpp import CppScheduling
made = device_interface.register("cpu", scheduling=CppScheduling)
from torch._dynamo.device_interface import get_interface_for_device
assert get_interface_for_device("cpu") is made
with made.stream(None):
    pass
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=1500)
    assert done.returncode == 0, done.stderr


def test_dtypes_that_tenon_has_no_word_for_are_not_supported():
    assert not device_interface.interface("cpu").is_dtype_supported(torch.qint8)


def test_an_interface_is_made_once(sample):
    assert device_interface.interface("sample") is sample


def test_devices_of_others_are_refused(sample):
    for ask in (sample.set_device, sample.get_compute_capability, sample.synchronize, sample.Worker.get_device_properties,
                sample.get_raw_stream):
        with pytest.raises(tenon.errors.InvalidArgumentError, match='device: expected one of sample, of the type .*, got "cuda:0"'):
            ask(torch.device("cuda:0"))
    cpu = device_interface.interface("cpu")
    assert cpu.memory_allocated("cpu") >= 0
    with pytest.raises(tenon.errors.InvalidArgumentError, match='expected one of cpu, .* got "privateuseone:0"'):
        cpu.set_device("privateuseone:0")


def test_types_of_others_stay_theirs(sample):
    script = """
import sys, torch, tenon
from tenon import device_interface
from tenon._handles import call
from tenon._library import lib
from torch._dynamo.device_interface import get_interface_for_device
call(lib.tn_module_file_add, sys.argv[1].encode(), 1)
theirs = get_interface_for_device("cpu")
for given, told in ((("cpu",), "PyTorch's own"), (("sample", "cpu"), "PyTorch's own"), (("cuda",), "PyTorch's own")):
    try:
        device_interface.register(*given)
        raise SystemExit(f"{given} was registered")
    except tenon.errors.AlreadyExistsError as error:
        assert told in str(error), error
assert get_interface_for_device("cpu") is theirs
assert torch.compile(lambda x: x.sin() + 1)(torch.zeros(3)).tolist() == [1.0] * 3
device_interface.register("sample", "privateuseone")
device_interface.register("sample", "privateuseone")
try:
    device_interface.register("cpu", "privateuseone")
    raise SystemExit("taken twice")
except tenon.errors.AlreadyExistsError as error:
    assert '"privateuseone" is that of sample already' in str(error), error
"""
    done = subprocess.run([sys.executable, "-c", script, str(MODULE)], capture_output=True, text=True, timeout=1500,
                          check=False)
    assert done.returncode == 0, done.stderr


def test_streams_are_made_as_pytorch_makes_them(sample):
    spare = torch.device("privateuseone", 0)
    assert sample.Stream().device == sample.Event().device == spare
    assert device_interface.interface("cpu").Stream().device == torch.device("cpu", 0)
    assert sample.Stream(device="privateuseone:0", priority=-1).priority == "high"
    assert sample.Stream(spare, priority="low").device == spare
    assert isinstance(sample.current_stream(), sample.Stream)
    for given, told in ((("cuda:0",), "expected one of sample"), (("sample:x",), "expected a type and a number")):
        with pytest.raises(tenon.errors.InvalidArgumentError, match=told):
            sample.Stream(*given)


def test_streams_and_events_are_pytorchs(sample):
    """Dynamo traces what derives from PyTorch's classes."""
    for made in (sample, device_interface.interface("cpu")):
        stream, event = made.Stream(), made.Event(enable_timing=True)
        assert isinstance(stream, torch.Stream) and isinstance(event, torch.Event)
        base = {name: getattr(torch.Stream, name).__get__(stream) for name in ("stream_id", "device_index")}
        assert base == {"stream_id": stream.stream_id, "device_index": 0} and stream.stream_id != 0
        event.record(stream)
        later = stream.record_event()
        assert isinstance(later, made.Event) and later.query() and event.device == stream.device
        other = made.Stream()
        other.wait_stream(stream)
        other.wait_event(event)
        with stream:
            assert made.current_stream() == stream
        assert made.current_stream() != stream
    if hasattr(torch._dynamo.device_interface.DeviceInterface, "exposes_streams"):  # not in PyTorch 2.11
        assert sample.exposes_streams()


def test_streams_are_set(sample):
    before, other = sample.current_stream(), sample.Stream("sample:0")
    assert before.stream_id == 0 and other.stream_id != 0
    sample.set_stream(None)
    assert sample.current_stream().stream_id == 0
    sample.set_stream(other)
    assert sample.current_stream().stream_id == other.stream_id
    sample._set_stream_by_id(0, 0, 20)
    assert sample.current_stream().stream_id == 0
    sample._set_stream_by_id(other.stream_id, 0, 20)
    assert sample.current_stream().address == other.address
    sample._set_stream_by_id(stream_id=0, device_index=0, device_type=20)
    for wrong in (12345, tenon.Stream("cpu").stream_id):
        with pytest.raises(tenon.errors.NotFoundError, match=f"no stream {wrong} of sample:0"):
            sample._set_stream_by_id(wrong, 0, 20)
    with pytest.raises(tenon.errors.InvalidArgumentError, match="stream: expected one of sample, got one of cpu:0"):
        sample.set_stream(tenon.Stream("cpu"))
    with pytest.raises(TypeError, match="stream: expected Stream, got int"):
        sample.set_stream(3)


def test_a_current_stream_outlives_who_made_it(sample):
    sample.set_stream(sample.Stream("sample:0"))
    gc.collect()
    seen = sample.current_stream()
    sample._set_stream_by_id(0, 0, 20)
    gc.collect()
    others = [sample.Stream("sample:0") for _ in range(100)]
    assert seen.query() is True and seen.stream_id not in [other.stream_id for other in others]
