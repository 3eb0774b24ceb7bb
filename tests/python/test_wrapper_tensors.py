"""Subclasses of PyTorch's tensors: those with memory of their own work, those that wrap other tensors are unwrapped
where that is exact, and refused otherwise. `data_ptr()` of a wrapper is no address."""
import pytest
import tenon

# A stand-in for PyTorch, for machines without it: the attributes that the package reads, over NumPy's memory. A
# wrapper's data_ptr() is its offset in bytes, as PyTorch's is; a call that trusted it would end the process.
STAND_IN = '''
import sys, types
import numpy

def no_dispatch(*_):
    raise AssertionError

class Device:
    type, index = "cpu", None

class Tensor:
    __torch_dispatch__ = no_dispatch
    requires_grad = is_nested = False
    layout, dtype, device = "strided", "float32", Device()
    def __init__(self, array):
        self.array, self.shape = array, array.shape
    def stride(self):
        return tuple(step // 4 for step in self.array.strides)
    def data_ptr(self):
        return self.array.ctypes.data
    def numel(self):
        return self.array.size
    storage_offset = lambda self: 0
    element_size = lambda self: 4
    def untyped_storage(self):
        return types.SimpleNamespace(nbytes=lambda: self.array.nbytes)
    is_conj = is_neg = lambda self: False
    is_inference = lambda self: False

Tensor.__module__ = "torch"

class Parameter(Tensor):
    pass

class Plain(Tensor):
    """Overrides nothing that changes where elements are."""
    @classmethod
    def __torch_function__(cls, *_):
        raise AssertionError

class Wrapper(Tensor):
    def __torch_dispatch__(self, *_):
        raise AssertionError
    def data_ptr(self):
        return 16

class DTensor(Wrapper):
    pass

class FlattenedOnly(Tensor):
    def __tensor_flatten__(self):
        raise AssertionError
    def data_ptr(self):
        return 16

class Freed(Tensor):
    def data_ptr(self):
        return 0

class FreedSlice(Tensor):
    storage_offset = lambda self: 12
    def data_ptr(self):
        return 48

class Shrunk(Tensor):
    storage_offset = lambda self: 1

class AsyncCollectiveTensor(Wrapper):
    waits = 0
    def trigger_wait(self):
        AsyncCollectiveTensor.waits += 1
        return Tensor(self.array)

class FakeTensor(Wrapper):
    pass

torch = types.ModuleType("torch")
torch.Tensor, torch.strided, torch.float32 = Tensor, "strided", "float32"
torch.nn = types.SimpleNamespace(Parameter=Parameter)
torch.version = types.SimpleNamespace(hip=None)
torch._C = types.SimpleNamespace()
torch.is_grad_enabled = lambda: False
torch.autograd = types.SimpleNamespace(forward_ad=types.SimpleNamespace(_current_level=-1),
                                       graph=types.SimpleNamespace(increment_version=lambda x: None))
torch._subclasses = types.SimpleNamespace(FakeTensor=FakeTensor)
torch.empty = lambda shape, dtype, device: Tensor(numpy.empty(shape, "f4"))
Tensor.new_empty_strided = None
sys.modules["torch"] = torch

import tenon
x = numpy.random.default_rng(1).standard_normal((3, 4), "f4")
wanted = tenon.softmax(x)

def refused(cls, *words):
    for array in (cls(x), [Tensor(x)]):
        call = (lambda: tenon.softmax(array)) if array.__class__ is cls else (lambda: tenon.softmax(array[0], out=cls(x)))
        try:
            call()
        except tenon.errors.InvalidArgumentError as error:
            assert all(word in error.message for word in words), error.message
        else:
            raise SystemExit(cls.__name__ + " was taken")
'''


def test_stand_in_subclasses_with_memory(script):
    script(STAND_IN + """
for cls in (Tensor, Parameter, Plain):
    assert (tenon.softmax(cls(x)).array == wanted).all(), cls
    assert (tenon.softmax(x, out=cls(x.copy())).array == wanted).all(), cls
""")


def test_stand_in_wrappers_are_refused(script):
    script(STAND_IN + """
refused(Wrapper, "got a Wrapper", "__torch_dispatch__", "give the tensor inside it")
refused(DTensor, "got a DTensor", "give x.to_local()")
refused(FlattenedOnly, "got a FlattenedOnly")
refused(FakeTensor, "a fake tensor has no numbers")
refused(Freed, "for the 12 elements of a tensor, got one of 0 bytes")
refused(FreedSlice, "for the 12 elements of a tensor, got one of 0 bytes")
refused(Shrunk, "expected a storage of at least 52 bytes for the 12 elements of a tensor, got one of 48 bytes")
""")


def test_stand_in_of_a_collective_is_waited_for(script):
    script(STAND_IN + """
collectives = types.ModuleType("torch.distributed._functional_collectives")
refused(AsyncCollectiveTensor, "got a AsyncCollectiveTensor")       # PyTorch's module is not there
collectives.AsyncCollectiveTensor = AsyncCollectiveTensor
sys.modules[collectives.__name__] = collectives
assert (tenon.softmax(AsyncCollectiveTensor(x)).array == wanted).all() and AsyncCollectiveTensor.waits == 1
class Derived(AsyncCollectiveTensor):
    pass
refused(Derived, "got a Derived")
AsyncCollectiveTensor.requires_grad, torch.is_grad_enabled = True, lambda: True
refused(AsyncCollectiveTensor, "requires gradients")
""")


@pytest.fixture
def torch():
    module = pytest.importorskip("torch", reason="PyTorch is not here")
    if not module.distributed.is_available():
        pytest.skip("this PyTorch has no torch.distributed")
    return module


COLLECTIVE = """
import warnings
warnings.simplefilter("ignore")
import torch, tenon
from torch.distributed._functional_collectives import AsyncCollectiveTensor
"""


def test_collectives(torch, script):
    """In a process of its own, as a failure is a segmentation fault."""
    script(COLLECTIVE + """
x = torch.randn(2, 3, 4)
for given, plain in ((AsyncCollectiveTensor(x), x), (AsyncCollectiveTensor(x)[1], x[1])):
    assert type(given) is AsyncCollectiveTensor
    out = tenon.softmax(given)
    assert type(out) is torch.Tensor
    torch.testing.assert_close(out, plain.softmax(-1))
    torch.testing.assert_close(tenon.matmul(given, plain.mT.contiguous()), plain @ plain.mT)
    written = AsyncCollectiveTensor(torch.zeros(3, *plain.shape))[1]
    assert tenon.softmax(plain, out=written) is written
    torch.testing.assert_close(written.trigger_wait(), plain.softmax(-1))
from tenon.integrations.torch import scaled_dot_product_attention
from tenon.platforms.attention import FLASH_ATTN
q = torch.randn(3, 2, 4, 5, 16)
wrapped = AsyncCollectiveTensor(q)
wanted = torch.nn.functional.scaled_dot_product_attention(q[1], q[2], q[0])
torch.testing.assert_close(tenon.attention(wrapped[1], wrapped[2], wrapped[0]), wanted, atol=2e-5, rtol=1e-3)
torch.testing.assert_close(scaled_dot_product_attention(wrapped[1], wrapped[2], wrapped[0]), wanted, atol=2e-5, rtol=1e-3)
layer = FLASH_ATTN.get_impl_cls()(4, 16)
given, plain = wrapped.transpose(2, 3), q.transpose(2, 3)
torch.testing.assert_close(layer.forward(given[1], given[2], given[0]), layer.forward(plain[1], plain[2], plain[0]))
""")


def test_distributed_tensors_are_refused(torch, script):
    script(COLLECTIVE + """
import torch.distributed as dist
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.distributed.tensor import DTensor, Replicate
dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=2)
mesh = dist.device_mesh.init_device_mesh("cpu", (2,))
x = torch.randn(2, 3, 4)
given = DTensor.from_local(x, mesh, [Replicate()], run_check=False)
for one in (given, given[1]):
    for call in (lambda: tenon.softmax(one), lambda: tenon.softmax(x, out=one), lambda: tenon.copy(one, x),
                 lambda: tenon.matmul(x[0], one), lambda: tenon.explain(tenon.softmax, one)):
        try:
            call()
        except tenon.errors.InvalidArgumentError as error:
            assert "got a DTensor" in error.message and "x.to_local()" in error.message, error.message
        else:
            raise SystemExit("a DTensor was taken")
torch.testing.assert_close(tenon.softmax(given[1].to_local()), x[1].softmax(-1))
from tenon.platforms.attention import FLASH_ATTN
q = torch.randn(2, 5, 4, 16)
one = DTensor.from_local(torch.randn(3, 2, 5, 4, 16), mesh, [Replicate()], run_check=False)[1]
try:
    FLASH_ATTN.get_impl_cls()(4, 16).forward(q, one, one)
except tenon.errors.InvalidArgumentError as error:
    assert "got a DTensor" in error.message, error.message
else:
    raise SystemExit("a DTensor was taken")
""")


EMPTY = """
freed = torch.randn(2, 3, 4)
first, second = freed[0], freed[1]
freed.untyped_storage().resize_(0)
zero, functional = torch._efficientzerotensor((2, 3, 4)), torch._to_functional_tensor(torch.randn(2, 3, 4))
other = torch.ones(4, 2)
for one in (first, second, zero[0], zero[1], functional[0], functional[1]):
    for call in (lambda: tenon.softmax(one), lambda: tenon.matmul(one, other), lambda: tenon.matmul(torch.ones(2, 3), one)):
        try:
            call()
        except tenon.errors.InvalidArgumentError as error:
            assert "for the 12 elements of a tensor, got one of 0 bytes" in error.message, error.message
        else:
            raise SystemExit("a tensor without storage was taken")
shrunk = torch.randn(6, 4)
lower, upper, wide = shrunk[3:], shrunk[:3], shrunk.t()
shrunk.untyped_storage().resize_(4 * 23)
for one in (lower, shrunk, wide):
    for call in (lambda: tenon.softmax(one), lambda: tenon.matmul(one, other), lambda: tenon.matmul(other, other.mT, out=one)):
        try:
            call()
        except tenon.errors.InvalidArgumentError as error:
            assert "expected a storage of at least 96 bytes" in error.message and "got one of 92 bytes" in error.message, error.message
        else:
            raise SystemExit("a tensor with too little storage was taken")
torch.testing.assert_close(tenon.matmul(upper, other), upper @ other)
assert tenon.softmax(torch.empty(2, 0, 4)[1]).shape == (0, 4)
torch.testing.assert_close(tenon.matmul(torch.ones(2, 3, 4)[1], other), torch.full((3, 2), 4.0))
"""


def test_tensors_without_storage(torch, script):
    """Their data_ptr() is their offset."""
    script("import torch, tenon" + EMPTY)


def test_tensors_without_storage_by_the_extension(torch, script, built):
    script(f"import torch, tenon; tenon.__path__.append({built!r})" + EMPTY + "from tenon import operators\n"
           "assert operators._fast is not None and operators._fast.served() > 0")


def test_other_wrappers(torch):
    from torch.testing._internal.two_tensor import TwoTensor

    class Plain(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return super().__torch_function__(func, types, args, kwargs or {})

    x = torch.randn(3, 4)
    both = TwoTensor(x, x.clone())
    with pytest.raises(tenon.errors.InvalidArgumentError, match="x: expected .* memory of its own, got a TwoTensor"):
        tenon.softmax(both)
    with pytest.raises(tenon.errors.UnavailableError, match='tensors on "meta"'):
        tenon.softmax(torch.empty(3, 4, device="meta"))
    for given in (x.as_subclass(Plain), torch.nn.Parameter(x, False), torch.nn.Buffer(x)):
        torch.testing.assert_close(tenon.softmax(given).as_subclass(torch.Tensor), x.softmax(-1))
