"""torch.backends' names: every one whose C side exists is here and does what its table says."""
import importlib
import inspect
import pathlib
import sys
import types

import numpy
import pytest
import tenon
from tenon import backends, settings

TABLE = pathlib.Path(__file__).resolve().parents[1] / "data" / "seed-names.tsv"
ROWS = [dict(zip(("name", "seed", "kind", "area", "c", "effect", "lacks"), line.split("\t")))
        for line in TABLE.read_text().splitlines()[1:]]
OURS = [row for row in ROWS if row["seed"] == "torch.backends" and row["c"] != "-"]


@pytest.fixture(autouse=True)
def clean():
    yield
    settings.reset()


def find(name):
    """The object that a dotted name is an attribute of, and the last part."""
    *path, last = name.split(".")
    found = backends
    for part in path:
        found = getattr(found, part)
    return found, last


@pytest.mark.parametrize("row", OURS, ids=lambda row: row["name"])
def test_every_name(row):
    """Settings are read and written, functions are called, through the name itself."""
    holder, last = find(row["name"].removesuffix("[i]"))
    value = getattr(holder, last)
    if row["c"].startswith("tn_plan_cache_"):
        check_plan_cache(row["name"], value)
    elif row["c"].startswith("tn_library_state."):
        check_library(row["name"].split(".")[0], row["c"].partition(".")[2], value)
    elif not row["c"].startswith("TN_SETTING_"):
        check_function(row["c"], value)
    elif callable(value):
        check_switch(key_of(row), value)
    else:
        check_attribute(key_of(row), holder, last)


def check_plan_cache(name, value):
    """Of the current device of CUDA, where there is one; test_stand_ins.py shows the effects with stand-ins."""
    if name.endswith("[i]"):
        with pytest.raises(ValueError, match="expected 0 <= device index < .*, but got device with index 99"):
            value[99]
    elif callable(value):
        value()
        assert backends.cuda.cufft_plan_cache.size == 0
    else:
        assert isinstance(value, int)


def key_of(row):
    return next(k for k in settings.keys() if k.upper().replace(".", "_") == row["c"][len("TN_SETTING_"):])


def other_than(key, value):
    """Another value that is allowed."""
    if isinstance(value, bool):
        return not value
    return 7 if isinstance(value, int) else word_of(key, value)


def word_of(key, value):
    """Another word that is allowed."""
    allowed = settings.info(key).allowed.split(", ")
    return next(word for word in allowed if word not in (value, "default", "none"))


def check_attribute(key, holder, last):
    value = getattr(holder, last)
    other = other_than(key, value)
    assert value == settings.get(key)
    setattr(holder, last, other)
    assert getattr(holder, last) == other
    if key == "cuda.cufft_plan_cache.max_size" and tenon.platforms.platform("cuda").device_count():
        assert settings.get(key) == value  # the device has a limit of its own
        setattr(holder, last, value)
        return
    assert settings.get(key) == other
    assert settings.origin(key).startswith("process")


def check_switch(key, function):
    """A function over a setting: one that reads it, one that writes it, or a scope."""
    before = settings.get(key)
    other = other_than(key, before)
    takes = list(inspect.signature(function).parameters.values())
    if not takes:
        assert function() == before
        settings.set(key, other)
        assert function() == other
        return
    if takes[0].default is not takes[0].empty:
        assert function() == before or hasattr(function(), "__enter__")
    made = function(1 if "verbose" in key else other)  # verbosity is a number upstream
    if hasattr(made, "__enter__"):
        assert settings.get(key) == before
        with made:
            assert settings.get(key) == other
        assert settings.get(key) == before
    else:
        assert settings.get(key) == other


def check_library(name, field, value):
    """What a library's state says, by the name of torch.backends' module."""
    wanted = getattr(tenon.library(name, open=field != "built"), field)
    found = value() if callable(value) else value
    assert found == ({"yes": True}.get(wanted, False) if field == "available" else wanted)
    assert isinstance(found, bool) or field == "version" and (found is None or found > 0)


def check_function(name, function):
    q = numpy.ones((1, 2, 8, 64), "f4")
    params = backends.cuda.SDPAParams(q, q, q, None, 0.0, False)
    if name.startswith("tn_can_use_"):
        assert isinstance(function(params), bool)
    elif name == "tn_sdpa_params_get":
        assert isinstance(params, function) and params.query is q
    elif name == "tn_sdp_kernel_enter":
        with function(enable_math=False):
            assert settings.get("cuda.math_sdp") is False and settings.get("cuda.flash_sdp") is True
        assert settings.get("cuda.math_sdp") is True
    else:
        assert isinstance(function(), str if name == "tn_cpu_capability" else bool)


def test_the_table_is_long():
    assert len(OURS) > 50


@pytest.mark.parametrize("name", ["flash", "mem_efficient", "math", "cudnn"])
def test_sdp_switches(name):
    enabled, enable = (getattr(backends.cuda, word) for word in (f"{name}_sdp_enabled", f"enable_{name}_sdp"))
    assert enabled() is True
    enable(False)
    assert enabled() is False and settings.get(f"cuda.{name}_sdp") is False
    with pytest.raises(tenon.errors.InvalidArgumentError, match=f"cuda.{name}_sdp is True or False"):
        enable(1)
    enable(True)
    with backends.cuda.sdp_kernel(**{f"enable_{name}": False}):
        assert enabled() is False
    assert enabled() is True


def test_switches_decide():
    """A switch that is off keeps its kernels from being taken."""
    q = numpy.ones((1, 1, 4, 8), "f4")
    for switches in ({"enable_flash": False}, {"enable_math": False}):
        with backends.cuda.sdp_kernel(**switches):
            decision = tenon.explain(tenon.attention, q, q, q)
        assert decision.chosen is not None
        assert ("forms scores of " in decision.chosen.note) is ("enable_flash" in switches)
        assert decision.chosen.note in str(decision)
    with backends.cuda.sdp_kernel(False, False, False, False):
        with pytest.raises(tenon.errors.RefusedError):
            tenon.attention(q, q, q)


def test_math_reduction():
    assert backends.cuda.fp16_bf16_reduction_math_sdp_allowed() is False
    backends.cuda.allow_fp16_bf16_reduction_math_sdp(True)
    assert backends.cuda.fp16_bf16_reduction_math_sdp_allowed() is True


def test_flags_change_what_they_name():
    """Upstream's cudnn.flags() alone switches cuDNN off; here it changes nothing."""
    for module, name in ((backends.cudnn, "enabled"), (backends.mkldnn, "enabled"), (backends.nnpack, "enabled"),
                         (backends.miopen, "immediate"), (backends.opt_einsum, "enabled")):
        before = getattr(module, name)
        with module.flags():
            assert getattr(module, name) is before
        with module.flags(**{name: not before}):
            assert getattr(module, name) is not before
        assert getattr(module, name) is before


def test_set_flags_gives_what_was():
    assert backends.cudnn.set_flags(benchmark=True)[:3] == (True, False, 10)
    assert backends.cudnn.benchmark is True and backends.cudnn.set_flags()[1] is True
    assert backends.nnpack.set_flags(False) == (True,) and backends.nnpack.set_flags(True) == (False,)
    assert backends.miopen.set_flags(True) == (False,)
    assert backends.opt_einsum.set_flags(False)[0] is True
    assert backends.mkldnn.set_flags(enabled=False)[0] is True and backends.mkldnn.enabled is False
    with pytest.raises(tenon.errors.InvalidArgumentError):
        backends.cudnn.set_flags(benchmark=False, benchmark_limit=-3)
    assert backends.cudnn.benchmark is True


def test_precision():
    """Old and new names never disagree, and reading never raises."""
    backends.cuda.matmul.allow_tf32 = True
    assert backends.cuda.matmul.fp32_precision == "tf32"
    backends.cuda.matmul.fp32_precision = "ieee"
    assert backends.cuda.matmul.allow_tf32 is False
    backends.fp32_precision = "tf32"
    assert backends.mkldnn.fp32_precision == "tf32"
    backends.mkldnn.fp32_precision = "bf16"
    assert backends.fp32_precision == "tf32" and backends.mkldnn.matmul.fp32_precision == "bf16"
    backends.cudnn.allow_tf32 = False
    assert (backends.cudnn.conv.fp32_precision, backends.cudnn.rnn.fp32_precision) == ("ieee", "ieee")
    with pytest.raises(tenon.errors.Error):
        backends.cuda.matmul.fp32_precision = "bf16"
    with backends.flags(fp32_precision="ieee"):
        assert backends.fp32_precision == "ieee"
    assert backends.set_flags(fp32_precision="ieee") == ("tf32",)
    for wrong in (backends.cuda.matmul, backends.cudnn.conv):
        with pytest.raises(AttributeError):
            wrong.allow_tf33 = True
        with pytest.raises(AttributeError):
            wrong.allow_tf33


def test_reduced_precision():
    matmul = backends.cuda.matmul
    matmul.allow_fp16_reduced_precision_reduction = (False, False)
    assert matmul.allow_fp16_reduced_precision_reduction is False
    assert matmul.allow_fp16_reduced_precision_reduction_split_k is False
    matmul.allow_bf16_reduced_precision_reduction = False
    assert matmul.allow_bf16_reduced_precision_reduction_split_k is True
    for wrong in ((), (True, True, True), (1,)):
        with pytest.raises(TypeError):
            matmul.allow_fp16_reduced_precision_reduction = wrong


def test_preferred_libraries():
    for name in ("blas", "linalg", "rocm_fa"):
        function = getattr(backends.cuda, f"preferred_{name}_library")
        assert function() == "default"
        with pytest.raises(tenon.errors.InvalidArgumentError):
            function("nonsense")
        assert function() == "default"
    assert backends.cuda.preferred_blas_library("cublaslt") == "cublaslt"


def test_verbose_ends_where_it_began():
    for name in ("mkl", "mkldnn"):
        settings.set(f"{name}.verbose", "on")
        with getattr(backends, name).verbose(0):
            assert settings.get(f"{name}.verbose") == "off"
        assert settings.get(f"{name}.verbose") == "on"


def test_engine_can_be_unset():
    backends.quantized.engine = "onednn"
    assert backends.quantized.engine == "onednn"
    backends.quantized.engine = "default"
    assert isinstance(backends.quantized.supported_engines, list)
    with pytest.raises(AttributeError):
        backends.quantized.supported_engines = []
    with pytest.raises(AttributeError):
        backends.xnnpack.enabled = True


def test_presence():
    for name in ("cudnn", "cusparselt", "mps", "mkl", "mkldnn", "nnpack", "openmp", "opt_einsum", "kleidiai"):
        assert isinstance(getattr(backends, name).is_available(), bool)
    assert backends.opt_einsum.is_available() is True
    assert callable(backends.opt_einsum.get_opt_einsum().contract_path)
    for name in ("cudnn", "cusparselt"):
        assert (getattr(backends, name).version() is not None) is getattr(backends, name).is_available()
    assert backends.cpu.get_cpu_capability() in ("DEFAULT", "AVX2", "AVX512", "SVE128", "SVE256")
    assert isinstance(backends.cuda.is_built(), bool) and isinstance(backends.mps.is_built(), bool)


def test_mha():
    backends.mha.set_fastpath_enabled(False)
    assert backends.mha.get_fastpath_enabled() is False
    with pytest.raises(tenon.errors.InvalidArgumentError):
        backends.mha.set_fastpath_enabled(1)


def test_can_use():
    q = numpy.ones((1, 2, 8, 64), "f4")
    params = backends.cuda.SDPAParams(q, q, q, None, 0.0, False, False)
    assert params.query is q and params.dropout == 0.0
    assert backends.cuda.can_use_flash_attention(params) is True
    with pytest.warns(UserWarning, match="cudnn"):
        assert backends.cuda.can_use_cudnn_attention(params, debug=True) is False
    assert isinstance(backends.cuda.can_use_efficient_attention(params), bool)
    assert isinstance(backends.cuda.is_flash_attention_available(), bool)
    assert backends.cuda.is_ck_sdpa_available() is False
    with pytest.warns(UserWarning, match="^no module has a kernel for rocm that uses ck"):
        backends.cuda.is_ck_sdpa_available(debug=True)


def test_modules_import_alone():
    for row in OURS:
        name = "tenon.backends." + row["name"].split(".")[0]
        assert importlib.import_module(name) is sys.modules[name]


def test_freeze(script):
    script("""
from tenon import backends, errors
backends.disable_global_flags()
assert backends.flags_frozen()
for change in (lambda: backends.cudnn.set_flags(benchmark=True), lambda: backends.cuda.enable_flash_sdp(False),
               lambda: setattr(backends.cuda.matmul, "allow_tf32", True),
               lambda: backends.mha.set_fastpath_enabled(False)):
    try:
        change()
        raise SystemExit("taken")
    except errors.RefusedError:
        pass
with backends.cudnn.flags(benchmark=True):
    assert backends.cudnn.benchmark
""")


def test_switches_are_annotated():
    """For checkers of types, which do not see what is computed."""
    found = 0
    for name, module in list(sys.modules.items()):
        if name.startswith("tenon.backends") and type(module) is not types.ModuleType:
            switches = {key for key, value in vars(type(module)).items() if isinstance(value, property)}
            assert switches == set(module.__annotations__), name
            found += 1
    assert found >= 9


def test_misspelt_switches_are_refused():
    with pytest.raises(AttributeError, match="did you mean 'benchmark'"):
        backends.cudnn.benchmrk = True
    with pytest.raises(AttributeError, match="is a function; call it"):
        backends.cuda.enable_flash_sdp = False
    with pytest.raises(AttributeError):
        backends.cuda.cufft_plan_cache.max_siz = 3
    assert callable(backends.cuda.enable_flash_sdp)


def test_parameters_are_read_only():
    """SDPAParams"""
    q = numpy.ones((1, 2, 4, 64), "float32")
    params = backends.cuda.SDPAParams(q, q, q, None, 0.0, False)
    for name in ("query", "attn_mask", "dropout", "is_causal", "enable_gqa", "raw"):
        with pytest.raises(AttributeError, match=f"SDPAParams.{name} is read-only"):
            setattr(params, name, True)
    assert params.query is q and params.is_causal is False and params.raw.is_causal == 0
