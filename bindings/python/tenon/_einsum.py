"""Einstein summation: `tenon.einsum`, and `tenon.einsum_path`, which explains how it would be computed."""

from __future__ import annotations

from ctypes import addressof, byref, c_int32, c_int64, c_void_p, string_at

from . import _abi, _dtypes, _given, errors, operators, settings
from ._arrays import kind_of, make_tensor, view
from ._calls import Call, make, place, run, target
from ._handles import call, take
from ._library import lib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Sequence

_DIMS_MAX = 32


class EinsumStep:
    """A pair that is contracted, or an operand that is summed before: its positions among the remaining operands, equation,
    cost, elements of the result, and the problem and the kernel of each call of an operator."""

    __slots__ = ("pair", "equation", "remaining", "cost", "elements", "problems", "kernels")

    def __init__(self, of: Any) -> None:
        self.pair: tuple[int, ...] = (of.first, of.second) if of.second >= 0 else (of.first,)
        self.equation, self.remaining = of.equation.decode(), of.remaining.decode()
        self.cost, self.elements = of.cost, of.elements
        self.problems = _texts(of.problems, of.calls)
        self.kernels = _texts(of.kernels, of.calls)

    def __repr__(self) -> str:
        return f"EinsumStep({self.pair}, {self.equation!r}, cost={self.cost:g})"


class EinsumPath:
    """How an einsum is computed. With a memory_limit it may be computed in `slices` slices; `steps` are those of one slice. `path`
    lists the positions of each step; `opt_cost`, `naive_cost`, `speedup`, `largest_intermediate` and
    `eq` have the names that opt_einsum gives them."""

    __slots__ = ("path", "eq", "strategy", "opt_cost", "naive_cost", "largest_intermediate", "workspace_bytes", "slices",
                 "steps")

    def __init__(self, of: Any, steps: list[EinsumStep]) -> None:
        self.path = [step.pair for step in steps]
        self.eq, self.strategy = of.equation.decode(), of.strategy.decode()
        self.opt_cost, self.naive_cost = of.cost, of.cost_at_once
        self.largest_intermediate, self.workspace_bytes = of.largest, of.workspace_bytes
        self.slices = int(of.slices)
        self.steps = steps

    @property
    def speedup(self) -> float:
        """How many times the cost of one loop over all labels is that of the path."""
        return self.naive_cost / self.opt_cost if self.opt_cost else 1.0

    def __str__(self) -> str:
        """The costs and a line for each step, as the command einsum-path prints them, without kernels."""
        rows = "".join(f"\n{step.cost:<10.6g}  {step.elements:<10.6g}  {step.equation}" for step in self.steps)
        return (f"strategy {self.strategy}, cost {self.opt_cost:.6g} instead of {self.naive_cost:.6g}, largest result "
                f"{self.largest_intermediate:.6g} elements\ncost        elements    equation{rows}")

    def __repr__(self) -> str:
        return f"EinsumPath({self.eq!r}, {self.path}, cost={self.opt_cost:g}, strategy={self.strategy!r})"


def _texts(address: int | None, count: int) -> list[str]:
    found = (c_void_p * count).from_address(address) if address and count else ()
    return [string_at(one).decode() for one in found]


def _symbol(label: Any) -> str:
    """The character of an integer label: A to Z, a to z, then others; `...` for an Ellipsis."""
    if label is Ellipsis:
        return "..."
    number = _given.number("a label", label, 0, 50000)
    if number < 52:
        return chr(ord("A") + number if number < 26 else ord("a") + number - 26)
    return chr(0xC0 + number - 52)


def _symbols(what: str, labels: Any) -> str:
    """The characters of a list of integer labels; `what` is its name in messages."""
    try:
        return "".join(map(_symbol, labels))
    except TypeError:
        wrong = next((one for one in labels if one is not Ellipsis and not hasattr(one, "__index__")), labels)
        raise TypeError(f"{what}: expected a list of integers, got {type(wrong).__name__}") from None


def _parse(given: tuple[Any, ...]) -> tuple[str, tuple[Any, ...]]:
    """Equation and operands of `("ij->i", x)`, or of the form `(x, [0, 1], [0])`."""
    if not given:
        raise errors.invalid("einsum: expected an equation and operands, got nothing")
    if isinstance(given[0], str):
        operands = given[1:]
        if len(operands) == 1 and isinstance(operands[0], list):
            operands = tuple(operands[0])
        return given[0], operands
    if len(given) < 2 or not all(hasattr(labels, "__iter__") for labels in (*given[1::2], given[-1])):
        raise TypeError('einsum: expected an equation such as "ij,jk->ik", or operands that are each followed by their labels; '
                        f"got {type(given[0]).__name__} first")
    pairs = len(given) // 2
    parts = [_symbols(f"labels of operand {at}", labels) for at, labels in enumerate(given[1:2 * pairs:2])]
    equation = ",".join(parts) + ("->" + _symbols("labels of out", given[-1]) if len(given) % 2 else "")
    return equation, given[:2 * pairs:2]


def _numbers(path: Any, count: int) -> list[int]:
    """The steps of a path in C's form: pairs, and (position, -1) for one operand. A leading "einsum_path", as NumPy writes it,
    is skipped. A step of more than two operands is contracted from left to right."""
    if isinstance(path, str) or not hasattr(path, "__iter__"):
        raise TypeError(f"path: expected a list of tuples of positions, got {type(path).__name__}; strategy= takes names")
    numbers = []
    steps = [*path]
    for step in steps[1:] if steps and isinstance(steps[0], str) and steps[0] == "einsum_path" else steps:
        if isinstance(step, str) or not hasattr(step, "__iter__"):
            raise TypeError(f"path: expected a tuple of positions for each step, got {type(step).__name__}")
        at = sorted(_given.number("path", one, 0, 4096) for one in step)
        if not at:
            raise errors.invalid(f"path: expected positions in each step, got {path}")
        numbers += at[:2] if len(at) > 1 else (at[0], -1)
        for done, one in enumerate(at[2:], 2):
            numbers += (one - done, count - done)
        count -= len(at) - 1
    return numbers


def _nanoseconds(search_time: float | None) -> int:
    seconds = 0.0 if search_time is None else _given.real("search_time", search_time)
    if not 0 <= seconds <= 9e9:
        raise errors.invalid(f"search_time: expected seconds from 0 to 9e9, got {search_time}")
    return round(seconds * 1e9)


def _make_args(equation: str, tensors: Sequence[_abi.Tensor], strategy: str | None, path: Any,
               memory_limit: int | None, seed: int, search_time: float | None) -> tuple[Any, Any]:
    """The args struct without out, and what it points to."""
    addresses = (c_void_p * max(1, len(tensors)))(*map(addressof, tensors))
    text = _given.text("equation", equation)
    word = _given.text("strategy", strategy) if strategy is not None else None
    args = _abi.EinsumArgs()
    args.equation, args.operands, args.count = text, addressof(addresses), len(tensors)
    args.strategy = word
    args.memory_limit = _given.number("memory_limit", memory_limit or 0, 0, 2**64 - 1)
    args.seed = _given.number("seed", seed, 0, 2**64 - 1)
    args.search_ns = _nanoseconds(search_time)
    numbers = None
    if path is not None:
        flat = _numbers(path, len(tensors))
        numbers = (c_int32 * max(1, len(flat)))(*flat)
        args.path, args.path_count = addressof(numbers), len(flat) // 2
    return args, (addresses, text, word, numbers, tensors)


def _einsum_call(*operands: Any, out: Any = None, strategy: str | None = None, path: Any = None,
                 memory_limit: int | None = None, seed: int = 0, search_time: float | None = None) -> Call:
    equation, operands = _parse(operands)
    if not operands:
        raise errors.invalid(f'einsum: expected operands of "{equation}", got none')
    tensors = [view(one) for one in operands]
    args, kept = _make_args(equation, tensors, strategy, path, memory_limit, seed, search_time)
    shape, ndim = (c_int64 * _DIMS_MAX)(), c_int32()
    call(lib.tn_einsum_shape, byref(args), shape, byref(ndim))
    kind = kind_of(operands[0])
    result, to = target(kind, operands[0], tensors[0], out, tuple(shape[:ndim.value]), _dtypes.WORD[tensors[0].dtype])
    args.out = addressof(to)
    place(args, kind, operands[0], tensors[0])
    return Call("tn_einsum", args, result, (*tensors, to, kept), (out,))


_einsum_call.__name__ = "einsum"  # for messages


def einsum(*given: Any, out: Any = None, strategy: str | None = None, path: Any = None,
           memory_limit: int | None = None, seed: int = 0, search_time: float | None = None) -> Any:
    """Sums products of arrays over the labels that the result does not have: `einsum("ij,jk->ik", a, b)`, or
    `einsum(a, [0, 1], b, [1, 2], [0, 2])`, whose labels may be any integers up to 50000.

    `strategy` is how the order of contraction is searched: "left", "greedy", "branch-1", "branch-2", "branch-all", "optimal",
    "dp", "random-greedy", "random-greedy-128", "auto" or "auto-hq"; None: as the settings opt_einsum.enabled and
    opt_einsum.strategy say. Random searches follow `seed`, and are repeated for `search_time` seconds if that is given. `path`
    gives the order instead, as `einsum_path` returns it. `memory_limit` limits the bytes of intermediate
    results; a call that needs more is computed in slices.

    >>> import numpy, tenon
    >>> a, b = numpy.ones((2, 3)), numpy.ones((3, 4))
    >>> tenon.einsum("ij,jk->ki", a, b).shape
    (4, 2)
    >>> float(tenon.einsum(a, [0, 1], b, [1, 2])[0, 0])
    3.0
    """
    if (operators._fast is not None and strategy is None and path is None and not memory_limit and seed == 0
            and search_time is None and len(given) > 1):
        result = operators._fast.einsum(settings.context(), given[0], out, *given[1:])
        if result is not NotImplemented:
            return result
    return run(make(_einsum_call, given, dict(out=out, strategy=strategy, path=path, memory_limit=memory_limit,
                                              seed=seed, search_time=search_time)))


def _shaped(shape: Sequence[int]) -> _abi.Tensor:
    """A tensor without data: f32, contiguous, on the cpu."""
    sizes = tuple(_given.number("a shape", size, 0, 2**63 - 1) for size in shape)
    tensor = make_tensor(0, sizes, (), 0, _dtypes.NUMBER["f32"], None, 0, 1, 0)
    tensor.strides = None
    return tensor


def einsum_path(*given: Any, strategy: str | None = None, path: Any = None, memory_limit: int | None = None,
                seed: int = 0, search_time: float | None = None) -> tuple[list[tuple[int, ...]], EinsumPath]:
    """The path of an `einsum`, and its costs, without computing anything. A tuple of integers may stand for an f32 array of
    that shape.

    >>> import tenon
    >>> path, info = tenon.einsum_path("ij,jk,kl->il", (10, 20), (20, 30), (30, 5))
    >>> path, info.opt_cost, info.naive_cost
    ([(1, 2), (0, 1)], 8000.0, 90000.0)
    >>> info.steps[0].problems
    ['matmul:f32:m=20,n=5,k=30@cpu:0']
    """
    equation, operands = _parse(given)
    tensors = [_shaped(one) if isinstance(one, tuple) else view(one) for one in operands]
    args, _kept = _make_args(equation, tensors, strategy, path, memory_limit, seed, search_time)
    address = take(lib.tn_einsum_explain, settings.context(), byref(args))
    try:
        info = _abi.EinsumPathInfo()
        call(lib.tn_einsum_path_info_get, address, byref(info))
        steps = [EinsumStep(_abi.EinsumStep.from_address(lib.tn_einsum_path_step(address, i)))
                 for i in range(info.steps)]
        found = EinsumPath(info, steps)
    finally:
        lib.tn_einsum_path_release(address)
    return found.path, found
