"""Arrays of other libraries as tensors of Tenon's, without a copy, and results in the caller's library.

A Kind knows one library's arrays: how to see one as a tn_tensor, and how to make an empty one like it.
Which kind a type is of is found once and remembered. A view keeps what it shows alive as `keep` and has
its shape as `dims`; off the host, where libraries have streams, it has its kind and its array as `source`.
"""

from __future__ import annotations

import os
import struct
import sys
from ctypes import CDLL, addressof, byref, c_char, c_int32, c_int64, c_uint64, c_void_p, cast

from . import _abi, _buffers, _dlpack, _dtypes, _given, _tensor, errors
from ._handles import call, take
from ._library import lib
from ._packing import Packer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

CPU, CUDA, SPARE_PLACE = 1, 2, 12
READ_ONLY = 1
JAX = ("jax", "jaxlib")
MOST_LAYOUTS = 4096

_layouts: dict[tuple[Any, ...], tuple[int, int, Any]] = {}
_write_tensor = Packer(_abi.Tensor, "data", "flags").into


def checked_sizes(sizes: Any) -> tuple[int, ...]:
    """Sizes or strides that a library tells by numbers of Python's."""
    return tuple(_given.number("a size or stride", size, *_given.INT64) for size in sizes)


def make_layout(shape: tuple[int, ...], strides: tuple[int, ...], unit: int) -> tuple[int, int, Any]:
    """Shape and strides as the library reads them: two addresses and what keeps them. `unit` is what
    strides are counted in, in elements' bytes."""
    if any(stride % unit for stride in strides):
        raise errors.invalid(
            f"strides {tuple(strides)} are no whole numbers of elements of {unit} bytes; copy first")
    numbers = [*shape, *(stride // unit for stride in strides)] or [0]
    room = (c_int64 * len(numbers))(*numbers)
    base = addressof(room)
    laid = (base, base + 8 * len(shape), room)
    if len(_layouts) >= MOST_LAYOUTS:
        _layouts.clear()
    _layouts[shape, strides, unit] = laid
    return laid


def make_tensor(address: int, shape: tuple[int, ...], strides: tuple[int, ...], unit: int, number: int, keep: Any,
                flags: int = 0, device_type: int = CPU, device_id: int = 0) -> _abi.Tensor:
    """A view of memory that `keep` keeps alive."""
    laid = _layouts.get((shape, strides, unit)) or make_layout(shape, strides, unit)
    tensor = _abi.Tensor()
    try:
        _write_tensor(tensor, 0, address, device_type, device_id, len(shape), number, laid[0], laid[1], 0,
                      0, flags)
    except struct.error:
        raise errors.invalid(f"{address!r} is no address, or {device_id!r} no device") from None
    tensor.keep = (keep, laid)
    tensor.dims = shape
    return tensor


_streams: dict[tuple[str, int], Any] = {}


def wrapped_stream(device: str, raw: int) -> int:
    """A stream that another library has, by its vendor's handle; 0 is the default one. Wrapped once."""
    key = (device, raw)
    if key not in _streams:
        from ._devices import Stream
        from ._devices import device as find

        on = find(device)
        _streams[key] = (Stream.wrap(on, raw) if raw
                         else Stream._lent(lib.tn_stream_default(on.address)))
    return int(_streams[key].address)


SPARE_NUMBERS: dict[int, int] = {}  # DLPack's number of a device of PyTorch's spare type, by its index there

PLATFORMS = {2: "cuda", 10: "rocm"}  # of DLPack's types of devices, those with streams of the vendor's


def stream_address(device_type: int, device_id: int, raw: int) -> int:
    """The same of the device that DLPack numbers so: what the extension asks once for each stream."""
    return wrapped_stream(f"{PLATFORMS[device_type]}:{device_id}", raw)


class Kind:
    """What the kinds have in common."""

    waits = False  # off the host, whether a call must have run before its arrays can be touched again

    def view(self, array: Any) -> _abi.Tensor:
        """The array as a tensor; errors name what of it cannot be one."""
        raise NotImplementedError

    def view_to_write(self, array: Any) -> _abi.Tensor:
        """The same of one that the caller wants written to: read-only where its library's never change."""
        return self.view(array)

    def empty(self, like: Any, seen: _abi.Tensor, shape: tuple[int, ...], word: str) -> Any:
        """An array of this library's, not initialised, on the device of `like`, which is `seen`; of Tenon's own where
        the library has none to make."""
        on = take(lib.tn_tensor_device, byref(seen))
        return _tensor.Tensor._make(_dlpack.create(on, shape, word))

    def wrote(self, array: Any) -> None:
        """Told of a caller's array when it has been written to."""

    def stream(self, array: Any, tensor: _abi.Tensor) -> int | None:
        """The stream that the array's library works on; None for Tenon's current one."""
        return None


class NumpyKind(Kind):
    """NumPy's, and whatever derives from its arrays; with the dtypes of ml_dtypes for bf16 and f8."""

    def __init__(self) -> None:
        numpy = sys.modules["numpy"]
        self.make = numpy.empty
        self.dtypes = {word: numpy.dtype(name) for word, name in _dtypes.NAME.items()
                       if word[:2] not in ("bf", "f8")}
        self.numbers = {dtype: _dtypes.NUMBER[word] for word, dtype in self.dtypes.items()}
        self.masked = numpy.ma.MaskedArray
        self.first_byte = c_char.from_buffer
        teach_fast((numpy.ndarray,), numpy.empty)

    def view(self, array: Any) -> _abi.Tensor:
        number = self.numbers.get(array.dtype)
        if number is None or isinstance(array, self.masked):
            return self._view_extended(array)
        if array.flags.carray and array.size:  # the quick way, of what is dense and can be written
            address, read_only = addressof(self.first_byte(array)), False
        else:
            address, read_only = array.__array_interface__["data"]
        return make_tensor(address, array.shape, array.strides, array.itemsize, number, array,
                           READ_ONLY if read_only else 0)

    def _view_extended(self, array: Any) -> _abi.Tensor:
        """An array of a dtype of ml_dtypes, which the buffer protocol does not know."""
        word = _dtypes.BY_NAME.get(array.dtype.name)
        if array.dtype.type.__module__ != "ml_dtypes" or word is None or isinstance(array, self.masked):
            raise self._refusal(array)
        address, read_only = array.__array_interface__["data"]
        return make_tensor(address, array.shape, array.strides, array.itemsize, _dtypes.NUMBER[word], array,
                           READ_ONLY if read_only else 0)

    def _refusal(self, array: Any) -> Exception:
        if isinstance(array, self.masked):
            return errors.invalid("expected an array without a mask, got a masked array; fill it first")
        if array.dtype.newbyteorder() in self.numbers:
            return errors.invalid(
                f"an array of {array.dtype.str} is in another byte order than this machine's; "
                "convert it first, as with array.astype(array.dtype.newbyteorder())")
        return errors.invalid(
            f"no dtype for NumPy's {array.dtype}; there are: {', '.join(self.dtypes)}, and of ml_dtypes: "
            f"{', '.join(word for word in _dtypes.NAME if word not in self.dtypes)}")

    def empty(self, like: Any, seen: _abi.Tensor, shape: tuple[int, ...], word: str) -> Any:
        return self.make(shape, self.dtypes.get(word) or _dtypes.ml_dtype(word))


class ScalarKind(NumpyKind):
    """NumPy's numbers, which have no memory that stays: a copy is read, and none can be written to."""

    def view(self, array: Any) -> _abi.Tensor:
        made = sys.modules["numpy"].array(array)
        made.flags.writeable = False
        return super().view(made)


class TorchKind(Kind):
    """PyTorch's, on every device that DLPack has a number for."""

    PLACES = {"cpu": 1, "cuda": 2, "mps": 8, "xpu": 14, "privateuseone": 12}

    def __init__(self) -> None:
        self.torch = torch = sys.modules["torch"]
        self.dtypes = {word: getattr(torch, name) for word, name in _dtypes.NAME.items()
                       if hasattr(torch, name)}
        self.numbers = {dtype: _dtypes.NUMBER[word] for word, dtype in self.dtypes.items()}
        self.places = dict(self.PLACES, cuda=10) if torch.version.hip else dict(self.PLACES)
        self.spare_name = getattr(torch._C, "_get_privateuse1_backend_name", lambda: "privateuseone")
        self.strided = torch.strided
        self.platform = "rocm" if torch.version.hip else "cuda"
        # The quick one is what compiled code calls; builds without CUDA do not have it.
        self.raw_stream = getattr(torch._C, "_cuda_getCurrentRawStream", None) or (
            lambda index: torch.cuda.current_stream(index).cuda_stream)
        self.forward = torch.autograd.forward_ad
        self.fake = torch._subclasses.FakeTensor
        self.no_dispatch = torch.Tensor.__torch_dispatch__  # of every class that does not override it
        self.plain = {torch.Tensor, torch.nn.Parameter}  # classes whose tensors have memory of their own
        self.count_write = getattr(torch.autograd.graph, "increment_version", None)
        # With strides: PyTorch makes such a tensor a little sooner than by new_empty.
        teach_fast((torch.Tensor, torch.nn.Parameter), torch.Tensor.new_empty_strided, torch.is_grad_enabled,
                   self.forward, self.wrote, lambda: _storage_functions(torch))

    def _unwrap(self, array: Any) -> Any:
        """The tensor whose memory holds the elements: the array itself, or what a collective operation has written to,
        after a wait for it. Refuses every other class that overrides __torch_dispatch__: data_ptr() of such a wrapper
        is no address, and its elements may be elsewhere, or be computed when they are read."""
        cls = type(array)
        if cls in self.plain:
            return array
        if cls.__torch_dispatch__ is self.no_dispatch and not hasattr(cls, "__tensor_flatten__"):
            self.plain.add(cls)
            return array
        collectives = sys.modules.get("torch.distributed._functional_collectives")
        if cls is not getattr(collectives, "AsyncCollectiveTensor", None):
            raise self._wrapper_refusal(array)
        if array.requires_grad and self.torch.is_grad_enabled():
            raise self._refusal(array)
        return self._unwrap(array.trigger_wait())

    def view(self, array: Any) -> _abi.Tensor:
        if type(array) not in self.plain:
            array = self._unwrap(array)
        number = self.numbers.get(array.dtype)
        if array.requires_grad and self.torch.is_grad_enabled() or array.layout is not self.strided:
            raise self._refusal(array)
        if number is None or array.is_conj() or array.is_neg():
            raise self._refusal(array)
        if self.forward._current_level >= 0 and self.forward.unpack_dual(array).tangent is not None:
            raise self._refusal(array, dual=True)
        at = array.device
        place = self.places.get(at.type)
        if place is None and at.type == self.spare_name():  # it was renamed
            place = self.places[at.type] = self.PLACES["privateuseone"]
        if place is None:
            raise errors.UnavailableError(
                f'tensors on "{at}" have no memory that Tenon can reach', "unavailable", "tenon")
        try:
            address, shape = array.data_ptr(), tuple(array.shape)
        except RuntimeError:
            raise self._refusal(array, wrapped=True) from None
        strides = array.stride()
        self._check_storage(array, address, shape, strides)
        index = at.index or 0
        if place == SPARE_PLACE:
            index = SPARE_NUMBERS.get(index, index)
        tensor = make_tensor(address, shape, strides, 1, number, array, 0, place, index)
        if place != CPU:
            tensor.source = (self, array)
        return tensor

    def _check_storage(self, array: Any, address: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> None:
        """Refuses a tensor with elements outside its storage, which may have been resized since the tensor was made."""
        if 0 in shape:
            return
        first, size, found = array.storage_offset(), array.element_size(), array.untyped_storage().nbytes()
        needed = size * (first + 1 + sum((n - 1) * step for n, step in zip(shape, strides)))
        if address != first * size and needed <= found:
            return
        if address == first * size:  # an offset from NULL
            found = 0
        raise errors.invalid(
            f"expected a storage of at least {needed} bytes for the {array.numel()} elements of a tensor, got one of {found} "
            "bytes: the tensor was freed or shrunk, or is a zero or functional tensor; restore its storage, or clone() the "
            "elements that are left")

    def wrote(self, array: Any) -> None:
        """The write is counted, so that gradients by what was there before are refused by PyTorch."""
        array = self._unwrap(array)
        if self.count_write is not None and not array.is_inference():
            self.count_write(array)

    def _wrapper_refusal(self, array: Any) -> Exception:
        """Why a subclass that wraps other tensors is refused, and what to give instead."""
        if array.is_nested or isinstance(array, self.fake):
            return self._refusal(array)
        name = type(array).__name__
        instead = "x.to_local()" if name == "DTensor" else "the tensor inside it"
        return errors.invalid(
            f"expected a tensor with memory of its own, got a {name}, a subclass of torch.Tensor that overrides "
            f"__torch_dispatch__; give {instead}, or an ordinary tensor made from it")

    def _refusal(self, array: Any, dual: bool = False, wrapped: bool = False) -> Exception:
        if dual:
            return errors.invalid(
                "a dual tensor would lose its tangent here, and no operator of Tenon's has forward-mode derivatives; "
                "give its primal, as torch.autograd.forward_ad.unpack_dual has it")
        if array.is_nested:
            return errors.invalid("expected a tensor of one shape, got a nested tensor; pad it, as with torch.nested.to_padded_tensor")
        if isinstance(array, self.fake):
            return errors.invalid("a fake tensor has no numbers, only a shape; use tenon.integrations.torch where "
                                  "calls are traced or compiled")
        if wrapped:
            return errors.invalid(
                "a tensor without memory of its own, as those inside torch.func's transformations are (vmap, jvp); "
                "use tenon.integrations.torch there")
        if array.requires_grad:
            return errors.invalid(
                "a tensor that requires gradients would lose them here; detach it, enter "
                "torch.no_grad(), or use tenon.integrations.torch")
        if array.layout is not self.strided:
            return errors.invalid(f"expected a strided tensor, got one of {array.layout}; make it dense first")
        if array.is_conj() or array.is_neg():
            return errors.invalid("expected a tensor with its values in memory, got one that is conjugated or negated lazily; resolve it first")
        return errors.invalid(f"no dtype for {array.dtype}; there are: {', '.join(self.dtypes)}")

    def empty(self, like: Any, seen: _abi.Tensor, shape: tuple[int, ...], word: str) -> Any:
        return self.torch.empty(shape, dtype=self.dtypes[word], device=like.device)

    def stream(self, array: Any, tensor: _abi.Tensor) -> int | None:
        if array.device.type != "cuda":
            return None
        return wrapped_stream(f"{self.platform}:{tensor.device_id}", self.raw_stream(tensor.device_id))


class DlpackKind(Kind):
    """Whatever speaks DLPack: CuPy, JAX, Tenon's own. Results go back by the library's from_dlpack.

    CuPy's run on its current stream. Of other libraries that is not known, so that their calls are waited
    for: they took the result, and may reuse the operands, without asking Tenon's stream."""

    def __init__(self, module: str) -> None:
        self.module = module
        self.waits = module not in ("cupy", "tenon")

    def _own_stream(self) -> int | None:
        """What the library itself works on; None where that is not known."""
        return int(sys.modules["cupy"].cuda.get_current_stream().ptr) if self.module == "cupy" else None

    def stream(self, array: Any, tensor: _abi.Tensor) -> int | None:
        raw = self._own_stream()
        if raw is not None:
            return wrapped_stream(f"cuda:{tensor.device_id}", raw)
        return lib.tn_stream_current(take(lib.tn_tensor_device, byref(tensor))) or None

    def view(self, array: Any) -> _abi.Tensor:
        owned = array._owned if isinstance(array, _tensor.Tensor) else _dlpack.take_in(array, self._own_stream())
        raw = owned.raw
        tensor = _abi.Tensor.from_buffer_copy(raw)
        tensor.owner = None
        tensor.keep = owned
        tensor.dims = owned.shape
        if raw.device_type != CPU:
            tensor.source = (self, array)
        return tensor

    def view_to_write(self, array: Any) -> _abi.Tensor:
        tensor = self.view(array)
        if self.module in JAX:
            tensor.flags |= READ_ONLY
        return tensor

    def empty(self, like: Any, seen: _abi.Tensor, shape: tuple[int, ...], word: str) -> Any:
        made = super().empty(like, seen, shape, word)
        take_out = self._from_dlpack()
        return made if take_out is None else take_out(made)

    def _from_dlpack(self) -> Any:
        if self.module == "cupy":
            return sys.modules["cupy"].from_dlpack
        if self.module in JAX:
            import jax.dlpack

            return jax.dlpack.from_dlpack
        return None


CUDA_DRIVER = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
DEVICE_ORDINAL = 9  # CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL


def ask_cuda(address: int) -> int | None:
    """The number of the device whose memory this is, by NVIDIA's driver; None where that cannot tell."""
    out = c_int32()
    try:
        ask = CDLL(CUDA_DRIVER).cuPointerGetAttribute
    except (OSError, AttributeError):
        return None
    ask.argtypes = (c_void_p, c_int32, c_uint64)
    return None if ask(byref(out), DEVICE_ORDINAL, address) else out.value


def cuda_index(address: int) -> int:
    """The same; where the driver cannot tell, the only device there is. Of several none is guessed."""
    platform = take(lib.tn_platform_get, b"cuda")
    if not address:  # no memory, and so on any
        return max(int(lib.tn_device_current(platform)), 0)
    count = lib.tn_platform_device_count(platform)
    found = ask_cuda(address) if count > 0 else None
    if found is None and count > 1:
        raise errors.UnsupportedError(
            f"the driver does not tell on which of {count} devices of cuda {address:#x} is, and "
            "__cuda_array_interface__ does not either; give the array by DLPack", "unsupported", "tenon")
    return found or 0


class InterfaceKind(Kind):
    """Whatever has `__array_interface__` or `__cuda_array_interface__`. Results are Tenon's own.

    Tenon's current stream stands for its library's. What an array says is being written on a stream of its
    own is waited for by that one; and as a library that goes on may not say where, calls are waited for."""

    waits = True

    def __init__(self, attribute: str, device_type: int) -> None:
        self.attribute, self.device_type = attribute, device_type

    def stream(self, array: Any, tensor: _abi.Tensor) -> int | None:
        return lib.tn_stream_current(take(lib.tn_tensor_device, byref(tensor))) or None

    def _facts(self, array: Any) -> dict[str, Any]:
        """What the array says of itself, with all that a tensor needs."""
        facts = getattr(array, self.attribute)
        wrong = f"{self.attribute} of {type(array).__name__}"
        if not isinstance(facts, dict):
            raise TypeError(f"{wrong}: expected a dict, got {type(facts).__name__}")
        for name, cls in (("typestr", str), ("shape", tuple), ("data", tuple)):
            if not isinstance(facts.get(name), cls):
                raise TypeError(f"{wrong}: {name}: expected a {cls.__name__}, got {type(facts.get(name)).__name__}")
        if facts.get("mask") is not None:
            raise errors.invalid("expected an array without a mask, got a masked one; fill it first")
        return facts

    def view(self, array: Any) -> _abi.Tensor:
        facts = self._facts(array)
        word = _dtypes.typestr_word(facts["typestr"])
        size, shape = _dtypes.BYTES[word], checked_sizes(facts["shape"])
        strides = checked_sizes(facts.get("strides") or _buffers.dense_strides(shape, size))
        if len(strides) != len(shape):
            raise errors.invalid(f"{self.attribute} of {type(array).__name__} has {len(strides)} strides for "
                                 f"{len(shape)} dimensions")
        address, read_only = facts["data"]
        index = 0 if self.device_type == CPU else cuda_index(address)
        tensor = make_tensor(address, shape, strides, size, _dtypes.NUMBER[word], (array, facts),
                             READ_ONLY if read_only else 0, self.device_type, index)
        if self.device_type != CPU:
            tensor.source = (self, array)
            if facts.get("stream") is not None:
                self._follow(facts["stream"], array, tensor)
        return tensor

    def _follow(self, raw: int, array: Any, tensor: _abi.Tensor) -> None:
        """Puts Tenon's current stream behind one of the driver's: 1 is its default one, 2 each thread's."""
        raw = _given.number(f"{self.attribute}: stream", raw, 1, _given.UINT64[1])
        theirs = wrapped_stream(f"cuda:{tensor.device_id}", raw)
        call(lib.tn_stream_wait_stream, self.stream(array, tensor), theirs)


class BufferKind(Kind):
    """Whatever has Python's buffer protocol: bytes, array.array, memoryview. Results are Tenon's own."""

    def view(self, array: Any) -> _abi.Tensor:
        buffer = _buffers.Buffer(array)
        word = _dtypes.format_word(buffer.format, buffer.itemsize)
        return make_tensor(buffer.address, buffer.shape, buffer.strides, buffer.itemsize,
                           _dtypes.NUMBER[word], buffer, READ_ONLY if buffer.readonly else 0)


_kinds: dict[type, Kind] = {}
_made: dict[str, Kind] = {}


def teach_fast(types: tuple[type, ...], empty: Any, gradients: Any = None, forward: Any = None,
               wrote: Any = None, storage: Any = None) -> None:
    """Lets the extension, if there is one, see arrays of these types: by the buffer protocol, or, if a library has
    gradients, by DLPack's table. Such a library gives functions that return whether gradients are recorded, count a write
    to an array of the caller's, and return the functions that read a storage (_storage_functions), and the object with the
    level of its forward mode."""
    from . import operators

    if operators._fast is not None:
        operators._fast.teach(types, empty, gradients, forward, wrote, storage() if storage else None)


def _storage_functions(torch: Any) -> tuple[int, int] | None:
    """The addresses of PyTorch's C functions for the bytes of a tensor's storage and the tensor's offset in it. They take
    a tenth of the time of the methods. None if this PyTorch does not have them, or they fail on a tensor."""
    sample, found = torch.empty(5)[2:], []
    try:
        path = os.path.join(os.path.dirname(torch.__file__), "lib", "libtorch_cpu.so")
        library = CDLL(path, mode=os.RTLD_NOLOAD | os.RTLD_LAZY)
        for name, expected in (("size", 5 * sample.element_size()), ("offset", 2)):
            function, value = getattr(library, "aoti_torch_get_storage_" + name), c_int64(-1)
            if function(byref(c_void_p(sample._cdata)), byref(value)) != 0 or value.value != expected:
                return None
            found.append(cast(function, c_void_p).value)
    except (OSError, AttributeError):  # another system, or PyTorch
        return None
    return tuple(found)


def _kind_of_type(cls: type, array: Any) -> Kind:
    for base in cls.__mro__:
        module = base.__module__.partition(".")[0]
        if module == "numpy" and base.__name__ == "ndarray":
            return _made.get("numpy") or _made.setdefault("numpy", NumpyKind())
        if module == "numpy" and base.__name__ == "generic":
            return _made.get("scalar") or _made.setdefault("scalar", ScalarKind())
        if module == "torch" and base.__name__ == "Tensor":
            return _made.get("torch") or _made.setdefault("torch", TorchKind())
    if hasattr(array, "__dlpack__"):
        return DlpackKind(cls.__module__.partition(".")[0])
    if hasattr(array, "__array_interface__"):
        return InterfaceKind("__array_interface__", CPU)
    if hasattr(array, "__cuda_array_interface__"):
        return InterfaceKind("__cuda_array_interface__", CUDA)
    if _buffers.has_buffer(array):
        return BufferKind()
    raise TypeError(
        f"expected an array (with DLPack, the array interface or a buffer), got {cls.__name__}; numpy.asarray(values, "
        "dtype) makes one of numbers and lists")


def kind_of(array: Any) -> Kind:
    """Which library's array this is. TypeError for what is none."""
    cls = type(array)
    kind = _kinds.get(cls)
    if kind is None:
        kind = _kinds[cls] = _kind_of_type(cls, array)
    return kind


def view(array: Any, to_write: bool = False) -> _abi.Tensor:
    """Any array as a tensor, or as one that the caller wants written to. Errors have the array as their `operand`, for
    whoever knows its name."""
    try:
        kind = kind_of(array)
        return kind.view_to_write(array) if to_write else kind.view(array)
    except (TypeError, errors.Error) as error:
        error.operand = array  # type: ignore[union-attr]
        raise


def view_or_none(array: Any) -> _abi.Tensor | None:
    """The same as `view`, and None for None."""
    return None if array is None else view(array)


def reference(tensor: _abi.Tensor | None) -> int | None:
    """A tensor's address for an args struct, which must keep it alive."""
    return None if tensor is None else addressof(tensor)


def new_axis(tensor: _abi.Tensor, at: int) -> _abi.Tensor:
    """The same memory with a dimension of 1 more at that place."""
    count = tensor.ndim
    steps = (c_int64 * count).from_address(tensor.strides) if tensor.strides else (
        _buffers.dense_strides(tensor.dims))
    shape, strides = list(tensor.dims), list(steps)
    shape.insert(at, 1)
    strides.insert(at, 1)
    made = make_tensor(tensor.data or 0, tuple(shape), tuple(strides), 1, tensor.dtype,
                       tensor, tensor.flags, tensor.device_type, tensor.device_id)
    if hasattr(tensor, "source"):
        made.source = tensor.source
    return made
