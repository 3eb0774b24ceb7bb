"""What the attentions share that choose blocks for each video: means and scores of blocks, and the choice of the best.

Means and scores are computed by Tenon's operators. The choice is made in NumPy, also for PyTorch's tensors, so that both
have the same ties: of equal scores the first ones are chosen.
"""

from __future__ import annotations

from . import _dtypes, _given, errors, operators
from ._arrays import view
from .video import is_torch, joined

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def host(x: Any) -> Any:
    """An array of floats or bool as NumPy's."""
    import numpy

    return numpy.asarray(x.detach().cpu()) if is_torch(x) else numpy.asarray(x)


def like(x: Any, array: Any) -> Any:
    """NumPy's array as one of x's library, on its device."""
    if not is_torch(x):
        return array
    import torch

    return torch.from_numpy(array).to(x.device)


def word_of(x: Any) -> str:
    """The dtype's word."""
    return _dtypes.WORD[view(x).dtype]


def wide(x: Any) -> str:
    """The dtype in which means, scores and sums of x are computed."""
    return "f64" if word_of(x) == "f64" else "f32"


def share(name: str, value: Any) -> float:
    """A number from 0 to 1."""
    number = _given.real(name, value)
    if not 0 <= number <= 1:
        raise errors.invalid(f"{name}: expected 0 to 1, got {number}")
    return number


def check_shapes(q: Any, k: Any, v: Any) -> None:
    """Rejects what is not [batch, length, heads, size], with as many keys as queries."""
    for name, x in (("q", q), ("k", k), ("v", v)):
        if len(x.shape) != 4:
            raise errors.invalid(f"{name}: expected the dimensions batch, length, heads and size, got the shape "
                                 f"{tuple(x.shape)}")
        if tuple(x.shape[:2]) != tuple(q.shape[:2]):
            raise errors.invalid(f"{name}: expected the batch and length of q, {tuple(q.shape[:2])}, got {tuple(x.shape[:2])}")
        if not x.shape[2] or q.shape[2] % x.shape[2] or (name == "v" and x.shape[2] != k.shape[2]):
            raise errors.invalid(f"{name}: expected as many heads as {'k has' if name == 'v' else 'divide those of q'}, "
                                 f"{k.shape[2] if name == 'v' else q.shape[2]}; got {x.shape[2]}")
    if k.shape[3] != q.shape[3]:
        raise errors.invalid(f"k: expected heads of size {q.shape[3]}, as q has; got {k.shape[3]}")


def scale_of(q: Any, scale: float | None) -> float:
    """The scale, or 1 / sqrt(size)."""
    return float(q.shape[3] ** -0.5) if scale is None else _given.real("scale", scale)


def block_means(x: Any, block: int) -> Any:
    """The mean of each block of tokens, [batch, heads, blocks, size]. The last block may be shorter."""
    batch, length, heads, size = x.shape
    whole = length - length % block
    means = None
    if whole:
        means = operators.reduce("mean", x[:, :whole].reshape(batch, whole // block, block, heads, size), 2, dtype=wide(x))
    if whole < length:
        rest = operators.reduce("mean", x[:, whole:], 1, keepdims=True, dtype=wide(x))
        means = rest if means is None else joined(means, rest)
    return operators.permute(means, (0, 2, 1, 3))


def tile_means(x: Any, slots: int, sizes: Any) -> Any:
    """The mean of each tile's tokens, [batch, heads, tiles, size]. Slots without a token must be 0; `sizes` are the numbers
    of tokens."""
    batch, length, heads, size = x.shape
    total = operators.reduce("sum", x.reshape(batch, length // slots, slots, heads, size), 2, dtype=wide(x))
    counts = like(x, host_floats(sizes, wide(x)).reshape(-1, 1, 1))
    return operators.permute(total / counts, (0, 2, 1, 3))


def host_floats(numbers: Any, word: str) -> Any:
    """Whole numbers as NumPy's array of floats."""
    import numpy

    return numpy.asarray(numbers).astype(_dtypes.NAME[word])


def grouped(x: Any, heads: int) -> Any:
    """[batch, heads, rows, size] of queries as [batch, heads of keys, heads of a group times rows, size]."""
    batch, _, rows, size = x.shape
    return x.reshape(batch, heads, -1, size) if rows else x


def block_scores(mean_q: Any, mean_k: Any, scale: float) -> Any:
    """scale q k' of the means, [batch, heads, query blocks, key blocks]."""
    batch, heads, rows, _ = mean_q.shape
    scores = operators.matmul(grouped(mean_q, mean_k.shape[1]), mean_k, transpose_b=True, alpha=scale)
    return scores.reshape(batch, heads, rows, mean_k.shape[2])


def descending(scores: Any) -> Any:
    """The order of the last dimension from the greatest on; of equal ones the first comes first."""
    return (-scores).argsort(axis=-1, kind="stable")


def unsorted(chosen: Any, order: Any) -> Any:
    """A choice among sorted entries as one among the entries in their own order."""
    import numpy

    out = numpy.zeros(chosen.shape, bool)
    numpy.put_along_axis(out, order, chosen, -1)
    return out


def best(scores: Any, count: int) -> Any:
    """True for the `count` greatest scores of each row; of equal ones the first are chosen."""
    import numpy

    chosen = numpy.zeros(scores.shape, bool)
    numpy.put_along_axis(chosen, descending(scores)[..., :count], True, -1)
    return chosen


def probabilities(scores: Any) -> Any:
    """softmax over the last dimension, as NumPy's array of f64."""
    return host(operators.softmax(scores, -1)).astype("float64")


def attend(q: Any, k: Any, v: Any, seen: Any, block: int | tuple[int, int], sizes: Any, scale: float) -> Any:
    """Attention over the blocks that NumPy's `seen` has, in f32 or wider; `sizes` are the valid keys of each block, or
    None."""
    import numpy

    counts = None if sizes is None else like(q, numpy.asarray(sizes, "int32"))
    return operators.attention_sparse(q, k, v, like(q, seen), block=block, block_sizes=counts, scale=scale, layout="blhd",
                                      dtype=wide(q))


def rounded(out: Any, q: Any) -> Any:
    """A result in q's dtype."""
    return out if word_of(out) == word_of(q) else operators.cast(out, word_of(q))
