"""What callers give that is wrong: named, and neither cut nor wrapped on its way to the library."""
import numpy
import pytest
import tenon
from tenon import settings
from tenon.platforms import platform

INVALID = {
    "device needs": lambda: tenon.device(2**40),
    "seed needs": lambda: tenon.seed_everything(2**70),
    "seed needs 0 to": lambda: tenon.seed_everything(-1),
    r"device: 'cpu\\x00junk' has a NUL": lambda: tenon.device("cpu\0junk"),
    "the value of fp32_precision": lambda: settings.set("fp32_precision", "ieee\0junk"),
    "key: ": lambda: settings.get("fp32_precision\0junk"),
    "the value of inference": lambda: settings.scope({"inference": "true\0junk"}),
    "problem: ": lambda: tenon.explain("matmul:f32:m=8,n=8,k=8@cpu\0junk"),
    "name: ": lambda: tenon.library("openblas\0junk"),
    "path: ": lambda: tenon.describe("devices\0junk"),
    "first: ": lambda: tenon.lock.diff("one\0junk", "other"),
    "a size needs": lambda: tenon.empty((2**70,), "f32", "cpu"),
    "raw needs": lambda: tenon.Stream.wrap("cpu", 2**70),
    r"name: 'cpu\\x00junk' has a NUL": lambda: platform("cpu\0junk"),
    "quant: ": lambda: platform("cpu").verify_quantization("fp8\0junk"),
    "model_arch: ": lambda: platform("cpu").verify_model_arch("Wan\0junk"),
    "selected_backend: ": lambda: platform("cpu").get_attn_backend_cls("FLASH_ATTN\0junk", 64, "f32"),
    "head_size needs": lambda: platform("cpu").get_attn_backend_cls(None, 2**70, "f32"),
    "device_id needs": lambda: platform("cpu").get_device_name(2**40),
    "backend: ": lambda: tenon.attention(*[numpy.ones((1, 1, 2, 4), "f4")] * 3, backend="math\0junk"),
}
TYPES = {
    "key needs a str, found NoneType": lambda: settings.get(None),
    "key needs a str, found int": lambda: settings.set(5, 5),
    "key needs a str, found float": lambda: settings.reset(1.5),
    "event needs Event, found NoneType": lambda: tenon.Stream("cpu").wait_event(None),
    "other needs Stream, found Event": lambda: tenon.Stream("cpu").wait_stream(tenon.Event(on="cpu")),
    "stream needs Stream, found int": lambda: tenon.Event(on="cpu").record(1),
    "stop needs Event, found NoneType": lambda: tenon.Event(on="cpu").elapsed_time(None),
    "name needs a str, found NoneType": lambda: platform(None),
    "name needs a str, found int": lambda: platform(5),
    "quant needs a str, found NoneType": lambda: platform("cpu").verify_quantization(None),
    "model_arch needs a str, found bytes": lambda: platform("cpu").verify_model_arch(b"Wan"),
    "selected_backend needs a str, found int": lambda: platform("cpu").get_attn_backend_cls(1, 64, "f32"),
    "head_size needs a whole number, found str": lambda: platform("cpu").get_attn_backend_cls(None, "64", "f32"),
    "device_id needs a whole number, found str": lambda: platform("cpu").get_device_name("0"),
    "value needs a number, found str": lambda: tenon.fill(numpy.ones(3, "f4"), "x"),
    "value needs a number, found NoneType": lambda: tenon.fill(numpy.ones(3, "f4"), None),
    "value needs a number, found bytes": lambda: tenon.fill(numpy.ones(3, "f4"), b"1"),
    "value needs a number, found list": lambda: tenon.fill(numpy.ones(3, "f4"), [1.0]),
    "seed needs a whole number, found str": lambda: tenon.seed_everything("x"),
    "seed needs a whole number, found float": lambda: tenon.seed_everything(1.5),
}


@pytest.mark.parametrize("told", INVALID)
def test_invalid(told):
    with pytest.raises(tenon.errors.InvalidArgumentError, match=told):
        INVALID[told]()


@pytest.mark.parametrize("told", TYPES)
def test_types(told):
    with pytest.raises(TypeError, match=told):
        TYPES[told]()


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
            with pytest.raises(TypeError, match=f"__array_interface__ of Said: {name} needs a .*, found {found}"):
                tenon.unary("neg", wrong)
    with pytest.raises(tenon.errors.InvalidArgumentError, match="a size or stride needs"):
        tenon.unary("neg", Said(shape=(2**70,)))
    with pytest.raises(tenon.errors.InvalidArgumentError, match="a size or stride needs"):
        tenon.unary("neg", Said(strides=(2**70,)))
    with pytest.raises(TypeError, match="a size or stride needs a whole number, found str"):
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
