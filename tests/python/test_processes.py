"""Threads, processes, the interpreter's beginning and end."""
import concurrent.futures
import importlib
import os
import pickle
import re
import subprocess
import sys

import numpy
import pytest
import tenon
from tenon._calls import MAKERS


def test_threads_at_once(random):
    arrays = [random.standard_normal((65, 65)) for _ in range(8)]

    def work(a):
        for _ in range(20):
            numpy.testing.assert_allclose(tenon.matmul(a, a), a @ a, 1e-9, 1e-9)
        return True

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, arrays))


def test_first_use_from_many_threads(script):
    script("""
import threading, numpy, tenon
a = numpy.eye(5, dtype="f4")
barrier = threading.Barrier(8)
bad = []
def work():
    barrier.wait()
    try:
        assert (tenon.matmul(a, a) == a).all()
    except BaseException as error:
        bad.append(error)
threads = [threading.Thread(target=work) for _ in range(8)]
[t.start() for t in threads], [t.join() for t in threads]
assert not bad, bad
""")


def test_the_lock_is_released(script):
    """Another thread runs while a call computes, though nobody else gives the lock away."""
    script("""
import sys, threading, numpy, tenon
a = numpy.ones((500, 500), "f8")
tenon.matmul(a, a)
count, going = 0, threading.Event()
def spin():
    global count
    going.wait()
    while count < 1000:
        count += 1
thread = threading.Thread(target=spin)
thread.start()
sys.setswitchinterval(1000)
going.set()
for _ in range(1000):
    tenon.matmul(a, a)
    if count == 1000:
        break
assert count == 1000
sys.setswitchinterval(0.005)
thread.join()
""")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_fork(random):
    a = random.standard_normal((200, 200))
    wanted = tenon.matmul(a, a)
    child = os.fork()
    if child == 0:
        same = (tenon.matmul(a, a) == wanted).all() and tenon.device("cpu").id == "cpu:0"
        os._exit(0 if same else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert (tenon.matmul(a, a) == wanted).all()


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_processes(script, method):
    script(f"""
import multiprocessing, numpy, tenon
def square(a):
    return tenon.matmul(a, a)
if __name__ == "__main__":
    a = numpy.eye(9)
    with multiprocessing.get_context("{method}").Pool(2) as pool:
        for out in pool.map(square, [a] * 4):
            assert (out == a).all()
""")


def test_public_functions_pickle_by_name():
    """Functions and classes of the package and its modules, and so whatever multiprocessing is to call."""
    from tenon.platforms import attention, platform

    modules = [tenon, tenon.settings, tenon.errors, tenon.lock, tenon.platforms, attention, tenon.backends.cuda]
    seen = 0
    for module in modules:
        for name, value in [(name, getattr(module, name, None)) for name in dir(module)]:
            if not name.startswith("_") and callable(value) and value.__class__.__name__ in ("function", "type"):
                assert pickle.loads(pickle.dumps(value)) is value, f"{module.__name__}.{name}"
                seen += 1
    assert seen > 60
    for value in (platform("cpu"), tenon.device("cpu"), attention.FLASH_ATTN):
        assert pickle.loads(pickle.dumps(value)) == value
    for operator in MAKERS:
        home = tenon.fft if operator.__module__ == "tenon.fft" else tenon
        assert operator is getattr(home, operator.__name__) is pickle.loads(pickle.dumps(operator))


def test_settings_pickle_by_what_they_say():
    scope = tenon.settings.scope({"determinism": "run-to-run", "inference": True})
    with pickle.loads(pickle.dumps(scope)), tenon.settings.scope({"plan.cache_size": 7}):
        held = pickle.dumps(tenon.settings.current())
        assert tenon.settings.get("determinism") == "run-to-run" and tenon.settings.get("inference") is True
    assert tenon.settings.get("determinism") == "any"
    with tenon.settings.resume(pickle.loads(held)):
        assert tenon.settings.get("determinism") == "run-to-run" and tenon.settings.get("plan.cache_size") == 7
    conv = pickle.loads(pickle.dumps(tenon.backends.cudnn.conv))
    assert conv.fp32_precision == tenon.backends.cudnn.conv.fp32_precision
    assert pickle.loads(pickle.dumps(tenon.settings.info("inference"))).key == "inference"
    for value in (tenon.Stream("cpu"), tenon.empty(3, device="cpu")):  # which mean nothing elsewhere
        with pytest.raises((TypeError, ValueError)):
            pickle.dumps(value)


def test_operators_in_another_process(script):
    script("""
import multiprocessing, numpy, tenon
if __name__ == "__main__":
    x = numpy.arange(6, dtype="f4").reshape(2, 3)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert (pool.apply(tenon.softmax, (x,), {"axis": 0}) == tenon.softmax(x, axis=0)).all()
        assert (pool.apply(tenon.binary, ("add", x, x)) == x + x).all()
        assert pool.apply(tenon.reduce, ("sum", x)) == 15
""")


def test_end_with_all_alive(script):
    """What is held when the interpreter ends does no harm, in globals, in cycles, in capsules."""
    script("""
import numpy, tenon, threading
stream, event = tenon.Stream("cpu"), tenon.Event(on="cpu")
t = tenon.empty((3, 3), device="cpu")
shown = numpy.from_dlpack(t)
capsule, other = t.__dlpack__(), t.__dlpack__(max_version=(1, 1))
loop = [t, stream]
loop.append(loop)
scope = tenon.settings.scope({"inference": True})
scope.__enter__()
guard = tenon.device("cpu").__enter__()
import sys
sys.kept = [t, capsule, other, stream]
threading.Thread(target=lambda: tenon.matmul(numpy.eye(300), numpy.eye(300)), daemon=True).start()
""")


def test_import_is_light(script):
    told = script("""
import sys
import ctypes
before = set(sys.modules)
import tenon
new = set(sys.modules) - before
assert not {"numpy", "torch", "typing", "enum", "re"} & new, new
tenon.settings.get("inference")
assert not {"numpy", "torch"} & set(sys.modules)
print(len(new))
""")
    assert int(told) < 25


def test_no_library(script, tmp_path):
    text = """
import tenon
try:
    tenon.version()
except ImportError as error:
    print(error)
"""
    told = script(text, TENON_LIBRARY=str(tmp_path / "none.so"))
    assert "none.so" in told and "TENON_LIBRARY" in told


def test_stubs_have_every_name():
    stub = open(os.path.join(os.path.dirname(tenon.__file__), "__init__.pyi"), encoding="utf-8").read()
    found = re.findall(r"^(?:from .* import \w+ as|def) (\w+)|^(__version__)", stub, re.M)
    whole = re.findall(r"^from \.(\w+) import \*$", stub, re.M)
    starred = {name for module in whole for name in importlib.import_module(f"tenon.{module}").__all__}
    assert {one or other for one, other in found} | starred == {*tenon.__all__, "device_interface"}


def test_without_pytorch_everything_else_is_there(script):
    script("""
import sys
sys.modules["torch"] = None
from tenon import *
import tenon, inspect, pydoc
assert matmul is tenon.matmul and not hasattr(tenon, "device_interface")
inspect.getmembers(tenon)
pydoc.render_doc(tenon)
assert not hasattr(tenon.integrations, "torch") and not hasattr(tenon.integrations, "tensorflow")
for name in ("device_interface", "integrations.torch"):
    try:
        __import__(f"tenon.{name}")
        raise SystemExit("no torch, and yet it was imported")
    except ModuleNotFoundError as error:
        assert error.name == "torch"
""")


def test_another_library_is_no_tenon():
    done = subprocess.run([sys.executable, "-c", "import tenon; tenon.version()"], capture_output=True, text=True,
                          timeout=1500, check=False, env=dict(os.environ, TENON_LIBRARY="libc.so.6"))
    assert "ImportError: libc.so.6 is no library of Tenon's" in done.stderr


def test_names():
    for name in tenon.__all__:
        assert getattr(tenon, name) is not None, name
    assert set(tenon.__all__) <= set(dir(tenon))
    with pytest.raises(AttributeError):
        tenon.nothing


CHILD = """
import sys, tenon
theirs = tenon.Event.from_ipc_handle("cpu", bytes.fromhex(sys.argv[1]))
mine = tenon.Event(enable_timing=True, on="cpu")
mine.record()
try:
    theirs.elapsed_time(mine)
    raise SystemExit("it was not recorded")
except tenon.errors.NotFoundError:
    print("not recorded", flush=True)
sys.stdin.readline()
theirs.synchronize()
tenon.Stream("cpu").wait_event(theirs)
mine.record()
assert theirs.query() and 0 <= theirs.elapsed_time(mine) < 60000
"""


def test_a_child_waits_for_an_event_of_its_parent():
    event = tenon.Event(enable_timing=True, interprocess=True, on="cpu")
    with subprocess.Popen([sys.executable, "-c", CHILD, event.ipc_handle().hex()], text=True,
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        assert child.stdout.readline() == "not recorded\n"
        event.record()
        _, told = child.communicate("go\n", timeout=600)
    assert child.returncode == 0, told


def test_event_handles_are_checked():
    with pytest.raises(tenon.errors.InvalidArgumentError, match="interprocess"):
        tenon.Event(on="cpu").ipc_handle()
    with pytest.raises(TypeError, match="handle: expected bytes, got str"):
        tenon.Event.from_ipc_handle("cpu", "x")
    with pytest.raises(tenon.errors.InvalidArgumentError, match="handle: expected 64 bytes"):
        tenon.Event.from_ipc_handle("cpu", b"x")
