"""einsum of arrays against NumPy, its paths, and the names of torch.backends.opt_einsum that choose them."""
import builtins
import string
import time

import numpy
import pytest
import tenon
from tenon import backends

CHAIN = ("ij,jk,kl->il", (10, 20), (20, 30), (30, 5))


def equations(random, count):
    """Equations with their operands: of 1 to 4 operands, with repeated labels, and implicit results."""
    for _ in range(count):
        sizes = dict(zip("abcXYZ", random.integers(1, 5, 6)))
        labels = ["".join(random.choice([*sizes], random.integers(0, 4))) for _ in range(random.integers(1, 5))]
        known = sorted({*"".join(labels)})
        random.shuffle(known)
        equation = ",".join(labels) + ("->" + "".join(known[:random.integers(0, 4)]) if random.integers(2) else "")
        yield equation, [random.integers(-4, 5, [sizes[one] for one in part]).astype("float64") for part in labels]


def test_results(random):
    for equation, operands in equations(random, 300):
        wanted = numpy.einsum(equation, *operands)
        found = tenon.einsum(equation, *operands)
        assert type(found) is numpy.ndarray or found.shape == ()
        assert numpy.array_equal(found, wanted), (equation, [one.shape for one in operands])


@pytest.mark.parametrize("dtype", ["float32", "float16", "complex64", "complex128", "int8", "int32", "int64", "uint8"])
def test_dtypes(random, dtype):
    a, b = (random.integers(0, 5, shape).astype(dtype) for shape in ((3, 4), (4, 5)))
    found = tenon.einsum("ij,jk->ki", a, b)
    assert found.dtype == a.dtype and numpy.array_equal(found, (a @ b).T)


def test_ellipsis_broadcast_and_strides(random):
    a, b = random.standard_normal((2, 1, 3, 4)), random.standard_normal((5, 4, 3)).transpose(0, 2, 1)[::-1]
    numpy.testing.assert_allclose(tenon.einsum("...ij,...ij->j...", a, b), numpy.einsum("...ij,...ij->j...", a, b))
    out = numpy.full((4, 6), numpy.nan)
    assert tenon.einsum("...i->i", a, out=out[:, 1]) is not None
    numpy.testing.assert_allclose(out[:, 1], a.sum((0, 1, 2)))
    assert numpy.isnan(out[:, 0]).all()


def test_integer_labels(random):
    a, b = random.standard_normal((2, 3)), random.standard_normal((3, 4))
    numpy.testing.assert_allclose(tenon.einsum(a, [0, 1], b, [1, 2]), a @ b)
    numpy.testing.assert_allclose(tenon.einsum(a, [7, 900], b, [900, 30], [30, 7]), (a @ b).T)
    numpy.testing.assert_allclose(tenon.einsum(a, [..., 1], b, [1, 2], [..., 2]), a @ b)
    vectors = [numpy.full(1, 2.0)] * 80  # more labels than there are letters
    given = [part for at, one in enumerate(vectors[:20]) for part in (one, [4 * at])]
    assert tenon.einsum(*given, []) == 2.0 ** 20


def test_every_strategy_and_path(random):
    operands = [random.integers(-3, 4, shape).astype("float64") for shape in ((4, 5), (5, 6), (6, 3), (3, 4))]
    wanted = numpy.einsum("ab,bc,cd,de->ae", *operands)
    for strategy in "left greedy optimal dp random-greedy auto auto-hq".split():
        assert numpy.array_equal(tenon.einsum("ab,bc,cd,de->ae", *operands, strategy=strategy), wanted)
        path, info = tenon.einsum_path("ab,bc,cd,de->ae", *operands, strategy=strategy)
        assert info.path is path and len(path) == 3
        assert tenon.einsum_path("ab,bc,cd,de->ae", *operands, path=path)[1].opt_cost == info.opt_cost
        assert numpy.array_equal(tenon.einsum("ab,bc,cd,de->ae", *operands, path=path), wanted)
    with pytest.raises(tenon.errors.InvalidArgumentError, match="did you mean greedy"):
        tenon.einsum("ab,bc,cd,de->ae", *operands, strategy="gredy")
    with pytest.raises(tenon.errors.InvalidArgumentError, match="expected 3 pairs for 4 operands, got 1"):
        tenon.einsum("ab,bc,cd,de->ae", *operands, path=[(0, 1)])
    for path, count, found in (([], 3, 0), ([(0,)], 3, 1), ([(5, 6, 7)], 1, 1), ([(1,)], 1, 1), ([(0, 0)], 1, 1)):
        part = "ab,bc,cd"[:3 * count - 1]
        with pytest.raises(tenon.errors.InvalidArgumentError, match="path"):
            tenon.einsum(part, *operands[:count], path=path)
        with pytest.raises(tenon.errors.InvalidArgumentError, match="path"):
            tenon.einsum_path(part, *operands[:count], path=path)
    for path in ([], [(0,)]):
        assert numpy.array_equal(tenon.einsum("ab->ba", operands[0], path=path), operands[0].T)
    with pytest.raises(tenon.errors.Error, match="memory_limit is 64"):
        tenon.einsum("ab,bc,cd,de->ae", *operands, memory_limit=64)


def test_paths_tell_what_they_cost():
    path, info = tenon.einsum_path(*CHAIN)
    assert path == [(1, 2), (0, 1)] and (info.opt_cost, info.naive_cost, info.speedup) == (8000, 90000, 11.25)
    assert info.largest_intermediate == 100 and info.eq == CHAIN[0]
    assert [step.equation for step in info.steps] == ["jk,kl->jl", "ij,jl->il"]
    assert [step.remaining for step in info.steps] == ["ij,jl->il", "il->il"]
    for step in info.steps:
        assert [tenon.explain(problem).chosen.kernel for problem in step.problems] == step.kernels
    assert tenon.einsum_path("ii->", (3, 3))[0] == [(0,)]


def test_enabled():
    """opt_einsum.enabled: without it, operands are contracted from left to right."""
    assert tenon.einsum_path(*CHAIN)[0] == [(1, 2), (0, 1)]
    with backends.opt_einsum.flags(enabled=False):
        assert tenon.einsum_path(*CHAIN)[0] == [(0, 1), (0, 1)]
    assert tenon.einsum_path(*CHAIN)[1].strategy == "optimal"


def test_strategy():
    """opt_einsum.strategy: the search that the path names."""
    for strategy in ("greedy", "optimal"):
        with backends.opt_einsum.flags(strategy=strategy):
            assert tenon.einsum_path(*CHAIN)[1].strategy == strategy


def test_is_available():
    """opt_einsum.is_available: einsum finds cheap paths without a package."""
    assert backends.opt_einsum.is_available() is True
    assert tenon.library("opt_einsum").reason == "part of Tenon"


def test_get_opt_einsum(monkeypatch):
    """opt_einsum.get_opt_einsum: the package if there is one, else an object of Tenon's with its functions."""
    find = builtins.__import__

    def hide(name, *given):
        if name == "opt_einsum":
            raise ImportError(name)
        return find(name, *given)

    monkeypatch.setattr(builtins, "__import__", hide)
    ours = backends.opt_einsum.get_opt_einsum()
    monkeypatch.undo()
    a, b, c = numpy.ones((10, 20)), numpy.ones((20, 30)), numpy.ones((30, 5))
    assert numpy.array_equal(ours.contract(CHAIN[0], a, b, c), a @ b @ c)
    assert ours.contract_path(*CHAIN, shapes=True, optimize="greedy")[0] == [(1, 2), (0, 1)]
    assert ours.contract_path(CHAIN[0], a, b, c, optimize=False)[0] == [(0, 1), (0, 1)]
    assert ours.contract_path(CHAIN[0], a, b, c, optimize=[(0, 2), (0, 1)])[0] == [(0, 2), (0, 1)]
    found = ours.paths.optimal([{"i", "j"}, {"j", "k"}, {"k", "l"}], {"i", "l"}, {"i": 10, "j": 20, "k": 30, "l": 5})
    assert found == [(1, 2), (0, 1)] and ours.paths.get_path_fn("branch-all")([{"i"}, {"i"}], {"i"}, {"i": 3}) == [(0, 1)]
    limited = ours.paths.greedy([{"i", "j"}, {"j", "k"}, {"k", "l"}], {"i", "l"}, {"i": 10, "j": 20, "k": 30, "l": 5}, 99)
    assert limited == [(0, 1, 2)]
    with pytest.raises(KeyError, match="expected one of auto"):
        ours.contract(CHAIN[0], a, b, c, optimize="gredy")
    try:
        import opt_einsum
    except ImportError:
        return
    assert backends.opt_einsum.get_opt_einsum() is opt_einsum


def test_what_is_no_equation():
    for given, found in (((None,), "NoneType"), ((numpy.ones(2), 3), "ndarray"), ((3, [0], 5), "int")):
        with pytest.raises(TypeError, match=f'expected an equation such as "ij,jk->ik", .* got {found} first'):
            tenon.einsum(*given)


def test_labels_and_paths_of_wrong_types():
    a = numpy.ones((2, 2))
    for given, words in (((a, [0, "b"]), "labels of operand 0: expected a list of integers, got str"),
                         ((a, [0, 1], a, [1, 2.5], [0]), "labels of operand 1: expected a list of integers, got float"),
                         ((a, [0, 1], [None]), "labels of out: expected a list of integers, got NoneType")):
        with pytest.raises(TypeError, match=words):
            tenon.einsum(*given)
    for path, words in (("greedy", "got str; strategy= takes names"), (3, "path: expected .*, got int"),
                        ([3], "path: expected a tuple of positions for each step, got int")):
        with pytest.raises(TypeError, match=words):
            tenon.einsum("ij,jk->ik", a, a, path=path)
    theirs = numpy.einsum_path("ij,jk,kl->il", a, a, a)[0]
    assert theirs[0] == "einsum_path"
    assert numpy.array_equal(tenon.einsum("ij,jk,kl->il", a, a, a, path=theirs), a @ a @ a)


def test_copies_do_not_add_dimensions_of_batches(random):
    """An expanded operand is copied, and then its dimensions of batches are no longer one."""
    a = random.integers(-4, 5, (2, 2, 2, 2, 2, 1, 4, 32, 4)).astype("f4")
    a = numpy.broadcast_to(a, (2, 2, 2, 2, 2, 2, 4, 32, 4))
    b = random.integers(-4, 5, (2, 2, 2, 2, 2, 2, 2, 4, 4, 32)).astype("f4")
    equation = "pqrstxkml,pqrstxzkln->tsrqpxzmn"
    assert numpy.array_equal(tenon.einsum(equation, a, b), numpy.einsum(equation, a, b, optimize=True))


def test_contract_takes_what_numpy_has(random):
    """contract: numbers, lists, several dtypes, bool, order, casting, any labels, and an out that is an operand."""
    from tenon import _opt_einsum

    contract = _opt_einsum.contract
    a, b = random.integers(0, 5, (3, 4)), random.standard_normal((4, 3))
    assert contract("ij,j->i", [[1, 2], [3, 4]], [5.0, 6.0]).tolist() == [17, 39]
    assert contract(",,->", 2, 3, 4.0) == 24
    numpy.testing.assert_allclose(contract("ij,jk->ik", a, b), a @ b, rtol=1e-12, atol=1e-12)
    assert contract("ij,jk->ik", a, b, dtype="f4", casting="same_kind").dtype == numpy.float32
    with pytest.raises(TypeError, match="casting"):
        contract("ij,jk->ik", a, b, dtype="i8")
    with pytest.raises(ValueError, match="casting"):
        contract("ij->ji", a, casting="blah")
    assert contract("ij,jk->ik", a > 2, b > 0).dtype == bool
    assert numpy.array_equal(contract("ij,jk->ik", a > 2, b > 0), (a > 2) @ (b > 0))
    assert contract("ij,jk->ki", a, b, order="F").flags.f_contiguous
    assert numpy.array_equal(contract(a, ["left", "mid"], b, ["mid", "right"], ["right", "left"]), (a @ b).T)
    square = b.T @ b
    assert contract("ij,jk->ik", square, square, out=square) is square
    assert numpy.allclose(square, (b.T @ b) @ (b.T @ b))
    narrow = numpy.zeros((3, 3), "f4")
    assert contract("ij,jk->ik", a, b, out=narrow, casting="same_kind") is narrow and numpy.allclose(narrow, a @ b)
    with pytest.raises(ValueError, match="out"):
        contract("ij,jk->ik", a, b, out=numpy.zeros((3, 2), "f4"), casting="unsafe")


def test_costs_against_opt_einsum(random):
    """No path costs more than that of the package with the same strategy, and costs are counted alike."""
    package = pytest.importorskip("opt_einsum", reason="opt_einsum is not installed")
    for _ in range(60):
        labels = string.ascii_lowercase[:random.integers(4, 10)]
        sizes = dict(zip(labels, random.integers(2, 7, len(labels))))
        parts = ["".join(random.choice([*labels], random.integers(1, 4), replace=False))
                 for _ in range(random.integers(3, 9))]
        known = sorted({*"".join(parts)})
        equation = ",".join(parts) + "->" + "".join(known[:random.integers(0, 3)])
        shapes = [tuple(int(sizes[one]) for one in part) for part in parts]
        for strategy in ("auto", "greedy", "dp", "branch-1", "branch-2") + (
                ("auto-hq", "branch-all", "optimal") if len(parts) < 6 else ()):
            path, theirs = package.contract_path(equation, *shapes, shapes=True, optimize=strategy)
            ours = tenon.einsum_path(equation, *shapes, strategy=strategy)[1]
            assert ours.opt_cost <= theirs.opt_cost, (equation, shapes, strategy)
            counted = package.contract_path(equation, *shapes, shapes=True, optimize=ours.path)[1].opt_cost
            assert counted == ours.opt_cost, (equation, shapes, strategy)
            assert tenon.einsum_path(equation, *shapes, path=path)[1].opt_cost <= theirs.opt_cost


def test_paths_of_other_packages(random):
    """Steps of one operand, and of more than two."""
    operands = [random.integers(-4, 5, shape).astype("float64") for shape in ((2, 3), (3, 4), (4, 5), (5, 2))]
    wanted = numpy.einsum("ab,bc,cd,da->", *operands)
    for path in ([(0, 1, 2, 3)], [(1,), (0, 2, 3), (0, 1)], [(3, 0, 1), (1, 0)], [(0, 1), (2, 1, 0)], [(0,), (3, 1), (0, 1, 2)]):
        assert tenon.einsum("ab,bc,cd,da->", *operands, path=path) == wanted, path
    for path in ([(0, 1, 2)], [()], [(0, 1, 2, 4)], [(0, 1, 2, 2)]):
        with pytest.raises(tenon.errors.InvalidArgumentError, match="path"):
            tenon.einsum("ab,bc,cd,da->", *operands, path=path)


def test_labels_of_one_operand_are_steps():
    path, info = tenon.einsum_path("abx,bc,cdy->ad", (4, 5, 6), (5, 3), (3, 7, 2))
    assert path == [(0,), (0, 2), (0,), (0, 1)] and info.opt_cost == 240 + 120 + 84 + 168
    assert [step.equation for step in info.steps] == ["abx->ab", "bc,ab->ac", "cdy->cd", "ac,cd->ad"]
    assert tenon.einsum_path("abx,bc,cdy->ad", (4, 5, 6), (5, 3), (3, 7, 2), path=path)[1].opt_cost == info.opt_cost


def test_slices(random):
    """With a limit of memory, the result is the same in slices, whose number and memory the path tells."""
    a, b, c = (random.integers(-3, 4, (6, 8, 10)).astype("float64") for _ in range(3))
    equation, operands = "abc,dbe,fgc->adfg", (a, b[:, :, :5], c)
    whole = tenon.einsum_path(equation, *operands)[1]
    assert whole.slices == 1 and whole.workspace_bytes > 3000
    limited = tenon.einsum_path(equation, *operands, memory_limit=1000)[1]
    assert limited.slices > 1 and limited.workspace_bytes <= 1000 and limited.opt_cost >= whole.opt_cost
    assert limited.naive_cost == whole.naive_cost
    assert numpy.array_equal(tenon.einsum(equation, *operands, memory_limit=1000), numpy.einsum(equation, *operands, optimize=True))


def test_random_search_has_a_time():
    chain = ",".join("abcdefghijklmnopqrstuvwxyz"[i] + "ABCDEFGHIJKLMNOPQRSTUVWXYZ"[i * 7 % 26] for i in range(26)) + "->"
    shapes = [(2, 3)] * 26
    greedy = tenon.einsum_path(chain, *shapes, strategy="greedy")[1].opt_cost
    start = time.monotonic()
    cost = tenon.einsum_path(chain, *shapes, strategy="random-greedy", search_time=0.2)[1].opt_cost
    assert time.monotonic() - start >= 0.2 and cost <= greedy
    a = numpy.ones((2, 2))
    for wrong in (-1, 1e10, float("nan"), float("inf")):
        for function in (tenon.einsum, tenon.einsum_path):
            with pytest.raises(tenon.errors.InvalidArgumentError, match="search_time: expected seconds from 0 to 9e9, got"):
                function("ij,jk->ik", a, a, search_time=wrong)
    for options in (dict(seed=-1), dict(seed="x"), dict(search_time="x")):
        with pytest.raises((tenon.errors.InvalidArgumentError, TypeError), match=[*options][0]):
            tenon.einsum("ij,jk->ik", a, a, **options)


def test_tensors_of_torch(random):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    for _ in range(40):
        a, b, c = (torch.from_numpy(random.standard_normal(shape)) for shape in ((2, 3, 4), (4, 5, 3), (5, 2)))
        for equation in ("aij,jkl,km->im", "aij,jki,ka->", "aij,jki,km->mja", "...ij,jki,k...->i"):
            found = tenon.einsum(equation, a, b, c)
            assert isinstance(found, torch.Tensor)
            torch.testing.assert_close(found, torch.einsum(equation, a, b, c))
