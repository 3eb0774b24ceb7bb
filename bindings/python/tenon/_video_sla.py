"""Sparse attention plus linear attention (SLA): the best blocks exactly, and all keys through a feature map."""

from __future__ import annotations

from math import floor

from . import _given, errors, operators
from ._video_blocks import attend, best, block_means, block_scores, check_shapes, grouped, host, rounded, scale_of, share, wide

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Sequence

FEATURE_MAPS = ("softmax", "elu", "relu")
EPSILON = 1e-5  # added to the denominator of the linear part, as upstream does


def features(x: Any, feature_map: str) -> Any:
    """The feature map, in f32 or wider."""
    x = operators.cast(x, wide(x))
    if feature_map == "softmax":
        return operators.softmax(x, -1)
    positive = operators.unary("relu", x)
    if feature_map == "relu":
        return positive
    return operators.unary("exp", operators.binary("min", x, 0.0)) + positive  # elu(x) + 1


def linear_attention(q: Any, k: Any, v: Any, feature_map: str) -> Any:
    """f(q) (f(k)' v) / (f(q) sum f(k) + 1e-5) over all keys, of [batch, length, heads, size], in f32 or wider."""
    fq, fk, values = (operators.permute(x, (0, 2, 1, 3)) for x in (
        features(q, feature_map), features(k, feature_map), operators.cast(v, wide(v))))
    batch, heads, length, _ = fq.shape
    total = operators.reduce("sum", fk, 2)
    queries = grouped(fq, fk.shape[1])
    above = operators.matmul(queries, operators.matmul(fk, values, transpose_a=True))
    below = operators.matmul(queries, total.reshape(*total.shape, 1))
    return operators.permute((above / (below + EPSILON)).reshape(batch, heads, length, -1), (0, 2, 1, 3))


def blocks_of_ratio(ratio: float, blocks: int) -> int:
    """floor(ratio blocks), from 1 to all."""
    return min(max(floor(round(ratio * blocks, 9)), 1), blocks)


def chosen_blocks(q: Any, k: Any, ratio: float, block: Sequence[int], scale: float) -> Any:
    """The best key blocks of each query block, as NumPy's bool of [batch, heads, query blocks, key blocks]."""
    mean_k = block_means(k, block[1])
    centre = operators.permute(operators.reduce("mean", k, 1, keepdims=True, dtype=wide(k)), (0, 2, 1, 3))
    scores = host(block_scores(block_means(q, block[0]), mean_k - centre, scale))
    return best(scores, blocks_of_ratio(ratio, scores.shape[-1]))


def sla_parts(q: Any, k: Any, v: Any, ratio: float, block: Sequence[int], feature_map: str,
              scale: float | None) -> tuple[Any, Any]:
    """The sparse part and the linear part, before its projection, in f32 or wider."""
    check_shapes(q, k, v)
    if feature_map not in FEATURE_MAPS:
        raise errors.invalid(f"feature_map: expected {', '.join(FEATURE_MAPS)}; got {feature_map!r}")
    if len(block) != 2:
        raise errors.invalid(f"block: expected two numbers, (queries, keys), got {len(block)}")
    sizes = tuple(_given.number("block", one, 1, _given.INT32[1]) for one in block)
    scale = scale_of(q, scale)
    seen = chosen_blocks(q, k, share("ratio", ratio), sizes, scale)
    return attend(q, k, v, seen, sizes, None, scale), linear_attention(q, k, v, feature_map)  # type: ignore[arg-type]


def sla_attention(q: Any, k: Any, v: Any, ratio: float = 0.5, *, block: Sequence[int] = (128, 64), feature_map: str = "softmax",
                  projection: tuple[Any, Any] | None = None, scale: float | None = None) -> Any:
    """Sparse attention plus linear attention, of [batch, length, heads, size].

    The sparse part is attention over the best blocks: `block` is (queries, keys); the score of two blocks is scale times
    the product of their means, where the mean of all keys is subtracted from those of keys. Each block of queries sees the
    floor(ratio blocks) best blocks of keys, at least one; of equal scores the first ones. Keys and values may have fewer
    heads.

    The linear part is f(q) (f(k)' v) / (f(q) sum f(k) + 1e-5) over all keys. The feature map f is "softmax" (over the
    size), "elu" (elu + 1) or "relu". `projection` is (weight, bias) of a linear layer that it passes through, [size, size]
    and [size] or None, as in torch.nn.Linear; without one, the linear part is added as it is.

    >>> import numpy
    >>> from tenon.video import sla_attention
    >>> q = k = v = numpy.ones((1, 300, 2, 16), "float32")
    >>> out = sla_attention(q, k, v, 0.1)                              # 1 + 1: the weights of each part add up to 1
    >>> out.shape, out[0, 0, 0, :2].round(3)
    ((1, 300, 2, 16), array([2., 2.], dtype=float32))
    >>> none = numpy.zeros((16, 16), "float32")
    >>> sla_attention(q, k, v, 0.1, projection=(none, None))[0, 0, 0, :2]
    array([1., 1.], dtype=float32)
    """
    sparse, linear = sla_parts(q, k, v, ratio, block, feature_map, scale)
    if projection is not None:
        weight, bias = projection
        linear = operators.matmul(linear, operators.cast(weight, wide(q)), transpose_b=True,
                                  bias=None if bias is None else operators.cast(bias, wide(q)))
    return rounded(sparse + linear, q)
