"""Settings and their scopes: threads, tasks, generators."""
import asyncio
import contextvars
import pickle
import threading
import weakref

import pytest
import tenon
from tenon import settings


@pytest.fixture(autouse=True)
def clean():
    yield
    settings.reset()


def test_values():
    assert settings.get("cuda.flash_sdp") is True
    assert settings.get("plan.cache_size") == 4096
    assert settings.get("cuda.cublas_workspace_size") is None
    assert settings.get("determinism") == "any"
    assert settings.value("cuda.matmul.fp32_precision") == "none"
    assert settings.get("matmul.library") == settings.info("matmul.library").default
    assert len(settings.keys()) == len(set(settings.keys())) > 60


def test_every_key():
    for key in settings.keys():
        row = settings.info(key)
        assert row.key == key and row.effect and row.environment.startswith("TENON_")
        settings.get(key), settings.value(key)
        assert settings.origin(key) == row.origin


def test_set_and_reset():
    settings.set({"cuda.flash_sdp": False, "plan.cache_size": 7})
    assert settings.get("cuda.flash_sdp") is False and settings.get("plan.cache_size") == 7
    assert settings.origin("plan.cache_size").startswith("process")
    settings.reset("plan.cache_size")
    assert settings.get("plan.cache_size") == 4096 and settings.get("cuda.flash_sdp") is False
    with pytest.raises(tenon.errors.NotFoundError, match="did you mean fp32_precision"):
        settings.set("fp32_precison", "ieee")
    with pytest.raises(tenon.errors.InvalidArgumentError):
        settings.set({"plan.cache_size": 8, "determinism": "often"})
    assert settings.get("plan.cache_size") == 4096


def test_scope():
    with settings.scope({"fp32_precision": "ieee"}) as outer:
        assert settings.get("cuda.matmul.fp32_precision") == "ieee"
        assert settings.origin("fp32_precision").startswith("scope")
        with settings.scope({"fp32_precision": "tf32", "determinism": "run-to-run"}):
            assert settings.get("fp32_precision") == "tf32"
            with outer:
                assert settings.get("fp32_precision") == "ieee"
                assert settings.get("determinism") == "run-to-run"
        assert settings.get("determinism") == "any"
    assert settings.value("fp32_precision") == "none"
    with pytest.raises(tenon.errors.InvalidArgumentError, match="expected a setting that a scope can change, got one of the process"):
        settings.scope({"cpu.threads": 1})


def test_scope_follows_the_process():
    with settings.scope({"fp32_precision": "ieee"}):
        settings.set("determinism", "run-to-run")
        assert settings.get("determinism") == "run-to-run" and settings.get("fp32_precision") == "ieee"


def test_scope_ends_on_errors():
    with pytest.raises(KeyError):
        with settings.scope({"inference": True}):
            raise KeyError
    assert settings.get("inference") is False


def test_decorator():
    @settings.scope({"inference": True})
    def inside():
        """Kept."""
        return settings.get("inference")

    assert inside() is True and inside.__doc__ == "Kept." and settings.get("inference") is False


def test_threads():
    """Each thread sees its own scope, at the same time."""
    barrier, seen = threading.Barrier(4), {}

    def work(word):
        with settings.scope({"fp32_precision": word}):
            barrier.wait(30)
            seen[word] = settings.value("fp32_precision")
            barrier.wait(30)

    threads = [threading.Thread(target=work, args=(w,)) for w in ("ieee", "tf32", "bf16", "none")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert seen == {w: w for w in ("ieee", "tf32", "bf16", "none")}
    assert settings.value("fp32_precision") == "none"


def test_one_scope_in_many_tasks():
    """A scope does not leak to another task at an await, and one object serves all."""
    shared = settings.scope({"determinism": "run-to-run"})

    async def inside(word):
        with settings.scope({"fp32_precision": word}), shared:
            for _ in range(5):
                await asyncio.sleep(0)
                assert settings.get("fp32_precision") == word
                assert settings.get("determinism") == "run-to-run"

    async def outside():
        for _ in range(20):
            await asyncio.sleep(0)
            assert settings.value("fp32_precision") == "none"

    async def main():
        await asyncio.gather(inside("ieee"), outside(), inside("tf32"), inside("bf16"))

    asyncio.run(main())
    assert settings.get("determinism") == "any"


def test_generators():
    def numbers():
        with settings.scope({"inference": True}):
            yield settings.get("inference")

    assert list(numbers()) == [True] and settings.get("inference") is False


def test_scopes_that_end_out_of_order():
    """Each takes away its own changes, whatever was entered since."""

    def holds(scope):
        with scope:
            yield

    first = holds(settings.scope({"fp32_precision": "ieee", "determinism": "run-to-run"}))
    next(first)
    with settings.scope({"inference": True, "determinism": "batch-invariant"}):
        resumed = holds(settings.resume(settings.current()))
        next(resumed)
        with settings.scope({"cuda.flash_sdp": False}):
            first.close()
            assert settings.get("fp32_precision") == "ieee"  # what is resumed does not follow what held outside
            resumed.close()
            assert settings.value("fp32_precision") == "none" and settings.get("cuda.flash_sdp") is False
            assert settings.get("inference") is True and settings.get("determinism") == "batch-invariant"
        assert settings.get("cuda.flash_sdp") is True and settings.get("determinism") == "batch-invariant"
    assert settings.current() is None and settings.get("determinism") == "any"


def test_a_scope_ends_where_it_was_entered():
    inner, outer = settings.scope({"inference": True}), settings.scope({"determinism": "run-to-run"})
    elsewhere = contextvars.copy_context()
    elsewhere.run(inner.__enter__)
    with outer:
        for stray in (inner, settings.resume(None)):
            with pytest.raises(RuntimeError, match="not entered"):
                stray.__exit__(None, None, None)
        assert settings.get("determinism") == "run-to-run"
    elsewhere.run(inner.__exit__, None, None, None)
    assert elsewhere.run(settings.current) is None


def test_a_task_cannot_end_a_scope_that_it_inherits():
    scope = settings.scope({"inference": True})

    def refused(of):
        assert settings.get("inference") is True
        with pytest.raises(RuntimeError, match="not entered: in another thread, task or context"):
            of.__exit__(None, None, None)
        assert settings.get("inference") is True

    async def leave(of, after=0):
        for _ in range(after):
            await asyncio.sleep(0)
        refused(of)

    async def enter_and_leave():
        with scope, settings.scope({"determinism": "run-to-run"}):
            assert settings.get("determinism") == "run-to-run"
        refused(scope)

    async def enter():
        scope.__enter__()

    async def main():
        with scope:
            resumed = settings.resume(settings.current())
            with resumed:
                await asyncio.gather(*(asyncio.create_task(leave(one)) for one in (scope, resumed)))
            await asyncio.create_task(enter_and_leave())
            await asyncio.to_thread(refused, scope)
            contextvars.copy_context().run(refused, scope)
            late = asyncio.create_task(leave(scope, after=3))
            await asyncio.sleep(0)
        await late  # where it still holds, though it has ended here
        await asyncio.create_task(enter())
        with pytest.raises(RuntimeError, match="not entered"):
            scope.__exit__(None, None, None)
        assert settings.current() is None

    asyncio.run(main())
    assert settings.get("inference") is False


def test_a_scope_that_has_ended_keeps_no_context_alive():
    class Big:
        pass

    variable, big = contextvars.ContextVar("variable"), Big()
    dead = weakref.ref(big)

    def inside(value):
        variable.set(value)
        with settings.scope({"inference": True}):
            return settings.current()

    held = contextvars.copy_context().run(inside, big)
    del big
    assert dead() is None and held is not None


def test_resume_gives_back_what_held():
    with settings.scope({"inference": True}):
        held = settings.current()
        with settings.resume(None):
            assert settings.get("inference") is False and settings.current() is None
            with settings.resume(held), settings.scope({"determinism": "run-to-run"}):
                assert settings.get("inference") is True and settings.get("determinism") == "run-to-run"
            with settings.resume(held):
                assert settings.current() is held
        assert settings.current() is held


def test_environment(script):
    text = "import tenon; print(tenon.settings.get('fp32_precision'), tenon.settings.origin('fp32_precision'))"
    assert script(text, TENON_FP32_PRECISION="ieee").split(" ", 1)[0] == "ieee"
    assert "TENON_FP32_PRECISION" in script(text, TENON_FP32_PRECISION="ieee")
    told = script("import logging, sys; logging.basicConfig(stream=sys.stdout)\n"
                  "import tenon; print(tenon.settings.problems())", TENON_FP32_PRECISON="ieee")
    problem = "TENON_FP32_PRECISON: unknown variable; did you mean TENON_FP32_PRECISION?"
    assert sorted(told.splitlines()) == sorted([f"WARNING:tenon:settings: {problem}", str([problem])])


def test_freeze_and_save(script, tmp_path):
    script("""
import tenon
tenon.settings.freeze()
assert tenon.settings.frozen()
try:
    tenon.settings.set("inference", True)
    raise SystemExit("taken")
except tenon.errors.RefusedError:
    pass
with tenon.settings.scope({"inference": True}):
    assert tenon.settings.get("inference")
""")
    path = tmp_path / "config"
    path.touch()  # without it a warning says that it is not there
    script("import tenon; tenon.settings.save('fp32_precision', 'ieee')", TENON_CONFIG=str(path))
    assert "fp32_precision" in path.read_text()
    assert script("import tenon; print(tenon.settings.get('fp32_precision'), tenon.settings.file())",
                  TENON_CONFIG=str(path)).strip() == f"ieee {path}"


UNDER_WAY = """
import gc
import numpy, tenon
from tenon._library import lib

released, release, inside, attention = [], lib.tn_context_release, [], lib.tn_attention
q = numpy.ones((1, 1, 2, 4), "f4")


def noted_release(address):
    released.append(address)
    release(address)


def noted_attention(context, *given):
    '''As when another thread changes the process's settings, and derives anew, while a call is under way.'''
    before = len(released)
    tenon.settings.set("inference", len(released) % 2 == 0)
    assert tenon.settings.context() != context
    inside.append(released[before:])
    return attention(context, *given)


lib.tn_context_release, lib.tn_attention = noted_release, noted_attention
with tenon.settings.scope({"fp32_precision": "ieee"}):
    for _ in range(4):
        tenon.attention(q, q, q)
assert inside == [[]] * 4, inside  # what a call uses is not given back before its end,
gc.collect()
assert len(released) == 5, released  # and everything is afterwards
"""


def test_contexts_outlive_the_calls_that_use_them(script):
    script(UNDER_WAY)


def test_contexts_under_threads(script):
    """Calls on other threads, in a scope, while the process's settings change under them."""
    script("""
import asyncio, time
import numpy, tenon
q = numpy.random.default_rng(0).standard_normal((1, 4, 128, 64)).astype("f4")


async def main():
    with tenon.settings.scope({"fp32_precision": "ieee"}):
        wanted, stop, turn = tenon.attention(q, q, q), time.time() + 3, 0
        while time.time() < stop:
            jobs = [asyncio.create_task(asyncio.to_thread(tenon.attention, q, q, q)) for _ in range(4)]
            await asyncio.sleep(0)
            tenon.settings.set("inference", bool(turn % 2))
            turn += 1
            for out in await asyncio.gather(*jobs):
                assert numpy.allclose(out, wanted, atol=1e-5)


asyncio.run(main())
""")


def test_scopes_decorate_coroutines_and_no_generators():
    tf32 = settings.scope({"fp32_precision": "tf32"})

    @tf32
    async def asks():
        await asyncio.sleep(0)
        return settings.get("fp32_precision")

    assert asyncio.run(asks()) == "tf32" and settings.get("fp32_precision") == "ieee"

    def yields():
        yield 1

    async def yields_later():
        yield 1

    for generator in (yields, yields_later):
        with pytest.raises(TypeError, match=f"scope cannot decorate the generator .*{generator.__name__}"):
            tf32(generator)


def test_what_is_no_change_is_refused():
    for call, told in ((lambda: settings.set("fp32_precision"), "a key and its value"),
                       (lambda: settings.set({"fp32_precision": "ieee"}, "tf32"), "or a mapping alone"),
                       (lambda: settings.scope("fp32_precision"), "scope: expected keywords or a mapping .*, got str"),
                       (lambda: settings.scope(None), "scope: expected keywords or a mapping .*, got NoneType"),
                       (lambda: settings.resume(3), "resume: expected what current.. gave, got int")):
        with pytest.raises(TypeError, match=told):
            call()


UPSTREAM = {"TORCH_ALLOW_TF32_CUBLAS_OVERRIDE": "1", "FASTVIDEO_ATTENTION_BACKEND": "TORCH_SDPA",
            "TORCH_DISABLE_NATIVE_JIT": "1", "TORCH_DISABLE_NATIVE_AOT": "1", "TORCH_BLAS_PREFER_CUBLASLT": "1",
            "TORCH_CUDNN_V8_API_LRU_CACHE_LIMIT": "77", "TORCH_LINALG_PREFER_CUSOLVER": "0",
            "TORCH_ROCM_FA_PREFER_CK": "yes", "TORCH_HOME": "/tmp", "FASTVIDEO_FA4": "", "HOME": "/tmp"}


def test_variables_of_upstream_are_imported_on_request():
    settings.set("rules", "avoid:library:openblas")
    told = settings.import_upstream(UPSTREAM)
    assert told == {
        "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE": "cuda.matmul.allow_tf32=true",
        "FASTVIDEO_ATTENTION_BACKEND": "attention.backend=require:TORCH_SDPA",
        "TORCH_DISABLE_NATIVE_JIT": "rules=forbid:language:*", "TORCH_DISABLE_NATIVE_AOT": "rules=forbid:language:*",
        "TORCH_BLAS_PREFER_CUBLASLT": "cuda.preferred_blas_library=cublaslt",
        "TORCH_CUDNN_V8_API_LRU_CACHE_LIMIT": "plan.cache_size=77",
        "TORCH_LINALG_PREFER_CUSOLVER": "not taken: 0 changes nothing",
        "TORCH_ROCM_FA_PREFER_CK": "not taken: expected 0 or 1, got 'yes'",
        "TORCH_HOME": "not taken: Tenon has no setting for it", "FASTVIDEO_FA4": "not taken: it is empty"}
    assert settings.get("cuda.matmul.fp32_precision") == "tf32" and settings.get("plan.cache_size") == 77
    assert settings.get("attention.backend").lower() == "require:torch_sdpa"
    settings.import_upstream(UPSTREAM)
    assert settings.get("rules") == "avoid:library:openblas, forbid:language:*"
    assert settings.get("cuda.preferred_linalg_library") == "default"


def test_every_variable_of_upstream_has_a_setting():
    for variable, (key, to) in settings._SWITCHES.items():
        assert settings.import_upstream({variable: "1"}) == {variable: f"{key}={to}"}
        assert settings.origin(key).startswith("process")
        settings.reset()
    for given, told in {"-1": "plan.cache_size=0", "0": "not taken: 0 is no limit there, and plans here have one",
                        "x": "not taken: expected a whole number, got 'x'"}.items():
        assert list(settings.import_upstream({"TORCH_CUDNN_V8_API_LRU_CACHE_LIMIT": given}).values()) == [told]
        settings.reset()


def test_variables_of_upstream_replace_nothing(script):
    settings.set("fp32_precision", "ieee")
    told = settings.import_upstream({"TORCH_ALLOW_TF32_CUBLAS_OVERRIDE": "1"})["TORCH_ALLOW_TF32_CUBLAS_OVERRIDE"]
    assert told == "not taken: cuda.matmul.allow_tf32 has a value already, by process, through fp32_precision"
    with pytest.raises(tenon.errors.NotFoundError, match="FASTVIDEO_ATTENTION_BACKEND: .*FLASH_ATN.*did you mean"):
        settings.import_upstream({"TORCH_BLAS_PREFER_CUBLASLT": "1", "FASTVIDEO_ATTENTION_BACKEND": "FLASH_ATN"})
    assert settings.get("cuda.preferred_blas_library") == "default"
    with settings.scope({"rules": "avoid:library:openblas"}):
        assert settings.import_upstream({"TORCH_DISABLE_NATIVE_JIT": "1"})["TORCH_DISABLE_NATIVE_JIT"].endswith("by scope")
    assert settings.get("rules") == ""
    script("""
from tenon import settings
assert settings.get("plan.cache_size") == 5 and settings.get("attention.backend") == "any"
told = settings.import_upstream()
assert told["TORCH_CUDNN_V8_API_LRU_CACHE_LIMIT"].endswith("environment: TENON_PLAN_CACHE_SIZE"), told
assert settings.get("plan.cache_size") == 5 and settings.get("attention.backend").lower() == "require:flash_attn"
""", TENON_PLAN_CACHE_SIZE="5", TORCH_CUDNN_V8_API_LRU_CACHE_LIMIT="9", FASTVIDEO_ATTENTION_BACKEND="FLASH_ATTN")


def test_scope_by_keywords():
    """The same as the mapping, beside it too."""
    with settings.scope(fp32_precision="ieee", determinism="run-to-run") as made:
        assert settings.get("fp32_precision") == "ieee" and settings.get("determinism") == "run-to-run"
        assert settings.origin("cuda.matmul.allow_tf32") == "scope, through fp32_precision"
    assert settings.get("determinism") == "any"
    with settings.scope({"cuda.matmul.fp32_precision": "tf32"}, fp32_precision="ieee"):
        assert settings.get("cuda.matmul.fp32_precision") == "tf32"
    with pickle.loads(pickle.dumps(made)):
        assert settings.get("determinism") == "run-to-run"

    @settings.scope(determinism="run-to-run")
    def inside():
        return settings.get("determinism")

    assert inside() == "run-to-run"
    with pytest.raises(tenon.errors.NotFoundError, match="did you mean determinism"):
        settings.scope(determinsm="any")
    with pytest.raises(TypeError, match="two values for 'determinism'"):
        settings.scope({"determinism": "any"}, determinism="any")
    with pytest.raises(TypeError, match="keywords or a mapping of keys to values, got list"):
        settings.scope(["determinism"])


def test_keys_that_change_nothing_here_are_logged(caplog):
    """Once each, with the reason that info gives."""
    key = "quantized.engine"
    settings._warned_of.pop(key, None)
    with caplog.at_level("WARNING", "tenon"):
        for _ in range(2):
            settings.set({key: "fbgemm", "determinism": "any"})
    settings.reset(key), settings.reset("determinism")
    assert caplog.messages == [f"{key}: set, but changes nothing here: {settings.info(key).unused_because}"]
