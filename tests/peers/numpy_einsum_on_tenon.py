"""A plugin of pytest: NumPy with Tenon's einsum as numpy.einsum and numpy.einsum_path. Where its tests pin a path, one that
costs as much or less passes, as opt_einsum counts."""
import numpy
import opt_einsum
from tenon import _opt_einsum, errors

last = []


def cost(path):
    return opt_einsum.contract_path(*last, shapes=True, optimize=path[1:])[1].opt_cost


def accept_cheaper(self, found, expected):
    assert found[0] == expected[0] and cost(found) <= cost(expected), (found, expected)


def invalid_path(error):
    """NumPy raises RuntimeError for a path that leaves operands."""
    return RuntimeError(str(error)) if str(error).startswith("path") else error


def options(optimize):
    """NumPy's argument `optimize` as opt_einsum's, and its limit of elements."""
    if isinstance(optimize, tuple) and len(optimize) == 2 and isinstance(optimize[0], str) and optimize[0] != "einsum_path":
        return optimize[0], int(optimize[1])
    if isinstance(optimize, (list, tuple)) and optimize and optimize[0] == "einsum_path":
        return optimize[1:], None
    return optimize, None


def einsum(*operands, out=None, optimize=False, **more):
    chosen, limit = options(optimize)
    try:
        return _opt_einsum.contract(*operands, out=out, optimize=chosen, memory_limit=limit, **more)
    except errors.InvalidArgumentError as error:
        raise invalid_path(error) from error


def einsum_path(*operands, optimize="greedy", **more):
    chosen, limit = options(optimize)
    try:
        path, info = _opt_einsum.contract_path(*operands, optimize=chosen, memory_limit=limit, **more)
    except errors.InvalidArgumentError as error:
        raise invalid_path(error) from error
    if operands and isinstance(operands[0], str):
        last[:] = [operands[0], *(numpy.shape(one) for one in operands[1:])]
    return ["einsum_path", *path], str(info)


def pytest_collection_modifyitems(items):
    for item in items:
        if item.cls is not None and hasattr(item.cls, "assert_path_equal"):
            item.cls.assert_path_equal = accept_cheaper


numpy.einsum, numpy.einsum_path = einsum, einsum_path
