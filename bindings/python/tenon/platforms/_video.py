"""The layers of FastVideo's backends SLIDING_TILE_ATTN and VIDEO_SPARSE_ATTN, and what all backends for video share."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import sys
from typing import Any

from .. import _given, errors, operators, video
from .attention import (AttentionImpl, AttentionMetadata, AttentionMetadataBuilder, given_of, is_differentiated, is_watched)

CONFIG = "FASTVIDEO_ATTENTION_CONFIG"
CANVASES = {82944: (36, 48, 48), 69120: (18, 48, 80), **dict.fromkeys(range(115200, 115457), (30, 48, 80))}


@dataclasses.dataclass
class VideoMetadata(AttentionMetadata):
    """What a step tells layers of a video: its canvas, (frames, rows, columns) of tokens."""

    canvas: Any = None


class VideoMetadataBuilder(AttentionMetadataBuilder):
    """Makes metadata for a step."""

    def build(self, current_timestep: int = 0, attn_mask: Any = None, *, raw_latent_shape: Any = None,
              patch_size: Any = None, canvas: Any = None, **fields: Any) -> VideoMetadata:
        """Metadata with the canvas: as given, or of the latent's (frames, rows, columns) in patches. Other fields than
        those of the metadata are ignored."""
        if canvas is None and raw_latent_shape is not None:
            patch = (1, 1, 1) if patch_size is None else video.box_of("patch_size", patch_size)
            latent = video.box_of("raw_latent_shape", tuple(raw_latent_shape)[-3:])
            canvas = tuple(size // each for size, each in zip(latent, patch))
        known = {field.name for field in dataclasses.fields(VideoMetadata)}
        return VideoMetadata(current_timestep, attn_mask=attn_mask, canvas=canvas,
                             **{k: v for k, v in fields.items() if k in known})


class VideoImpl(AttentionImpl):
    """What layers of a video have in common: tokens are put in the order of tiles before forward, and back after it."""

    tile = video.CUBE
    has_gradients = False

    def __init__(self, num_heads: int, head_size: int, softmax_scale: float | None = None, causal: bool = False,
                 num_kv_heads: int | None = None, prefix: str = "", dropout_p: float = 0.0, **extra: Any) -> None:
        super().__init__(num_heads, head_size, softmax_scale, causal, num_kv_heads, prefix, dropout_p, **extra)
        if self.causal:
            raise errors.UnsupportedError(f"causal: expected False for {self.backend}, got True", "unsupported", "attention")
        if self.dropout_p:
            raise errors.UnsupportedError(f"dropout_p: expected 0 for {self.backend}, got {self.dropout_p}", "unsupported",
                                          "attention")
        self._canvas: Any = None  # of the last preprocess_qkv, for metadata without one

    def grid(self, metadata: Any, length: int | None = None) -> video.TileGrid:
        """The tiles of the metadata's canvas. Without one, `length` tokens are of one of FastVideo's canvases."""
        canvas = getattr(metadata, "canvas", None)
        if canvas is None and length is not None:
            self._canvas = CANVASES.get(length)
        canvas = canvas or self._canvas
        if canvas is None:
            raise errors.invalid("canvas: expected metadata with a canvas, or as many tokens as one of "
                                 f"{', '.join(map(str, sorted({*CANVASES.values()})))} has, got {length or 'neither'}; "
                                 "give canvas=(frames, rows, columns) to the builder", "attention")
        return video.grid_of(video.box_of("canvas", canvas), self.tile)

    def preprocess_qkv(self, qkv: Any, attn_metadata: Any) -> Any:
        """The tokens in the order of tiles."""
        return self.grid(attn_metadata, qkv.shape[1]).to_tiles(qkv)

    def postprocess_output(self, output: Any, attn_metadata: Any) -> Any:
        """The tokens in raster order."""
        return self.grid(attn_metadata).to_raster(output)

    def check(self, query: Any, key: Any, value: Any, metadata: Any) -> None:
        """Refuses what is not computed."""
        self._check(query, key, value)
        for name in ("attn_mask", "is_causal"):
            given = getattr(metadata, name, None)
            if given is not None and given is not False:
                raise errors.UnsupportedError(f"{name}: expected none for {self.backend}, got one", "unsupported",
                                              "attention")
        if not self.has_gradients and is_differentiated(query, key, value):
            raise errors.UnsupportedError(f"query: {self.backend} has no gradients yet; expected tensors that require none, "
                                          "or torch.no_grad()", "unsupported", "attention")


class SlidingTileImpl(VideoImpl):
    """A layer with a window of tiles for each head. The windows are those of `windows`, or of the file that
    FASTVIDEO_ATTENTION_CONFIG names; see docs/attention-video.md for what it may contain. Text follows the tiles."""

    tile = video.SLIDING_TILE
    has_gradients = True

    def __init__(self, num_heads: int, head_size: int, softmax_scale: float | None = None, causal: bool = False,
                 num_kv_heads: int | None = None, prefix: str = "", dropout_p: float = 0.0, windows: Any = None,
                 **extra: Any) -> None:
        super().__init__(num_heads, head_size, softmax_scale, causal, num_kv_heads, prefix, dropout_p, **extra)
        self.windows = read_windows() if windows is None else windows
        layer = re.search(r"blocks\.(\d+)", prefix)
        self.layer = int(layer[1]) if layer else None

    def forward(self, query: Any, key: Any, value: Any, *given: Any, gate_compress: Any = None,
                attn_metadata: Any = None) -> Any:
        """Attention of what `preprocess_qkv` gave, with the text behind it."""
        gate, metadata = given_of(given, gate_compress, attn_metadata)
        if gate is not None:
            raise errors.UnsupportedError("gate_compress: expected None for SLIDING_TILE_ATTN, got an array", "unsupported",
                                          "attention")
        self.check(query, key, value, metadata)
        return self.compute(query, key, value, metadata, self.windows_at(getattr(metadata, "current_timestep", 0), query.shape[2]))

    def compute(self, query: Any, key: Any, value: Any, metadata: Any, windows: Any) -> Any:
        """Attention with these windows, with gradients for tensors that require them."""
        attend = operators.attention_sparse
        if is_differentiated(query, key, value) or is_watched(query):
            from ..integrations import torch

            attend = torch.attention_sparse
        return video.tiled_attention(self.grid(metadata), query, key, value, windows, self.softmax_scale, attend=attend)

    def windows_at(self, step: int, heads: int) -> list[Any]:
        """The windows of this layer's heads in a step; where heads are shared among processes, of this one's."""
        first = self.first_head(heads)
        if isinstance(self.windows, dict):
            return [self._window_of(step, head) for head in range(first, first + heads)]
        return video.windows_of(self.windows, self.num_heads)[first:first + heads]

    def first_head(self, heads: int) -> int:
        """The first of the layer's heads that this process has, when it has so many."""
        if heads == self.num_heads:
            return 0
        return int(sys.modules["torch"].distributed.get_rank() % (self.num_heads // heads) * heads)

    def _window_of(self, step: int, head: int) -> Any:
        if self.layer is None:
            raise errors.invalid(f'prefix: expected "blocks.N" with the number of the layer, as windows are listed for each '
                                 f'layer; got "{self.prefix}"', "attention")
        window = self.windows.get(f"{step}_{self.layer}_{head}")
        if window is None:
            raise errors.invalid(f"windows: expected one for {step}_{self.layer}_{head}, timestep, layer and head; got none",
                                 "attention")
        return window


def read_windows() -> Any:
    """The windows of the file: one for all heads, a list for the heads, or a table by "timestep_layer_head"."""
    name = os.environ.get(CONFIG)
    if not name:
        raise errors.invalid(f"{CONFIG}: expected the name of a JSON file with the windows of the heads, got none; set it, or "
                             "give windows=(frames, rows, columns) to the layer", "attention")
    try:
        with open(name, encoding="utf-8") as file:
            found = json.load(file)
    except (OSError, ValueError) as error:
        raise errors.invalid(f"{CONFIG}: expected a JSON file with the windows of the heads, got {name}: {error}",
                             "attention") from None
    if isinstance(found, dict):
        return found
    if isinstance(found, list) and found and isinstance(found[0], list) and found[0] and isinstance(found[0][0], list):
        return {f"{t}_{n}_{h}": window for t, layers in enumerate(found) for n, heads in enumerate(layers)
                for h, window in enumerate(heads)}
    if not isinstance(found, list) or not found:
        raise errors.invalid(f"{CONFIG}: expected a list or a table of windows in {name}, got {type(found).__name__}",
                             "attention")
    return found


class VideoSparseImpl(VideoImpl):
    """A layer that sees the cubes that matter most, and adds the coarse stage, times a gate if one is given."""

    has_gradients = True

    def preprocess_qkv(self, qkv: Any, attn_metadata: Any) -> Any:
        """The tokens in the order of cubes; slots without a token are 0."""
        return video.without_empty(self.grid(attn_metadata, qkv.shape[1]), qkv)

    def forward(self, query: Any, key: Any, value: Any, *given: Any, gate_compress: Any = None,
                attn_metadata: Any = None) -> Any:
        """Attention of what `preprocess_qkv` gave. The metadata has the sparsity."""
        gate, metadata = given_of(given, gate_compress, attn_metadata)
        self.check(query, key, value, metadata)
        if self.num_kv_heads != self.num_heads:
            raise errors.UnsupportedError(f"num_kv_heads: expected {self.num_heads}, the heads of queries, for "
                                          f"VIDEO_SPARSE_ATTN, got {self.num_kv_heads}", "unsupported", "attention")
        sparsity = _given.real("VSA_sparsity", getattr(metadata, "VSA_sparsity", 0.0))
        compute = video.cubes_attention
        if is_differentiated(query, key, value, gate) or is_watched(query):
            from ..integrations import _sparse_gradient, torch  # noqa: F401 PyTorch's threads serve both

            compute = _sparse_gradient.cubes_attention
        return compute(self.grid(metadata), query, key, value, sparsity, gate, self.softmax_scale)


LAYERS = {"VIDEO_SPARSE_ATTN": (VideoMetadata, VideoMetadataBuilder, VideoSparseImpl)}
