"""The examples, run as their headers say, at a small size and on the processor."""
import importlib.util
import os
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples" / "python"
MODULES = pathlib.Path(os.environ["TENON_LIBRARY"]).parent / "tests" / "conformance" / "modules"


def run(name, *options, needs, code=0):
    """What an example wrote to stdout; or to stderr, where it ends otherwise."""
    for need in needs:
        if importlib.util.find_spec(need) is None:
            pytest.skip(f"{need} is not here")
    done = subprocess.run([sys.executable, str(EXAMPLES / name), *options], text=True, check=False, timeout=1500,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
    return done.stderr if code else done.stdout


def module(name):
    path = MODULES / f"tenon-{name}.so"
    if not path.exists():
        pytest.skip(f"{path.name} is not built")
    return path


def test_every_example_is_run_here():
    assert {path.name for path in EXAMPLES.glob("*.py")} == {"attention_speed.py", "inductor_sample.py"}
    for path in EXAMPLES.glob("*.py"):
        compile(path.read_text(), str(path), "exec")


def test_attention_speed():
    said = run("attention_speed.py", "--tokens", "64", "--layers", "1", "--rounds", "1",
               needs=("torch", "transformers"))
    line = r"(\w+) +1 of 1 attentions in Tenon, error \S+ \(equal; .* eager takes [\d.]+ times as long, sdpa [\d.]+"
    assert [re.fullmatch(line, one)[1] for one in said.splitlines()] == ["decoder", "encoder", "vision"]


def test_inductor_sample():
    said = run("inductor_sample.py", str(module("seed-sample")), needs=("torch", "triton"))
    assert "@triton.jit" in said and "multi_processor_count=80" in said and "interface('sample')" in said
    compile(said, "generated", "exec")
    for wrong in ((), ("no-such-module.so",)):
        assert "usage: " in run("inductor_sample.py", *wrong, needs=("torch",), code=1)


def test_out_of_tree(script):
    """The example of a platform of one's own, whose devices are other processes, from Python: found beside the
    others, and arrays go there and back on a stream of its own. Its own suites are conformance.ferry and .outside."""
    script(f"""
import numpy
import tenon
assert "ferry" in [platform.name for platform in tenon.platforms.platforms()]
ferry = tenon.platforms.platform("ferry")
assert ferry.is_out_of_tree() and ferry.device_count() >= 1
given = numpy.arange(100, dtype="f4").reshape(10, 10)
with tenon.device("ferry:0") as device, tenon.Stream(device) as stream:
    there = tenon.empty(given.shape, "f32", device)
    assert there.device.id == "ferry:0" and repr(there) == "<tensor 10x10 of f32 on ferry:0>"
    assert tenon.copy(given, there) is there
    stream.synchronize()
    back = tenon.copy(there, numpy.empty_like(given))
assert (back == given).all()
try:
    tenon.matmul(there, there)
    raise SystemExit("computed")
except tenon.Error as error:
    assert "ferry" in error.message, error.message
""", TENON_MODULE_PATH=str(module("ferry").parent))
