"""The classes that get_attn_backend_cls names: one for every backend, `tenon.platforms.attention.NAME`.

Each has FastVideo's contract: get_impl_cls() gives a class whose objects compute a layer,
`impl.forward(query, key, value, metadata)`, of [batch, length, heads, size]. Arrays may be anyone's;
PyTorch's that require gradients get them, and torch.autocast holds for PyTorch's.

>>> import numpy
>>> from tenon.platforms import platform
>>> path = platform("cpu").get_attn_backend_cls(None, 64, "float32")
>>> backend = globals()[path.rpartition(".")[2]]
>>> impl = backend.get_impl_cls()(num_heads=2, head_size=64, softmax_scale=0.125)
>>> q = numpy.ones((1, 16, 2, 64), "float32")
>>> impl.forward(q, q, q, None).shape
(1, 16, 2, 64)
"""

from __future__ import annotations

import dataclasses
import difflib
import importlib
import sys
from typing import Any

from .. import _given, errors, operators, settings
from .._library import text
from .interface import QUANTIZED_BACKENDS, VIDEO_BACKENDS, AttentionBackendEnum, platform


@dataclasses.dataclass
class AttentionMetadata:
    """What a step of denoising tells its layers. A mask of keys, `attn_mask`, is [batch, keys], [batch,
    queries, keys] or [batch, heads or 1, queries or 1, keys]: what is not 0 or false is seen. One of fewer keys is
    of the last ones, and those before them are seen. `is_causal` says that the mask is exactly the causal one: a causal
    kernel then takes its place.

    >>> import numpy
    >>> from tenon.platforms.attention import TORCH_SDPA, AttentionMetadata
    >>> x = numpy.arange(4, dtype="float32").reshape(1, 4, 1, 1)       # batch, length, heads, size
    >>> impl = TORCH_SDPA.get_impl_cls()(num_heads=1, head_size=1, softmax_scale=0.0)
    >>> step = AttentionMetadata(0, attn_mask=numpy.array([[1, 1, 0, 0]]))
    >>> impl.forward(x, x, x, step).ravel()                            # of the first two keys alone
    array([0.5, 0.5, 0.5, 0.5], dtype=float32)
    """

    current_timestep: int
    VSA_sparsity: float = 0.0
    attn_mask: Any = None
    is_causal: bool = False

    def asdict_zerocopy(self, skip_fields: set[str] | None = None) -> dict[str, Any]:
        """The fields, as they are."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)
                if field.name not in (skip_fields or ())}


class AttentionMetadataBuilder:
    """Makes metadata for a step."""

    def prepare(self) -> None:
        """Nothing has to be done ahead."""

    def build(self, current_timestep: int = 0, attn_mask: Any = None, **fields: Any) -> AttentionMetadata:
        """Metadata of the fields that it has; others are ignored."""
        known = {field.name for field in dataclasses.fields(AttentionMetadata)}
        return AttentionMetadata(current_timestep, attn_mask=attn_mask,
                                 **{k: v for k, v in fields.items() if k in known})


class AttentionImpl:
    """A layer's attention, by one backend and no other. What it is given has the heads and sizes that it was made
    for; where torch.distributed is in use, the heads may be those of one process, after the exchange that leaves each
    with all of the sequence and its share of the heads."""

    backend = ""

    def __init__(self, num_heads: int, head_size: int, softmax_scale: float | None = None,
                 causal: bool = False, num_kv_heads: int | None = None, prefix: str = "",
                 dropout_p: float = 0.0, **extra: Any) -> None:
        self.num_heads, self.head_size = whole("num_heads", num_heads), whole("head_size", head_size)
        self.num_kv_heads = self.num_heads if num_kv_heads is None else whole("num_kv_heads", num_kv_heads)
        if self.num_heads % self.num_kv_heads:
            raise errors.invalid(f"num_kv_heads: expected a number that divides num_heads, {self.num_heads}; got "
                                 f"{self.num_kv_heads}")
        self.softmax_scale = self.head_size**-0.5 if softmax_scale is None else _given.real("softmax_scale", softmax_scale)
        self.causal, self.prefix = _given.flag("causal", causal), prefix
        self.dropout_p = _given.real("dropout_p", dropout_p)
        if not 0.0 <= self.dropout_p <= 1.0:
            raise errors.invalid(f"dropout_p: expected 0 to 1, got {self.dropout_p}")

    def preprocess_qkv(self, qkv: Any, attn_metadata: Any) -> Any:
        """As it is."""
        return qkv

    def postprocess_output(self, output: Any, attn_metadata: Any) -> Any:
        """As it is."""
        return output

    def forward(self, query: Any, key: Any, value: Any, *given: Any, gate_compress: Any = None,
                attn_metadata: Any = None) -> Any:
        """Attention of [batch, length, heads, size], in an array of the query's library. What is `given` is the metadata,
        or, as upstream's sparse layers call it, a gate and the metadata. Only VIDEO_SPARSE_ATTN accepts a gate that is not
        None."""
        gate, metadata = given_of(given, gate_compress, attn_metadata)
        if gate is not None:
            raise errors.UnsupportedError(f"gate_compress: expected the compression branch of VIDEO_SPARSE_ATTN, got "
                                          f"{self.backend}, which has none; give None", "unsupported", "attention")
        self._check(query, key, value)
        causal = self.causal or bool(getattr(metadata, "is_causal", False))
        mask = None if causal and not self.causal else seen_of(getattr(metadata, "attn_mask", None), key)
        trained = is_differentiated(query, key, value, mask)
        if self.dropout_p and not trained:
            raise errors.invalid("dropout is for training: none of these tensors requires gradients")
        run = self._by_torch if trained or is_watched(query) else self._plainly
        if self.backend in BACKENDS:
            return run(query, key, value, mask, causal, self.backend)
        with settings.scope({"attention.backend": f"require:{self.backend}"}):  # it has a name and no number
            return run(query, key, value, mask, causal, "")

    def _check(self, query: Any, key: Any, value: Any) -> None:
        """Refuses what it was not made for. The size of values is their own, and what has no shape is left to the
        operator."""
        ranks = 1
        for name, x in (("query", query), ("key", key), ("value", value)):
            shape = shape_of(x)
            if shape is None:
                continue
            if len(shape) != 4:
                raise errors.invalid(f"{name}: expected 4 dimensions, [batch, length, heads, size], got {len(shape)}: "
                                     f"{list(shape)}", "attention")
            heads, size = shape[2], shape[3]
            if name == "query":
                ranks = self._ranks(heads)
            needed = self.num_heads if name == "query" else max(self.num_kv_heads // max(ranks, 1), 1)
            if not ranks or name != "query" and heads != needed:
                raise errors.invalid(f"{name}: expected {needed} heads, got {heads}: {list(shape)} is [batch, length, heads, "
                                     f"size], of a layer of {self.num_heads} heads and {self.num_kv_heads} of keys and "
                                     "values", "attention")
            if name != "value" and size != self.head_size:
                raise errors.invalid(f"{name}: expected heads of size {self.head_size}, got {size}: {list(shape)} is "
                                     "[batch, length, heads, size]", "attention")

    def _ranks(self, heads: int) -> int:
        """Among how many processes the layer's heads are shared when a query has so many of them; 0 for none."""
        if heads == self.num_heads:
            return 1
        torch = sys.modules.get("torch")
        if torch is None or not torch.distributed.is_available() or not torch.distributed.is_initialized():
            return 0
        if heads < 1 or self.num_heads % heads:
            return 0
        ranks = self.num_heads // heads
        shares = self.num_kv_heads % ranks == 0 or ranks % self.num_kv_heads == 0  # or each of several has the same head
        return ranks if shares and torch.distributed.get_world_size() % ranks == 0 else 0

    def _by_torch(self, query: Any, key: Any, value: Any, mask: Any, causal: bool, backend: str) -> Any:
        from ..integrations.torch import attention

        return attention(query, key, value, mask, self.dropout_p, causal, self.softmax_scale, "blhd", backend)

    def _plainly(self, query: Any, key: Any, value: Any, mask: Any, causal: bool, backend: str) -> Any:
        return operators.attention(query, key, value, mask="causal" if causal else None,
                                   mask_tensor=mask, scale=self.softmax_scale, layout="blhd",
                                   backend=backend or None)


def given_of(given: tuple[Any, ...], gate: Any, metadata: Any) -> tuple[Any, Any]:
    """The gate and the metadata of what a layer was called with: neither, the metadata, or both."""
    if len(given) > 2:
        raise TypeError(f"forward: expected query, key, value, a gate and metadata at most, got {3 + len(given)} arguments")
    if len(given) == 2:
        return given
    return (gate, given[0]) if given else (gate, metadata)


def is_differentiated(query: Any, *others: Any) -> bool:
    """Whether these are PyTorch's, and derivatives are wanted by one of them: gradients, or those of an open level of
    its forward mode."""
    if not hasattr(query, "requires_grad"):
        return False
    forward = sys.modules["torch"].autograd.forward_ad if "torch" in sys.modules else None
    return (any(getattr(x, "requires_grad", False) for x in (query, *others))
            or getattr(forward, "_current_level", -1) >= 0)


def is_watched(query: Any) -> bool:
    """Whether this is PyTorch's, and torch.autocast may have it in another dtype, or a compiler sees the call."""
    torch = sys.modules.get("torch") if hasattr(query, "requires_grad") else None
    return torch is not None and bool(torch._C._is_any_autocast_enabled() or torch.compiler.is_compiling())


def whole(what: str, value: Any) -> int:
    """How many of something that there must be."""
    return _given.number(what, value, 1, _given.INT32[1])


def shape_of(x: Any) -> Any:
    """None where it has none: of buffers, and of tensors that are nested."""
    return None if getattr(x, "is_nested", False) else getattr(x, "shape", None)


def seen_of(mask: Any, key: Any) -> Any:
    """A mask of any of the shapes above as one of bool, all keys and four dimensions; floats are added as they
    are."""
    if mask is None:
        return None
    name = str(mask.dtype)
    if "float" not in name and not name.endswith("bool"):
        mask = mask != 0
    shape = shape_of(key)
    if shape is not None and mask.ndim:
        mask = with_keys(mask, shape[1])
    if mask.ndim == 2:
        return mask[:, None, None, :]
    if mask.ndim == 3:
        return mask[:, None, :, :]
    if mask.ndim != 4:
        raise errors.invalid(f"a mask of {mask.ndim} dimensions; 2, 3 or 4 are meant")
    return mask


def with_keys(mask: Any, keys: int) -> Any:
    """A mask of so many keys: those at the front that it does not have are seen."""
    missing = keys - mask.shape[-1]
    if missing < 0:
        raise errors.invalid(f"attn_mask: expected at most {keys} keys, as many as key has; got {mask.shape[-1]}",
                             "attention")
    if missing == 0:
        return mask
    added = "float" in str(mask.dtype)
    if hasattr(mask, "requires_grad"):
        return sys.modules["torch"].nn.functional.pad(mask, (missing, 0), value=0.0 if added else True)
    space = mask.__array_namespace__() if hasattr(mask, "__array_namespace__") else importlib.import_module(
        type(mask).__module__.partition(".")[0])
    if not hasattr(space, "ones"):
        raise errors.invalid(f"attn_mask: expected {keys} keys, as {space.__name__} has no function to add those at the front "
                             f"to a {type(mask).__name__}; got {mask.shape[-1]}", "attention")
    front = (space.zeros if added else space.ones)((*mask.shape[:-1], missing), dtype=mask.dtype)
    return (space.concat if hasattr(space, "concat") else space.concatenate)((front, mask), axis=-1)


FLASH_SIZES = [32, 64, 96, 128, 160, 192, 224, 256]
HEAD_SIZES = {
    **dict.fromkeys(("FLASH_ATTN", "SAGE_ATTN", "SLIDING_TILE_ATTN"), FLASH_SIZES),
    **dict.fromkeys(("ATTN_QAT_INFER", "VIDEO_SPARSE_ATTN", "VIDEO_SPARSE_ATTN_H3", "BSA_ATTN", "SLA_ATTN",
                     "SAGE_SLA_ATTN"), [64, 128]),
    "SAGE_ATTN_THREE": [64, 128, 256],
    "ATTN_QAT_TRAIN": [128],
}


class AttentionBackend:
    """What the layer asks its backend for."""

    accept_output_buffer = True
    name = ""
    impl: type[AttentionImpl] = AttentionImpl
    metadata: type[AttentionMetadata] = AttentionMetadata
    builder: type[AttentionMetadataBuilder] = AttentionMetadataBuilder

    @classmethod
    def get_name(cls) -> str:
        """ "FLASH_ATTN"."""
        return cls.name

    @classmethod
    def get_impl_cls(cls) -> type[AttentionImpl]:
        """The class that computes a layer."""
        return cls.impl

    @classmethod
    def get_metadata_cls(cls) -> type[AttentionMetadata]:
        """The class of what a step tells."""
        return cls.metadata

    @classmethod
    def get_builder_cls(cls) -> type[AttentionMetadataBuilder]:
        """The class that makes it."""
        return cls.builder

    @classmethod
    def get_supported_head_sizes(cls) -> list[int] | None:
        """Those that upstream has the backend for; None where it names none, and every size may be asked for. Kernels
        here may take others: get_attn_backend_cls and tenon.explain know."""
        sizes = HEAD_SIZES.get(cls.name)
        return None if sizes is None else list(sizes)


OF_LAYERS = "_Impl"  # behind a backend's name: the class that computes its layers


def backend_class(name: str) -> type[AttentionBackend]:
    """The class for a backend's name, a stranger's too."""
    layer: type[AttentionImpl] = AttentionImpl
    more: dict[str, Any] = {}
    if name in VIDEO_BACKENDS:
        metadata, builder, layer = importlib.import_module(f"{__package__}.{VIDEO_BACKENDS[name]}").LAYERS[name]
        more = {"metadata": metadata, "builder": builder, "accept_output_buffer": name not in ("BSA_ATTN", "NABLA_ATTN")}
    elif name in QUANTIZED_BACKENDS:
        layer = importlib.import_module(f"{__package__}._quantized").QuantizedImpl
    impl = type(f"{name}{OF_LAYERS}", (layer,), {
        "backend": name, "__module__": __name__, "__doc__": f"A layer's attention by {name} alone."})
    return type(name, (AttentionBackend,), {
        "name": name, "impl": impl, "__module__": __name__, "__doc__": f"Attention by {name} alone.", **more})


BACKENDS = [member.name for member in AttentionBackendEnum if member is not AttentionBackendEnum.NO_ATTENTION]
__all__ = ["AttentionBackend", "AttentionImpl", "AttentionMetadata", "AttentionMetadataBuilder", *BACKENDS]


def enter(name: str) -> type[AttentionBackend]:
    """Makes a backend's class, and has it and that of its layers here, where pickle finds them by their names."""
    made = globals()[name] = backend_class(name)
    globals()[made.impl.__name__] = made.impl
    return made


for _name in BACKENDS:
    if _name not in VIDEO_BACKENDS and _name not in QUANTIZED_BACKENDS:  # those are made when they are asked for: they derive from what is here
        enter(_name)


def is_brought(name: str) -> bool:
    """Whether there is a backend of that name beside upstream's: the reference, or one that a module brought, for
    whichever platform. What the processor does not take is known by its capitals from a family's name."""
    try:
        with settings.scope({"attention.backend": f"require:{name}"}):
            return text(platform("cpu").attention_choice(None, 64, "f32").name) == name
    except errors.NotFoundError:
        return False
    except errors.UnsupportedError:
        return name.isupper() and name != AttentionBackendEnum.NO_ATTENTION.name


def __getattr__(name: str) -> Any:
    message = f"module {__name__!r} has no attribute {name!r}"
    if name.startswith("_"):
        raise AttributeError(message)
    if name.endswith(OF_LAYERS):
        backend = globals().get(name[:-len(OF_LAYERS)]) or __getattr__(name[:-len(OF_LAYERS)])
        return backend.impl
    if name not in VIDEO_BACKENDS and name not in QUANTIZED_BACKENDS and not is_brought(name):
        if not name.isupper():
            raise AttributeError(message)
        near = difflib.get_close_matches(name, BACKENDS, 1, 0)
        raise AttributeError(f"{message}: no attention backend of that name; did you mean {near[0]}?")
    return enter(name)


def __dir__() -> list[str]:
    return __all__
