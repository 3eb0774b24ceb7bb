"""Weights that are packed once for many products."""

from __future__ import annotations

from ctypes import byref, c_uint64

from . import _abi, _dtypes, errors, settings
from ._arrays import kind_of, reference, view
from ._calls import Call, make, place, run, target
from ._handles import Handle, Made, take
from ._library import lib, text
from .operators import _matmul_call

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Packed(Made):
    """A matrix that was packed once for many products: what `tenon.matmul_pack` returns. Call it with each `a`.

    Any thread may call it. It keeps a copy of the matrix, and what the kernel packed, until it is deleted.

    >>> import numpy, tenon
    >>> a, weights = numpy.ones((2, 300), "float32"), numpy.ones((300, 400), "float32")
    >>> packed = tenon.matmul_pack(a, weights)
    >>> packed(a).shape, packed.copy_bytes, packed.kernel.startswith("cpu.matmul.")
    ((2, 400), 480000, True)
    """

    __slots__ = ("_handle", "_args", "_kept", "_of_a", "_dtype", "_of_result")
    _returned_by = "tenon.matmul_pack(a, b)"

    def _init(self, a: Any, b: Any, options: dict[str, Any]) -> None:
        ta = view(a)
        if ta.ndim < 2 or view(b).ndim < 2:
            raise errors.invalid("a, b: expected at least 2 dimensions, got a vector")
        ready = make(_matmul_call, (a, b), options)
        self._handle = Handle(take(lib.tn_matmul_pack, settings.context(), byref(ready.args)), "tn_packed_release")
        _, _, to, *self._kept = ready.keep
        self._of_a, self._dtype, self._of_result = ta.dims, ta.dtype, (to.dims, _dtypes.WORD[to.dtype])
        ready.args.a = ready.args.b = ready.args.out = ready.args.stream = None
        self._args = bytes(ready.args)

    def _ready(self, a: Any, out: Any = None) -> Call:
        """The call with ready arguments."""
        ta, kind = view(a), kind_of(a)
        if ta.dims != self._of_a:
            raise errors.invalid(f"a: expected the shape {self._of_a}, for which b was packed, got {ta.dims}; pack b for "
                                 "this shape too")
        if ta.dtype != self._dtype:
            raise errors.invalid(f"a: expected {_dtypes.WORD[self._dtype]}, for which b was packed, got "
                                 f"{_dtypes.WORD[ta.dtype]}; cast a, or pack b for this dtype")
        result, to = target(kind, a, ta, out, *self._of_result)
        args = _abi.MatmulArgs.from_buffer_copy(self._args)
        if args.beta and out is None:
            raise errors.invalid("beta: expected out too, the array that it multiplies, got none")
        args.a, args.out = reference(ta), reference(to)
        place(args, kind, a, ta)
        return Call("tn_matmul_packed", args, result, (ta, to, self._kept), (out,))

    def __call__(self, a: Any, *, out: Any = None) -> Any:
        """The product of `a`, which has the shape, the dtype and the device of the one that b was packed for."""
        return run(self._ready(a, out), self._handle.address)

    @property
    def kernel(self) -> str:
        """The kernel that computes the products."""
        return text(lib.tn_packed_kernel(self._handle.address))

    @property
    def copy_bytes(self) -> int:
        """The size of the copy of b."""
        return int(lib.tn_packed_bytes(self._handle.address, None))

    @property
    def packed_bytes(self) -> int:
        """The size of what the kernel packed; 0 if it reads the copy itself."""
        size = c_uint64()
        lib.tn_packed_bytes(self._handle.address, byref(size))
        return size.value

    def __repr__(self) -> str:
        return f"<tenon.Packed by {self.kernel}, {self.copy_bytes} + {self.packed_bytes} bytes>"


def matmul_pack(a: Any, b: Any, **options: Any) -> Packed:
    """Packs `b`, such as the weights of a layer, once for many products with it. The kernel is chosen now, for an `a` of
    this shape and dtype, with the settings that hold here; what is in `a` does not matter, and `b` may change or be
    deleted afterwards. The options are those of `matmul`; a bias has the same values in every product.

    >>> import numpy, tenon
    >>> weights = numpy.eye(4, dtype="float32") * 2
    >>> layer = tenon.matmul_pack(numpy.empty((1, 4), "float32"), weights, activation="relu")
    >>> layer(numpy.array([[1, -2, 3, -4]], "float32"))
    array([[2., 0., 6., 0.]], dtype=float32)
    """
    return Packed._make(a, b, options)
