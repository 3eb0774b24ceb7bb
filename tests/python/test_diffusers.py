"""Tenon's attention under models of Diffusers, with random weights, against PyTorch's own."""
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not here")
diffusers = pytest.importorskip("diffusers", reason="Diffusers is not here")

import tenon  # noqa: E402
from diffusers.models import attention_dispatch  # noqa: E402
from tenon.integrations import diffusers as tenon_diffusers  # noqa: E402


@pytest.fixture(scope="module", autouse=True)
def name():
    before = attention_dispatch._AttentionBackendRegistry._active_backend
    yield tenon_diffusers.register()
    attention_dispatch._AttentionBackendRegistry.set_active_backend(before)


@pytest.fixture
def wan():
    """A model whose attentions count: of a new one they add 1e-3 to the result."""
    torch.manual_seed(0)
    model = diffusers.WanTransformer3DModel(
        num_attention_heads=2, attention_head_dim=24, in_channels=4, out_channels=4, text_dim=8, freq_dim=16,
        ffn_dim=32, num_layers=2, rope_max_seq_len=32).eval()
    for key, weight in model.named_parameters():
        torch.nn.init.normal_(weight, std=0.2)
    given = torch.randn(1, 4, 2, 8, 8), torch.tensor([500]), torch.randn(1, 5, 8)
    model.set_attention_backend("native")
    return model, given


def test_a_wan_transformer(wan, name, monkeypatch):
    model, given = wan
    with torch.no_grad():
        wanted = model(*given).sample
        model.set_attention_backend(name)
        before = tenon_diffusers.calls()
        found = model(*given).sample
        assert tenon_diffusers.calls() - before == 4  # of each block: to itself, and to the text
        torch.testing.assert_close(found, wanted, atol=1e-5, rtol=1e-4)
        registry = attention_dispatch._AttentionBackendRegistry._backends
        monkeypatch.setitem(registry, attention_dispatch.AttentionBackendName(name),
                            lambda **options: 2 * tenon_diffusers.forward(
                                **{key: x for key, x in options.items() if key != "_parallel_config"}))
        assert (model(*given).sample - wanted).abs().max() > 1e-2  # a wrong attention is seen


def test_gradients_of_a_wan_transformer(wan, name):
    model, given = wan
    found = {}
    for backend in ("native", name):
        model.set_attention_backend(backend)
        model.zero_grad()
        model(*given).sample.square().sum().backward()
        found[backend] = model.blocks[0].attn1.to_q.weight.grad.clone()
    torch.testing.assert_close(found[name], found["native"], atol=1e-4, rtol=1e-3)


def test_the_dispatcher(name):
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, 7, 4, 16) for _ in range(3))
    seen = torch.rand(2, 7) < 0.7
    seen[:, 0] = True
    for options in ({}, {"is_causal": True}, {"attn_mask": seen}, {"attn_mask": torch.randn(2, 1, 7, 7)}, {"scale": 0.3}):
        wanted = attention_dispatch.dispatch_attention_fn(q, k, v, backend="native", **options)
        found = attention_dispatch.dispatch_attention_fn(q, k, v, backend=name, **options)
        torch.testing.assert_close(found, wanted, atol=1e-5, rtol=1e-4)
    out, lse = attention_dispatch.dispatch_attention_fn(q, k, v, backend=name, attention_kwargs={"return_lse": True})
    scores = torch.einsum("bqhd,bkhd->bqhk", q, k) / 4
    torch.testing.assert_close(lse, scores.logsumexp(-1), atol=1e-5, rtol=1e-4)
    with attention_dispatch.attention_backend(name):
        before = tenon_diffusers.calls()
        attention_dispatch.dispatch_attention_fn(q, k, v)
        assert tenon_diffusers.calls() == before + 1


def test_names(name):
    assert tenon_diffusers.register(name) == name  # again, and it is the same member
    members = [member for member in attention_dispatch.AttentionBackendName if member.value == name]
    assert len(members) == 1 and members[0].name == "TENON"
    with pytest.raises(AttributeError, match="there are: diffusers, scipy_fft, torch, torch_fft, transformers$"):
        tenon.integrations.flax  # noqa: B018
