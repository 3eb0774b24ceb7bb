"""How PyTorch's distributed tensors share an attention: by sequences of the batch, or by heads.

Every process computes its share alone. A tensor that is sharded otherwise (by queries, keys or the head size), and heads
that the processes cannot share evenly, are gathered first.
"""

from __future__ import annotations

from typing import Any, Callable, List, Sequence, Tuple

from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor.experimental import register_sharding

BATCH, HEADS = 0, 1

Rule = Tuple[List[Any], List[Any]]  # placements of the results and of the arguments


def _mask_placement(mask: Any, dim: int) -> Any:
    """Placement of a mask whose operands are sharded by `dim` of four; a mask has one for all where its size is 1."""
    if mask is None:
        return None
    at = dim - (4 - len(mask.shape))
    return Shard(at) if at >= 0 and mask.shape[at] > 1 else Replicate()


def _shared_dims(query: Any, key: Any) -> List[int]:
    """Dimensions that processes can share. Key and value heads must go with their query heads."""
    processes = query.mesh.size()
    even = query.shape[HEADS] % processes == 0 and key.shape[HEADS] % processes == 0
    return [BATCH, HEADS] if even else [BATCH]


def _rules(query: Any, key: Any, make: Callable[[Callable[[Any], Any], Callable[[Any], Any]], Rule]) -> Sequence[Rule]:
    """One rule for whole tensors and one for each shared dimension. `make` is given the placements of an operand and of
    a mask."""
    def whole(given: Any) -> Any:
        return None if given is None else Replicate()

    found = [make(whole, whole)]
    for dim in _shared_dims(query, key):
        found.append(make(lambda given, dim=dim: None if given is None else Shard(dim),  # type: ignore[misc]
                          lambda mask, dim=dim: _mask_placement(mask, dim)))             # type: ignore[misc]
    return found


def _inference(query: Any, key: Any, value: Any, mask: Any, causal: Any, scale: Any, softcap: Any, sinks: Any,
               backend: Any) -> Sequence[Rule]:
    def make(place: Callable[[Any], Any], place_mask: Callable[[Any], Any]) -> Rule:
        by_heads = place(query) == Shard(HEADS)  # there is one sink for each head
        sink = None if sinks is None else Shard(0) if by_heads else Replicate()
        return [place(query)], [place(query), place(key), place(value), place_mask(mask), None, None, None, sink, None]

    return _rules(query, key, make)


def _training(query: Any, key: Any, value: Any, mask: Any, *numbers: Any) -> Sequence[Rule]:
    """The seed is each process's own: it is needed where the share was computed."""
    def make(place: Callable[[Any], Any], place_mask: Callable[[Any], Any]) -> Rule:
        one = place(query)
        return [one, one, Replicate()], [one, place(key), place(value), place_mask(mask), *[None] * len(numbers)]

    return _rules(query, key, make)


def _backward(grad: Any, query: Any, key: Any, value: Any, out: Any, lse: Any, seed: Any, mask: Any,
              *numbers: Any) -> Sequence[Rule]:
    def make(place: Callable[[Any], Any], place_mask: Callable[[Any], Any]) -> Rule:
        one = place(query)
        return [one] * 3, [*[one] * 6, Replicate(), place_mask(mask), *[None] * len(numbers)]

    return _rules(query, key, make)


def register(inference: Any, training: Any, backward: Any) -> None:
    """Registers the rules of the three operators."""
    for operator, rule in ((inference, _inference), (training, _training), (backward, _backward)):
        register_sharding(operator)(rule)
