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

from ctypes import addressof, byref, c_int32, c_void_p, sizeof
from ctypes import cast as cast_address
from inspect import signature

from . import _abi, _dtypes, _given, errors, settings
from ._arrays import Kind, kind_of, new_axis, reference, stream_address, view, view_or_none
from ._handles import call
from ._library import lib
from ._packing import Packer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Iterable, Iterator, Sequence

    from typing_extensions import ParamSpec

    P = ParamSpec("P")
    Shape = tuple[int, ...]

ACTIVATIONS = {None: 0, "none": 0, "relu": 1, "gelu": 2, "gelu-tanh": 3, "silu": 4}
UNARY = ("neg abs sqrt rsqrt exp log tanh sigmoid relu gelu gelu-tanh silu").split()
BINARY = "add sub mul div max min".split()
REDUCTIONS = "sum mean max min prod".split()
ROTARY = "halves pairs".split()
MASKS = {None: 0, "none": 0, "causal": 1, "causal-br": 2, "window": 3}
LAYOUTS = {"bhld": 0, "blhd": 1}

_NO_WINDOW = (0, 0)
_PLAIN = {"mask", "mask_tensor", "scale", "layout", "backend"}  # options that the extension knows
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
    functions = (lib.tn_matmul, lib.tn_attention)
    _fast.bind(*(cast_address(function, c_void_p).value for function in functions), stream_address)
    return _fast


_fast = _load_fast()


class _Call:
    """A call that is ready: the function's name without `tn_`, its args, what it gives, and the tensors
    that the args point to."""

    __slots__ = ("name", "args", "result", "keep")

    def __init__(self, name: str, args: Any, result: Any, keep: Any) -> None:
        self.name, self.args, self.result, self.keep = name, args, result, keep


# What makes the call of each operator: for explain and prepare.
MAKERS: dict[Callable[..., Any], Callable[..., _Call]] = {}


def make(maker: Callable[..., _Call], given: tuple[Any, ...], options: dict[str, Any]) -> _Call:
    """The call that a maker makes of a caller's arguments. TypeError names the operator and, of an option that it does
    not have, the nearest."""
    try:
        return maker(*given, **options)
    except TypeError:
        _check_names(maker, options)
        raise


def _check_names(maker: Callable[..., _Call], options: dict[str, Any]) -> None:
    code = maker.__code__
    known = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    for name in options:
        if name not in known:
            from difflib import get_close_matches

            near = get_close_matches(name, known, 1, 0)[0]
            raise TypeError(f"{maker.__name__}() has no option {name!r}; did you mean {near!r}? "
                            f"There are: {', '.join(known[code.co_argcount:])}") from None


def _present(face: Callable[..., Any], maker: Callable[..., _Call]) -> None:
    """The operator shows what its maker takes, and the maker's errors are told as the operator's."""
    maker.__name__ = maker.__qualname__ = face.__name__
    face.__signature__ = signature(maker).replace(return_annotation="Any")  # type: ignore[attr-defined]
    MAKERS[face] = maker


def _faces(maker: Callable[P, _Call]) -> Callable[[Callable[..., Any]], Callable[P, Any]]:
    """Decorates an operator whose calls the maker makes: it takes what that takes, also for checkers of types."""

    def present(face: Callable[..., Any]) -> Callable[P, Any]:
        _present(face, maker)
        return face

    return present


def _operator(maker: Callable[P, _Call]) -> Callable[P, Any]:
    """Decorates a maker and gives the operator, which makes the call and runs it."""

    def face(*given: Any, **options: Any) -> Any:
        return run(make(maker, given, options))

    face.__name__, face.__qualname__, face.__doc__ = maker.__name__, maker.__qualname__, maker.__doc__
    _present(face, maker)
    return face


def _place(args: Any, kind: Kind, array: Any, tensor: _abi.Tensor) -> None:
    """Off the host, the stream of the array's library."""
    if tensor.device_type != 1:
        args.stream = kind.stream(array, tensor)


def _sources(kept: Any) -> Iterator[tuple[Any, ...]]:
    """Kind, array and tensor of all that is off the host among what a call keeps."""
    if isinstance(kept, _abi.Tensor):
        if hasattr(kept, "source"):
            yield (*kept.source, kept)
    elif isinstance(kept, (tuple, list, dict)):
        for one in kept.values() if isinstance(kept, dict) else kept:
            yield from _sources(one)


def _further(stream: int, sources: Iterable[tuple[Any, ...]]) -> tuple[set[int], bool]:
    """The streams beside `stream` that the libraries of these arrays work on, and whether one of them must find its
    arrays untouched when a call returns."""
    places = {(kind, tensor.device_type, tensor.device_id): (array, tensor) for kind, array, tensor in sources}
    waits = any(kind.waits for kind, *_ in places)
    if len(places) < 2:  # then `stream` is its
        return set(), waits
    return {place[0].stream(*of) for place, of in places.items()} - {stream, None}, waits


def _call_in_order(stream: int, sources: Iterable[tuple[Any, ...]], function: Any, *given: Any) -> None:
    """Calls what queues work on the stream: behind what the arrays' libraries have queued on theirs, and before what
    they queue next."""
    streams, waits = _further(stream, sources)
    for other in streams:
        call(lib.tn_stream_wait_stream, stream, other)
    call(function, *given)
    if waits:
        call(lib.tn_stream_synchronize, stream)
        return
    for other in streams:
        call(lib.tn_stream_wait_stream, other, stream)


def run(ready: _Call) -> Any:
    """Runs it in the settings that hold here."""
    args, function = ready.args, getattr(lib, ready.name)
    if args.stream:
        _call_in_order(args.stream, _sources(ready.keep), function, settings.context(), byref(args))
        return ready.result
    err = _abi.Error()
    if function(settings.context(), byref(args), byref(err)):
        raise errors.make(err)
    return ready.result


def _word(kind: str, words: Any, word: Any) -> int:
    """The number of a word in a list of them."""
    if word not in words:
        raise errors.invalid(
            f'no {kind} "{word}"; there are: {", ".join(str(w) for w in words if w)}')
    return int(words[word] if isinstance(words, dict) else words.index(word))


def _target(kind: Kind, like: Any, out: Any, shape: Shape, word: str) -> tuple[Any, _abi.Tensor]:
    """The array to write to and its tensor: `out`, or a new one."""
    if out is None:
        out = kind.empty(like, shape, word)
        return out, kind_of(out).view(out)
    return out, kind_of(out).view_to_write(out)


def _args(cls: type, array: Any, tensor: _abi.Tensor, **fields: Any) -> Any:
    """An args struct with its size and the stream of the array's library."""
    args = cls(struct_size=sizeof(cls), **fields)
    _place(args, kind_of(array), array, tensor)
    return args


def _broadcast(one: Shape, other: Shape) -> Shape:
    """The shape that both serve."""
    if one == other or not other:
        return one
    if not one:
        return other
    rank = max(len(one), len(other))
    sizes = []
    for a, b in zip((1,) * (rank - len(one)) + one, (1,) * (rank - len(other)) + other):
        if a != b and 1 not in (a, b):
            raise errors.invalid(f"shapes {one} and {other} do not broadcast")
        sizes.append(b if a == 1 else a)
    return tuple(sizes)


# Of what is not of the inputs' dtype.
_MATMUL_RESULTS = {"i8": "i32", "u8": "i32", "f8_e4m3fn": "f32", "f8_e5m2": "f32"}


def _matmul_word(a: _abi.Tensor, dtype: Any) -> str:
    if dtype is not None:
        return _dtypes.word_of(dtype)
    word = _dtypes.WORD[a.dtype]
    return _MATMUL_RESULTS.get(word, word)


def _matmul_call(a: Any, b: Any, *, out: Any = None, bias: Any = None, alpha: float = 1.0,
                 beta: float = 0.0, activation: str | None = None, transpose_a: bool = False,
                 transpose_b: bool = False, acc: Any = None, dtype: Any = None, scale_a: Any = None,
                 scale_b: Any = None) -> _Call:
    kind = kind_of(a)
    ta, tb = kind.view(a), kind_of(b).view(b)
    scales = tuple(None if scale is None else view(scale) for scale in (scale_a, scale_b))
    if ta.ndim < 2 or tb.ndim < 2:
        if scales != (None, None):
            raise errors.invalid("matmul of vectors takes no scales")
        return _vector_call(a, b, ta, tb, out, dict(
            bias=bias, alpha=alpha, beta=beta, activation=activation, transpose_a=transpose_a,
            transpose_b=transpose_b, acc=acc, dtype=dtype))
    if beta and out is None:
        raise errors.invalid("beta without out: there is nothing that it could count")
    da, db = ta.dims, tb.dims
    shape = (da[-1 if transpose_a else -2], db[-2 if transpose_b else -1])
    if len(da) > 2 or len(db) > 2:
        shape = _broadcast(da[:-2], db[:-2]) + shape
    result, to = _target(kind, a, out, shape, _matmul_word(ta, dtype))
    extra = None if bias is None else view(bias)
    return _matmul_pack(kind, a, result, ta, tb, to, extra, alpha, beta, activation,
                        transpose_a, transpose_b, acc, scales)


def _matmul_pack(kind: Kind, a: Any, result: Any, ta: _abi.Tensor, tb: _abi.Tensor,
                 to: _abi.Tensor, bias: _abi.Tensor | None, alpha: float, beta: float,
                 activation: str | None, transpose_a: bool, transpose_b: bool, acc: Any,
                 scales: tuple[Any, ...] = (None, None)) -> _Call:
    args = _abi.MatmulArgs()
    _matmul.write(
        args, _MATMUL_SIZE, addressof(ta), addressof(tb), addressof(to),
        0 if bias is None else addressof(bias), alpha, beta,
        0 if activation is None else _word("activation", ACTIVATIONS, activation), transpose_a,
        transpose_b, 0 if acc is None else _dtypes.NUMBER[_dtypes.word_of(acc)], 1)
    if scales != (None, None):
        args.scale_a, args.scale_b = map(reference, scales)
    _place(args, kind, a, ta)
    return _Call("tn_matmul", args, result, (ta, tb, to, bias, *scales))


def _vector_call(a: Any, b: Any, ta: _abi.Tensor, tb: _abi.Tensor, out: Any,
                 options: dict[str, Any]) -> _Call:
    """As NumPy reads vectors: rows on the left, columns on the right, and they vanish."""
    if ta.ndim == 0 or tb.ndim == 0:
        raise errors.invalid(f"matmul of shapes {ta.dims} and {tb.dims}: scalars are not matrices")
    if options["bias"] is not None or options["transpose_a"] or options["transpose_b"]:
        raise errors.invalid("matmul of vectors takes neither bias nor transposes")
    kind = kind_of(a)
    left = new_axis(ta, 0) if ta.ndim == 1 else ta
    right = new_axis(tb, 1) if tb.ndim == 1 else tb
    shape = (_broadcast(left.dims[:-2], right.dims[:-2])
             + (() if ta.ndim == 1 else (left.dims[-2],)) + (() if tb.ndim == 1 else (right.dims[-1],)))
    result, to = _target(kind, a, out, shape, _matmul_word(ta, options["dtype"]))
    if tb.ndim == 1:
        to = new_axis(to, to.ndim)
    if ta.ndim == 1:
        to = new_axis(to, to.ndim - 1)
    return _matmul_pack(kind, a, result, left, right, to, None, options["alpha"], options["beta"],
                        options["activation"], False, False, options["acc"])


@_faces(_matmul_call)
def matmul(a: Any, b: Any, **options: Any) -> Any:
    """activation(alpha * A B + beta * out + bias).

    A is [..., m, k], B is [..., k, n], of any strides; dimensions before the last two broadcast, and
    vectors are as NumPy reads them. Options: `out`, `bias`, `alpha`, `beta`, `activation` ("relu", "gelu",
    "gelu-tanh", "silu"), `transpose_a`, `transpose_b`, `acc` (the dtype of sums), `dtype` (of the result),
    `scale_a`, `scale_b` (of 8-bit floats: one number, or [m, 1] and [1, n]).
    """
    if _fast is not None and not options:
        result = _fast.matmul(settings.context(), a, b)
        if result is not NotImplemented:
            return result
    return run(make(_matmul_call, (a, b), options))


def _mask_of(mask: Any, mask_tensor: Any, window: Sequence[int] | None) -> tuple[int, Any, tuple[Any, ...]]:
    """The mask's number, the tensor and the window."""
    if mask is None and window is None:
        return 0, mask_tensor, _NO_WINDOW
    if mask is not None and not isinstance(mask, str):
        if mask_tensor is not None:
            raise errors.invalid("two arrays of masks: mask and mask_tensor")
        mask, mask_tensor = None, mask
    if window is not None and len(window) != 2:
        raise errors.invalid(f"a window of {len(window)} numbers; it has two, (left, right)")
    number = 3 if window is not None else _word("mask", MASKS, mask)
    if window is not None and mask not in (None, "window"):
        raise errors.invalid(f'a window and the mask "{mask}" at once')
    if number == 3 and window is None:
        raise errors.invalid('the mask "window" needs window=(left, right)')
    return number, mask_tensor, _NO_WINDOW if window is None else tuple(window)


_backends: dict[str, int] = {}  # those that were found, whose numbers stay theirs


def _backend_number(backend: str | None) -> int:
    if backend is None:
        return 0
    name = str(backend)
    if name not in _backends:
        out = c_int32()
        call(lib.tn_attention_backend_find, _given.text("backend", name), byref(out))
        _backends[name] = out.value
    return _backends[name]


def _attention_shape(q: _abi.Tensor, v: _abi.Tensor) -> Shape:
    return (*q.dims[:-1], *v.dims[-1:])


def _lse_shape(q: _abi.Tensor, layout: str) -> Shape:
    *batch, a, b, _ = q.dims
    return (*batch, a, b) if layout == "bhld" else (*batch, b, a)


def _attention_call(
        q: Any, k: Any, v: Any, *, mask: Any = None, mask_tensor: Any = None,
        window: Sequence[int] | None = None, scale: float | None = None, softcap: float = 0.0,
        dropout: float = 0.0, seed: int = 0, offset: int = 0, layout: str = "bhld",
        sinks: Any = None, starts_q: Any = None, starts_k: Any = None, lengths: Any = None,
        pages: Any = None, max_queries: int = 0, max_keys: int = 0, backend: str | None = None,
        lse: Any = False, out: Any = None, dtype: Any = None) -> _Call:
    kind = kind_of(q)
    tq, tk, tv = kind.view(q), kind_of(k).view(k), kind_of(v).view(v)
    if tq.ndim < 3 or tv.ndim < 3:
        raise errors.invalid(f"attention of shapes {tq.dims} and {tv.dims}: each needs heads, length and "
                             "size, and unless it is packed the batch")
    number, array, (left, right) = _mask_of(mask, mask_tensor, window)
    word = _dtypes.WORD[tq.dtype]
    result, to = _target(kind, q, out, _attention_shape(tq, tv),
                         word if dtype is None else _dtypes.word_of(dtype))
    sums = None
    if lse is not False and lse is not None:
        wanted = None if lse is True else lse
        lse, sums = _target(kind, q, wanted, _lse_shape(tq, layout), "f64" if word == "f64" else "f32")
        result = (result, lse)
    given = (array, sinks, starts_q, starts_k, lengths, pages)
    plain = (array is None and sinks is None and starts_q is None and starts_k is None
             and lengths is None and pages is None)
    extra = None if plain else tuple(map(view_or_none, given))
    args = _abi.AttentionArgs()
    _operands.into(args, 0, _ATTENTION_SIZE, addressof(tq), addressof(tk), addressof(tv), addressof(to),
                   0 if sums is None else addressof(sums))
    if extra is not None:
        _arrays.write(args, *(reference(tensor) or 0 for tensor in extra))
    _options.write(
        args, 0.0 if scale is None else scale, softcap, dropout, seed, offset, left, right, max_queries,
        max_keys, number, _word("layout", LAYOUTS, layout), 0 if scale is None else 1,
        0 if backend is None else _backend_number(backend))
    _place(args, kind, q, tq)
    return _Call("tn_attention", args, result, (tq, tk, tv, to, sums, extra))


def _fast_attention(q: Any, k: Any, v: Any, mask: Any = None, mask_tensor: Any = None, scale: Any = None,
                    layout: str = "bhld", backend: str | None = None) -> Any:
    """By the extension; NotImplemented where it leaves the call to what follows."""
    if mask_tensor is None and mask is not None and not isinstance(mask, str):
        mask, mask_tensor = None, mask
    number = MASKS.get(mask) if mask is None or isinstance(mask, str) else None
    if number not in (0, 1, 2) or layout not in LAYOUTS:
        return NotImplemented
    return _fast.attention(settings.context(), q, k, v, number, scale, mask_tensor, LAYOUTS[layout], False,
                           0 if backend is None else _backend_number(backend))


@_faces(_attention_call)
def attention(q: Any, k: Any, v: Any, **options: Any) -> Any:
    """softmax(scale q k' + mask) v, of [batch, heads, length, size] ("bhld") or `layout="blhd"`.

    `mask` is "causal" (aligned at the top left), "causal-br" (at the bottom right), or an array that
    broadcasts to [batch, heads, queries, keys]: of bool, true is seen; of floats, added. `mask_tensor` is
    such an array together with a word. `window=(left, right)`, -1 for no bound. Keys and values may have
    fewer heads. Further options: `scale` (1 / sqrt(size) when left out), `softcap`, `dropout` with `seed`
    and `offset`, `sinks`, `lengths`, `pages`, `starts_q` and `starts_k` (packed sequences, then [length,
    heads, size]), `max_queries`, `max_keys`, `backend` ("FLASH_ATTN": required), `out`, `dtype`. With
    `lse=True` also gives the logarithms of the sums, (out, lse).

    >>> import numpy
    >>> q = numpy.ones((1, 2, 4, 8), "float32")
    >>> attention(q, q, q, mask="causal").shape
    (1, 2, 4, 8)
    """
    if _fast is not None and options.keys() <= _PLAIN:
        result = _fast_attention(q, k, v, **options)
        if result is not NotImplemented:
            return result
    return run(make(_attention_call, (q, k, v), options))


@_operator
def attention_backward(
        dout: Any, q: Any, k: Any, v: Any, out: Any, lse: Any, *, mask: Any = None,
        mask_tensor: Any = None, window: Sequence[int] | None = None, scale: float | None = None,
        softcap: float = 0.0, dropout: float = 0.0, seed: int = 0, offset: int = 0,
        layout: str = "bhld", backend: str | None = None, into: Sequence[Any] = (None,) * 3) -> _Call:
    """(dq, dk, dv) of what `attention(q, k, v, lse=True, **options)` gave as `out` and `lse`; `into` are three
    arrays to write to."""
    kind = kind_of(q)
    number, array, (left, right) = _mask_of(mask, mask_tensor, window)
    given = [view(x) for x in (q, k, v, out, lse)]
    mask_view, dout_view = view_or_none(array), view(dout)
    grads = [_target(kind, x, to, t.dims, _dtypes.WORD[t.dtype])
             for x, to, t in zip((q, k, v), into, given)]
    tensors = [*given, mask_view, dout_view, *(tensor for _, tensor in grads)]
    args = _abi.AttentionBackwardArgs(
        sizeof(_abi.AttentionBackwardArgs), *map(reference, tensors),
        0.0 if scale is None else scale, softcap, dropout, seed, offset, left, right, number,
        _word("layout", LAYOUTS, layout), 0 if scale is None else 1, _backend_number(backend))
    _place(args, kind, q, given[0])
    return _Call("tn_attention_backward", args, tuple(array for array, _ in grads), tensors)


@_operator
def attention_merge(one: Any, lse_one: Any, other: Any, lse_other: Any, *, layout: str = "bhld") -> _Call:
    """(out, lse) over all keys, of two results of attention over different ones."""
    kind = kind_of(one)
    given = [view(x) for x in (one, lse_one, other, lse_other)]
    out, to = _target(kind, one, None, given[0].dims, _dtypes.WORD[given[0].dtype])
    lse, sums = _target(kind, one, None, given[1].dims, _dtypes.WORD[given[1].dtype])
    args = _abi.AttentionMergeArgs(sizeof(_abi.AttentionMergeArgs), *map(reference, given),
                                   reference(to), reference(sums), _word("layout", LAYOUTS, layout))
    _place(args, kind, one, given[0])
    return _Call("tn_attention_merge", args, (out, lse), (given, to, sums))


def _each_call(name: str, cls: type, x: Any, out: Any, shape: Shape | None, word: str | None,
               others: dict[str, Any], **fields: Any) -> _Call:
    """An operator that reads `x` and maybe others, and writes one array."""
    library = kind_of(x)
    given = library.view(x)
    result, to = _target(library, x, out, given.dims if shape is None else shape,
                         _dtypes.WORD[given.dtype] if word is None else word)
    seen = {key: view_or_none(array) for key, array in others.items()}
    args = _args(cls, x, given, **{"in": reference(given)}, out=reference(to),
                 **{key: reference(tensor) for key, tensor in seen.items()}, **fields)
    return _Call(name, args, result, (given, to, seen))


@_operator
def permute(x: Any, order: Sequence[int], *, out: Any = None) -> _Call:
    """A dense copy whose dimension i is x's dimension order[i]."""
    dims = view(x).dims
    if sorted(order) != list(range(len(dims))):
        raise errors.invalid(f"order {tuple(order)} is no permutation of {len(dims)} dimensions")
    places = (c_int32 * max(len(order), 1))(*order)
    made = _each_call("tn_permute", _abi.PermuteArgs, x, out, tuple(dims[i] for i in order), None, {},
                      order_count=len(order))
    made.args.order = addressof(places)
    made.keep = (made.keep, places)
    return made


@_operator
def cast(x: Any, dtype: Any = None, *, out: Any = None) -> _Call:
    """x as another dtype: floats to nearest even, to integers cut towards zero and kept in range."""
    word = None if dtype is None else _dtypes.word_of(dtype)
    return _each_call("tn_cast", _abi.CastArgs, x, out, None, word, {})


def fill(out: Any, value: complex) -> Any:
    """Writes the value to every element of `out`, and gives it."""
    number, to = _given.scalar("value", value), kind_of(out).view_to_write(out)
    args = _args(_abi.FillArgs, out, to, out=reference(to), value=number.real,
                 imaginary=number.imag)
    return run(_Call("tn_fill", args, out, to))


@_operator
def unary(kind: str, x: Any, *, out: Any = None, dtype: Any = None) -> _Call:
    """kind(x): neg abs sqrt rsqrt exp log tanh sigmoid relu gelu gelu-tanh silu."""
    word = None if dtype is None else _dtypes.word_of(dtype)
    return _each_call("tn_unary", _abi.UnaryArgs, x, out, None, word, {},
                      kind=_word("function", UNARY, kind))


@_operator
def binary(kind: str, x: Any, other: Any, *, out: Any = None, dtype: Any = None) -> _Call:
    """x kind other: add sub mul div max min. They broadcast."""
    word = None if dtype is None else _dtypes.word_of(dtype)
    return _each_call("tn_binary", _abi.BinaryArgs, x, out,
                      _broadcast(view(x).dims, view(other).dims), word, {"other": other},
                      kind=_word("function", BINARY, kind))


@_operator
def reduce(kind: str, x: Any, axes: Any = None, *, keepdims: bool = False, out: Any = None,
           dtype: Any = None) -> _Call:
    """The sum, mean, max, min or prod over some dimensions, all when none are named. Options:
    `keepdims`, `dtype`, `out`."""
    given = view(x)
    rank = given.ndim
    keep = _given.flag("keepdims", keepdims)
    wanted = range(rank) if axes is None else axes if hasattr(axes, "__iter__") else (axes,)
    wanted = [_given.axis("axes", axis) for axis in wanted]
    places = {axis + rank if axis < 0 else axis for axis in wanted}
    if any(place not in range(rank) for place in places) or (axes is not None and not places and rank):
        raise errors.invalid(f"axes {axes} of {rank} dimensions")
    shape = tuple(1 if i in places else n for i, n in enumerate(given.dims)
                  if keep or i not in places)
    word = _dtypes.WORD[given.dtype] if dtype is None else _dtypes.word_of(dtype)
    if dtype is None and word == "bool":
        word = "i64"
    return _each_call("tn_reduce", _abi.ReduceArgs, x, out, shape, word, {},
                      axes=sum(1 << place for place in places),
                      kind=_word("reduction", REDUCTIONS, kind), keep=keep)


@_operator
def softmax(x: Any, axis: int = -1, *, log: bool = False, out: Any = None,
            dtype: Any = None) -> _Call:
    """exp(x - max) / sum along an axis, or with `log=True` the logarithm of that."""
    rank, axis = view(x).ndim, _given.axis("axis", axis)
    if not -rank <= axis < rank:
        raise errors.invalid(f"axis {axis} of {rank} dimensions")
    word = None if dtype is None else _dtypes.word_of(dtype)
    return _each_call("tn_softmax", _abi.SoftmaxArgs, x, out, None, word, {},
                      axis=-1 - axis if axis < 0 else rank - 1 - axis, log=_given.flag("log", log))


def _norm_call(kind: int, x: Any, weight: Any, bias: Any, epsilon: float, out: Any, dtype: Any) -> _Call:
    word = None if dtype is None else _dtypes.word_of(dtype)
    return _each_call("tn_norm", _abi.NormArgs, x, out, None, word,
                      {"weight": weight, "bias": bias}, epsilon=epsilon, kind=kind, set=1)


@_operator
def layer_norm(x: Any, weight: Any = None, bias: Any = None, *, epsilon: float = 1e-5, out: Any = None,
               dtype: Any = None) -> _Call:
    """(x - mean) / sqrt(variance + epsilon) * weight + bias along the last dimension."""
    return _norm_call(0, x, weight, bias, epsilon, out, dtype)


@_operator
def rms_norm(x: Any, weight: Any = None, bias: Any = None, *, epsilon: float = 1e-5, out: Any = None,
             dtype: Any = None) -> _Call:
    """x / sqrt(mean of squares + epsilon) * weight + bias along the last dimension."""
    return _norm_call(1, x, weight, bias, epsilon, out, dtype)


@_operator
def rotary(x: Any, cos: Any, sin: Any, *, size: int = 0, kind: str = "halves",
           out: Any = None) -> _Call:
    """The first `size` of the last dimension turned by angles, in "halves" or "pairs"."""
    return _each_call("tn_rotary", _abi.RotaryArgs, x, out, None, None, {"cos": cos, "sin": sin},
                      size=size, kind=_word("rotation", ROTARY, kind))


def copy(source: Any, target: Any) -> Any:
    """Copies between arrays of one shape and dtype, on any devices; gives `target`. It is queued on the stream of
    the target's library, or of the source's where the target is in the host's memory: then it is waited for."""
    kind = kind_of(target)
    given, to = view(source), kind.view_to_write(target)
    stream = None
    if to.device_type != 1:
        stream = kind.stream(target, to)
    elif given.device_type != 1:
        stream = kind_of(source).stream(source, given)
    if stream is None:
        call(lib.tn_copy, None, byref(given), byref(to))
        return target
    _call_in_order(stream, _sources([given, to]), lib.tn_copy, stream, byref(given), byref(to))
    if to.device_type == 1:
        call(lib.tn_stream_synchronize, stream)
    return target
