"""What callers give that is wrong: named, and neither cut nor wrapped on its way to the library."""
import numpy
import pytest
import tenon
from tenon import settings
from tenon.platforms import platform

Q = numpy.ones((1, 1, 4, 4), "f4")


class Placed:
    """An array that is where it says."""

    def __init__(self, place):
        self.place = place

    def __dlpack__(self, **_):
        return Q.__dlpack__()

    def __dlpack_device__(self):
        return self.place


INVALID = {
    "^other: expected a number that i32, the dtype of x, holds; got 1.5$": lambda: tenon.add(Q.astype("i4"), 1.5),
    "^other: expected a number that u8, the dtype of x, holds; got 256$": lambda: tenon.add(Q.astype("u1"), 256),
    "^other: expected a number that f32, the dtype of x, holds; got 1j$": lambda: tenon.add(Q, 1j),
    "^other: expected the dtype of x, f32, got i64$": lambda: tenon.add(Q, numpy.asarray(1)),
    "device: expected": lambda: tenon.device(2**40),
    "seed: expected": lambda: tenon.seed_everything(2**70),
    "seed: expected 0 to": lambda: tenon.seed_everything(-1),
    r"device: expected a str without NUL, got 'cpu\\x00junk'": lambda: tenon.device("cpu\0junk"),
    "the value of fp32_precision": lambda: settings.set("fp32_precision", "ieee\0junk"),
    "key: ": lambda: settings.get("fp32_precision\0junk"),
    "the value of inference": lambda: settings.scope({"inference": "true\0junk"}),
    "problem: ": lambda: tenon.explain("matmul:f32:m=8,n=8,k=8@cpu\0junk"),
    "name: ": lambda: tenon.library("openblas\0junk"),
    "path: ": lambda: tenon.describe("devices\0junk"),
    "first: ": lambda: tenon.lock.diff("one\0junk", "other"),
    "a size: expected": lambda: tenon.empty((2**70,), "f32", "cpu"),
    "raw: expected": lambda: tenon.Stream.wrap("cpu", 2**70),
    r"name: expected a str without NUL, got 'cpu\\x00junk'": lambda: platform("cpu\0junk"),
    "quant: ": lambda: platform("cpu").verify_quantization("fp8\0junk"),
    "model_arch: ": lambda: platform("cpu").verify_model_arch("Wan\0junk"),
    "selected_backend: ": lambda: platform("cpu").get_attn_backend_cls("FLASH_ATTN\0junk", 64, "f32"),
    "head_size: expected": lambda: platform("cpu").get_attn_backend_cls(None, 2**70, "f32"),
    "device_id: expected": lambda: platform("cpu").get_device_name(2**40),
    "^b: no dtype for NumPy's object": lambda: tenon.matmul(Q, Q.astype(object)),
    "^x: an array of >f4 is in another byte order": lambda: tenon.softmax(Q.astype(">f4")),
    "no kind \"ngee\"; did you mean 'neg'. There are: neg, abs": lambda: tenon.unary("ngee", Q),
    "dtype \"float\" is of 32 bits in some libraries and of 64 in others": lambda: tenon.cast(Q, "float"),
    "dtype \"torch.int\" is of 32": lambda: tenon.cast(Q, "torch.int"),
    "no dtype \"any.you.like.f64\"": lambda: tenon.cast(Q, "any.you.like.f64"),
    "in another byte order": lambda: tenon.cast(Q, numpy.dtype(">f8")),
    "DLPack's device: expected -2147483648 to": lambda: tenon.softmax(Placed((2, 1 << 40))),
    "backend: ": lambda: tenon.attention(*[numpy.ones((1, 1, 2, 4), "f4")] * 3, backend="math\0junk"),
}
TYPES = {
    "key: expected a str, got NoneType": lambda: settings.get(None),
    "key: expected a str, got int": lambda: settings.set(5, 5),
    "key: expected a str, got float": lambda: settings.reset(1.5),
    "event: expected Event, got NoneType": lambda: tenon.Stream("cpu").wait_event(None),
    "other: expected Stream, got Event": lambda: tenon.Stream("cpu").wait_stream(tenon.Event(on="cpu")),
    "stream: expected Stream, got int": lambda: tenon.Event(on="cpu").record(1),
    "stop: expected Event, got NoneType": lambda: tenon.Event(on="cpu").elapsed_time(None),
    "name: expected a str, got NoneType": lambda: platform(None),
    "name: expected a str, got int": lambda: platform(5),
    "quant: expected a str, got NoneType": lambda: platform("cpu").verify_quantization(None),
    "model_arch: expected a str, got bytes": lambda: platform("cpu").verify_model_arch(b"Wan"),
    "selected_backend: expected a str, got int": lambda: platform("cpu").get_attn_backend_cls(1, 64, "f32"),
    "head_size: expected a whole number, got str": lambda: platform("cpu").get_attn_backend_cls(None, "64", "f32"),
    "device_id: expected a whole number, got str": lambda: platform("cpu").get_device_name("0"),
    "value: expected a number, got str": lambda: tenon.fill(numpy.ones(3, "f4"), "x"),
    "value: expected a number, got NoneType": lambda: tenon.fill(numpy.ones(3, "f4"), None),
    "value: expected a number, got bytes": lambda: tenon.fill(numpy.ones(3, "f4"), b"1"),
    "value: expected a number, got list": lambda: tenon.fill(numpy.ones(3, "f4"), [1.0]),
    "seed: expected a whole number, got str": lambda: tenon.seed_everything("x"),
    "seed: expected a whole number, got float": lambda: tenon.seed_everything(1.5),
    **{told: lambda options=options: tenon.attention(Q, Q, Q, **options) for told, options in {
        r"window: expected two whole numbers, \(left, right\), got 3": {"window": 3},
        r"window: expected two whole numbers, \(left, right\), got 'ab'": {"window": "ab"},
        "window: expected a whole number, got float": {"window": (1.5, 2)},
        "layout: expected a str, got NoneType": {"layout": None}, "layout: expected a str, got list": {"layout": ["bhld"]},
        "backend: expected a str, got int": {"backend": 3}, "scale: expected a number, got str": {"scale": "x"},
        "softcap: expected a number, got NoneType": {"softcap": None}, "max_keys: expected a whole": {"max_keys": "x"},
        "seed: expected a whole number, got dict": {"seed": {}}, r"^lse: expected an array \(with .*, got int;": {"lse": 1},
        "'is_causal'; that is causal here": {"is_causal": True}, "causal: expected True or False, got 1": {"causal": 1},
        "'dropout_p'; that is dropout here": {"dropout_p": 0.5},
        "'enable_gqa'; that is fewer heads of k and v": {"enable_gqa": True}}.items()},
    "activation: expected a str, got list": lambda: tenon.matmul(Q, Q, activation=["relu"]),
    "alpha: expected a number, got str": lambda: tenon.matmul(Q, Q, alpha="x"),
    "kind: expected a str, got ndarray": lambda: tenon.unary(Q, "neg"),
    "epsilon: expected a number, got str": lambda: tenon.layer_norm(Q, epsilon="x"),
    "epsilon: expected a real number, got 1j": lambda: tenon.layer_norm(Q, epsilon=1j),
    "size: expected a whole number, got str": lambda: tenon.rotary(Q, Q, Q, size="x"),
    "order: expected the numbers of all dimensions, got int": lambda: tenon.permute(Q, 3),
    "order: expected a whole number, got str": lambda: tenon.permute(Q, "abcd"),
    "into: expected a tuple of three arrays, got 1 of them": lambda: tenon.attention_backward(*[Q] * 6, into=(None,)),
    "into: expected a tuple of three arrays, got ndarray": lambda: tenon.attention_backward(*[Q] * 6, into=Q),
    r"^into: expected an array \(with .*, got str;":
        lambda: tenon.attention_backward(*[Q] * 5, Q[..., 0], into=(None, "x", None)),
    r"^b: expected an array \(with .*, got str;": lambda: tenon.matmul(Q, "x"),
    r"^bias: expected an array \(with .*, got int;": lambda: tenon.matmul(Q, Q, bias=3),
    r"^other: expected an array \(with .*, got list; numpy.asarray\(values, dtype\)": lambda: tenon.binary("add", Q, [1.0]),
    r"^out: expected an array \(with .*, got int;": lambda: tenon.cast(Q, "f64", out=3),
    r"^weight: expected an array .* got list": lambda: tenon.rms_norm(Q, [1.0]),
    r"^source: expected an array \(with .*, got int;": lambda: tenon.copy(3, Q),
    r"^target: expected an array \(with .*, got int;": lambda: tenon.copy(Q, 3),
    r"^a: expected an array \(with .*, got NoneType;": lambda: tenon.matmul(None, Q),
    r"^k: expected an array .* got NoneType": lambda: tenon.attention(Q, None, Q),
    "device: expected a name, a number or a device, got None": lambda: tenon.device(None),
    "device: expected a name, a number or a device, got True": lambda: tenon.device(True),
    "enable_timing: expected True or False, got 'no'": lambda: tenon.Event(enable_timing="no"),
    "priority: expected a str, got list": lambda: tenon.Stream("cpu", priority=[]),
    "shape: expected a whole number, got float": lambda: tenon.empty(2.0),
    "problems: expected several texts, got one str": lambda: tenon.lock.write("lock", "matmul:f32:m=8,n=8,k=8@cpu"),
    "got other arguments too": lambda: tenon.explain("matmul:f32:m=8,n=8,k=8@cpu", Q),
    "expected a problem's text alone": lambda: tenon.prepare("matmul:f32:m=8,n=8,k=8@cpu", foo=1),
    r"__dlpack_device__: expected two numbers, got \(1,\)": lambda: tenon.softmax(Placed((1,))),
    "__dlpack_device__: expected two numbers, got 1": lambda: tenon.softmax(Placed(1)),
    "DLPack's type of device: expected a whole number, got str": lambda: tenon.softmax(Placed(("a", 0))),
    r"^scale_b: expected an array \(with .*, got str;": lambda: tenon.matmul(Q, Q, scale_b="x"),
}


@pytest.mark.parametrize("told", INVALID)
def test_invalid(told):
    with pytest.raises(tenon.errors.InvalidArgumentError, match=told):
        INVALID[told]()


@pytest.mark.parametrize("told", TYPES)
def test_types(told):
    with pytest.raises(TypeError, match=told):
        TYPES[told]()


class Counted:
    """An array that counts how often it is asked for its memory."""

    def __init__(self):
        self.array, self.asked = numpy.ones((1, 1, 4, 4), "f4"), 0

    def __dlpack__(self, **_):
        self.asked += 1
        return self.array.__dlpack__()

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


@pytest.mark.parametrize("name", ["softmax", "layer_norm", "rms_norm"])
def test_an_operand_is_asked_once(name):
    x = Counted()
    for call in (lambda: getattr(tenon, name)(x), lambda: tenon.cast(x, "f64"), lambda: tenon.reduce("sum", x),
                 lambda: tenon.unary("neg", x),
                 lambda: tenon.permute(x, (3, 2, 1, 0)), lambda: tenon.binary("add", x, Q),
                 lambda: tenon.matmul(x, Q, alpha=2.0), lambda: tenon.attention(x, Q, Q, lse=True),
                 lambda: tenon.matmul(x, Q[0, 0, 0])):
        before = x.asked
        call()
        assert x.asked == before + 1


def test_fill_is_explained():
    assert tenon.explain(tenon.fill, Q.copy(), 1.0).problem.startswith("fill:f32:shape=1x1x4x4,value=1")


def test_bounds_are_taken():
    tenon.seed_everything(2**64 - 1)
    for one in (1, True, 1.5, 2j, numpy.float32(3), numpy.array(4.0)):
        assert (tenon.fill(numpy.zeros(2, "c8"), one) == one).all()
    tenon.seed_everything(numpy.uint64(7))
    assert tenon.device(numpy.str_("cpu")).id == "cpu:0"


class Said:
    """An array by what it says of itself."""

    memory = numpy.ones(4, "f4")

    def __init__(self, *left_out, **said):
        facts = dict(version=3, typestr="<f4", shape=(4,), data=(self.memory.ctypes.data, False))
        self.__array_interface__ = {name: value for name, value in {**facts, **said}.items() if name not in left_out}


def test_array_interface():
    assert numpy.asarray(tenon.unary("neg", Said())).tolist() == [-1] * 4
    for name in ("typestr", "shape", "data"):
        for wrong, found in ((Said(name), "NoneType"), (Said(**{name: 7}), "int")):
            with pytest.raises(TypeError, match=f"__array_interface__ of Said: {name}: expected a .*, got {found}"):
                tenon.unary("neg", wrong)
    with pytest.raises(tenon.errors.InvalidArgumentError, match="a size or stride: expected"):
        tenon.unary("neg", Said(shape=(2**70,)))
    with pytest.raises(tenon.errors.InvalidArgumentError, match="a size or stride: expected"):
        tenon.unary("neg", Said(strides=(2**70,)))
    with pytest.raises(TypeError, match="a size or stride: expected a whole number, got str"):
        tenon.unary("neg", Said(shape=("x",)))


@pytest.mark.parametrize("made", [lambda: tenon.Stream("cpu"), lambda: tenon.device("cpu")])
def test_ends_without_a_beginning(made):
    one = made()
    with pytest.raises(RuntimeError, match="not entered"):
        one.__exit__(None, None, None)
    with one:
        pass
    with pytest.raises(RuntimeError, match="not entered"):
        one.__exit__(None, None, None)


def test_operands_have_their_names_here():
    with pytest.raises(tenon.errors.UnsupportedError, match="^x: expected f64, .*got i32"):
        tenon.softmax(Q.astype("i4"))
    with pytest.raises(tenon.errors.Error, match="^prod: x: expected integers"):
        tenon.reduce("prod", Q > 0)
    with pytest.raises(tenon.errors.UnsupportedError, match="^a: expected f64, .*got u8"):
        tenon.matmul(Q.astype("u1"), Q.astype("u1"))


def test_reductions_of_truth_values():
    seen = numpy.array([[True, False], [True, True]])
    assert tenon.reduce("max", seen, 0).tolist() == [True, True] and tenon.reduce("min", seen, 0).dtype == bool
    assert tenon.reduce("min", seen, 0).tolist() == [True, False] and tenon.reduce("sum", seen).item() == 3
    with pytest.raises(tenon.errors.InvalidArgumentError, match=r"axes: expected .* each once, got \(0, -2\)"):
        tenon.reduce("sum", seen, (0, -2))


def test_words_of_dtypes():
    assert tenon.empty(numpy.int64(3), "numpy.float64", "cpu").dtype == "f64" and tenon.empty(3, "half").shape == (3,)
    assert tenon.empty((), float, "cpu").dtype == "f64" and tenon.empty([2], "torch.bfloat16", "cpu").dtype == "bf16"


def test_packed_attention_runs_no_other_operator():
    """Rows outside of all sequences are set without an operator, which rules and plan.only_prepared would concern."""
    packed, starts = numpy.ones((8, 4, 16), "f4"), numpy.array([2, 8], "i4")
    options = dict(starts_q=starts, starts_k=starts, layout="blhd", lse=True, max_queries=6, max_keys=6)
    rule = "require:kernel:cpu.attention.ref"
    with tenon.settings.scope({"rules": rule}):
        tenon.prepare(tenon.attention, packed, packed, packed, **options)
        with tenon.settings.scope({"plan.only_prepared": True}):
            for given in (packed, memoryview(packed)):
                results = tenon.attention(given, given, given, **options)
                out, lse = map(numpy.asarray, results)
                assert (out[2:] == 1).all() and (out[:2] == 0).all()
                assert numpy.isfinite(lse[:, 2:]).all() and (lse[:, :2] == -numpy.inf).all()
            with pytest.raises(tenon.errors.Error, match="require:cpu.attention.ref"):  # as any operator
                tenon.fill(packed, 1.0)
    for dtype, wide in (("f8", "f8"), ("f2", "f4")):
        out, lse = tenon.attention(*(packed.astype(dtype),) * 3, **options)
        assert out.dtype == dtype and lse.dtype == wide and (out[:2] == 0).all() and (lse[:, :2] == -numpy.inf).all()


def test_samples_of_packed_attention_skip_rows_of_no_sequence():
    """debug.sample holds calls against the reference, which leaves such rows as they are too."""
    packed, starts = numpy.ones((8, 4, 16), "f4"), numpy.array([2, 7], "i4")
    with tenon.settings.scope({"debug.sample": 1}):
        for _ in range(4):
            out = numpy.full((8, 4, 16), 7, "f4")
            tenon.attention(packed, packed, packed, starts_q=starts, starts_k=starts, layout="blhd", out=out)
            assert (out[2:7] == 1).all() and (out[:2] == 7).all() and (out[7:] == 7).all()


def test_rows_of_no_sequence_are_not_what_was_in_memory():
    packed, starts = numpy.ones((8, 4, 16), "f4"), numpy.array([2, 6], "i4")
    for _ in range(3):
        used = [numpy.full((8, 4, 16), numpy.nan, "f4") for _ in range(8)]  # what is free next is no zeros
        del used
        out, lse = tenon.attention(packed, packed, packed, starts_q=starts, starts_k=starts, layout="blhd", lse=True)
        assert (out[2:6] == 1).all() and (out[:2] == 0).all() and (out[6:] == 0).all()
        assert numpy.isfinite(lse[:, 2:6]).all() and (lse[:, [0, 1, 6, 7]] == -numpy.inf).all()
    given = numpy.full((8, 4, 16), 7, "f4")
    tenon.attention(packed, packed, packed, starts_q=starts, starts_k=starts, layout="blhd", out=given)
    assert (given[2:6] == 1).all() and (given[:2] == 7).all() and (given[6:] == 7).all()


CONSTRUCTORS = {
    "tenon.device": lambda: type(tenon.device("cpu"))("cpu"),
    "tenon.explain": lambda: tenon.Decision(12345),
    "tenon.empty": lambda: tenon.Tensor((2, 2)),
    "tenon.matmul_pack": lambda: tenon.Packed(numpy.ones((2, 2)), numpy.ones((2, 2)), {}),
    "tenon.library": lambda: type(tenon.library("cpu"))("cpu"),
    "tenon.lock.check": lambda: tenon.lock.Report("model.lock"),
    "tenon.settings.info": lambda: tenon.settings.Setting("determinism"),
    "tenon.platforms.platform": lambda: tenon.platforms.Platform("cpu"),
}


@pytest.mark.parametrize("instead", CONSTRUCTORS)
def test_classes_without_a_constructor_name_what_returns_them(instead):
    """No number and no text is read as an address."""
    with pytest.raises(TypeError, match=f"; use {instead}"):
        CONSTRUCTORS[instead]()
