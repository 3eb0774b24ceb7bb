"""SLIDING_TILE_ATTN with windows of the step, and its search mode."""

from __future__ import annotations

import dataclasses
from typing import Any

from .. import _video_windows, errors, video
from ._video import SlidingTileImpl, VideoMetadata, VideoMetadataBuilder
from .attention import given_of, is_differentiated


@dataclasses.dataclass
class SlidingTileMetadata(VideoMetadata):
    """What a step tells layers of SLIDING_TILE_ATTN: beside the canvas, windows for each layer in place of the file's.

    `STA_param` has a list for each layer: a window for each head; or fewer windows than heads, for the search mode: then all
    heads get the last window, and what the others lose against it is appended to `search_results`, as {"L2_loss": ...,
    "L1_loss": ...} with a list for each window and in it a number for each head."""

    STA_param: Any = None
    search_results: Any = None


class SlidingTileMetadataBuilder(VideoMetadataBuilder):
    """Makes metadata for a step."""

    def build(self, current_timestep: int = 0, attn_mask: Any = None, *, forward_batch: Any = None, STA_param: Any = None,
              search_results: Any = None, **fields: Any) -> SlidingTileMetadata:
        """Metadata with the canvas. The windows and the list of results are as given, or those that FastVideo's batch has
        for this step."""
        if STA_param is None and getattr(forward_batch, "STA_param", None) is not None:
            STA_param = forward_batch.STA_param[current_timestep]
        if search_results is None and forward_batch is not None:
            sign = "neg" if getattr(forward_batch, "is_cfg_negative", False) else "pos"
            found = getattr(forward_batch, f"mask_search_final_result_{sign}", None)
            search_results = None if found is None else found[current_timestep]
        step = super().build(current_timestep, attn_mask, **fields)
        return SlidingTileMetadata(**step.asdict_zerocopy(), STA_param=STA_param, search_results=search_results)


class SearchingTileImpl(SlidingTileImpl):
    """A layer of SLIDING_TILE_ATTN, whose windows may be those of the metadata."""

    def forward(self, query: Any, key: Any, value: Any, *given: Any, gate_compress: Any = None,
                attn_metadata: Any = None) -> Any:
        """Attention of what `preprocess_qkv` gave, with the text behind it."""
        gate, metadata = given_of(given, gate_compress, attn_metadata)
        listed = self._listed(metadata)
        if listed is None or gate is not None:
            return super().forward(query, key, value, gate, metadata)
        self.check(query, key, value, metadata)
        if len(listed) < self.num_heads:
            return self._search(query, key, value, metadata, [video.box_of("STA_param", window) for window in listed])
        first, heads = self.first_head(query.shape[2]), query.shape[2]
        return self.compute(query, key, value, metadata, listed[first:first + heads])

    def _listed(self, metadata: Any) -> Any:
        """The metadata's windows of this layer; None where it has none."""
        layers = getattr(metadata, "STA_param", None)
        if not layers:
            return None
        if self.layer is None or self.layer >= len(layers):
            raise errors.invalid(f"STA_param: expected windows for the layer of the prefix, \"blocks.N\", among {len(layers)} "
                                 f"layers; got the prefix \"{self.prefix}\"", "attention")
        if not len(layers[self.layer]):
            raise errors.invalid(f"STA_param: expected windows for layer {self.layer}, got none", "attention")
        return layers[self.layer]

    def _search(self, query: Any, key: Any, value: Any, metadata: Any, windows: list[Any]) -> Any:
        results = getattr(metadata, "search_results", None)
        if is_differentiated(query, key, value):
            raise errors.UnsupportedError("query: a search of windows has no gradients; expected tensors that require none, or "
                                          "torch.no_grad()", "unsupported", "attention")
        if results is None:
            raise errors.invalid(f"search_results: expected a list that losses are appended to, as {len(windows)} windows for "
                                 f"{self.num_heads} heads ask for a search; got None", "attention")
        table, out = _video_windows.losses_of_windows(self.grid(metadata), query, key, value, windows[:-1], self.softmax_scale,
                                                      reference=windows[-1])
        results.append({f"{loss.upper()}_loss": [[round(one, 6) for one in heads] for heads in zip(*getattr(table, loss))]
                        for loss in ("l2", "l1")})
        return out


LAYERS = {"SLIDING_TILE_ATTN": (SlidingTileMetadata, SlidingTileMetadataBuilder, SearchingTileImpl)}
