"""Models of Transformers, small and random, with Tenon's attention: equal to eager."""
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not here")
transformers = pytest.importorskip("transformers", reason="Transformers is not here")

from tenon.integrations import transformers as tenon_transformers  # noqa: E402

LAYERS = 2


def decoder():
    config = transformers.LlamaConfig(
        vocab_size=99, hidden_size=64, intermediate_size=96, num_hidden_layers=LAYERS,
        num_attention_heads=8, num_key_value_heads=2)
    return transformers.LlamaForCausalLM, config, {"input_ids": torch.randint(99, (2, 17))}


def encoder():
    config = transformers.BertConfig(
        vocab_size=99, hidden_size=64, intermediate_size=96, num_hidden_layers=LAYERS,
        num_attention_heads=4, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    padding = torch.ones(2, 17, dtype=torch.int64)
    padding[1, 11:] = 0
    return transformers.BertModel, config, {"input_ids": torch.randint(99, (2, 17)),
                                            "attention_mask": padding}


def vision():
    config = transformers.ViTConfig(
        hidden_size=64, intermediate_size=96, num_hidden_layers=LAYERS, num_attention_heads=4,
        image_size=32, patch_size=8, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    return transformers.ViTModel, config, {"pixel_values": torch.randn(2, 3, 32, 32)}


def run(make, name):
    torch.manual_seed(3)
    cls, config, given = make()
    model = cls._from_config(config, attn_implementation=name).eval()
    with torch.no_grad():
        return model, given, model(**given)[0]


@pytest.mark.parametrize("make", [decoder, encoder, vision])
def test_models(make):
    name = tenon_transformers.register()
    _, given, wanted = run(make, "eager")
    before = tenon_transformers.calls()
    _, _, found = run(make, name)
    assert tenon_transformers.calls() == before + LAYERS
    rows = given.get("attention_mask", torch.ones(found.shape[:2])).bool()
    torch.testing.assert_close(found[rows], wanted[rows], atol=1e-5, rtol=1e-4)


def test_generation_with_a_cache():
    name = tenon_transformers.register()
    texts = []
    for implementation in ("eager", name):
        model, given, _ = run(decoder, implementation)
        texts.append(model.generate(given["input_ids"], max_new_tokens=6, do_sample=False,
                                    pad_token_id=0))
    assert torch.equal(*texts)


def test_training():
    name = tenon_transformers.register()
    grads = []
    for implementation in ("eager", name):
        model, given, _ = run(decoder, implementation)
        model(**given, labels=given["input_ids"]).loss.backward()
        grads.append({key: p.grad for key, p in model.named_parameters()})
    for key, wanted in grads[0].items():
        torch.testing.assert_close(grads[1][key], wanted, atol=1e-5, rtol=1e-3)
