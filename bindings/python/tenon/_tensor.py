"""Arrays of Tenon's own: `tenon.Tensor`, and `tenon.empty`, which makes them."""

from __future__ import annotations

from ctypes import byref
from operator import index as whole_number

from . import _dlpack, _dtypes, _given, errors
from ._handles import Made, take
from ._library import lib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterator, Sequence

    Sizes = tuple[int, ...]

HOST = (1, 3)  # DLPack's numbers of memory that the processor reads: its own, and memory pinned for CUDA


def _expand_key(key: Any, rank: int) -> list[Any]:
    """The parts of an index, with a slice for each dimension that an ellipsis or the end of the index leaves out."""
    parts = list(key) if isinstance(key, tuple) else [key]
    named = sum(1 for part in parts if part is not None and part is not Ellipsis)
    if named > rank:
        raise IndexError(f"expected at most {rank} indices for {rank} dimensions, got {named}")
    ellipses = [at for at, part in enumerate(parts) if part is Ellipsis]
    if len(ellipses) > 1:
        raise IndexError("expected at most one ellipsis in an index, got more")
    at = ellipses[0] if ellipses else len(parts)
    parts[at:at + len(ellipses)] = [slice(None)] * (rank - named)
    return parts


def _element(part: Any, size: int) -> int:
    """The number of an element that an integer names."""
    try:
        if isinstance(part, bool):
            raise TypeError
        number = whole_number(part)
    except TypeError:
        raise TypeError("index: expected integers, slices, None or an ellipsis, got "
                        f"{type(part).__name__}; use numpy() for other indices") from None
    if not -size <= number < size:
        raise IndexError(f"index {number} is out of range for a dimension of size {size}")
    return number % size


def _indexed(shape: Sizes, strides: Sizes, key: Any) -> tuple[int, Sizes, Sizes]:
    """First element, shape and strides of what an index selects."""
    first, sizes, steps = 0, [], []
    dimensions: Iterator[tuple[int, int]] = zip(shape, strides)
    for part in _expand_key(key, len(shape)):
        size, stride = (1, 0) if part is None else next(dimensions)
        if part is not None and not isinstance(part, slice):
            first += _element(part, size) * stride
            continue
        places = range(size)[part] if part is not None else range(1)
        first += places.start * stride if places else 0
        sizes.append(len(places))
        steps.append(places.step * stride)
    return (first if 0 not in sizes else 0), tuple(sizes), tuple(steps)


def _reshaped(shape: Sizes, strides: Sizes, new: Sizes) -> Sizes | None:
    """Strides of the same elements, in the same order, with another shape; None if no strides give them."""
    if 0 in shape or not shape:
        return (1,) * len(new)
    steps = [0] * len(new)
    to, count, made, unit = len(new) - 1, 1, 1, strides[-1]
    for at in reversed(range(len(shape))):  # dimensions that one stride spans are taken together
        count *= shape[at]
        if at and (shape[at - 1] == 1 or strides[at - 1] == count * unit):
            continue
        while to >= 0 and (made < count or new[to] == 1):
            steps[to] = made * unit
            made *= new[to]
            to -= 1
        if made != count:
            return None
        if at:
            count, made, unit = 1, 1, strides[at - 1]
    return tuple(steps)


def _complete_shape(shape: Sizes, wanted: tuple[Any, ...]) -> Sizes:
    """The shape that reshape was given, with the size that -1 stands for."""
    from math import prod

    sizes = [_given.number("a size", size, -1, _given.INT64[1]) for size in wanted]
    known, count = prod(size for size in sizes if size >= 0), prod(shape)
    if sizes.count(-1) == 1 and known and count % known == 0:
        sizes[sizes.index(-1)] = count // known
    if -1 in sizes or prod(sizes) != count:
        raise errors.invalid(f"expected a shape of {count} elements, as {shape} has, got {tuple(wanted)}")
    return tuple(sizes)


def _listed(given: tuple[Any, ...]) -> tuple[Any, ...]:
    """Numbers that were given one by one or as one sequence."""
    return tuple(given[0]) if len(given) == 1 and hasattr(given[0], "__iter__") else given


class _HostMemory:
    """A tensor in host memory as the array interface shows it, with elements of another name but the same size."""

    def __init__(self, tensor: Tensor, typestr: str) -> None:
        raw, size = tensor._owned.raw, _dtypes.BYTES[tensor.dtype]
        self.tensor = tensor
        self.__array_interface__ = {
            "version": 3,
            "shape": tensor.shape,
            "typestr": typestr,
            "data": ((raw.data or 0) + raw.byte_offset, bool(raw.flags & 1)),
            "strides": tuple(size * step for step in tensor._owned.strides()),
        }


class Tensor(Made):
    """An array of Tenon's own: the result of operators if the arguments' library has no arrays, and what `tenon.empty`
    makes. It supports DLPack and, in host memory, NumPy's protocols, so that `t.numpy()`, `numpy.asarray(t)` and
    `torch.from_dlpack(t)` share its memory. Operators accept it as any other array.

    Indices, `T`, `permute` and `transpose` give views of the same memory, also with negative steps; nothing is copied.
    To write to a part, copy or fill a view: `tenon.fill(t[1:], 0)`.

    >>> import array, tenon
    >>> t = tenon.neg(array.array("d", [1, 2, 3, 4])).reshape(2, 2)    # plain memory, with no library of arrays
    >>> t, len(t), t.shape, t.dtype
    (<tensor 2x2 of f64 on cpu:0>, 2, (2, 2), 'f64')
    >>> t[::-1, None, 0]
    <tensor 2x1 of f64 on cpu:0>
    >>> t[::-1, None, 0].numpy()
    array([[-3.],
           [-1.]])
    """

    __slots__ = ("_owned", "__weakref__")
    _returned_by = "tenon.empty(shape, dtype, device)"

    def _init(self, owned: _dlpack.Owned) -> None:
        self._owned = owned

    shape = property(lambda self: self._owned.shape, doc="The sizes, as a tuple.")
    ndim = property(lambda self: len(self._owned.shape), doc="The number of dimensions.")
    dtype = property(lambda self: _dtypes.WORD[self._owned.raw.dtype], doc='As a word: "f32".')

    @property
    def device(self) -> Any:
        """The device its memory is on."""
        from ._devices import Device

        return Device._make(take(lib.tn_tensor_device, byref(self._owned.raw)))

    @property
    def T(self) -> Tensor:  # noqa: N802 - as in NumPy and PyTorch
        """A view with all dimensions in reverse order."""
        return self.permute(*reversed(range(self.ndim)))

    def permute(self, *order: Any) -> Tensor:
        """A view whose dimension i is dimension order[i]: `t.permute(1, 0)`. `tenon.permute` makes a copy.

        >>> import tenon
        >>> tenon.empty((2, 3, 4), device="cpu").permute(2, 0, 1).shape
        (4, 2, 3)
        """
        rank, order = self.ndim, _listed(order)
        places = _given.permutation("order", order, rank)
        shape, strides = self.shape, self._owned.strides()
        return self._view(0, tuple(shape[at] for at in places), tuple(strides[at] for at in places))

    def transpose(self, one: int, other: int) -> Tensor:
        """A view in which two dimensions have changed places, as in PyTorch. For more than two, use `permute`.

        >>> import tenon
        >>> tenon.empty((2, 3, 4), device="cpu").transpose(-1, -2).shape
        (2, 4, 3)
        """
        order = list(range(self.ndim))
        one, other = (_given.dimension("transpose", axis, self.ndim) for axis in (one, other))
        order[one], order[other] = order[other], order[one]
        return self.permute(*order)

    def reshape(self, *shape: Any) -> Tensor:
        """The same elements in another shape; one size may be -1, and is then computed. A view if there is one, as of
        every tensor that is contiguous, else a copy, as in NumPy and PyTorch.

        >>> import tenon
        >>> tenon.empty((2, 3, 4), device="cpu").reshape(2, -1).shape
        (2, 12)
        """
        sizes = _complete_shape(self.shape, _listed(shape))
        strides = _reshaped(self.shape, self._owned.strides(), sizes)
        return self._dense().reshape(sizes) if strides is None else self._view(0, sizes, strides)

    def numpy(self) -> Any:
        """As an array of NumPy's. In host memory they share the memory; from other memory it is copied, after the work
        that is queued there. The dtypes bf16 and f8 need the package ml_dtypes.

        >>> import tenon
        >>> t = tenon.fill(tenon.empty(3, "i32", "cpu"), 7)
        >>> t.numpy()
        array([7, 7, 7], dtype=int32)
        """
        from . import operators

        if self._owned.raw.device_type in HOST:
            return self._as_numpy()
        return operators.copy(self._dense(), empty(self.shape, self.dtype, "cpu"))._as_numpy()

    def _as_numpy(self) -> Any:
        import numpy

        typestr = _dtypes.TYPESTRS.get(self.dtype)
        if typestr is not None:
            return numpy.asarray(_HostMemory(self, typestr))
        size = _dtypes.BYTES[self.dtype]
        return numpy.asarray(_HostMemory(self, _dtypes.TYPESTRS[f"u{8 * size}"])).view(_dtypes.ml_dtype(self.dtype))

    def _dense(self) -> Tensor:
        """Itself if it is contiguous, else a contiguous copy."""
        from . import operators

        if lib.tn_tensor_is_dense(byref(self._owned.raw)):
            return self
        made: Tensor = operators.permute(self, range(self.ndim))
        return made

    def _view(self, first: int, shape: Sizes, strides: Sizes) -> Tensor:
        return Tensor._make(_dlpack.view_of(self._owned, first, shape, strides))

    def __getitem__(self, key: Any) -> Tensor:
        return self._view(*_indexed(self.shape, self._owned.strides(), key))

    def __copy__(self) -> Tensor:
        return self[...]

    def __deepcopy__(self, memo: Any) -> Tensor:
        from . import operators

        return operators.copy(self._dense(), empty(self.shape, self.dtype, self.device))

    def __reduce__(self) -> Any:
        raise TypeError("a tensor cannot be pickled; pickle its numpy()")

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a tensor without dimensions has no length")
        return int(self.shape[0])

    def __iter__(self) -> Iterator[Tensor]:
        return (self[at] for at in range(len(self)))

    def __bool__(self) -> bool:
        raise TypeError("a tensor has no truth value; ask its length, or elements of its numpy()")

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._owned.raw.device_type, self._owned.raw.device_id

    def __dlpack__(self, *, stream: int | None = None, max_version: tuple[int, int] | None = None,
                   dl_device: tuple[int, int] | None = None, copy: bool | None = None) -> Any:
        if copy or dl_device not in (None, self.__dlpack_device__()):
            raise BufferError("this tensor is given as it is: neither copied nor moved")
        consumer = -1 if stream is None else int(stream)
        versioned = max_version is not None and max_version[0] >= 1
        function = lib.tn_dlpack_export if versioned else lib.tn_dlpack_export_legacy
        managed = take(function, byref(self._owned.raw), consumer)
        return _dlpack.give_out(managed, _dlpack.VERSIONED if versioned else _dlpack.LEGACY)

    @property
    def __array_interface__(self) -> dict[str, Any]:
        if self._owned.raw.device_type not in HOST or self.dtype not in _dtypes.TYPESTRS:
            raise AttributeError(f"{self.dtype} on {self.device.id} has no array interface")
        return _HostMemory(self, _dtypes.TYPESTRS[self.dtype]).__array_interface__

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """NumPy asks this where there is no array interface."""
        if self._owned.raw.device_type not in HOST:
            raise TypeError(f"{self!r} is not in host memory; use its numpy(), which copies it")
        made = self._as_numpy()
        if copy is False and dtype is not None and dtype != made.dtype:
            raise ValueError(f"{self!r} cannot be of dtype {dtype} without a copy")
        return made.astype(made.dtype if dtype is None else dtype, copy=bool(copy))

    def __repr__(self) -> str:
        sizes = "x".join(map(str, self.shape)) or "scalar"
        return f"<tensor {sizes} of {self.dtype} on {self.device.id}>"


def empty(shape: Sequence[int] | int, dtype: Any = "f32", device: Any = None) -> Tensor:
    """A tensor of Tenon's own, contiguous and not initialised. Without `device`, on the current device.

    >>> import tenon
    >>> tenon.empty((2, 3), "bf16", "cpu")
    <tensor 2x3 of bf16 on cpu:0>
    """
    from . import _devices as devices

    where = devices.default_address() if device is None else devices.device(device).address
    sizes = tuple(shape) if hasattr(shape, "__iter__") else (_given.number("shape", shape, *_given.INT64),)
    return Tensor._make(_dlpack.create(where, sizes, _dtypes.word_of(dtype)))
