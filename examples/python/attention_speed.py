"""Models of three families with Tenon's attention, beside Transformers' eager and sdpa.

    python3 attention_speed.py [--device cpu|cuda] [--dtype float32|bfloat16] [--tokens 2048] [--layers N] [--rounds 7]

A decoder with grouped heads (width 2048, 32/8 heads, 16 layers), an encoder with padding and a vision transformer
(width 768, 12 heads, 12 layers), random weights from a fixed seed. The vision transformer has a token for each patch of a
square image and one more, as many as fit: 45 x 45 + 1 = 2026 for --tokens 2048.

Outputs are compared with eager's of the same dtype, by the largest difference as a part of the largest output. "equal" is
at most 1e-4 (float32), 1e-2 (bfloat16) or 2e-3 (float16), or at most 1.5 times what sdpa is off by, whichever is more; in
the figures below bfloat16 is equal by the latter. A counter shows that every attention ran in Tenon; times are medians of
rounds that run in turn.

Measured with --tokens 2048; all attentions ran in Tenon; how many times as long eager takes, then sdpa. On the 16 processors
beside an H200 (AMX, PyTorch 2.11, 2026-11-16), all layers, float32: decoder 2.59, 1.07, error 2.9e-06; encoder 3.07, 1.08,
8.3e-07; vision transformer 2.90, 1.09, 8.1e-07; bfloat16: 4.66, 1.12, 2.7e-02; 4.19, 1.13, 1.9e-02; 6.80, 1.18, 1.5e-02.
With TENON_CPU_POOL=own, where two pools of threads get in each other's way, the decoder has 2.12, 0.95 and 3.49, 0.78. On
2 processors that others were using, float32, 2 layers: 1.84, 1.01; 2.22, 1.08; 1.90, 1.07. On an H200, bfloat16, all
layers, cuDNN 9.19, PyTorch 2.11: with the extension decoder 3.29, 1.00, error 2.8e-02; encoder 2.73, 1.10, 2.0e-02;
vision transformer 2.41, 1.06, 1.6e-02; through ctypes alone 2.08, 0.88; 2.03, 0.93; 1.93, 0.88; sdpa's errors are the
same. The kernels take as long as PyTorch's there, and the smaller models (4 and 3 ms) are held up by their launches: a
call of ours costs the host 14 us with the extension, 36 us without, and one of PyTorch's 17 us.
"""

import argparse
import statistics
import time

import torch
import transformers
from tenon.integrations import transformers as tenon_transformers

IMPLEMENTATIONS = ("eager", "sdpa", "tenon")
TOLERANCE = {torch.float32: 1e-4, torch.bfloat16: 1e-2, torch.float16: 2e-3}  # of the largest output
BESIDE_SDPA = 1.5  # or so many times what sdpa is off by


def decoder(options):
    config = transformers.LlamaConfig(
        vocab_size=1024, hidden_size=2048, intermediate_size=5504, num_attention_heads=32,
        num_key_value_heads=8, num_hidden_layers=options.layers or 16,
        max_position_embeddings=options.tokens)
    return transformers.LlamaModel, config, {"input_ids": torch.randint(1024, (1, options.tokens))}


def encoder(options):
    config = transformers.BertConfig(
        vocab_size=1024, hidden_size=768, intermediate_size=3072, num_attention_heads=12,
        num_hidden_layers=options.layers or 12, max_position_embeddings=options.tokens)
    padding = torch.ones(2, options.tokens, dtype=torch.int64)
    padding[1, options.tokens * 3 // 4:] = 0
    return transformers.BertModel, config, {
        "input_ids": torch.randint(1024, (2, options.tokens)), "attention_mask": padding}


def vision(options):
    side = int(options.tokens**0.5)
    config = transformers.ViTConfig(
        hidden_size=768, intermediate_size=3072, num_attention_heads=12,
        num_hidden_layers=options.layers or 12, image_size=16 * side, patch_size=16)
    return transformers.ViTModel, config, {"pixel_values": torch.randn(1, 3, 16 * side, 16 * side)}


def make(family, options):
    """A model and its inputs, made on the device."""
    torch.manual_seed(1)
    cls, config, given = family(options)
    with torch.device(options.device):
        model = cls._from_config(config, attn_implementation="eager", dtype=options.dtype).eval()
    return model, {key: value.to(options.device, options.dtype if value.is_floating_point() else None)
                   for key, value in given.items()}


def run(model, given, name):
    """The first output by an implementation, and the seconds it took."""
    model.set_attn_implementation(name)
    began = time.perf_counter()
    out = model(**given)[0]
    if out.device.type == "cuda":
        torch.cuda.synchronize()
    return out, time.perf_counter() - began


def compare(family, options):
    model, given = make(family, options)
    before = tenon_transformers.calls()
    outs = {name: run(model, given, name)[0] for name in IMPLEMENTATIONS}
    layers = model.config.num_hidden_layers
    counted = tenon_transformers.calls() - before
    mask = given.get("attention_mask")
    rows = torch.ones(outs["eager"].shape[:2], dtype=torch.bool) if mask is None else mask.bool()
    wanted = outs["eager"][rows.to(outs["eager"].device)].float()
    error, theirs = (((outs[name][rows.to(wanted.device)] - wanted).abs().max() / wanted.abs().max()).item()
                     for name in ("tenon", "sdpa"))
    taken = {name: [] for name in IMPLEMENTATIONS}
    for turn in range(options.rounds):
        for i in range(len(IMPLEMENTATIONS)):
            name = IMPLEMENTATIONS[(i + turn) % len(IMPLEMENTATIONS)]
            taken[name].append(run(model, given, name)[1])
    ratio = {name: statistics.median(a / b for a, b in zip(taken[name], taken["tenon"]))
             for name in IMPLEMENTATIONS}
    verdict = "equal" if error <= max(TOLERANCE[options.dtype], BESIDE_SDPA * theirs) else "DIFFERS"
    print(f"{family.__name__:<8} {counted} of {layers} attentions in Tenon, error {error:.1e} "
          f"({verdict}; sdpa's {theirs:.1e}); "
          f"tenon {1e3 * statistics.median(taken['tenon']):.0f} ms, eager takes {ratio['eager']:.2f} times as long, "
          f"sdpa {ratio['sdpa']:.2f}", flush=True)
    return verdict == "equal" and counted == layers


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--tokens", type=int, default=2048)
    parser.add_argument("--layers", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--family", choices=["decoder", "encoder", "vision"])
    options = parser.parse_args()
    options.dtype = getattr(torch, options.dtype)
    tenon_transformers.register()
    families = [f for f in (decoder, encoder, vision) if options.family in (None, f.__name__)]
    with torch.no_grad():
        fine = [compare(family, options) for family in families]
    raise SystemExit(0 if all(fine) else 1)


if __name__ == "__main__":
    main()
