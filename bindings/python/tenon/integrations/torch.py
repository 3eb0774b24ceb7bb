"""scaled_dot_product_attention for PyTorch: the same signature, by Tenon's kernels. And tenon.einsum with gradients.

The former is differentiable, and registered as a custom operator with a fake implementation, so that torch.compile
keeps it in one graph. The backward pass runs in the settings of the forward pass. Results lie as [batch,
length, heads, size] does, so that transposing them back costs nothing.

Loops of Tenon's kernels on the processor run on the threads of PyTorch's own OpenMP from the import on, as two pools of
threads get in each other's way: the setting cpu.pool, unless somebody has set it. tenon.settings.set("cpu.pool", "own")
takes that back.

What differs from torch.nn.functional's: a mask and is_causal may come together; a query that sees no key gives
0, in every kernel. Refused, with the reason: forward-mode and second derivatives; dropout in torch.vmap unless its
randomness is "different"; torch.func's gradients inside torch.compile; gradients of a mask beside dropout, and in
torch.func.

>>> import torch
>>> from tenon.integrations.torch import scaled_dot_product_attention
>>> q = torch.ones(1, 2, 3, 4, requires_grad=True)
>>> out = scaled_dot_product_attention(q, q, q, is_causal=True)
>>> out.shape, out.stride(), out.transpose(1, 2).is_contiguous()
(torch.Size([1, 2, 3, 4]), (24, 4, 8, 1), True)
>>> out.sum().backward()
>>> q.grad.shape
torch.Size([1, 2, 3, 4])
"""

from __future__ import annotations

import sys
from typing import Any, Iterator, List, Optional, Tuple

import torch
import torch._C._functorch as _functorch
from torch._C._autograd import _profiler_enabled as _is_profiled
from torch._functorch.pyfunctorch import temporarily_pop_interpreter_stack

from .. import _given, errors, operators, settings
from .._calls import broadcast
from . import _mask_gradient
from ._einsum_gradient import einsum as einsum
from ._shared import autocast, autocast_dtype as autocast_dtype, dense, with_lse_gradient
from ._sparse_gradient import attention_sparse as attention_sparse
from ._sparse_gradient import sliding_tile_attention as sliding_tile_attention
from ._sparse_gradient import video_sparse_attention as video_sparse_attention

__all__ = ["attention", "attention_sparse", "einsum", "scaled_dot_product_attention", "sliding_tile_attention",
           "video_sparse_attention"]

for _face in (attention_sparse, einsum, sliding_tile_attention, video_sparse_attention):
    _face.__module__ = __name__

Tensor = torch.Tensor

_MOST_SEED = 2**62


def _share_threads() -> None:
    """PyTorch's threads wait for their next loop for some milliseconds without letting go of their processors, where
    Tenon's own would have to run meanwhile."""
    if settings.origin("cpu.pool") == "default" and not settings.frozen():
        settings.set("cpu.pool", "openmp")


_share_threads()


def _mask_word(causal: bool) -> str | None:
    return "causal" if causal else None


def _out_like(query: Tensor, value: Tensor) -> Tensor:
    """Empty, [batch, heads, queries, size], lying as [batch, queries, heads, size]."""
    batch, heads, queries, _ = query.shape
    size = value.shape[-1]
    return query.new_empty_strided((batch, heads, queries, size),
                                   (queries * heads * size, size, heads * size, 1))


def _lse_like(query: Tensor) -> Tensor:
    wide = torch.float64 if query.dtype == torch.float64 else torch.float32
    return query.new_empty(query.shape[:3], dtype=wide)


def _gradients_like(*operands: Tensor) -> Tuple[Tensor, ...]:
    """Empty, and lying as what they are gradients of."""
    return tuple(torch.empty_like(x) for x in operands)


def _whole(mask: Optional[Tensor], query: Tensor, key: Tensor) -> Optional[Tensor]:
    """A mask with every sequence, head, query and key written out, off the host, where gradients need that."""
    if mask is None or mask.device.type == "cpu":
        return mask
    return mask.expand(*query.shape[:3], key.shape[2]).contiguous()


def _check_devices(*, query: Tensor, **operands: Optional[Tensor]) -> None:
    """Every operand is where the query is."""
    place = query.device
    for name, x in operands.items():
        if x is not None and x.device != place:
            raise errors.invalid(f"{name}: expected {place}, as query, got {x.device}",
                                 "attention")


def _check_tensors(**operands: Any) -> None:
    for name, x in operands.items():
        if not isinstance(x, Tensor) and (x is not None or name in ("query", "key", "value")):
            raise TypeError(f"{name}: expected a torch.Tensor, got {type(x).__module__}.{type(x).__name__}; tenon.attention "
                            "takes arrays of any library")


def _check_layouts(**operands: Optional[Tensor]) -> None:
    for name, x in operands.items():
        if x is not None and x.is_nested:
            raise errors.invalid(f"{name} is a nested tensor; attention needs one of one shape, with a mask for what is "
                                 "padded, or packed sequences (starts_q and starts_k of tenon.attention)", "attention")
        if x is not None and x.layout is not torch.strided:
            raise errors.invalid(f"{name} is of {x.layout}; attention needs torch.strided: make it dense first",
                                 "attention")


def _infer(query: Tensor, key: Tensor, value: Tensor, mask: Optional[Tensor], causal: bool,
           scale: Optional[float], softcap: float, sinks: Optional[Tensor], backend: str) -> Tensor:
    return operators.attention(
        query, key, value, mask=_mask_word(causal), mask_tensor=mask, scale=scale, softcap=softcap,
        sinks=sinks, backend=backend or None, out=_out_like(query, value))


_is_compiling, _is_tracing = torch.compiler.is_compiling, torch._C._is_tracing
_modes, _functions = torch._C._len_torch_dispatch_stack, torch._C._len_torch_function_stack
_forward, _transformation = torch.autograd.forward_ad, _functorch.peek_interpreter_stack


def _is_watched() -> bool:
    """Whether somebody watches what is called: a compiler, tracer, profiler, mode, transformation or forward-mode
    derivative. Where nobody does, the dispatcher, which would only cost time, is not asked."""
    return (_is_compiling() or _is_tracing() or _modes() > 0 or _functions() > 0
            or _transformation() is not None or _is_profiled() or _forward._current_level >= 0)


_any_autocast = torch._C._is_any_autocast_enabled


def _layers(x: Tensor) -> Iterator[Tensor]:
    """A tensor and what transformations wrap in it."""
    yield x
    while not _is_compiling() and _functorch.is_functorch_wrapped_tensor(x):
        x = _functorch.get_unwrapped(x)
        yield x


def _is_tracked(x: Tensor) -> bool:
    """Whether somebody, around a transformation too, wants gradients of it."""
    return any(layer.requires_grad for layer in _layers(x))


def _has_tangent(x: Tensor) -> bool:
    """Whether somebody, around a transformation too, wants forward-mode derivatives by it: each transformation is
    left in turn, as it hides those of the ones around it."""
    top = None if _is_compiling() else _transformation()
    if (top is None or top.key() == _functorch.TransformType.Jvp) and _forward.unpack_dual(x).tangent is not None:
        return True
    if top is None:
        return False
    wrapped = _functorch.maybe_get_level(x) == top.level()
    with temporarily_pop_interpreter_stack():
        return _has_tangent(_functorch.get_unwrapped(x) if wrapped else x)


def _refuse_tangents(*operands: Optional[Tensor]) -> None:
    if any(x is not None and x.is_floating_point() and _has_tangent(x) for x in operands):
        raise errors.UnsupportedError(
            "no forward-mode derivatives of attention (torch.func.jvp, jacfwd, hessian, dual tensors); reverse mode "
            "has them: torch.func.vjp, jacrev, grad", "unsupported", "attention")


def _is_plain(*tensors: Optional[Tensor]) -> bool:
    """Whether these tensors have memory, with their own numbers."""
    return all(x is None or (type(x) in (Tensor, torch.nn.Parameter) and not x.is_meta and not x.is_neg())
               for x in tensors)


@torch.library.custom_op("tenon::attention_inference", mutates_args=())
def _inference(query: Tensor, key: Tensor, value: Tensor, mask: Optional[Tensor], causal: bool,
               scale: Optional[float], softcap: float, sinks: Optional[Tensor],
               backend: str) -> Tensor:
    with torch.no_grad():
        return _infer(query, key, value, mask, causal, scale, softcap, sinks, backend)


@_inference.register_fake
def _(query: Any, key: Any, value: Any, mask: Any, causal: Any, scale: Any, softcap: Any, sinks: Any,
      backend: Any) -> Any:
    _check_devices(query=query, key=key, value=value, mask=mask, sinks=sinks)
    return _out_like(query, value)


@torch.library.custom_op("tenon::attention", mutates_args=())
def _training(query: Tensor, key: Tensor, value: Tensor, mask: Optional[Tensor], dropout: float,
              causal: bool, scale: Optional[float], softcap: float,
              backend: str) -> Tuple[Tensor, Tensor, Tensor]:
    """(out, lse, seed): what the backward pass needs."""
    seed = torch.randint(_MOST_SEED, (1,)) if dropout else torch.zeros(1, dtype=torch.int64)
    out, lse = _out_like(query, value), _lse_like(query)
    with torch.no_grad():
        operators.attention(
            query, key, value, mask=_mask_word(causal), mask_tensor=mask, scale=scale, softcap=softcap,
            dropout=dropout, seed=int(seed), backend=backend or None, out=out, lse=lse)
    return out, lse, seed


@_training.register_fake
def _(query: Any, key: Any, value: Any, mask: Any, dropout: Any, causal: Any, scale: Any, softcap: Any,
      backend: Any) -> Any:
    _check_devices(query=query, key=key, value=value, mask=mask)
    seed = torch.empty(1, dtype=torch.int64)
    return _out_like(query, value), _lse_like(query), seed


@torch.library.custom_op("tenon::attention_backward", mutates_args=())
def _backward(grad: Tensor, query: Tensor, key: Tensor, value: Tensor, out: Tensor, lse: Tensor,
              seed: Tensor, mask: Optional[Tensor], dropout: float, causal: bool,
              scale: Optional[float], softcap: float,
              backend: str) -> Tuple[Tensor, Tensor, Tensor]:
    with torch.no_grad():
        return operators.attention_backward(
            dense(grad), query, key, value, out, lse, mask=_mask_word(causal),
            mask_tensor=_whole(mask, query, key), scale=scale, softcap=softcap, dropout=dropout,
            seed=int(seed), backend=backend or None, into=_gradients_like(query, key, value))


@_backward.register_fake
def _(grad: Any, query: Any, key: Any, value: Any, out: Any, lse: Any, seed: Any, mask: Any, dropout: Any,
      causal: Any, scale: Any, softcap: Any, backend: Any) -> Any:
    _check_devices(query=query, key=key, value=value, mask=mask, grad=grad, out=out, lse=lse)
    return _gradients_like(query, key, value)


@torch.library.custom_op("tenon::attention_mask_gradient", mutates_args=())
def _mask_backward(grad: Tensor, query: Tensor, key: Tensor, value: Tensor, out: Tensor, lse: Tensor, mask: Tensor,
                   causal: bool, scale: Optional[float], softcap: float) -> Tensor:
    return _mask_gradient.mask_gradient(grad, query, key, value, out, lse, mask, causal, scale, softcap)


@_mask_backward.register_fake
def _(grad: Any, query: Any, key: Any, value: Any, out: Any, lse: Any, mask: Any, causal: Any, scale: Any,
      softcap: Any) -> Any:
    return mask.new_empty(mask.shape)


def _setup(ctx: Any, inputs: Tuple[Any, ...], output: Tuple[Any, ...]) -> None:
    ctx.set_materialize_grads(False)
    query, key, value, mask, *numbers = inputs
    ctx.save_for_backward(query, key, value, *output, mask)
    ctx.numbers = numbers
    ctx.settings = settings.current()


def _gradients(ctx: Any, grad: Optional[Tensor], lse_grad: Optional[Tensor], *_: Any) -> Tuple[Any, ...]:
    query, key, value, out, lse, seed, mask = ctx.saved_tensors
    if grad is None and lse_grad is None:
        return (None,) * 9
    if grad is None:
        grad = torch.zeros_like(out)
    size = value.size(-1)
    if lse_grad is not None:
        grad, value, out = with_lse_gradient(grad, value, out, lse, lse_grad)
    run = _TransformedBackward.apply if _is_transformed() else _backward
    with settings.resume(ctx.settings):
        grads = run(grad, query, key, value, out, lse, seed, mask, *ctx.numbers)
    of_mask = None
    if mask is not None and ctx.needs_input_grad[3]:
        _, causal, scale, softcap, _ = ctx.numbers
        of_mask = _mask_backward(grad, query, key, value, out, lse, mask, causal, scale, softcap)
    of_query, of_key, of_value = grads
    if lse_grad is not None:
        of_value = of_value[..., :size]
    return (of_query, of_key, of_value, of_mask, None, None, None, None, None)


def _keep_nothing(ctx: Any, inputs: Tuple[Any, ...], output: Tuple[Any, ...]) -> None:
    """There is no second backward pass that could need it."""


def _no_second(ctx: Any, *_: Any) -> Tuple[Any, ...]:
    raise errors.UnsupportedError("no second derivatives of attention", "unsupported", "attention-backward")


_training.register_autograd(_gradients, setup_context=_setup)
_backward.register_autograd(_no_second, setup_context=_keep_nothing)


_shards = False


def _share() -> None:
    """Registers the rules for distributed tensors when these are in use."""
    global _shards
    if not _shards and "torch.distributed.tensor" in sys.modules:
        from . import _sharding

        of = torch.ops.tenon
        _sharding.register(of.attention_inference.default, of.attention.default, of.attention_backward.default)
        _shards = True


_share()


def _is_transformed() -> bool:
    """Whether a transformation of torch.func's is under way that takes its gradients from functions alone: those which
    the dispatcher has of an operator are not to be had in it."""
    top = None if _is_compiling() else _transformation()
    return top is not None and top.key() != _functorch.TransformType.Functionalize


class _Transformed(torch.autograd.Function):
    """The operator `attention` inside a transformation."""

    generate_vmap_rule = True

    @staticmethod
    def forward(*given: Any) -> Tuple[Tensor, Tensor, Tensor]:
        return _training(*given)

    @staticmethod
    def setup_context(ctx: Any, inputs: Tuple[Any, ...], output: Tuple[Any, ...]) -> None:
        _setup(ctx, inputs, output)
        ctx.mark_non_differentiable(output[2])

    backward = staticmethod(_gradients)


class _TransformedBackward(torch.autograd.Function):
    """The operator `attention_backward` inside a transformation."""

    generate_vmap_rule = True

    @staticmethod
    def forward(*given: Any) -> Tuple[Tensor, Tensor, Tensor]:
        return _backward(*given)

    setup_context = staticmethod(_keep_nothing)
    backward = staticmethod(_no_second)


def _fold(info: Any, dim: Optional[int], x: Tensor) -> Tensor:
    """What torch.vmap maps over, as part of the batch."""
    mapped = x.expand(info.batch_size, *x.shape) if dim is None else x.movedim(dim, 0)
    return mapped.flatten(0, 1)


def _fold_mask(info: Any, dim: Optional[int], mask: Optional[Tensor], batch: int) -> Optional[Tensor]:
    """The same of a mask for a batch, of which it may have one for all."""
    if mask is None:
        return None
    mapped = mask[None] if dim is None else mask.movedim(dim, 0)
    mapped = mapped[(slice(None),) + (None,) * (5 - mapped.dim())]
    if dim is None and mapped.size(1) == 1:
        return mapped[0]
    return mapped.expand(info.batch_size, batch, *mapped.shape[2:]).flatten(0, 1)


def _unfold(info: Any, x: Tensor) -> Tensor:
    return x.unflatten(0, (info.batch_size, x.size(0) // info.batch_size))


def _fold_all(info: Any, in_dims: Tuple[Any, ...], operands: Tuple[Tensor, ...]) -> List[Tensor]:
    return [_fold(info, dim, x) for dim, x in zip(in_dims, operands)]


def _batch(dim: Optional[int], query: Tensor) -> int:
    """The batch of what is mapped over."""
    return query.size(0) if dim is None else query.movedim(dim, 0).size(1)


@_inference.register_vmap
def _(info: Any, in_dims: Any, query: Any, key: Any, value: Any, mask: Any, causal: Any, scale: Any,
      softcap: Any, sinks: Any, backend: Any) -> Any:
    if sinks is not None and in_dims[7] is not None:
        raise errors.UnsupportedError("no attention with sinks that torch.vmap maps over", "unsupported", "attention")
    given = _fold_all(info, in_dims, (query, key, value))
    mask = _fold_mask(info, in_dims[3], mask, _batch(in_dims[0], query))
    return _unfold(info, _inference(*given, mask, causal, scale, softcap, sinks, backend)), 0


@_training.register_vmap
def _(info: Any, in_dims: Any, query: Any, key: Any, value: Any, mask: Any, dropout: Any, *numbers: Any) -> Any:
    if dropout and info.randomness != "different":
        raise errors.UnsupportedError(f'dropout in torch.vmap: expected randomness="different", got "{info.randomness}"',
                                      "unsupported", "attention")
    given = _fold_all(info, in_dims, (query, key, value))
    mask = _fold_mask(info, in_dims[3], mask, _batch(in_dims[0], query))
    out, lse, seed = _training(*given, mask, dropout, *numbers)
    return (_unfold(info, out), _unfold(info, lse), seed), (0, 0, None)


@_backward.register_vmap
def _(info: Any, in_dims: Any, grad: Any, query: Any, key: Any, value: Any, out: Any, lse: Any, seed: Any,
      mask: Any, *numbers: Any) -> Any:
    given = _fold_all(info, in_dims, (grad, query, key, value, out, lse))
    mask = _fold_mask(info, in_dims[7], mask, _batch(in_dims[1], query))
    return tuple(_unfold(info, x) for x in _backward(*given, seed, mask, *numbers)), (0, 0, 0)


def _fast_infer(query: Tensor, key: Tensor, value: Tensor, mask: Optional[Tensor], causal: bool,
                scale: Optional[float], backend: str) -> Any:
    """[batch, length, heads, size] by the extension; NotImplemented where it is not built, or leaves the call to
    Python."""
    fast = operators._fast
    if fast is None:
        return NotImplemented
    number = operators._backend_number(backend) if backend else 0
    return fast.attention(settings.context(), query, key, value, 1 if causal else 0, scale, mask, 0, True, number)


def _autocast_sinks(sinks: Optional[Tensor]) -> Optional[Tensor]:
    """Sinks of float32 stay so, as they are taken beside any dtype."""
    return sinks if sinks is None or sinks.dtype == torch.float32 else autocast(sinks)[0]


def attend(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None, dropout: float = 0.0,
           causal: bool = False, scale: float | None = None, backend: str = "", softcap: float = 0.0,
           sinks: Tensor | None = None, turned: bool = False) -> Tensor:
    """As `attention` of [batch, heads, length, size]; `turned`, the result is [batch, length, heads, size], as
    which it is dense."""
    watched = _is_watched()
    if watched or _any_autocast():
        query, key, value, mask = autocast(query, key, value, mask)
        sinks = _autocast_sinks(sinks)
    if sinks is None and not softcap and not dropout and not watched:
        out = _fast_infer(query, key, value, mask, causal, scale, backend)
        if out is not NotImplemented:
            return out if turned else out.transpose(1, 2)
    out = _attend(query, key, value, mask, dropout, causal, scale, backend, softcap, sinks)
    return out.transpose(1, 2) if turned else out


def attend_with_lse(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None, dropout: float = 0.0,
                    causal: bool = False, scale: float | None = None, backend: str = "",
                    softcap: float = 0.0) -> Tuple[Tensor, Tensor]:
    """As `attend`, and the logarithms of the sums of exponentials, [batch, heads, queries]."""
    if _is_watched() or _any_autocast():
        query, key, value, mask = autocast(query, key, value, mask)
    query, key, value, mask, needs = _prepare(query, key, value, mask, dropout, None)
    if dropout == 1.0:
        out, lse = attend_with_lse(query, key, value, mask, 0.0, causal, scale, backend, softcap)
        return out * 0.0, lse
    return _train(needs, query, key, value, mask, dropout, causal, scale, softcap, backend)


def _even(query: Tensor, key: Tensor, value: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
    """With as many heads of keys as of values, and the same dimensions before the heads: where one has 1, it serves
    all."""
    batches = [tuple(x.shape[:-3]) for x in (query, key, value)]
    groups = [tuple(x.shape[-3:-2]) for x in (key, value)]
    if batches[0] == batches[1] == batches[2] and groups[0] == groups[1]:
        return query, key, value
    batch = broadcast(broadcast(batches[0], batches[1]), batches[2])
    group = broadcast(*groups)
    heads = (tuple(query.shape[-3:-2]), group, group)
    query, key, value = (dense(x.expand(*batch, *one, *x.shape[-2:])) for x, one in zip((query, key, value), heads))
    return query, key, value


def _check_tracked_mask(dropout: float) -> None:
    """Refuses what the gradient of a mask is not computed with."""
    for what, there in (("dropout", dropout), ("torch.func", _is_transformed())):
        if there:
            raise errors.UnsupportedError(f"no gradients of a mask with {what}", "unsupported", "attention-backward")


def _prepare(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, dropout: float,
             sinks: Tensor | None) -> Tuple[Tensor, Tensor, Tensor, Tensor | None, bool]:
    """Checked operands, and whether gradients of them are wanted."""
    _check_layouts(query=query, key=key, value=value, mask=mask, sinks=sinks)
    _check_devices(query=query, key=key, value=value, mask=mask, sinks=sinks)
    if type(query) is not Tensor and not _is_compiling():
        _share()
    if _forward._current_level >= 0:
        _refuse_tangents(query, key, value, mask, sinks)
    enabled = torch.is_grad_enabled()
    tracked = mask is not None and enabled and _is_tracked(mask)
    if mask is not None and tracked:
        _check_tracked_mask(dropout)
        mask = _ranked(mask, 4)
    needs = tracked or enabled and any(_is_tracked(x) for x in (query, key, value))
    if needs and sinks is not None:
        raise errors.UnsupportedError("no gradients of attention with sinks", "unsupported", "attention")
    return (*_even(query, key, value), mask, needs)


def _train(needs: bool, *given: Any) -> Tuple[Tensor, Tensor]:
    """The result and its lse, by the operator that has a backward pass."""
    run = _Transformed.apply if needs and _is_transformed() else _training
    out, lse, _ = run(*given)
    return out, lse


def _attend(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, dropout: float, causal: bool,
            scale: float | None, backend: str, softcap: float, sinks: Tensor | None) -> Tensor:
    """What the extension does not serve: [batch, heads, length, size]."""
    query, key, value, mask, needs = _prepare(query, key, value, mask, dropout, sinks)
    if dropout == 1.0:  # drops all, where the kernels' rest is divided by what is kept
        return _attend(query, key, value, mask, 0.0, causal, scale, backend, softcap, sinks) * 0.0
    if needs or dropout:
        return _train(needs, query, key, value, mask, dropout, causal, scale, softcap, backend)[0]
    run = _infer if not _is_watched() and _is_plain(query, key, value, mask, sinks) else _inference
    return run(query, key, value, mask, causal, scale, softcap, sinks, backend)


def attention(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None,
              dropout: float = 0.0, causal: bool = False, scale: float | None = None,
              layout: str = "bhld", backend: str = "", softcap: float = 0.0,
              sinks: Tensor | None = None, return_lse: bool = False) -> Any:
    """tenon.attention with gradients, of four dimensions. A backend that is named is required. With return_lse, a pair:
    the result and its log-sum-exp, [batch, heads, queries], both with gradients."""
    _check_tensors(query=query, key=key, value=value, mask=mask, sinks=sinks)
    turned = bool(operators.layout_number(layout))
    if turned:
        query, key, value = (x.transpose(1, 2) for x in (query, key, value))
    if not return_lse:
        return attend(query, key, value, mask, dropout, causal, scale, backend, softcap, sinks, turned)
    if sinks is not None:
        raise errors.UnsupportedError("no lse of attention with sinks; tenon.attention(out=..., lse=...) gives it without "
                                      "gradients", "unsupported", "attention")
    out, lse = attend_with_lse(query, key, value, mask, dropout, causal, scale, backend, softcap)
    return (out.transpose(1, 2) if turned else out), lse


def _ranked(x: Tensor, rank: int) -> Tensor:
    return x[(None,) * (rank - x.dim())]


def _ranked_mask(mask: Tensor | None, rank: int, before: Tuple[int, ...]) -> Tensor | None:
    """[batch, ...] of a mask that may have fewer dimensions or one for all; `before` are those of the batch."""
    if mask is None:
        return None
    if mask.dim() > rank:
        raise errors.invalid(f"a mask of {mask.dim()} dimensions beside operands of {rank}, which it cannot add to")
    mask = _ranked(mask, max(rank, 4))
    if broadcast(before, tuple(mask.shape[:-3])) != before:
        raise errors.invalid(f"a mask of shape {tuple(mask.shape)} beside operands of {before} before their heads")
    return mask if rank <= 4 else mask.expand(*before, *mask.shape[-3:]).flatten(0, -4)


def _attend_any(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, dropout: float, causal: bool,
                scale: float | None, enable_gqa: bool) -> Tensor:
    """Of two dimensions or more, which broadcast before the last two; heads only where enable_gqa is not given, as they
    are grouped otherwise."""
    _check_layouts(query=query, key=key, value=value, mask=mask)
    given = (query, key, value)
    ranks = [x.dim() for x in given]
    if min(ranks) < 2:
        raise errors.invalid("query, key and value: expected two dimensions or more, got "
                             f"{ranks[0]}, {ranks[1]} and {ranks[2]}")
    rank = max(ranks)
    query, key, value = _even(*(_ranked(x, max(rank, 4)) for x in given))
    if not enable_gqa and query.size(-3) != key.size(-3):
        if 1 not in (query.size(-3), key.size(-3)):
            raise errors.invalid(
                f"query has {query.shape[-3]} heads, key has {key.shape[-3]}: enable_gqa=True permits it")
        if query.size(-3) == 1:  # keys and values of one head serve all of the query's as they are
            query = dense(query.expand(*query.shape[:-3], key.size(-3), *query.shape[-2:]))
    before = tuple(query.shape[:-3])
    shape = (*query.shape[:-1], value.shape[-1])
    query, key, value = (x.flatten(0, -4) for x in (query, key, value))
    out = attend(query, key, value, _ranked_mask(mask, rank, before), dropout, causal, scale)
    return out.reshape(shape[-rank:])


def scaled_dot_product_attention(query: Tensor, key: Tensor, value: Tensor,
                                 attn_mask: Tensor | None = None, dropout_p: float = 0.0,
                                 is_causal: bool = False, scale: float | None = None,
                                 enable_gqa: bool = False) -> Tensor:
    """As torch.nn.functional.scaled_dot_product_attention.

    >>> import torch
    >>> from tenon.integrations.torch import scaled_dot_product_attention
    >>> q, k, v = torch.randn(3, 2, 4, 8, 16, generator=torch.Generator().manual_seed(0))
    >>> theirs = torch.nn.functional.scaled_dot_product_attention(q, k, v)
    >>> torch.allclose(scaled_dot_product_attention(q, k, v), theirs, atol=1e-5)
    True
    """
    if type(query) is not Tensor or query.is_nested or type(key) is not Tensor or type(value) is not Tensor or (
            attn_mask is not None and type(attn_mask) is not Tensor):
        _check_tensors(query=query, key=key, value=value, attn_mask=attn_mask)
        _check_layouts(query=query, key=key, value=value, attn_mask=attn_mask)
    if is_causal is not True and is_causal is not False:
        is_causal = _given.flag("is_causal", is_causal)
    if (query.dim() == key.dim() == value.dim() == 4 and (attn_mask is None or attn_mask.dim() == 4)
            and (enable_gqa or query.size(1) == key.size(1))):
        return attend(query, key, value, attn_mask, dropout_p, is_causal, scale)
    return _attend_any(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa)


def __dir__() -> list[str]:
    return __all__
