"""Models of Transformers, small and random, with Tenon's attention: equal to eager."""
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not here")
transformers = pytest.importorskip("transformers", reason="Transformers is not here")

import tenon  # noqa: E402
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


def test_masks_of_bool_can_be_added():
    """As they are off the host, once for all layers. What a query sees nothing of is 0 either way."""
    padding = torch.ones(3, 1, 1, 5, dtype=torch.bool)
    padding[1, ..., 3:] = padding[2] = False
    mask = padding.expand(3, 4, 3, 5)
    added = tenon_transformers.added(mask, torch.bfloat16)
    assert added.dtype == torch.bfloat16 and added.shape == mask.shape
    assert torch.equal(added == 0, mask) and torch.equal(added == float("-inf"), ~mask)
    assert added.untyped_storage().nbytes() == 2 * padding.numel()  # still once for all queries and heads
    assert tenon_transformers.added(added, torch.float32) is added
    assert tenon_transformers.added(mask, torch.bfloat16) is added  # for the next layer
    padding[1:] = True
    assert not tenon_transformers.added(mask, torch.bfloat16).any()
    padding[1, ..., 3:] = padding[2] = False
    compiled = torch.compile(tenon_transformers.added, backend="eager", fullgraph=True)
    assert torch.equal(compiled(mask.clone(), torch.bfloat16), added)
    with torch.inference_mode():
        again = mask.clone()
        assert torch.equal(tenon_transformers.added(again, torch.bfloat16), added)
    q, k = torch.randn(3, 4, 3, 8), torch.randn(3, 4, 5, 8)
    wanted, found = (tenon_transformers.forward(torch.nn.Module(), q, k, k, m)[0]
                     for m in (mask, tenon_transformers.added(mask, q.dtype)))
    torch.testing.assert_close(found, wanted)
    assert not found[2].any()


@pytest.mark.parametrize("make", [decoder, encoder, vision])
def test_models(make):
    name = tenon_transformers.register()
    _, given, wanted = run(make, "eager")
    before = tenon_transformers.calls()
    _, _, found = run(make, name)
    assert tenon_transformers.calls() == before + LAYERS
    rows = given.get("attention_mask", torch.ones(found.shape[:2])).bool()
    torch.testing.assert_close(found[rows], wanted[rows], atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("make", [decoder, encoder, vision])
def test_models_on_a_gpu(make):
    """In bfloat16, which its attention takes, against eager in float32 on the host."""
    if not torch.cuda.is_available():
        pytest.skip("PyTorch sees no GPU")
    try:
        tenon.platforms.platform("cuda").get_attn_backend_cls(None, 16, torch.bfloat16)
    except tenon.Error as error:
        pytest.skip(f"no kernel of cuda takes it: {error.message}")
    model, given, wanted = run(make, "eager")
    model = model.to("cuda", torch.bfloat16)
    model.set_attn_implementation(tenon_transformers.register())
    before = tenon_transformers.calls()
    with torch.no_grad():
        found = model(**{key: x.to("cuda", torch.bfloat16 if x.is_floating_point() else None)
                         for key, x in given.items()})[0].float().cpu()
    assert tenon_transformers.calls() == before + LAYERS
    rows = given.get("attention_mask", torch.ones(found.shape[:2])).bool()
    torch.testing.assert_close(found[rows], wanted[rows], atol=6e-2, rtol=6e-2)


def test_generation_with_a_cache():
    name = tenon_transformers.register()
    texts = []
    for implementation in ("eager", name):
        model, given, _ = run(decoder, implementation)
        texts.append(model.generate(given["input_ids"], max_new_tokens=6, do_sample=False,
                                    pad_token_id=0))
    assert torch.equal(*texts)


def test_weights_are_refused():
    name = tenon_transformers.register()
    model, given, _ = run(decoder, name)
    with pytest.raises(tenon.errors.UnsupportedError, match='no weights .*attn_implementation="eager" give them'):
        model(**given, output_attentions=True)


def test_training():
    name = tenon_transformers.register()
    grads = []
    for implementation in ("eager", name):
        model, given, _ = run(decoder, implementation)
        model(**given, labels=given["input_ids"]).loss.backward()
        grads.append({key: p.grad for key, p in model.named_parameters()})
    for key, wanted in grads[0].items():
        torch.testing.assert_close(grads[1][key], wanted, atol=1e-5, rtol=1e-3)


def test_autocast():
    """Keys and values that an earlier layer left in float32 too; a mask of bool is added in its dtype."""
    name = tenon_transformers.register()
    found = []
    for implementation in ("eager", name):
        torch.manual_seed(3)
        cls, config, given = encoder()
        model = cls._from_config(config, attn_implementation=implementation).eval()
        with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
            found.append(model(**given)[0])
    rows = given["attention_mask"].bool()
    assert found[0].dtype == found[1].dtype
    torch.testing.assert_close(found[1][rows], found[0][rows], atol=6e-2, rtol=6e-2)
    q, k = torch.randn(2, 4, 3, 8), torch.randn(2, 4, 5, 8)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        for given in ((q, k, k.bfloat16()), (q.bfloat16(), k, k)):
            assert tenon_transformers.forward(torch.nn.Module(), *given, None)[0].dtype == torch.bfloat16
