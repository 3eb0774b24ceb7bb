"""Operators on anyone's arrays.

Arguments are arrays of NumPy, PyTorch, CuPy, JAX, or whatever speaks DLPack, the array interface or
Python's buffer protocol; nothing is copied. The device is that of the arrays. A result is an array of the
first argument's library, or `out`, which is written to and returned. Calls release the interpreter's lock.

>>> import numpy, tenon
>>> a, b = numpy.ones((2, 3), "float32"), numpy.ones((3, 4), "float32")
>>> tenon.matmul(a, b)
array([[3., 3., 3., 3.],
       [3., 3., 3., 3.]], dtype=float32)
"""

from __future__ import annotations

# The operators, which are names of the package too. Before the imports, because these may look for a name in the package.
__all__ = ["attention", "attention_backward", "attention_merge", "attention_quantized", "attention_sparse",
           "attention_sparse_backward", "binary", "cast", "copy", "fill",
           "layer_norm", "matmul", "permute", "reduce", "rms_norm", "rotary", "softmax", "unary"]

from ctypes import addressof, byref, c_int32, c_void_p, sizeof
from ctypes import cast as cast_address
from math import inf
from struct import pack

from . import _abi, _dtypes, _given, errors, settings
from ._arrays import Kind, kind_of, new_axis, reference, stream_address, view, view_or_none
from ._calls import (Call, broadcast, call_in_order, faces, make, make_args, one_output, operator, place, run, sources,
                     target, word_number)
from ._elementwise import binary, reduce, unary
from ._handles import call
from ._library import lib
from ._packing import Packer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Sequence

    Shape = tuple[int, ...]

ACTIVATIONS = {None: 0, "none": 0, "relu": 1, "gelu": 2, "gelu-tanh": 3, "silu": 4}
ROTARY = "halves pairs".split()
MASKS = {None: 0, "none": 0, "causal": 1, "causal-br": 2, "window": 3}
LAYOUTS = {"bhld": 0, "blhd": 1}

_NO_WINDOW = (0, 0)
_PLAIN = {"causal", "mask", "mask_tensor", "scale", "layout", "backend", "out"}  # options that the extension knows
_OUT = {"out"}
_MATMUL_SIZE, _ATTENTION_SIZE = sizeof(_abi.MatmulArgs), sizeof(_abi.AttentionArgs)
_matmul = Packer(_abi.MatmulArgs, "struct_size", "set")
_operands = Packer(_abi.AttentionArgs, "struct_size", "lse")
_arrays = Packer(_abi.AttentionArgs, "mask_tensor", "pages")
_options = Packer(_abi.AttentionArgs, "scale", "backend")


def _load_fast() -> Any:
    """The extension that makes plain calls, bound to the library; None where it is not built."""
    try:
        from . import _fast  # type: ignore[attr-defined]
    except ImportError:
        return None
    functions = (lib.tn_matmul, lib.tn_attention, lib.tn_einsum, lib.tn_einsum_shape)
    _fast.bind(*(cast_address(function, c_void_p).value for function in functions), stream_address)
    return _fast


_fast = _load_fast()


# Of what is not of the inputs' dtype.
_MATMUL_RESULTS = {"i8": "i32", "f8_e4m3fn": "f32", "f8_e5m2": "f32"}


def _matmul_word(a: _abi.Tensor, dtype: Any) -> str:
    if dtype is not None:
        return _dtypes.word_of(dtype)
    word = _dtypes.WORD[a.dtype]
    return _MATMUL_RESULTS.get(word, word)


def _matmul_call(a: Any, b: Any, *, out: Any = None, bias: Any = None, alpha: float = 1.0,
                 beta: float = 0.0, activation: str | None = None, transpose_a: bool = False,
                 transpose_b: bool = False, acc: Any = None, dtype: Any = None, scale_a: Any = None,
                 scale_b: Any = None) -> Call:
    ta, tb = view(a), view(b)
    kind = kind_of(a)
    scales = tuple(None if scale is None else view(scale) for scale in (scale_a, scale_b))
    if ta.ndim < 2 or tb.ndim < 2:
        if scales != (None, None):
            raise errors.invalid("scale_a, scale_b: expected none for vectors, got one")
        return _vector_call(a, b, ta, tb, out, dict(
            bias=bias, alpha=alpha, beta=beta, activation=activation, transpose_a=transpose_a,
            transpose_b=transpose_b, acc=acc, dtype=dtype))
    if beta and out is None:
        raise errors.invalid("beta: expected out too, the array that it multiplies, got none")
    da, db = ta.dims, tb.dims
    shape = (da[-1 if transpose_a else -2], db[-2 if transpose_b else -1])
    if len(da) > 2 or len(db) > 2:
        shape = broadcast(da[:-2], db[:-2]) + shape
    result, to = target(kind, a, ta, out, shape, _matmul_word(ta, dtype))
    extra = None if bias is None else view(bias)
    return _matmul_pack(kind, a, result, ta, tb, to, extra, alpha, beta, activation,
                        transpose_a, transpose_b, acc, scales, out)


def _matmul_pack(kind: Kind, a: Any, result: Any, ta: _abi.Tensor, tb: _abi.Tensor,
                 to: _abi.Tensor, bias: _abi.Tensor | None, alpha: float, beta: float,
                 activation: str | None, transpose_a: bool, transpose_b: bool, acc: Any,
                 scales: tuple[Any, ...] = (None, None), out: Any = None) -> Call:
    args = _abi.MatmulArgs.__new__(_abi.MatmulArgs)  # struct_size is written with the rest
    _matmul.write(
        args, _MATMUL_SIZE, addressof(ta), addressof(tb), addressof(to),
        0 if bias is None else addressof(bias), alpha, beta,
        0 if activation is None else word_number("activation", ACTIVATIONS, activation), transpose_a,
        transpose_b, 0 if acc is None else _dtypes.NUMBER[_dtypes.word_of(acc)], 1)
    if scales != (None, None):
        args.scale_a, args.scale_b = map(reference, scales)
    place(args, kind, a, ta)
    return Call("tn_matmul", args, result, (ta, tb, to, bias, *scales), (out,))


def _vector_call(a: Any, b: Any, ta: _abi.Tensor, tb: _abi.Tensor, out: Any,
                 options: dict[str, Any]) -> Call:
    """As NumPy reads vectors: rows on the left, columns on the right, and they vanish."""
    if ta.ndim == 0 or tb.ndim == 0:
        raise errors.invalid(f"{'a' if ta.ndim == 0 else 'b'}: expected at least 1 dimension, got 0")
    if options["bias"] is not None or options["transpose_a"] or options["transpose_b"]:
        raise errors.invalid("bias, transpose_a, transpose_b: expected none for vectors, got one")
    kind = kind_of(a)
    left = new_axis(ta, 0) if ta.ndim == 1 else ta
    right = new_axis(tb, 1) if tb.ndim == 1 else tb
    shape = (broadcast(left.dims[:-2], right.dims[:-2])
             + (() if ta.ndim == 1 else (left.dims[-2],)) + (() if tb.ndim == 1 else (right.dims[-1],)))
    result, to = target(kind, a, ta, out, shape, _matmul_word(ta, options["dtype"]))
    if tb.ndim == 1:
        to = new_axis(to, to.ndim)
    if ta.ndim == 1:
        to = new_axis(to, to.ndim - 1)
    return _matmul_pack(kind, a, result, left, right, to, None, options["alpha"], options["beta"],
                        options["activation"], False, False, options["acc"], out=out)


@faces(_matmul_call)
def matmul(a: Any, b: Any, **options: Any) -> Any:
    """activation(alpha * A B + beta * out + bias).

    A is [..., m, k], B is [..., k, n], of any strides; dimensions before the last two broadcast, and
    vectors are as NumPy reads them. Options: `out`, `bias`, `alpha`, `beta`, `activation` ("relu", "gelu",
    "gelu-tanh", "silu"), `transpose_a`, `transpose_b`, `acc` (the dtype of sums), `dtype` (of the result),
    `scale_a`, `scale_b` (of 8-bit floats: one number, or [m, 1] and [1, n]). Of i8 the sums and
    the result are i32, of 8-bit floats f32; of other integers there is none.

    >>> import numpy, tenon
    >>> a, b = numpy.array([[1, 2], [3, 4]], "float32"), numpy.array([[1, 0], [1, 1]], "float32")
    >>> tenon.matmul(a, b, bias=numpy.array([0, -3], "float32"), activation="relu")
    array([[3., 0.],
           [7., 1.]], dtype=float32)
    """
    if _fast is not None and options.keys() <= _OUT:
        result = _fast.matmul(settings.context(), a, b, options.get("out"))
        if result is not NotImplemented:
            return result
    return run(make(_matmul_call, (a, b), options))


def _add_causal(mask: Any, window: Any) -> str:
    """The mask's word with causal=True."""
    if mask not in (None, "causal"):
        raise errors.invalid(f'expected causal=True or the mask "{mask}", got both; give one of them')
    if window is not None:
        raise errors.invalid("expected causal=True or a window, got both; give window=(left, 0), which is aligned at the "
                             "bottom right")
    return "causal"


def _mask_of(mask: Any, mask_tensor: Any, window: Sequence[int] | None,
             causal: bool) -> tuple[int, Any, tuple[Any, ...]]:
    """The mask's number, the tensor and the window."""
    if mask is None and window is None and causal is False:
        return 0, mask_tensor, _NO_WINDOW
    if mask is not None and not isinstance(mask, str):
        if mask_tensor is not None:
            raise errors.invalid("expected one array as mask, got two: mask and mask_tensor")
        mask, mask_tensor = None, mask
    if causal is not False and _given.flag("causal", causal):
        mask = _add_causal(mask, window)
    number = 3 if window is not None else word_number("mask", MASKS, mask)
    if window is not None and mask not in (None, "window"):
        raise errors.invalid(f'expected a window or the mask "{mask}", got both; give one of them')
    if number == 3 and window is None:
        raise errors.invalid('expected window=(left, right) for the mask "window", got none')
    return number, mask_tensor, _NO_WINDOW if window is None else _window_of(window)


def _window_of(window: Any) -> tuple[int, ...]:
    if isinstance(window, str) or not hasattr(window, "__len__"):
        raise TypeError(f"window: expected two whole numbers, (left, right), got {window!r}")
    if len(window) != 2:
        raise errors.invalid(f"window: expected two numbers, (left, right), got {len(window)}")
    return tuple(_given.number("window", one, *_given.INT64) for one in window)


_backends: dict[str, int] = {}  # those that were found, whose numbers stay theirs


def _backend_number(backend: str | None) -> int:
    if backend is None:
        return 0
    if not isinstance(backend, str) and not hasattr(backend, "name"):
        raise TypeError(f"backend: expected a str, got {type(backend).__name__}")
    name = str(backend)
    if name not in _backends:
        out = c_int32()
        call(lib.tn_attention_backend_find, _given.text("backend", name), byref(out))
        _backends[name] = out.value
    return _backends[name]


def layout_number(layout: str) -> int:
    """0 for "bhld", 1 for "blhd"."""
    return word_number("layout", LAYOUTS, layout)


def _attention_shape(q: _abi.Tensor, v: _abi.Tensor) -> Shape:
    return (*q.dims[:-1], *v.dims[-1:])


def _lse_shape(q: _abi.Tensor, layout: str) -> Shape:
    *batch, a, b, _ = q.dims
    return (*batch, a, b) if layout == "bhld" else (*batch, b, a)


def _pattern(tensor: _abi.Tensor, value: float) -> bytes:
    """The bytes of an element: 0 of any dtype, or a number of f32 or f64."""
    word = _dtypes.WORD[tensor.dtype]
    return pack({"f32": "f", "f64": "d"}[word], value) if value else bytes(_dtypes.BYTES[word])


def _attention_call(
        q: Any, k: Any, v: Any, *, causal: bool = False, mask: Any = None, mask_tensor: Any = None,
        window: Sequence[int] | None = None, scale: float | None = None, softcap: float = 0.0,
        dropout: float = 0.0, seed: int = 0, offset: int = 0, layout: str = "bhld",
        sinks: Any = None, starts_q: Any = None, starts_k: Any = None, lengths: Any = None,
        pages: Any = None, max_queries: int = 0, max_keys: int = 0, backend: str | None = None,
        lse: Any = False, out: Any = None, dtype: Any = None) -> Call:
    tq, tk, tv = view(q), view(k), view(v)
    kind = kind_of(q)
    if tq.ndim < 3 or tv.ndim < 3:
        raise errors.invalid("q, v: expected the dimensions batch (unless they are packed), heads, length and size, got the "
                             f"shapes {tq.dims} and {tv.dims}")
    number, array, (left, right) = _mask_of(mask, mask_tensor, window, causal)
    word = _dtypes.WORD[tq.dtype]
    result, to = target(kind, q, tq, out, _attention_shape(tq, tv),
                         word if dtype is None else _dtypes.word_of(dtype))
    sums = wanted = None
    if lse is not False and lse is not None:
        wanted = None if lse is True else lse
        lse, sums = target(kind, q, tq, wanted, _lse_shape(tq, layout), "f64" if word == "f64" else "f32")
        result = (result, lse)
    # Rows that are in no packed sequence are not computed: in new arrays they are 0, and -infinity in lse.
    preset = [] if starts_q is None else [
        (made, _pattern(made, value)) for made, owned, value in ((to, out, 0.0), (sums, wanted, -inf))
        if made is not None and owned is None]
    given = (array, sinks, starts_q, starts_k, lengths, pages)
    plain = (array is None and sinks is None and starts_q is None and starts_k is None
             and lengths is None and pages is None)
    extra = None if plain else tuple(map(view_or_none, given))
    args = _abi.AttentionArgs.__new__(_abi.AttentionArgs)  # struct_size is written with the rest
    _operands.into(args, 0, _ATTENTION_SIZE, addressof(tq), addressof(tk), addressof(tv), addressof(to),
                   0 if sums is None else addressof(sums))
    if extra is not None:
        _arrays.write(args, *(reference(tensor) or 0 for tensor in extra))
    _options.write(
        args, 0.0 if scale is None else scale, softcap, dropout, seed, offset, left, right, max_queries,
        max_keys, number, layout_number(layout), 0 if scale is None else 1,
        0 if backend is None else _backend_number(backend))
    place(args, kind, q, tq)
    return Call("tn_attention", args, result, (tq, tk, tv, to, sums, extra), (out, wanted), preset)


def _fast_attention(q: Any, k: Any, v: Any, causal: Any = False, mask: Any = None, mask_tensor: Any = None,
                    scale: Any = None, layout: str = "bhld", backend: str | None = None, out: Any = None) -> Any:
    """By the extension; NotImplemented where it leaves the call to what follows."""
    if mask_tensor is None and mask is not None and not isinstance(mask, str):
        mask, mask_tensor = None, mask
    if causal is True and mask is None:
        mask = "causal"
    elif causal is not False:
        return NotImplemented
    number = MASKS.get(mask) if mask is None or isinstance(mask, str) else None
    if number not in (0, 1, 2) or layout not in LAYOUTS:
        return NotImplemented
    return _fast.attention(settings.context(), q, k, v, number, scale, mask_tensor, LAYOUTS[layout], False,
                           0 if backend is None else _backend_number(backend), out)


@faces(_attention_call)
def attention(q: Any, k: Any, v: Any, **options: Any) -> Any:
    """softmax(scale q k' + mask) v, of [batch, heads, length, size] ("bhld") or `layout="blhd"`.

    With `causal=True`, a query sees the keys up to its own position, counted from the first query and key, as with
    PyTorch's `is_causal`; `mask="causal"` says the same, and `mask="causal-br"` counts from the last query and key. `mask`
    may also be an array that broadcasts to [batch, heads, queries, keys], together with `causal` or without: in an array
    of bool, true is seen; floats are added. `mask_tensor` is such an array beside a word in `mask`. `window=(left,
    right)` is aligned at the last query and key; -1 is no bound. Keys and values may have fewer heads.

    Further options: `scale` (default: 1 / sqrt(size)), `softcap`, `dropout` with `seed` and `offset`, `sinks`, `lengths`,
    `pages`, `starts_q` and `starts_k` (packed sequences, without the batch: [heads, length, size], or [length, heads,
    size] with `layout="blhd"`; rows that belong to no sequence are 0, or unchanged in `out`), `max_queries`, `max_keys`,
    `backend` ("FLASH_ATTN": required), `out`, `dtype`. With `lse=True` the result is (out, lse), where lse is the
    logarithm of the sum of exponentials of each query.

    >>> import numpy, tenon
    >>> q = numpy.ones((1, 8, 4, 16), "float32")                       # eight heads of queries
    >>> k = numpy.ones((1, 2, 4, 16), "float32")                       # share two of keys and values
    >>> v = k * numpy.arange(4, dtype="float32")[:, None]
    >>> tenon.attention(q, k, v, causal=True)[0, 0, :, 0].round(3)     # means of the values seen so far
    array([0. , 0.5, 1. , 1.5], dtype=float32)
    """
    if _fast is not None and options.keys() <= _PLAIN:
        result = _fast_attention(q, k, v, **options)
        if result is not NotImplemented:
            return result
    return run(make(_attention_call, (q, k, v), options))


def _gradients_into(arrays: Sequence[Any], into: Any) -> list[tuple[Any, _abi.Tensor]]:
    """The array to write each gradient to, and its tensor."""
    if not isinstance(into, (tuple, list)) or len(into) != 3:
        found = f"{len(into)} of them" if isinstance(into, (tuple, list)) else type(into).__name__
        raise TypeError(f"into: expected a tuple of three arrays, got {found}")
    seen = [view(x) for x in arrays]
    return [target(kind_of(arrays[0]), x, t, to, t.dims, _dtypes.WORD[t.dtype]) for x, to, t in zip(arrays, into, seen)]


@operator
def attention_backward(
        dout: Any, q: Any, k: Any, v: Any, out: Any, lse: Any, *, causal: bool = False, mask: Any = None,
        mask_tensor: Any = None, window: Sequence[int] | None = None, scale: float | None = None,
        softcap: float = 0.0, dropout: float = 0.0, seed: int = 0, offset: int = 0,
        layout: str = "bhld", backend: str | None = None, into: Sequence[Any] = (None,) * 3) -> Call:
    """The gradients (dq, dk, dv) of `dout`, where `attention(q, k, v, lse=True, **options)` returned `out` and `lse`.
    `into` are three arrays to write to.

    >>> import numpy, tenon
    >>> q = k = v = numpy.ones((1, 1, 2, 4), "float32")
    >>> out, lse = tenon.attention(q, k, v, causal=True, lse=True)
    >>> dq, dk, dv = tenon.attention_backward(numpy.ones_like(out), q, k, v, out, lse, causal=True)
    >>> dv[0, 0, :, 0].round(3)         # the first value is all of one output and half of the other
    array([1.5, 0.5], dtype=float32)
    """
    number, array, (left, right) = _mask_of(mask, mask_tensor, window, causal)
    given = [view(x) for x in (q, k, v, out, lse)]
    kind, mask_view, dout_view = kind_of(q), view_or_none(array), view(dout)
    grads = _gradients_into((q, k, v), into)
    tensors = [*given, mask_view, dout_view, *(tensor for _, tensor in grads)]
    args = _abi.AttentionBackwardArgs(
        sizeof(_abi.AttentionBackwardArgs), *map(reference, tensors),
        0.0 if scale is None else scale, softcap, dropout, seed, offset, left, right, number,
        layout_number(layout), 0 if scale is None else 1, _backend_number(backend))
    place(args, kind, q, given[0])
    return Call("tn_attention_backward", args, tuple(array for array, _ in grads), tensors, into)


@operator
def attention_merge(one: Any, lse_one: Any, other: Any, lse_other: Any, *, layout: str = "bhld") -> Call:
    """(out, lse) over all keys, of two results of attention over different ones.

    >>> import numpy, tenon
    >>> q, k, v = numpy.random.default_rng(0).standard_normal((3, 1, 1, 8, 4), "float32")
    >>> early = tenon.attention(q, k[:, :, :3], v[:, :, :3], lse=True)
    >>> late = tenon.attention(q, k[:, :, 3:], v[:, :, 3:], lse=True)
    >>> numpy.allclose(tenon.attention_merge(*early, *late)[0], tenon.attention(q, k, v), atol=1e-6)
    True
    """
    given = [view(x) for x in (one, lse_one, other, lse_other)]
    kind = kind_of(one)
    out, to = target(kind, one, given[0], None, given[0].dims, _dtypes.WORD[given[0].dtype])
    lse, sums = target(kind, one, given[0], None, given[1].dims, _dtypes.WORD[given[1].dtype])
    args = _abi.AttentionMergeArgs(sizeof(_abi.AttentionMergeArgs), *map(reference, given),
                                   reference(to), reference(sums), layout_number(layout))
    place(args, kind, one, given[0])
    return Call("tn_attention_merge", args, (out, lse), (given, to, sums))


def _sparse_numbers(block: Any, causal: bool, mask: Any, window: Any, scale: float | None, layout: str) -> list[Any]:
    """The fields of the args of both passes from `scale` to `set`."""
    number, array, (left, right) = _mask_of(mask, None, window, causal)
    if array is not None:
        raise TypeError(f"mask: expected a word, got {type(array).__name__}; give blocks in block_mask")
    sizes = block if isinstance(block, (tuple, list)) else (block, block)
    queries, keys = (_given.number("block", one, *_given.INT64) for one in sizes)
    return [0.0 if scale is None else scale, queries, keys, left, right, number, layout_number(layout),
            0 if scale is None else 1]


@operator
def attention_sparse(
        q: Any, k: Any, v: Any, block_mask: Any = None, *, block: int | tuple[int, int], starts: Any = None,
        blocks: Any = None, block_sizes: Any = None, order: Any = None, causal: bool = False, mask: str | None = None,
        window: Sequence[int] | None = None, scale: float | None = None, layout: str = "bhld", lse: Any = False,
        out: Any = None, dtype: Any = None) -> Call:
    """Attention in which each block of queries sees only some blocks of keys; the time is proportional to their number.

    `block` is the number of queries and of keys of a block, or (queries, keys); the last blocks may be shorter.
    `block_mask`, an array of bool that broadcasts to [batch, heads, query blocks, key blocks], says which blocks of keys
    are seen. Or lists do: the blocks of keys that block n of the queries sees are `blocks[starts[n]:starts[n + 1]]`, of
    int32 and ascending; `starts` broadcasts to [batch, heads, query blocks + 1]. `block_sizes`, int32, broadcasts to
    [batch, key blocks]: the number of valid keys of each block. `order`, int32, broadcasts to [batch, slots]: blocks are then
    of slots, and it is the token of each slot, for queries and keys. Each token has one slot among the valid ones. The other
    options are those of `attention`.

    >>> import numpy, tenon
    >>> q = k = numpy.ones((1, 1, 4, 16), "float32")
    >>> v = k * numpy.arange(4, dtype="float32")[:, None]
    >>> seen = numpy.array([[True, False], [True, True]])      # two blocks of two
    >>> tenon.attention_sparse(q, k, v, seen, block=2)[0, 0, :, 0].round(3)
    array([0.5, 0.5, 1.5, 1.5], dtype=float32)
    """
    given = [view(q), view(k), view(v)]
    tables = [view_or_none(x) for x in (block_mask, starts, blocks, block_sizes, order)]
    numbers = _sparse_numbers(block, causal, mask, window, scale, layout)
    kind, tq = kind_of(q), given[0]
    if tq.ndim != 4 or given[2].ndim != 4:
        raise errors.invalid("q, v: expected the dimensions batch, heads, length and size, got the shapes "
                             f"{tq.dims} and {given[2].dims}")
    word = _dtypes.WORD[tq.dtype]
    result, to = target(kind, q, tq, out, _attention_shape(tq, given[2]),
                        word if dtype is None else _dtypes.word_of(dtype))
    sums = wanted = None
    if lse is not False and lse is not None:
        wanted = None if lse is True else lse
        lse, sums = target(kind, q, tq, wanted, _lse_shape(tq, layout), "f64" if word == "f64" else "f32")
        result = (result, lse)
    args = _abi.AttentionSparseArgs(
        sizeof(_abi.AttentionSparseArgs), *map(reference, given), reference(to), reference(sums),
        *map(reference, tables), *numbers)
    place(args, kind, q, tq)
    return Call("tn_attention_sparse", args, result, (given, tables, to, sums), (out, wanted))


SCALES = {"thread": 0, "warp": 1, "block": 2}


@operator
def attention_quantized(
        q: Any, k: Any, v: Any, *, weights: Any = "f32", scales: str = "thread", smooth: bool = True, causal: bool = False,
        mask: str | None = None, window: Sequence[int] | None = None, scale: float | None = None, layout: str = "bhld",
        lse: Any = False, out: Any = None, dtype: Any = None) -> Call:
    """Attention with scores of 8-bit integers: faster than `attention`, and less accurate.

    `weights` is the precision of the second product: "f32", "f16", "f8_e4m3fn", "u8" (fastest on CPUs) or "i8". `scales`
    says which rows share a scale: "thread", "warp" or "block", from fine to coarse. `smooth` subtracts the mean of the keys
    first, which only changes the rounding. The other options are those of `attention`.

    >>> import numpy, tenon
    >>> random = numpy.random.default_rng(0)
    >>> q, k, v = random.normal(size=(3, 1, 2, 256, 64)).astype("float32")
    >>> off = tenon.attention_quantized(q, k, v, weights="u8") - tenon.attention(q, k, v)
    >>> bool(abs(off).sum() < 0.03 * abs(tenon.attention(q, k, v)).sum())
    True
    """
    number, array, (left, right) = _mask_of(mask, None, window, causal)
    if array is not None:
        raise TypeError(f"mask: expected a word, got {type(array).__name__}; tenon.attention takes arrays")
    given = [view(q), view(k), view(v)]
    kind, tq = kind_of(q), given[0]
    if tq.ndim != 4 or given[2].ndim != 4:
        raise errors.invalid("q, v: expected the dimensions batch, heads, length and size, got the shapes "
                             f"{tq.dims} and {given[2].dims}")
    word = _dtypes.WORD[tq.dtype]
    result, to = target(kind, q, tq, out, _attention_shape(tq, given[2]),
                        word if dtype is None else _dtypes.word_of(dtype))
    sums = wanted = None
    if lse is not False and lse is not None:
        wanted = None if lse is True else lse
        lse, sums = target(kind, q, tq, wanted, _lse_shape(tq, layout), "f32")
        result = (result, lse)
    args = _abi.AttentionQuantizedArgs(
        sizeof(_abi.AttentionQuantizedArgs), *map(reference, given), reference(to), reference(sums),
        0.0 if scale is None else scale, left, right, number, layout_number(layout), 0 if scale is None else 1,
        _dtypes.NUMBER[_dtypes.word_of(weights)], word_number("scales", SCALES, scales),
        0 if _given.flag("smooth", smooth) else 1)
    place(args, kind, q, tq)
    return Call("tn_attention_quantized", args, result, (given, to, sums), (out, wanted))


@operator
def attention_sparse_backward(
        dout: Any, q: Any, k: Any, v: Any, out: Any, lse: Any, block_mask: Any = None, *, block: int | tuple[int, int],
        starts: Any = None, blocks: Any = None, block_sizes: Any = None, causal: bool = False, mask: str | None = None,
        window: Sequence[int] | None = None, scale: float | None = None, layout: str = "bhld",
        into: Sequence[Any] = (None,) * 3) -> Call:
    """The gradients (dq, dk, dv) of `dout`, where `attention_sparse(q, k, v, lse=True, **options)` returned `out` and `lse`.
    The lists are those of the forward pass. `into` are three arrays to write to.

    >>> import numpy, tenon
    >>> q = k = v = numpy.ones((1, 1, 4, 16), "float32")
    >>> seen = numpy.array([[True, False], [True, True]])      # two blocks of two
    >>> out, lse = tenon.attention_sparse(q, k, v, seen, block=2, lse=True)
    >>> dq, dk, dv = tenon.attention_sparse_backward(numpy.ones_like(out), q, k, v, out, lse, seen, block=2)
    >>> dv[0, 0, :, 0].round(3)
    array([1.5, 1.5, 0.5, 0.5], dtype=float32)
    """
    grads, given = _gradients_into((q, k, v), into), [view(x) for x in (q, k, v, out, lse)]
    tables = [view_or_none(x) for x in (block_mask, starts, blocks, block_sizes)]
    tensors = [*given, *tables, view(dout), *(tensor for _, tensor in grads)]
    args = _abi.AttentionSparseBackwardArgs(
        sizeof(_abi.AttentionSparseBackwardArgs), *map(reference, tensors),
        *_sparse_numbers(block, causal, mask, window, scale, layout))
    place(args, kind_of(q), q, given[0])
    return Call("tn_attention_sparse_backward", args, tuple(array for array, _ in grads), tensors, into)


@operator
def permute(x: Any, order: Sequence[int], *, out: Any = None) -> Call:
    """A dense copy whose dimension i is x's dimension order[i].

    >>> import numpy, tenon
    >>> tenon.permute(numpy.array([[1, 2, 3], [4, 5, 6]]), (1, 0))
    array([[1, 4],
           [2, 5],
           [3, 6]])
    """
    given = view(x)
    dims = given.dims
    if not hasattr(order, "__iter__"):
        raise TypeError(f"order: expected the numbers of all dimensions, got {type(order).__name__}")
    order = _given.permutation("order", order, len(dims))
    places = (c_int32 * max(len(order), 1))(*order)
    made = one_output("tn_permute", _abi.PermuteArgs, x, given, out, tuple(dims[i] for i in order), None, {},
                      order_count=len(order))
    made.args.order = addressof(places)
    made.keep = (made.keep, places)
    return made


@operator
def cast(x: Any, dtype: Any = None, *, out: Any = None) -> Call:
    """x as another dtype: floats to nearest even, to integers cut towards zero and kept in range. Integers are kept
    in range too, where NumPy's `astype` wraps them round; NaN is 0 in integers, and true in bool, as all but 0 is.

    >>> import numpy, tenon
    >>> tenon.cast(numpy.array([1.9, -1.0, 300.0, numpy.nan]), "u8")
    array([  1,   0, 255,   0], dtype=uint8)
    """
    if dtype is None and out is None:
        raise TypeError("cast: expected dtype, or out of that dtype, got neither")
    word = None if dtype is None else _dtypes.word_of(dtype)
    return one_output("tn_cast", _abi.CastArgs, x, view(x), out, None, word, {})


@operator
def fill(out: Any, value: complex) -> Call:
    """Writes the value to every element of `out`, and gives it. In integers it is what `cast` gives: 1.5 is 1,
    and in u8 300 is 255, -1 and NaN are 0. An integer that a double does not hold is refused.

    >>> import numpy, tenon
    >>> scores = numpy.zeros((2, 3), "float32")
    >>> tenon.fill(scores[:, 1:], -numpy.inf)       # a part of an array: its memory is written
    array([[-inf, -inf],
           [-inf, -inf]], dtype=float32)
    >>> scores[0]
    array([  0., -inf, -inf], dtype=float32)
    """
    number, to = _given.scalar("value", value), view(out, to_write=True)
    args = make_args(_abi.FillArgs, out, to, out=reference(to), value=number.real, imaginary=number.imag)
    return Call("tn_fill", args, out, to, (out,))


@operator
def softmax(x: Any, axis: int = -1, *, log: bool = False, out: Any = None,
            dtype: Any = None) -> Call:
    """exp(x - max) / sum along an axis, or with `log=True` the logarithm of that. Of floats.

    >>> import numpy, tenon
    >>> tenon.softmax(numpy.array([[0, 0], [1000, -numpy.inf]], "float32"))      # nothing overflows
    array([[0.5, 0.5],
           [1. , 0. ]], dtype=float32)
    """
    given = view(x)
    word = None if dtype is None else _dtypes.word_of(dtype)
    return one_output("tn_softmax", _abi.SoftmaxArgs, x, given, out, None, word, {},
                      axis=given.ndim - 1 - _given.dimension("axis", axis, given.ndim), log=_given.flag("log", log))


def _norm_call(kind: int, x: Any, weight: Any, bias: Any, epsilon: float, out: Any, dtype: Any) -> Call:
    word = None if dtype is None else _dtypes.word_of(dtype)
    seen = {"weight": view_or_none(weight), "bias": view_or_none(bias)}
    return one_output("tn_norm", _abi.NormArgs, x, view(x), out, None, word, seen,
                      epsilon=_given.real("epsilon", epsilon), kind=kind, set=1)


@operator
def layer_norm(x: Any, weight: Any = None, bias: Any = None, *, epsilon: float = 1e-5, out: Any = None,
               dtype: Any = None) -> Call:
    """(x - mean) / sqrt(variance + epsilon) * weight + bias along the last dimension.

    >>> import numpy, tenon
    >>> x = numpy.array([[1, 3], [4, 12]], "float32")
    >>> tenon.layer_norm(x, weight=numpy.array([1, 2], "float32"), epsilon=0)
    array([[-1.,  2.],
           [-1.,  2.]], dtype=float32)
    """
    return _norm_call(0, x, weight, bias, epsilon, out, dtype)


@operator
def rms_norm(x: Any, weight: Any = None, bias: Any = None, *, epsilon: float = 1e-5, out: Any = None,
             dtype: Any = None) -> Call:
    """x / sqrt(mean of squares + epsilon) * weight + bias along the last dimension.

    >>> import numpy, tenon
    >>> tenon.rms_norm(numpy.array([[2, 2, 2, 2], [4, 0, 0, 0]], "float32"), epsilon=0)
    array([[1., 1., 1., 1.],
           [2., 0., 0., 0.]], dtype=float32)
    """
    return _norm_call(1, x, weight, bias, epsilon, out, dtype)


@operator
def rotary(x: Any, cos: Any, sin: Any, *, size: int = 0, kind: str = "halves",
           out: Any = None) -> Call:
    """The first `size` of the last dimension turned by angles, in "halves" or "pairs"; all of it when `size` is 0.

    >>> import numpy, tenon
    >>> x = numpy.array([[[1, 2, 3, 4]]], "float32")                   # heads, length, size
    >>> cos, sin = numpy.zeros((1, 2), "float32"), numpy.ones((1, 2), "float32")      # a right angle
    >>> tenon.rotary(x, cos, sin), tenon.rotary(x, cos, sin, kind="pairs")
    (array([[[-3., -4.,  1.,  2.]]], dtype=float32), array([[[-2.,  1., -4.,  3.]]], dtype=float32))
    """
    turn, size = word_number("kind", ROTARY, kind), _given.number("size", size, *_given.INT64)
    return one_output("tn_rotary", _abi.RotaryArgs, x, view(x), out, None, None, {"cos": view(cos), "sin": view(sin)},
                      size=size, kind=turn)


def _copied(source: Any, target: Any) -> tuple[_abi.Tensor, _abi.Tensor]:
    return view(source), view(target, to_write=True)


def copy(source: Any, target: Any) -> Any:
    """Copies between arrays of one shape and dtype, on any devices; gives `target`. It is queued on the stream of
    the target's library, or of the source's where the target is in the host's memory: then it is waited for.

    >>> import numpy, tenon
    >>> there = tenon.empty((3,), "f32", "cpu")                        # or "cuda"
    >>> back = tenon.copy(tenon.copy(numpy.array([1, 2, 3], "float32"), there), numpy.empty(3, "float32"))
    >>> back
    array([1., 2., 3.], dtype=float32)
    """
    given, to = make(_copied, (source, target), {})
    kind, stream = kind_of(target), None
    if to.device_type != 1:
        stream = kind.stream(target, to)
    elif given.device_type != 1:
        stream = kind_of(source).stream(source, given)
    if stream is None:
        call(lib.tn_copy, None, byref(given), byref(to))
    else:
        call_in_order(stream, sources([given, to]), lib.tn_copy, stream, byref(given), byref(to))
        if to.device_type == 1:
            call(lib.tn_stream_synchronize, stream)
    kind.wrote(target)
    return target


def __dir__() -> list[str]:
    return __all__
