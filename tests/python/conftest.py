"""What the suites share: random numbers from a seed that is told, and skips that say why."""
import os
import subprocess
import sys

import numpy
import pytest

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
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=100, check=False)
        assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
        assert code or not done.stderr, done.stderr
        return done.stdout

    return run


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
