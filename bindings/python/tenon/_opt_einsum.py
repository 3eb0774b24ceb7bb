"""The functions of the package opt_einsum that other packages call, on Tenon's einsum."""

from __future__ import annotations

from functools import partial
from math import prod

from ._arrays import NumpyKind, kind_of
from ._einsum import _parse, einsum, einsum_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import SimpleNamespace
    from typing import Any, Callable, Iterable

# Names of opt_einsum for strategies, where they differ from Tenon's.
_STRATEGIES = {name: name for name in ("auto", "auto-hq", "optimal", "dp", "greedy", "branch-1", "branch-2", "branch-all",
                                       "random-greedy", "random-greedy-128")}
_STRATEGIES.update({"eager": "greedy", "opportunistic": "greedy", "dynamic-programming": "dp"})


def _strategy(name: str) -> str:
    if name not in _STRATEGIES:
        raise KeyError(f"optimize: expected one of {', '.join(_STRATEGIES)}, got {name!r}")
    return _STRATEGIES[name]


def _limited(path: list[tuple[int, ...]], info: Any, limit: int | None) -> list[tuple[int, ...]]:
    """The path up to the first result of more than `limit` elements; then one step of all that is left."""
    if limit in (None, -1):
        return path
    left = len(info.eq.split("->")[0].split(","))
    for done, step in enumerate(info.steps[:-1]):
        if step.elements > limit:
            return [*path[:done], tuple(range(left))]
        left -= len(step.pair) - 1
    return path


def _path_of_sets(strategy: str, inputs: Iterable[Iterable[Any]], output: Iterable[Any], size_dict: dict[Any, int],
                  memory_limit: int | None = None) -> list[tuple[int, ...]]:
    labels: dict[Any, int] = {}
    given: list[Any] = []
    for one in inputs:
        part = [*one]
        given += (tuple(int(size_dict[label]) for label in part),
                  [labels.setdefault(label, len(labels)) for label in part])
    path, info = einsum_path(*given, [labels[label] for label in output], strategy=strategy)
    return _limited(path, info, memory_limit)


def get_path_fn(name: str) -> Callable[..., list[tuple[int, ...]]]:
    """A function of sets of labels, the result's labels, the sizes of labels, and a limit of elements of results."""
    return partial(_path_of_sets, _strategy(name))


def _path(optimize: Any, equation: str, operands: tuple[Any, ...], limit: Any) -> tuple[list[tuple[int, ...]], Any]:
    """Path and explanation for opt_einsum's arguments `optimize` and `memory_limit`."""
    if optimize is None or optimize is True:
        path, info = einsum_path(equation, *operands)
    elif optimize is False:
        path, info = einsum_path(equation, *operands, path=[tuple(range(len(operands)))])
    elif isinstance(optimize, str):
        path, info = einsum_path(equation, *operands, strategy=_strategy(optimize))
    elif callable(optimize):
        info = einsum_path(equation, *operands, strategy="left")[1]
        inputs, output = info.eq.split("->")
        sizes: dict[str, int] = {}
        for part, one in zip(inputs.split(","), operands):
            for label, size in zip(part, one):
                sizes[label] = max(size, sizes.get(label, 1))
        path = optimize([frozenset(part) for part in inputs.split(",")], frozenset(output), sizes, limit)
        return path, einsum_path(equation, *operands, path=path)[1]
    else:
        return [*optimize], einsum_path(equation, *operands, path=optimize)[1]
    if limit == "max_input":
        limit = max(map(prod, operands))
    limited = _limited(path, info, limit)
    return (path, info) if limited is path else (limited, einsum_path(equation, *operands, path=limited)[1])


def contract_path(*given: Any, optimize: Any = True, memory_limit: Any = None, shapes: bool = False,
                  use_blas: bool = True) -> tuple[list[tuple[int, ...]], Any]:
    """`einsum_path` with the arguments of opt_einsum.contract_path. `memory_limit` counts the elements of a result; what
    exceeds it is contracted in one step. `use_blas` changes nothing."""
    equation, operands = _parse(_number_labels(given))
    operands = tuple(tuple(one if shapes else one.shape) for one in
                     (operands if shapes else _arrays(operands, None, "unsafe")))
    return _path(optimize, equation, operands, memory_limit)


def _arrays(operands: tuple[Any, ...], dtype: Any, casting: str) -> tuple[Any, ...]:
    """The operands as arrays: numbers and lists become NumPy's. Those of NumPy get one dtype, if the rule permits it."""
    found, others = [], False
    for one in operands:
        try:
            others = others or not isinstance(kind_of(one), NumpyKind)
        except TypeError:
            import numpy

            one = numpy.asanyarray(one)
        found.append(one)
    if others:
        return tuple(found)
    import numpy

    common = numpy.result_type(*found) if dtype is None else numpy.dtype(dtype)
    for one in found:
        if not numpy.can_cast(one.dtype, common, casting):
            raise TypeError(f"casting: {one.dtype} cannot become {common} by the rule {casting!r}")
    return tuple(one.astype(common, copy=False) for one in found)


def _of_bool(equation: str, operands: tuple[Any, ...], path: Any) -> Any:
    """Whether any of the products is true."""
    return einsum(equation, *(one.astype("int64") for one in operands), path=path).astype(bool)


def _numpy_einsum(equation: str, operands: tuple[Any, ...], path: Any, out: Any, order: str, casting: str) -> Any:
    """einsum of NumPy's arrays, whose result has the memory order, or the dtype and the memory, that is asked for."""
    import numpy

    if out is not None and not isinstance(out, numpy.ndarray):
        raise TypeError(f"out: expected an array, got {type(out).__name__}")
    if out is not None and out.dtype == operands[0].dtype and out.dtype != bool and not any(
            numpy.may_share_memory(out, one) for one in operands):
        return einsum(equation, *operands, out=out, path=path)
    if operands[0].dtype == bool:
        result = _of_bool(equation, operands, path)
    else:
        result = einsum(equation, *operands, path=path)
    if out is not None:
        if out.shape != result.shape:
            raise ValueError(f"out: expected the shape {result.shape}, got {out.shape}")
        numpy.copyto(out, result, casting=casting)
        return out
    if order == "F" or (order == "A" and all(one.flags.f_contiguous and not one.flags.c_contiguous for one in operands)):
        return numpy.asfortranarray(result)
    return result


def _number_labels(given: tuple[Any, ...]) -> tuple[Any, ...]:
    """Arguments with lists of labels, of which other hashable objects than numbers become numbers in their order."""
    if not given or isinstance(given[0], str):
        return given
    lists = [at for at in range(1, len(given), 2)] + ([len(given) - 1] if len(given) % 2 else [])
    labels = {label for at in lists for label in given[at] if label is not Ellipsis}
    if all(isinstance(label, int) or hasattr(label, "__index__") for label in labels):
        return given
    numbers = {label: number for number, label in enumerate(sorted(labels))}
    numbers[Ellipsis] = Ellipsis
    return tuple([numbers[label] for label in one] if at in lists else one for at, one in enumerate(given))


def contract(*given: Any, out: Any = None, dtype: Any = None, order: str = "K", casting: str = "safe",
             use_blas: bool = True, optimize: Any = True, memory_limit: Any = None, backend: str = "auto", **more: Any) -> Any:
    """`einsum` with the arguments of opt_einsum.contract, for which operands may be numbers and lists too, and arrays of
    NumPy of bool or of several dtypes; labels may be any objects that can be sorted. `use_blas` and `backend` change
    nothing."""
    if isinstance(optimize, str):
        _strategy(optimize)
    if more:
        raise TypeError(f"contract: unexpected arguments: {', '.join(more)}")
    if order.upper() not in ("K", "A", "C", "F"):
        raise ValueError(f"order: expected 'K', 'A', 'C' or 'F', got {order!r}")
    if casting not in ("no", "equiv", "safe", "same_kind", "unsafe"):
        raise ValueError(f"casting: expected a rule of NumPy, got {casting!r}")
    equation, operands = _parse(_number_labels(given))
    operands = _arrays(operands, dtype, casting)
    path = None
    if len(operands) > 2 or memory_limit is not None or not isinstance(optimize, (bool, type(None))):
        shapes = tuple(tuple(one.shape) for one in operands)
        path = _path(optimize, equation, shapes, memory_limit)[0]
    if operands and all(isinstance(kind_of(one), NumpyKind) for one in operands):
        return _numpy_einsum(equation, operands, path, out, order.upper(), casting)
    return einsum(equation, *operands, out=out, path=path)


def stand_in() -> SimpleNamespace:
    """An object with the functions of the package opt_einsum that other packages use."""
    from types import SimpleNamespace

    paths = SimpleNamespace(get_path_fn=get_path_fn, **{name.replace("-", "_"): get_path_fn(name) for name in _STRATEGIES})
    return SimpleNamespace(contract=contract, contract_path=contract_path, paths=paths, __name__="tenon")
