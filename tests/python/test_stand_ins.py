"""Names that need a module which Tenon does not have, or hardware that is not here: they give the reason, and change
under a stand-in. The stand-ins are tests/conformance/stand_in_platform.c and the stubs of tests/cuda."""
import json
import os
import shutil
import subprocess

import pytest
import tenon
from tenon import backends, settings

BUILD = os.path.dirname(os.environ["TENON_LIBRARY"])
MODULES = os.path.join(BUILD, "tests", "conformance", "modules")
ATTENTION, MATMUL = "attention:f16:b=1,h=2,l=64,d=64@rocm:0", "matmul:f16:m=64,n=64,k=64@rocm:0"


@pytest.fixture
def stand_in(tmp_path, script):
    """Runs a program with one stand-in loaded."""

    def run(name, text):
        path = os.path.join(MODULES, f"tenon-stand-in-{name}.so")
        if not os.path.exists(path):
            pytest.skip(f"the stand-in {name} is not built")
        folder = tmp_path / name
        folder.mkdir()
        shutil.copy(path, folder)
        return script(text, TENON_MODULE_PATH=str(folder), TENON_ADMISSION="never")

    return run


def test_preferred_rocm_fa_library(stand_in):
    """cuda.preferred_rocm_fa_library"""
    assert settings.info("cuda.preferred_rocm_fa_library").readers == []
    assert settings.info("cuda.preferred_rocm_fa_library").unused_because == (
        "no loaded module uses aotriton or ck; a module for rocm could")
    stand_in("rocm", f"""
import tenon
from tenon.backends import cuda
assert tenon.explain({ATTENTION!r}).chosen.kernel == "rocm.attention.aotriton"
cuda.preferred_rocm_fa_library("ck")
assert tenon.explain({ATTENTION!r}).chosen.kernel == "rocm.attention.ck"
assert tenon.settings.info("cuda.preferred_rocm_fa_library").readers == ["attention"]
""")


def test_miopen_immediate(stand_in):
    """miopen.immediate"""
    assert settings.info("miopen.immediate").unused_because == "no loaded module uses miopen; a module for rocm could"
    stand_in("rocm", f"""
import tenon
from tenon.backends import miopen
assert tenon.explain({MATMUL!r}).chosen.kernel == "rocm.matmul.search"
miopen.immediate = True
assert tenon.explain({MATMUL!r}).chosen.kernel == "rocm.matmul.immediate"
assert tenon.settings.info("miopen.immediate").readers == ["matmul"]
""")


def test_is_ck_sdpa_available(stand_in):
    with pytest.warns(UserWarning, match="no module has a kernel for rocm that uses ck: none has any kernel"):
        assert backends.cuda.is_ck_sdpa_available(debug=True) is False
    stand_in("rocm", """
from tenon.backends import cuda
assert cuda.is_ck_sdpa_available(debug=True) is True
""")


def test_mps(stand_in):
    """mps.is_built, mps.is_available"""
    assert (backends.mps.is_built(), backends.mps.is_available()) == (False, False)
    assert tenon.library("mps").reason.startswith("no loaded module for mps uses it; ")
    stand_in("metal", """
from tenon.backends import mps
assert (mps.is_built(), mps.is_available()) == (True, True)
""")


def test_cuda_is_built(script, tmp_path):
    """cuda.is_built: whether the module cuda is there; a copy of the library without module folders has none."""
    text = "from tenon.backends import cuda\nprint(cuda.is_built())"
    assert script(text) == "True\n"
    alone = shutil.copy(os.environ["TENON_LIBRARY"], tmp_path / "libtenon.so")
    assert script(text, TENON_LIBRARY=str(alone)) == "False\n"


def test_cudnn(script, stubs):
    """cudnn.version, cudnn.is_available: of the stub, whose version is its own."""
    assert script("from tenon.backends import cudnn\nprint(cudnn.is_available(), cudnn.version())",
                  **stubs).startswith("True 9")


def test_the_command_says_so(tmp_path):
    command = os.path.join(BUILD, "tenon")
    done = subprocess.run([command, "settings", "--json"], stdout=subprocess.PIPE, check=True, text=True)
    rows = {row["key"]: row for row in json.loads(done.stdout)["settings"]}
    for key, row in rows.items():
        assert row["used"] == bool(row["readers"]) == (not row["unused_because"]), key
        assert row["unused_because"] == (settings.info(key).unused_because or None)
    assert rows["quantized.engine"]["unused_because"] == "this version has no operator that reads it"


def test_cufft_plan_cache(script, stubs):
    """cuda.cufft_plan_cache: max_size, size (tn_plan_cache_state_get), clear (tn_plan_cache_clear) and [i]
    (tn_plan_cache_limit_set), with the stub of cuFFT."""
    script("""
import pytest
import tenon
from tenon.backends.cuda import cufft_plan_cache as cache

def fill(device, count):
    for i in range(count):
        tenon.prepare(f"fft:c64:shape=4x{64 + i}@cuda:{device}")

assert (cache.size, cache.max_size, cache[1].max_size) == (0, 4096, 4096)
fill(0, 3), fill(1, 4)
assert (cache.size, cache[0].size, cache[1].size, cache["cuda:1"].size) == (3, 3, 4, 4)
with tenon.device("cuda:1"):
    assert cache.size == 4
    cache.max_size = 2
assert (cache.size, cache[1].size, cache[1].max_size, cache.max_size) == (3, 2, 2, 4096)
fill(1, 6)
assert cache[1].size == 2
cache.max_size = 0
fill(0, 3)
assert (cache.size, cache.max_size, cache[1].size) == (0, 0, 2)
cache[1].clear()
assert cache[1].size == 0 and cache[1].max_size == 2
cache[0].max_size = 5
fill(0, 9)
assert cache.size == 5
for bad in (2, -1, 1 << 40, "cuda:7", "cpu:0"):
    with pytest.raises(ValueError):
        cache[bad]
with pytest.raises(ValueError, match="expected 0 <= device index < 2, but got device with index 2"):
    cache[2]
for bad in (1.5, "many", None):
    with pytest.raises(TypeError):
        cache.max_size = bad
with pytest.raises(ValueError):
    cache.max_size = -1
with pytest.raises(AttributeError):
    cache.size = 3
with pytest.raises(TypeError):
    cache[0][1]
assert cache.max_size == 5
tenon.settings.set("cuda.cufft_plan_cache.max_size", 1)     # of devices without a limit of their own
assert (cache.max_size, cache[1].max_size) == (5, 2)
""", **stubs, TENON_ADMISSION="never")
    script("""
from tenon.backends.cuda import cufft_plan_cache as cache
import tenon
assert (cache.size, cache.max_size) == (0, 4096)
cache.max_size = 7
cache.clear()
assert cache.max_size == 7 == tenon.settings.get("cuda.cufft_plan_cache.max_size")
try:
    cache[0]
    raise SystemExit("no device has a cache")
except ValueError as error:
    assert "0 <= device index < 0" in str(error), error
""", CUDA_VISIBLE_DEVICES="-1")
