"""Devices, streams, events, and the report on them."""
import gc
import os
import pathlib
import pickle
import threading

import pytest
import tenon


def test_devices():
    cpu = tenon.device("cpu")
    assert cpu in tenon.devices() and cpu == tenon.device("cpu:0") and hash(cpu) == hash(tenon.device(cpu))
    assert (cpu.id, cpu.index, cpu.platform, cpu.plans_only) == ("cpu:0", 0, "cpu", False)
    assert cpu.properties.multi_processor_count >= 1 and "f32" in cpu.properties.dtypes
    assert cpu.properties.capability is None and cpu.properties.major is None
    memory = cpu.memory()
    assert memory.total >= memory.available > 0 and memory.why["total"]
    assert pickle.loads(pickle.dumps(cpu)) == cpu
    assert tenon.device("memory>=1").id and tenon.default_device().id
    with pytest.raises(tenon.errors.NotFoundError, match="present:"):
        tenon.device("cpu:99")
    with pytest.raises(tenon.errors.Error):
        tenon.device("cuda:77")


def test_guards_nest_and_belong_to_threads():
    cpu = tenon.device("cpu")
    with cpu as inner:
        with cpu:
            assert inner is cpu
    failures = []

    def work():
        try:
            with cpu, tenon.Stream("cpu") as stream:
                assert cpu.current_stream().address == stream.address
        except BaseException as error:  # the thread's end is the test's
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_streams():
    stream = tenon.Stream("cpu", priority="high")
    assert stream.device.id == "cpu:0" and stream.query() is True
    stream.synchronize()
    event = stream.record_event()
    stream.wait_event(event)
    stream.wait_stream(tenon.device("cpu").current_stream())
    assert event.query() and event.device == stream.device
    with pytest.raises(tenon.errors.InvalidArgumentError, match="priority"):
        tenon.Stream("cpu", priority="urgent")
    tenon.synchronize("cpu")


def test_scopes_may_end_out_of_order():
    """As those of generators do, which are resumed in turn."""
    cpu = tenon.device("cpu")
    before, a, b, c = cpu.current_stream(), *(tenon.Stream("cpu") for _ in range(3))

    def within(stream):
        with stream:
            yield cpu.current_stream()

    one, other, third = within(a), within(b), within(c)
    assert [next(each) for each in (one, other, third)] == [a, b, c]
    other.close()
    assert cpu.current_stream() == c
    one.close()
    assert cpu.current_stream() == c
    third.close()
    assert cpu.current_stream() == before
    with pytest.raises(RuntimeError, match="ends where it was not entered"):
        a.__exit__(None, None, None)


def test_a_stream_outlives_its_maker_where_it_was_lent():
    stream = tenon.Stream("cpu")
    with stream:
        lent = tenon.device("cpu").current_stream()
    address = lent.address
    del stream
    gc.collect()
    others = [tenon.Stream("cpu") for _ in range(100)]
    assert lent.query() is True and address not in [other.address for other in others]


def test_events():
    start, stop = (tenon.Event(enable_timing=True, on="cpu") for _ in range(2))
    with pytest.raises(tenon.errors.NotFoundError):
        start.elapsed_time(stop)
    start.record()
    stop.record()
    stop.synchronize()
    stop.wait()
    assert start.elapsed_time(stop) >= 0 >= stop.elapsed_time(start)
    with pytest.raises(tenon.errors.UnsupportedError):
        start.elapsed_time(tenon.Event(on="cpu"))


def test_described(tmp_path):
    path = tmp_path / "devices"
    path.write_text("nonsense")
    with pytest.raises(tenon.errors.Error, match="devices"):
        tenon.describe(path)


SAMPLE = pathlib.Path(os.environ["TENON_LIBRARY"]).parent / "tests/conformance/modules/tenon-seed-sample.so"


@pytest.mark.skipif(not SAMPLE.exists(), reason=f"{SAMPLE.name} is not built")
def test_wrong_devices(script):
    """Memory of another platform's device is never taken for the host's."""
    told = script(f"""
import numpy, tenon
from tenon._handles import call
from tenon._library import lib
call(lib.tn_module_file_add, {str(SAMPLE)!r}.encode(), 1)
far, near = tenon.empty((4, 4), "f32", "sample"), numpy.ones((4, 4), "f4")
assert far.device.id == "sample:0"
for call in (lambda: tenon.matmul(far, near), lambda: tenon.matmul(near, far), lambda: tenon.matmul(far, far),
             lambda: tenon.matmul(near, near, out=far)):
    try:
        call()
        raise SystemExit("taken")
    except tenon.Error as error:
        print(error.status)
for read in (lambda: numpy.asarray(far), lambda: numpy.from_dlpack(far)):
    try:
        read()
        raise SystemExit("read")
    except (TypeError, AttributeError, BufferError, RuntimeError, ValueError) as error:
        print(type(error).__name__)
tenon.copy(near, far)
back = numpy.zeros((4, 4), "f4")
assert (tenon.copy(far, back) == 1).all()
""")
    assert told.split()[:4] == ["refused", "refused", "unsupported", "refused"]


def test_seed():
    tenon.seed_everything(7)


def test_doctor():
    report = tenon.doctor()
    assert report.ok is True and "cpu:0" in str(report) and "<table>" in report._repr_html_()
    names = [row[0].split()[-1] for row in report.tables["platforms"][1:]]
    assert "cpu" in names and "cuda" in names


def test_libraries():
    names = [each.name for each in tenon.libraries()]
    assert "openblas" in names and names == sorted(names)
    one = tenon.library("onednn", open=True)
    assert one.name == "mkldnn" and one.available in ("yes", "no")
    with pytest.raises(tenon.errors.NotFoundError, match="did you mean"):
        tenon.library("openblass")


def test_version():
    assert tenon.version() == tenon.__version__


PRODUCERS = '''
import sys, types
import numpy, tenon

class Array:
    """Somebody's array on a GPU, which notes for which stream it is asked."""

    def __init__(self, shape):
        self.tensor, self.streams = tenon.empty(shape, "f32", "cuda:1"), []

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()

    def __dlpack__(self, stream=None, **options):
        self.streams.append(stream)
        return self.tensor.__dlpack__(stream=stream, **options)

sent, back = numpy.arange(12, dtype="f4").reshape(3, 4), numpy.zeros((3, 4), "f4")
theirs = Array((3, 4))
assert theirs.__dlpack_device__() == (2, 1)
tenon.copy(sent, theirs)
with tenon.device("cuda:1"), tenon.Stream("cuda:1") as stream:
    tenon.copy(theirs, back)
    tenon.synchronize("cuda:1")
assert numpy.array_equal(sent, back), back
assert stream.raw > 1 and theirs.streams == [1, stream.raw], theirs.streams  # 1: CUDA's default one

cupy = sys.modules["cupy"] = types.ModuleType("cupy")  # whose own stream counts
cupy.cuda = types.SimpleNamespace(get_current_stream=lambda: types.SimpleNamespace(ptr=stream.raw))
CuPys = type("ndarray", (Array,), {"__module__": "cupy._core.core"})
ours = CuPys((3, 4))
tenon.copy(sent, ours)
assert ours.streams == [stream.raw], ours.streams

lost = Array((3, 4))
lost.__class__ = type("Lost", (Array,), {"__dlpack_device__": lambda self: (2, 99)})
try:
    tenon.copy(lost, back)
    raise SystemExit("a device that is not there was found")
except tenon.Error as error:
    assert "99" in error.message, error.message
'''


@pytest.fixture
def beside_a_gpu(script):
    """As `script`, with the stub of CUDA's driver in the place of a GPU."""
    stub = pathlib.Path(os.environ["TENON_LIBRARY"]).parent / "tests" / "cuda" / "stub"
    if not (stub / "libcuda.so.1").exists():
        pytest.skip("this build has no stub of CUDA's driver")
    return lambda text: script(text, LD_LIBRARY_PATH=str(stub), CUDA_VISIBLE_DEVICES=None, STUB_MODULES="0")


def test_arrays_of_a_gpu_come_in_order(beside_a_gpu):
    beside_a_gpu(PRODUCERS)


def test_results_stay_where_the_arrays_are(beside_a_gpu):
    """Also where things are created on the GPU that are not said to be elsewhere."""
    beside_a_gpu("""
import array, numpy, tenon
assert tenon.empty(3).device.id == "cuda:0"
numbers = array.array("f", [1, 2, 3])
shown = type("Shown", (), {"__array_interface__": numpy.asarray(numbers).__array_interface__})()
for given in (numbers, memoryview(numbers), shown, tenon.empty(3, "f32", "cpu")):
    assert tenon.unary("neg", given).device.id == "cpu:0", given
assert numpy.asarray(tenon.unary("neg", numbers)).tolist() == [-1, -2, -3]
""")


@pytest.mark.skipif(not SAMPLE.exists(), reason=f"{SAMPLE.name} is not built")
def test_scopes_govern_what_is_made_inside(script):
    """Also of a platform that is not the current one."""
    script(f"""
import tenon
from tenon._handles import call
from tenon._library import lib
call(lib.tn_module_file_add, {str(SAMPLE)!r}.encode(), 1)
assert tenon.default_device().id != "sample:0"  # without kernels it is chosen by name only
call(lib.tn_platform_select, b"sample")
before = tenon.default_device().id
assert before == "sample:0"
with tenon.device("cpu") as cpu:
    assert {{tenon.default_device().id, tenon.empty(3).device.id, tenon.Stream().device.id,
             tenon.Event().device.id}} == {{"cpu:0"}}
    with tenon.device("sample:0"):
        assert tenon.default_device().id == tenon.Event().device.id == "sample:0"
    tenon.Event().record(cpu.current_stream())
    tenon.synchronize()
with tenon.Stream("cpu") as stream:
    assert tenon.Event().device.id == "cpu:0" and tenon.device("cpu").current_stream() == stream
    assert stream in {{tenon.device("cpu").current_stream()}} and stream != tenon.Stream("cpu") and stream != 3
assert tenon.default_device().id == tenon.Event().device.id == before
""")
