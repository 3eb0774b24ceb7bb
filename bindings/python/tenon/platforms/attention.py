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
import sys
from typing import Any

from .. import errors, operators, settings
from .._library import text
from .interface import AttentionBackendEnum, platform


@dataclasses.dataclass
class AttentionMetadata:
    """What a step of denoising tells its layers. A mask of keys, `attn_mask`, is [batch, keys], [batch,
    queries, keys] or [batch, heads or 1, queries or 1, keys]: what is not 0 or false is seen.

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

    def asdict_zerocopy(self, skip_fields: set[str] | None = None) -> dict[str, Any]:
        """The fields, as they are."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)
                if field.name not in (skip_fields or ())}


class AttentionMetadataBuilder:
    """Makes metadata for a step."""

    def prepare(self) -> None:
        """Nothing has to be done ahead."""

    def build(self, current_timestep: int = 0, **fields: Any) -> AttentionMetadata:
        """Metadata of the fields that it has; others are ignored."""
        known = {field.name for field in dataclasses.fields(AttentionMetadata)}
        return AttentionMetadata(current_timestep, **{k: v for k, v in fields.items() if k in known})


class AttentionImpl:
    """A layer's attention, by one backend and no other."""

    backend = ""

    def __init__(self, num_heads: int, head_size: int, softmax_scale: float | None = None,
                 causal: bool = False, num_kv_heads: int | None = None, prefix: str = "",
                 dropout_p: float = 0.0, **extra: Any) -> None:
        self.num_heads, self.head_size, self.prefix = num_heads, head_size, prefix
        self.num_kv_heads = num_heads if num_kv_heads is None else num_kv_heads
        self.softmax_scale = head_size**-0.5 if softmax_scale is None else softmax_scale
        self.causal, self.dropout_p = causal, dropout_p

    def preprocess_qkv(self, qkv: Any, attn_metadata: Any) -> Any:
        """As it is."""
        return qkv

    def postprocess_output(self, output: Any, attn_metadata: Any) -> Any:
        """As it is."""
        return output

    def forward(self, query: Any, key: Any, value: Any, attn_metadata: Any = None) -> Any:
        """Attention of [batch, length, heads, size], in an array of the query's library."""
        mask = seen_of(getattr(attn_metadata, "attn_mask", None))
        trained = is_differentiated(query, key, value, mask)
        if self.dropout_p and not trained:
            raise errors.invalid("dropout is for training: none of these tensors requires gradients")
        run = self._by_torch if trained or is_watched(query) else self._plainly
        if self.backend in BACKENDS:
            return run(query, key, value, mask, self.backend)
        with settings.scope({"attention.backend": f"require:{self.backend}"}):  # it has a name and no number
            return run(query, key, value, mask, "")

    def _by_torch(self, query: Any, key: Any, value: Any, mask: Any, backend: str) -> Any:
        from ..integrations.torch import attention

        return attention(query, key, value, mask, self.dropout_p, self.causal, self.softmax_scale, "blhd", backend)

    def _plainly(self, query: Any, key: Any, value: Any, mask: Any, backend: str) -> Any:
        return operators.attention(query, key, value, mask="causal" if self.causal else None,
                                   mask_tensor=mask, scale=self.softmax_scale, layout="blhd",
                                   backend=backend or None)


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


def seen_of(mask: Any) -> Any:
    """A mask of any of the shapes above as one of bool and four dimensions; floats are added as they
    are."""
    if mask is None:
        return None
    name = str(mask.dtype)
    if "float" not in name and not name.endswith("bool"):
        mask = mask != 0
    if mask.ndim == 2:
        return mask[:, None, None, :]
    if mask.ndim == 3:
        return mask[:, None, :, :]
    if mask.ndim != 4:
        raise errors.invalid(f"a mask of {mask.ndim} dimensions; 2, 3 or 4 are meant")
    return mask


class AttentionBackend:
    """What the layer asks its backend for."""

    accept_output_buffer = True
    name = ""
    impl: type[AttentionImpl] = AttentionImpl

    @classmethod
    def get_name(cls) -> str:
        """ "FLASH_ATTN"."""
        return cls.name

    @classmethod
    def get_impl_cls(cls) -> type[AttentionImpl]:
        """The class that computes a layer."""
        return cls.impl

    @staticmethod
    def get_metadata_cls() -> type[AttentionMetadata]:
        """The class of what a step tells."""
        return AttentionMetadata

    @staticmethod
    def get_builder_cls() -> type[AttentionMetadataBuilder]:
        """The class that makes it."""
        return AttentionMetadataBuilder

    @staticmethod
    def get_supported_head_sizes() -> list[int]:
        """Empty: every size; ask tenon.explain which kernel takes one."""
        return []


def backend_class(name: str) -> type[AttentionBackend]:
    """The class for a backend's name, a stranger's too."""
    impl = type(f"{name}_Impl", (AttentionImpl,), {"backend": name, "__module__": __name__})
    return type(name, (AttentionBackend,), {
        "name": name, "impl": impl, "__module__": __name__, "__doc__": f"Attention by {name} alone."})


BACKENDS = [member.name for member in AttentionBackendEnum if member is not AttentionBackendEnum.NO_ATTENTION]
globals().update({name: backend_class(name) for name in BACKENDS})


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
    if not is_brought(name):
        if not name.isupper():
            raise AttributeError(message)
        near = difflib.get_close_matches(name, BACKENDS, 1, 0)
        raise AttributeError(f"{message}: no attention backend of that name; did you mean {near[0]}?")
    made = globals()[name] = backend_class(name)
    return made
