"""The layers of FastVideo's backends that choose blocks: VIDEO_SPARSE_ATTN_H3, BSA_ATTN, NABLA_ATTN and VMOBA_ATTN."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

from .. import _given, _video_bsa, _video_h3, _video_nabla, _video_vmoba, errors, settings, video
from ._video import VideoImpl, VideoMetadata, VideoMetadataBuilder
from .attention import AttentionImpl, AttentionMetadata, AttentionMetadataBuilder, given_of


def patches_of(raw_latent_shape: Any, patch_size: Any) -> tuple[int, ...]:
    """The canvas of a latent of (frames, rows, columns), which must be whole patches."""
    latent = video.box_of("raw_latent_shape", tuple(raw_latent_shape)[-3:])
    patch = (1, 1, 1) if patch_size is None else video.box_of("patch_size", patch_size)
    if any(size % each for size, each in zip(latent, patch)):
        raise errors.invalid(f"raw_latent_shape: expected whole patches of {patch}, got {latent}", "attention")
    return tuple(size // each for size, each in zip(latent, patch))


def layer_of(prefix: str) -> int | None:
    """N of "blocks.N" in a layer's prefix, or None."""
    found = re.search(r"blocks\.(\d+)", prefix)
    return int(found[1]) if found else None


def made(cls: Any, fields: dict[str, Any]) -> Any:
    """Metadata of the fields that the class has; others are ignored."""
    known = {field.name for field in dataclasses.fields(cls)}
    return cls(**{name: value for name, value in fields.items() if name in known})


class SparseImpl(VideoImpl):
    """A layer that has no gate."""

    def ungated(self, query: Any, key: Any, value: Any, given: tuple[Any, ...], gate: Any, metadata: Any,
                kind: type[AttentionMetadata]) -> Any:
        """The metadata, of its class; rejects a gate and what is not computed."""
        gate, metadata = given_of(given, gate, metadata)
        if gate is not None:
            raise errors.UnsupportedError(f"gate_compress: expected None for {self.backend}, got an array", "unsupported",
                                          "attention")
        if not isinstance(metadata, kind):
            raise errors.invalid(f"attn_metadata: expected {kind.__name__}, as the builder of {self.backend} makes it; got "
                                 f"{type(metadata).__name__}", "attention")
        self.check(query, key, value, metadata)
        return metadata


@dataclasses.dataclass
class PackedMetadata(VideoMetadata):
    """What a step tells layers of VIDEO_SPARSE_ATTN_H3: the lengths of the segments in front of the video, its canvas, and
    how sparse which layers are."""

    prefix_segments: tuple[int, ...] = ()
    exempt: bool = True
    dense_layers: tuple[int, ...] = ()
    tile_elems: int = 256
    total_seq_length: int = 0
    num_prefix_tiles: int = 0
    num_video_tiles: int = 0


class PackedMetadataBuilder(AttentionMetadataBuilder):
    """Makes metadata for a step."""

    def build(self, current_timestep: int = 0, attn_mask: Any = None, *, raw_latent_shape: Any = None, patch_size: Any = None,
              VSA_sparsity: float = 0.0, prefix_segments: Any = (), exempt: bool = True, dense_layers: Any = (),
              tile_size: int = 256, canvas: Any = None, **fields: Any) -> PackedMetadata:
        """Metadata with the canvas as given, or of the latent in patches. Other fields are ignored."""
        if canvas is None:
            canvas = VideoMetadataBuilder().build(raw_latent_shape=raw_latent_shape, patch_size=patch_size).canvas
        if tile_size not in TILES:
            raise errors.invalid(f"tile_size: expected {' or '.join(map(str, TILES))}, got {tile_size!r}", "attention")
        segments = _video_h3.segments_of(prefix_segments)
        grid = packed_grid(canvas, tile_size, segments)
        return PackedMetadata(
            current_timestep, VSA_sparsity, attn_mask, canvas=canvas, prefix_segments=segments,
            exempt=_given.flag("exempt", exempt), dense_layers=tuple(map(int, dense_layers)), tile_elems=tile_size,
            total_seq_length=grid.length, num_prefix_tiles=grid.prefix_tiles, num_video_tiles=grid.tiles - grid.prefix_tiles)


TILES = {256: _video_h3.TILE, 64: video.CUBE}  # by their tokens


def packed_grid(canvas: Any, tile_size: int, segments: tuple[int, ...]) -> _video_h3.PackedGrid:
    """The tiles of a packed sequence."""
    return _video_h3.packed_grid_of(video.box_of("canvas", canvas), TILES[tile_size], segments)


class PackedImpl(VideoImpl):
    """A layer of VIDEO_SPARSE_ATTN_H3. In the layers that the metadata lists as dense, everything is seen."""

    def grid(self, metadata: Any, length: int | None = None) -> _video_h3.PackedGrid:
        """The tiles of the metadata's segments and canvas."""
        if not isinstance(metadata, PackedMetadata):
            raise errors.invalid("attn_metadata: expected PackedMetadata, as the builder of VIDEO_SPARSE_ATTN_H3 makes it; got "
                                 f"{type(metadata).__name__}", "attention")
        return packed_grid(metadata.canvas, metadata.tile_elems, metadata.prefix_segments)

    def preprocess_qkv(self, qkv: Any, attn_metadata: Any) -> Any:
        """The tokens in the order of tiles; slots without a token are 0."""
        return video.without_empty(self.grid(attn_metadata), qkv)

    def forward(self, query: Any, key: Any, value: Any, *given: Any, gate_compress: Any = None,
                attn_metadata: Any = None) -> Any:
        """Attention of what `preprocess_qkv` gave."""
        gate, metadata = given_of(given, gate_compress, attn_metadata)
        grid = self.grid(metadata)
        self.check(query, key, value, metadata)
        dense = layer_of(self.prefix) in metadata.dense_layers
        sparsity = 0.0 if dense else _given.real("VSA_sparsity", metadata.VSA_sparsity)
        return _video_h3.packed_attention(grid, query, key, value, sparsity, "exempt" if metadata.exempt else "compete", gate,
                                          self.softmax_scale)


@dataclasses.dataclass
class BsaMetadata(VideoMetadata):
    """What a step tells layers of BSA_ATTN; see `tenon.video.bsa_attention`."""

    query_keep_ratio: float = 0.5
    kv_cumulative_threshold: float = 0.9
    min_kv_blocks: int = 4


class BsaMetadataBuilder(AttentionMetadataBuilder):
    """Makes metadata for a step."""

    def build(self, current_timestep: int = 0, attn_mask: Any = None, *, raw_latent_shape: Any = None, patch_size: Any = None,
              bsa_query_keep_ratio: float = 0.5, bsa_kv_cumulative_threshold: float = 0.9, bsa_min_kv_blocks: int = 4,
              canvas: Any = None, **fields: Any) -> BsaMetadata:
        """Metadata with the canvas as given, or of the latent in patches. Other fields are ignored."""
        if canvas is None and raw_latent_shape is not None:
            canvas = patches_of(raw_latent_shape, patch_size)
        return BsaMetadata(current_timestep, attn_mask=attn_mask, canvas=canvas, query_keep_ratio=bsa_query_keep_ratio,
                           kv_cumulative_threshold=bsa_kv_cumulative_threshold, min_kv_blocks=bsa_min_kv_blocks)


class BsaImpl(SparseImpl):
    """A layer of BSA_ATTN."""

    def preprocess_qkv(self, qkv: Any, attn_metadata: Any) -> Any:
        """The tokens in the order of tiles; slots without a token are 0."""
        return video.without_empty(self.grid(attn_metadata, qkv.shape[1]), qkv)

    def forward(self, query: Any, key: Any, value: Any, *given: Any, gate_compress: Any = None,
                attn_metadata: Any = None) -> Any:
        """Attention of what `preprocess_qkv` gave."""
        step = self.ungated(query, key, value, given, gate_compress, attn_metadata, BsaMetadata)
        return _video_bsa.tiles_attention(self.grid(step), query, key, value, step.query_keep_ratio,
                                          step.kv_cumulative_threshold, step.min_kv_blocks, self.softmax_scale)


@dataclasses.dataclass
class NablaMetadata(AttentionMetadata):
    """What a step tells layers of NABLA_ATTN: the share of the probability that is kept, and a mask of blocks of 64 tokens
    that are seen besides."""

    sta_mask: Any = None
    P: float = 0.9
    visual_shape: tuple[int, ...] = (0, 0, 0)


class NablaMetadataBuilder(AttentionMetadataBuilder):
    """Makes metadata for a step."""

    def build(self, current_timestep: int = 0, attn_mask: Any = None, *, sta_mask: Any = None, P: float = 0.9,
              visual_shape: Any = (0, 0, 0), **fields: Any) -> NablaMetadata:
        """Metadata of these. Other fields are ignored."""
        return NablaMetadata(current_timestep, attn_mask=attn_mask, sta_mask=sta_mask, P=P, visual_shape=tuple(visual_shape))


class InOrderImpl(SparseImpl):
    """A layer whose tokens stay as the model has them."""

    preprocess_qkv = AttentionImpl.preprocess_qkv
    postprocess_output = AttentionImpl.postprocess_output


class NablaImpl(InOrderImpl):
    """A layer of NABLA_ATTN. Tokens are in the order of blocks, as models that use it have them."""

    def forward(self, query: Any, key: Any, value: Any, *given: Any, gate_compress: Any = None,
                attn_metadata: Any = None) -> Any:
        """Attention of blocks of 64 tokens."""
        step = self.ungated(query, key, value, given, gate_compress, attn_metadata, NablaMetadata)
        return _video_nabla.nabla_attention(query, key, value, step.P, mask=step.sta_mask, scale=self.softmax_scale)


@dataclasses.dataclass
class VmobaMetadata(AttentionMetadata):
    """What a step tells layers of VMOBA_ATTN; see `tenon.video.vmoba_attention`. From the layer `first_full_layer` on, so many
    layers have chunks of frames, of (rows, columns) and of all three, in turn. `first_full_step` is kept for callers and
    not read, as upstream does not read it."""

    patch_resolution: Any = None
    temporal_chunk_size: Any = None
    temporal_topk: int = 1
    spatial_chunk_size: Any = None
    spatial_topk: int = 1
    st_chunk_size: Any = None
    st_topk: int = 1
    moba_select_mode: str = "threshold"
    moba_threshold: float = 0.25
    moba_threshold_type: str = "query_head"
    first_full_step: int = 12
    first_full_layer: int = 0
    temporal_layer: int = 1
    spatial_layer: int = 1
    st_layer: int = 1

    def chunks_of(self, layer: int) -> tuple[str, Any, int]:
        """The field, the chunk and the number of chunks of a layer."""
        turns = [("temporal", self.temporal_layer), ("spatial", self.spatial_layer), ("st", self.st_layer)]
        kinds = [kind for kind, count in turns for _ in range(_given.number(f"{kind}_layer", count, 0, 1 << 16))]
        if not kinds:
            raise errors.invalid("temporal_layer, spatial_layer, st_layer: expected at least one that is not 0", "attention")
        kind = kinds[(layer - self.first_full_layer) % len(kinds)]
        return f"{kind}_chunk_size", getattr(self, f"{kind}_chunk_size"), getattr(self, f"{kind}_topk")


class VmobaMetadataBuilder(AttentionMetadataBuilder):
    """Makes metadata for a step."""

    def build(self, current_timestep: int = 0, attn_mask: Any = None, *, raw_latent_shape: Any = None, patch_size: Any = None,
              canvas: Any = None, **fields: Any) -> VmobaMetadata:
        """Metadata with the canvas as given, or of the latent in patches. Fields that it does not have are ignored."""
        if canvas is None and raw_latent_shape is not None:
            canvas = patches_of(raw_latent_shape, patch_size)
        fields.update(current_timestep=current_timestep, attn_mask=attn_mask)
        if canvas is not None:
            fields["patch_resolution"] = canvas
        step: VmobaMetadata = made(VmobaMetadata, fields)
        return step


class VmobaImpl(InOrderImpl):
    """A layer of VMOBA_ATTN. Its number, in its prefix, says which chunks it has."""

    def __init__(self, num_heads: int, head_size: int, softmax_scale: float | None = None, causal: bool = False,
                 num_kv_heads: int | None = None, prefix: str = "", dropout_p: float = 0.0, **extra: Any) -> None:
        super().__init__(num_heads, head_size, softmax_scale, causal, num_kv_heads, prefix, dropout_p, **extra)
        layer = layer_of(prefix)
        if layer is None:
            raise errors.invalid(f'prefix: expected "blocks.N" with the number of the layer, as chunks depend on it; got '
                                 f'"{prefix}"', "attention")
        self.layer: int = layer

    def forward(self, query: Any, key: Any, value: Any, *given: Any, gate_compress: Any = None,
                attn_metadata: Any = None) -> Any:
        """Attention of tokens in raster order."""
        step = self.ungated(query, key, value, given, gate_compress, attn_metadata, VmobaMetadata)
        field, chunk, count = step.chunks_of(self.layer)
        for name, value_ in (("patch_resolution", step.patch_resolution), (field, chunk)):
            if value_ is None:
                raise errors.invalid(f"{name}: expected one in the metadata of VMOBA_ATTN, got None", "attention")
        select = {"topk": "top"}.get(step.moba_select_mode, step.moba_select_mode)
        with settings.scope({"attention.backend": "any"}):  # it computes with tenon.attention
            return _video_vmoba.vmoba_attention(query, key, value, step.patch_resolution, chunk, select=select, count=count,
                                                threshold=step.moba_threshold, scope=step.moba_threshold_type,
                                                scale=self.softmax_scale)


LAYERS = {"VIDEO_SPARSE_ATTN_H3": (PackedMetadata, PackedMetadataBuilder, PackedImpl),
          "BSA_ATTN": (BsaMetadata, BsaMetadataBuilder, BsaImpl),
          "NABLA_ATTN": (NablaMetadata, NablaMetadataBuilder, NablaImpl),
          "VMOBA_ATTN": (VmobaMetadata, VmobaMetadataBuilder, VmobaImpl)}
