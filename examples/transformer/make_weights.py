#!/usr/bin/env python3
"""Writes random weights of a small Llama-like model, for transformer.c:

    python3 make_weights.py weights.safetensors [--layers 2] [--hidden 128] [--heads 8] ...

Needs nothing but Python. The same seed gives the same file."""

import argparse
import array
import json
import random
import struct
import sys


def shapes(sizes):
    """The name and shape of every tensor, as a Llama checkpoint has them."""
    head_size = sizes.hidden // sizes.heads
    keys = sizes.key_heads * head_size
    yield "model.embed_tokens.weight", (sizes.vocabulary, sizes.hidden)
    for i in range(sizes.layers):
        layer = f"model.layers.{i}."
        yield layer + "input_layernorm.weight", (sizes.hidden,)
        yield layer + "self_attn.q_proj.weight", (sizes.hidden, sizes.hidden)
        yield layer + "self_attn.k_proj.weight", (keys, sizes.hidden)
        yield layer + "self_attn.v_proj.weight", (keys, sizes.hidden)
        yield layer + "self_attn.o_proj.weight", (sizes.hidden, sizes.hidden)
        yield layer + "post_attention_layernorm.weight", (sizes.hidden,)
        yield layer + "mlp.gate_proj.weight", (sizes.inner, sizes.hidden)
        yield layer + "mlp.up_proj.weight", (sizes.inner, sizes.hidden)
        yield layer + "mlp.down_proj.weight", (sizes.hidden, sizes.inner)
    yield "model.norm.weight", (sizes.hidden,)
    yield "lm_head.weight", (sizes.vocabulary, sizes.hidden)


def numbers(draw, shape):
    """Uniform numbers whose products with a vector keep its size; weights of norms are near 1."""
    if len(shape) == 1:
        return array.array("f", (1 + draw.uniform(-0.2, 0.2) for _ in range(shape[0])))
    most = (3 / shape[1]) ** 0.5
    return array.array("f", (draw.uniform(-most, most) for _ in range(shape[0] * shape[1])))


def as_bytes(values, dtype):
    if sys.byteorder == "big":
        values.byteswap()
    data = values.tobytes()
    if dtype == "F32":
        return data
    halves = array.array("H")
    halves.frombytes(data)  # the upper half of each f32 is a bf16, rounded towards zero
    return halves[1::2].tobytes()


def main():
    parser = argparse.ArgumentParser(description="Writes random weights for transformer.c.")
    parser.add_argument("path")
    for name, size in (("layers", 2), ("hidden", 128), ("heads", 8), ("key_heads", 4), ("inner", 344),
                       ("vocabulary", 512), ("seed", 1)):
        parser.add_argument("--" + name.replace("_", "-"), type=int, default=size)
    parser.add_argument("--dtype", choices=("F32", "BF16"), default="F32")
    sizes = parser.parse_args()
    draw = random.Random(sizes.seed)
    header, data = {"__metadata__": {"heads": str(sizes.heads), "rope_theta": "10000"}}, []
    begin = 0
    for name, shape in shapes(sizes):
        data.append(as_bytes(numbers(draw, shape), sizes.dtype))
        end = begin + len(data[-1])
        header[name] = {"dtype": sizes.dtype, "shape": shape, "data_offsets": [begin, end]}
        begin = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(sizes.path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.writelines(data)


if __name__ == "__main__":
    main()
