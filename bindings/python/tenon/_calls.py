"""How an operator's call is made of a caller's arguments, and run: what all operators share.

A maker is a function that takes what its operator takes and gives the Call; `explain` and `prepare` ask it, too.
"""

from __future__ import annotations

import re
from ctypes import Structure, byref, sizeof
from inspect import signature
from math import prod
from sys import byteorder

from . import _abi, _dtypes, errors, settings
from ._arrays import Kind, kind_of, reference, view
from ._handles import call, take
from ._library import lib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Iterable, Iterator, TypeVar

    from typing_extensions import ParamSpec

    P = ParamSpec("P")
    T = TypeVar("T")
    Shape = tuple[int, ...]


class Call:
    """A call that is ready: the function's name, its args, what it gives, and the tensors that the args point to;
    with the caller's arrays that it writes to, None for those it has none of, and new results whose memory is set
    before, each with its pattern of bytes."""

    __slots__ = ("name", "args", "result", "keep", "outs", "preset")

    def __init__(self, name: str, args: Any, result: Any, keep: Any, outs: Iterable[Any] = (),
                 preset: Iterable[tuple[_abi.Tensor, bytes]] = ()) -> None:
        self.name, self.args, self.result, self.keep = name, args, result, keep
        self.outs, self.preset = outs, preset


# What makes the call of each operator: for explain and prepare.
MAKERS: dict[Callable[..., Any], Callable[..., Call]] = {}


def make(maker: Callable[..., T], given: tuple[Any, ...], options: dict[str, Any]) -> T:
    """What a maker makes of a caller's arguments. Errors name the argument that cannot be an operand, and TypeError the
    operator and, of an option that it does not have, the nearest."""
    try:
        return maker(*given, **options)
    except (TypeError, errors.Error) as error:
        _check_names(maker, options)
        _name_operand(error, maker, given, options)
        raise


# Options that PyTorch's operators have, and what says the same here.
ELSEWHERE = {"is_causal": "causal", "attn_mask": "mask", "dropout_p": "dropout",
             "enable_gqa": "fewer heads of k and v, which need no option"}


def choice(word: str, words: Iterable[str]) -> str:
    """The end of a sentence about a word that is none of these: the nearest, where one is near, and all."""
    from difflib import get_close_matches

    known = [*words]
    near = get_close_matches(word, known, 1, 0.5)
    return f"{f'; did you mean {near[0]!r}? There' if near else '; there'} are: {', '.join(known)}"


def _check_names(maker: Callable[..., Any], options: dict[str, Any]) -> None:
    code = maker.__code__
    known = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    for name in options:
        if name not in known:
            there = maker.__name__.startswith("attention") and ELSEWHERE.get(name)
            hint = f"; that is {there} here" if there else choice(name, known)
            raise TypeError(f"{maker.__name__}() has no option {name!r}{hint}") from None


def _name_operand(error: Any, maker: Callable[..., Any], given: tuple[Any, ...], options: dict[str, Any]) -> None:
    """Puts the argument's name before the words of an error that is about an operand."""
    if "operand" not in vars(error):
        return
    operand = vars(error).pop("operand")
    for name, value in signature(maker).bind_partial(*given, **options).arguments.items():
        if value is operand or isinstance(value, (tuple, list)) and any(one is operand for one in value):
            error.args = (f"{name}: {error.args[0]}", *error.args[1:])
            if isinstance(error, errors.Error):
                error.message, error.where = error.args[0], maker.__name__
            return


def _present(face: Callable[..., Any], maker: Callable[..., Call]) -> None:
    """The operator shows what its maker takes, and the maker's errors are told as the operator's."""
    maker.__name__ = maker.__qualname__ = face.__name__
    face.__signature__ = signature(maker).replace(return_annotation="Any")  # type: ignore[attr-defined]
    MAKERS[face] = maker


def faces(maker: Callable[P, Call]) -> Callable[[Callable[..., Any]], Callable[P, Any]]:
    """Decorates an operator whose calls the maker makes: it takes what that takes, also for checkers of types."""

    def present(face: Callable[..., Any]) -> Callable[P, Any]:
        _present(face, maker)
        return face

    return present


def operator(maker: Callable[P, Call]) -> Callable[P, Any]:
    """Decorates a maker and gives the operator, which makes the call and runs it."""

    def face(*given: Any, **options: Any) -> Any:
        return run(make(maker, given, options))

    face.__name__, face.__qualname__, face.__doc__ = maker.__name__, maker.__qualname__, maker.__doc__
    face.__module__ = maker.__module__  # where pickle looks for it
    _present(face, maker)
    return face


def place(args: Any, kind: Kind, array: Any, tensor: _abi.Tensor) -> None:
    """Off the host, the stream of the array's library."""
    if tensor.device_type != 1:
        args.stream = kind.stream(array, tensor)


def sources(kept: Any) -> Iterator[tuple[Any, ...]]:
    """Kind, array and tensor of all that is off the host among what a call keeps."""
    if isinstance(kept, _abi.Tensor):
        if hasattr(kept, "source"):
            yield (*kept.source, kept)
    elif isinstance(kept, (tuple, list, dict)):
        for one in kept.values() if isinstance(kept, dict) else kept:
            yield from sources(one)


def _further(stream: int, sources: Iterable[tuple[Any, ...]]) -> tuple[set[int], bool]:
    """The streams beside `stream` that the libraries of these arrays work on, and whether one of them must find its
    arrays untouched when a call returns."""
    places = {(kind, tensor.device_type, tensor.device_id): (array, tensor) for kind, array, tensor in sources}
    waits = any(kind.waits for kind, *_ in places)
    if len(places) < 2:  # then `stream` is its
        return set(), waits
    return {place[0].stream(*of) for place, of in places.items()} - {stream, None}, waits


def call_in_order(stream: int, sources: Iterable[tuple[Any, ...]], function: Any, *given: Any) -> None:
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


def _set_memory(to: _abi.Tensor, pattern: bytes, stream: int | None) -> None:
    """Sets a dense tensor's memory to a pattern of the size of an element, on the stream. This is no operator: no rule
    and no list of prepared plans concerns it."""
    args = _abi.MemoryFillArgs(sizeof(_abi.MemoryFillArgs), take(lib.tn_tensor_device, byref(to)), to.data,
                               prod(to.dims) * len(pattern), int.from_bytes(pattern, byteorder), len(pattern), 0, stream)
    call(lib.tn_memory_fill, byref(args))


def run(ready: Call, first: Any = None) -> Any:
    """Calls the function with `first`, by default the context of this thread's settings, and the arguments."""
    args, function = ready.args, getattr(lib, ready.name)
    first = settings.context() if first is None else first
    for to, pattern in ready.preset:
        _set_memory(to, pattern, args.stream)
    try:
        if args.stream:
            call_in_order(args.stream, sources(ready.keep), function, first, byref(args))
        else:
            call(function, first, byref(args))
    except errors.Error as error:
        _rename_in(error, "a" if ready.name == "tn_fft" else "x")
        raise
    for out in ready.outs:
        if out is not None:
            kind_of(out).wrote(out)
    return ready.result


def _rename_in(error: errors.Error, name: str) -> None:
    """Replaces the operand name "in" of C by `name`: at the start of the message, and in "the dtype of in"."""
    message = re.sub(r"^(\S+: )?in(?=[ :])", rf"\g<1>{name}", error.message)
    error.message = re.sub(r"\bof in(?=,|'s |$)", f"of {name}", message)
    error.args = (error.message,)


def word_number(kind: str, words: Any, word: Any) -> int:
    """The number of a word in a list of them. TypeError for what is no word."""
    if not isinstance(word, str) and (word is not None or None not in words):
        raise TypeError(f"{kind}: expected a str, got {type(word).__name__}")
    if word not in words:
        raise errors.invalid(f'no {kind} "{word}"{choice(str(word), filter(None, words))}')
    return int(words[word] if isinstance(words, dict) else words.index(word))


def target(kind: Kind, like: Any, seen: _abi.Tensor, out: Any, shape: Shape, word: str) -> tuple[Any, _abi.Tensor]:
    """The array to write to and its tensor: `out`, or a new one beside `like`, which is `seen`."""
    if out is None:
        out = kind.empty(like, seen, shape, word)
        return out, view(out)
    return out, view(out, to_write=True)


def make_args(cls: Any, array: Any, tensor: _abi.Tensor, **fields: Any) -> Any:
    """An args struct with its size and the stream of the array's library."""
    args = cls.__new__(cls)
    Structure.__init__(args, sizeof(cls), **fields)  # half the time of the class's own, which sets the size
    place(args, kind_of(array), array, tensor)
    return args


def broadcast(one: Shape, other: Shape) -> Shape:
    """The shape that both serve."""
    if one == other or not other:
        return one
    if not one:
        return other
    rank = max(len(one), len(other))
    sizes = []
    for a, b in zip((1,) * (rank - len(one)) + one, (1,) * (rank - len(other)) + other):
        if a != b and 1 not in (a, b):
            raise errors.invalid(f"expected shapes that broadcast, got {one} and {other}")
        sizes.append(b if a == 1 else a)
    return tuple(sizes)


def one_output(name: str, cls: type, x: Any, given: _abi.Tensor, out: Any, shape: Shape | None, word: str | None,
               seen: dict[str, Any], **fields: Any) -> Call:
    """The call of an operator that reads `x`, which is `given`, and maybe other tensors, and writes one array."""
    result, to = target(kind_of(x), x, given, out, given.dims if shape is None else shape,
                        _dtypes.WORD[given.dtype] if word is None else word)
    args = make_args(cls, x, given, **{"in": reference(given)}, out=reference(to),
                     **{key: reference(tensor) for key, tensor in seen.items()}, **fields)
    return Call(name, args, result, (given, to, seen), (out,))
