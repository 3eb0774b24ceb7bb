"""What the suites share: random numbers from a seed that is told, and skips that say why."""
import importlib
import os
import subprocess
import sys

import numpy
import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
SKIPPED = []
RAN = []


def pytest_report_header():
    return f"seed {SEED} (TN_TEST_SEED)"


SEED = int(os.environ.get("TN_TEST_SEED", int.from_bytes(os.urandom(4), "little")))


@pytest.fixture
def random():
    return numpy.random.default_rng(SEED)


@pytest.fixture
def script(tmp_path):
    """Runs a text as a program of its own; it must end well. Gives what it wrote to stdout. A variable
    of None is not there."""

    def run(text, code=0, **env):
        path = tmp_path / "program.py"
        path.write_text(text)
        merged = {name: value for name, value in {**os.environ, **env}.items() if value is not None}
        done = subprocess.run([sys.executable, str(path)], env=merged, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=1500, check=False)
        assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
        assert code or not done.stderr, done.stderr
        return done.stdout

    return run


@pytest.fixture
def stubs():
    """Variables with which a program finds the stubs of NVIDIA's libraries, beside the library that is tested."""
    folder = os.path.join(os.path.dirname(os.environ["TENON_LIBRARY"]), "tests", "cuda", "stub")
    for name in ("libcuda.so.1", "libcublasLt.so.13", "libcublas.so.13"):
        if not os.path.exists(os.path.join(folder, name)):
            pytest.skip(f"the stub {name} is not built")
    return {"LD_LIBRARY_PATH": folder, "CUDA_VISIBLE_DEVICES": None}


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    """The folder that the extension was built into by this Python's compiler."""
    sys.path.insert(0, os.path.join(HERE, "..", "..", "bindings", "python"))
    backend = importlib.import_module("build_backend")
    folder = tmp_path_factory.mktemp("extension")
    if backend.make_extension(folder) is None:
        pytest.skip("no extension: it needs CPython, a C compiler and the headers of Python")
    return str(folder)


@pytest.fixture(scope="module")
def extension(built):
    """The extension, in use while a suite runs."""
    import tenon
    from tenon import _arrays, operators

    tenon.__path__.append(built)
    before, operators._fast = operators._fast, operators._load_fast()
    _arrays._kinds.clear(), _arrays._made.clear()
    assert operators._fast is not None
    yield operators._fast
    operators._fast = before


def pytest_runtest_logreport(report):
    if report.skipped and isinstance(report.longrepr, tuple):
        SKIPPED.append((report.nodeid, report.longrepr[2]))
    elif report.when == "call":
        RAN.append(report.nodeid)


def pytest_collectreport(report):
    if report.skipped and isinstance(report.longrepr, tuple):
        SKIPPED.append((report.nodeid, report.longrepr[2]))


def pytest_terminal_summary(terminalreporter):
    for name, why in SKIPPED:
        terminalreporter.write_line(f"skipped: {name}: {why}")


def pytest_sessionfinish(session, exitstatus):
    if SKIPPED and not RAN and exitstatus in (0, 5):
        session.exitstatus = 77
