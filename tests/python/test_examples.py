"""The examples, run as their headers say, at a small size and on the processor."""
import importlib.util
import os
import pathlib
import re
import struct
import subprocess
import sys
import wave

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
    assert {path.name for path in EXAMPLES.glob("*.py")} == {"attention_speed.py", "inductor_sample.py", "spectrum.py"}
    for path in EXAMPLES.glob("*.py"):
        compile(path.read_text(), str(path), "exec")


def test_attention_speed():
    said = run("attention_speed.py", "--tokens", "64", "--layers", "1", "--rounds", "1",
               needs=("torch", "transformers"))
    line = r"(\w+) +1 of 1 attentions in Tenon, error \S+ \(equal; .* eager takes [\d.]+ times as long, sdpa [\d.]+"
    assert [re.fullmatch(line, one)[1] for one in said.splitlines()] == ["decoder", "encoder", "vision"]


def test_spectrum(tmp_path):
    said = run("spectrum.py", needs=("numpy",)).splitlines()
    assert len(said) == 24
    shown = (ROOT / "docs" / "fft.md").read_text().partition("$ python3 spectrum.py\n")[2].partition("```")[0].splitlines()
    assert len(shown) == 8
    for ours, page in zip(said, shown):
        assert ours.split()[0] == page.split()[0] and abs(float(ours.split()[-2]) - float(page.split()[-2])) < 0.2
    bars = {float(line.split()[0]): line.count("#") for line in said}
    assert sorted(bars, key=bars.get)[-2:] == [835.0, 334.0], said  # the bands of 1000 and 440 Hz
    with wave.open(str(tmp_path / "tone.wav"), "wb") as file:
        file.setnchannels(2)
        file.setsampwidth(2)
        file.setframerate(1000)
        file.writeframes(struct.pack("<hh", 9000, 0) * 500)  # of the frequency 0
    said = run("spectrum.py", str(tmp_path / "tone.wav"), needs=("numpy",)).splitlines()
    assert max(said, key=lambda line: line.count("#")) == said[0]


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
