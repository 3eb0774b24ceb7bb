"""Attention of PyTorch's distributed tensors: each process computes its share alone. This process stands for the first
of two, and nothing is sent: a result that needed a transfer would be wrong."""
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not here")
distributed = pytest.importorskip("torch.distributed", reason="PyTorch is built without torch.distributed")
if not distributed.is_available():
    pytest.skip("PyTorch is built without torch.distributed", allow_module_level=True)

from tenon.integrations.torch import attention, scaled_dot_product_attention as ours  # noqa: E402
from torch.distributed.tensor import DTensor, Replicate, Shard, init_device_mesh  # noqa: E402

RANKS = 2


@pytest.fixture(scope="module")
def mesh():
    from torch.testing._internal.distributed.fake_pg import FakeStore

    distributed.init_process_group("fake", store=FakeStore(), rank=0, world_size=RANKS)
    yield init_device_mesh("cpu", (RANKS,))
    distributed.destroy_process_group()


def share(x, dim):
    return x.chunk(RANKS, dim)[0].clone()


def shared(x, mesh, dim):
    """The distributed tensor of which this process has its share; whole, with None."""
    return DTensor.from_local(x.clone() if dim is None else share(x, dim), mesh, [Replicate() if dim is None else Shard(dim)])


@pytest.mark.parametrize("dim", [0, 1])
def test_inference_and_gradients(mesh, dim):
    q = torch.randn(2, 4, 9, 16)
    k, v = torch.randn(2, 2, 2, 9, 16)
    given = [x.clone().requires_grad_() for x in (q, k, v)]
    wanted = ours(*given, is_causal=True, enable_gqa=True)
    weights = torch.randn_like(wanted)
    gradients = torch.autograd.grad((wanted * weights).sum(), given)
    local = [share(x, dim).requires_grad_() for x in (q, k, v)]
    parts = [DTensor.from_local(x, mesh, [Shard(dim)]) for x in local]
    found = ours(*parts, is_causal=True, enable_gqa=True)
    assert found.placements == (Shard(dim),) and found.shape == wanted.shape
    torch.testing.assert_close(found.to_local(), share(wanted, dim))
    found = torch.autograd.grad((found.to_local() * share(weights, dim)).sum(), local)
    torch.testing.assert_close(found, [share(x, dim) for x in gradients], atol=1e-5, rtol=1e-4)
    with torch.no_grad():
        found = ours(*parts, is_causal=True, enable_gqa=True)
        assert found.placements == (Shard(dim),)
        torch.testing.assert_close(found.to_local(), share(wanted, dim), atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("shape", [(2, 4, 5, 5), (2, 1, 5, 5), (1, 4, 5, 5), (5, 5)])
def test_masks(mesh, dim, shape):
    x, mask = torch.randn(2, 4, 5, 16), torch.randn(shape)
    at = dim - (4 - mask.dim())
    held = at if at >= 0 and mask.shape[at] > 1 else None
    part = shared(x, mesh, dim)
    found = attention(part, part, part, shared(mask, mesh, held))
    assert found.placements == (Shard(dim),)
    torch.testing.assert_close(found.to_local(), share(attention(x, x, x, mask), dim), atol=1e-6, rtol=1e-5)


def test_sinks(mesh):
    x, sinks = torch.randn(2, 4, 5, 16), torch.randn(4)
    part = shared(x, mesh, 1)
    found = attention(part, part, part, sinks=shared(sinks, mesh, 0))
    assert found.placements == (Shard(1),)
    torch.testing.assert_close(found.to_local(), share(attention(x, x, x, sinks=sinks), 1), atol=1e-6, rtol=1e-5)


def test_what_cannot_be_shared_is_gathered(mesh):
    """Heads of keys that the processes cannot share evenly."""
    q, k = shared(torch.randn(2, 4, 5, 16), mesh, None), shared(torch.randn(2, 1, 5, 16), mesh, None)
    assert ours(q, k, k, enable_gqa=True).placements == (Replicate(),)
