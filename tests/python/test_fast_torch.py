"""PyTorch's tensors through the extension, on the host and on a GPU: served by it where nobody watches, the same
results, refusals, streams, graphs and compiled code as without."""
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not here")
if not hasattr(torch.Tensor, "__dlpack_c_exchange_api__"):
    pytest.skip(f"PyTorch {torch.__version__} has no table of DLPack's functions", allow_module_level=True)
from torch.nn.functional import scaled_dot_product_attention as theirs  # noqa: E402

import tenon  # noqa: E402
from tenon.integrations.torch import attention  # noqa: E402
from tenon.integrations.torch import scaled_dot_product_attention as ours  # noqa: E402

BOUND = {torch.float32: 2e-5, torch.bfloat16: 3e-2}


def dtype_on(device):
    """One that the device's attention takes."""
    if device == "cpu":
        return torch.float32
    if not torch.cuda.is_available():
        pytest.skip("PyTorch sees no GPU")
    try:
        tenon.platforms.platform("cuda").get_attn_backend_cls(None, 64, torch.bfloat16)
    except tenon.Error as error:
        pytest.skip(f"no kernel of cuda takes it: {error.message}")
    return torch.bfloat16


@pytest.fixture(params=["cpu", "cuda"])
def place(request, random):
    """A device and such a dtype."""
    torch.manual_seed(int(random.integers(2**31)))
    return request.param, dtype_on(request.param)


@pytest.fixture
def on_gpu(random):
    """Operands on a GPU, large enough that it works on them for a while."""
    torch.manual_seed(int(random.integers(2**31)))
    return inputs(("cuda", dtype_on("cuda")), queries=512, keys=512)


@pytest.fixture
def counted(extension):
    """How many calls the extension served since the last time this was asked."""
    tenon.matmul(torch.eye(2), torch.eye(2))  # the first tensor teaches the type
    before = [extension.served()]

    def count():
        now = extension.served()
        served, before[0] = now - before[0], now
        return served

    return count


def inputs(place, groups=4, queries=48, keys=48):
    device, dtype = place
    q = torch.randn(2, queries, 4, 64, device=device, dtype=dtype).transpose(1, 2)
    k, v = (torch.randn(2, groups, keys, 64, device=device, dtype=dtype) for _ in range(2))
    return q, k, v


def close(found, wanted):
    torch.testing.assert_close(found, wanted, atol=BOUND[found.dtype], rtol=BOUND[found.dtype])


def test_attention_is_served(place, counted):
    q, k, v = inputs(place)
    shared = inputs(place, groups=2)
    seen = torch.rand(2, 1, 48, 48, device=q.device) < 0.7
    seen[..., 0] = True
    added = torch.zeros(seen.shape, device=q.device, dtype=q.dtype).masked_fill_(~seen, float("-inf"))
    ours(q, k, v)
    counted()
    for given, options in (((q, k, v), {}), ((q, k, v), {"is_causal": True}), ((q, k, v), {"scale": 0.3}),
                           (shared, {"enable_gqa": True}), ((q, k, v), {"attn_mask": added.expand(2, 4, 48, 48)})):
        out = ours(*given, **options)
        assert counted() == 1
        assert out.device == q.device and out.transpose(1, 2).is_contiguous() and not out.requires_grad
        close(out, theirs(*given, **options))
    if q.is_cpu:
        close(ours(q, k, v, seen), theirs(q, k, v, seen))
        assert counted() == 1
    turned = attention(*(x.transpose(1, 2) for x in (q, k, v)), layout="blhd")
    assert turned.is_contiguous() and torch.equal(turned, ours(q, k, v).transpose(1, 2)) and counted() == 2
    path = tenon.platforms.platform(place[0]).get_attn_backend_cls(None, 64, place[1])
    named = attention(q, k, v, backend=path.rpartition(".")[2])
    assert counted() == 1
    close(named, theirs(q, k, v))
    plain = tenon.attention(q, k, v, mask="causal", scale=0.2)
    assert counted() == 1 and plain.is_contiguous()
    close(plain, theirs(q, k, v, is_causal=True, scale=0.2))


def test_products_are_served(place, counted):
    device, dtype = place
    a, b = torch.randn(3, 64, 32, device=device, dtype=dtype), torch.randn(3, 32, 48, device=device, dtype=dtype)
    for one, other in ((a, b), (b.mT, a.mT)):
        counted()
        out = tenon.matmul(one, other)
        assert counted() == 1 and out.device == a.device
        torch.testing.assert_close(out, one @ other, atol=30 * BOUND[dtype], rtol=1e-2)


def test_weights_are_served(place, counted):
    """Without gradients, those that require them are plain numbers."""
    device, dtype = place
    x, layer = torch.randn(8, 32, device=device, dtype=dtype), torch.nn.Linear(32, 48, device=device, dtype=dtype)
    with torch.no_grad():
        counted()
        out = tenon.matmul(x, layer.weight.T)
        again = tenon.matmul(layer.weight, x.T)
        assert counted() == 2 and type(out) is type(again) is torch.Tensor and not out.requires_grad
        torch.testing.assert_close(out, x @ layer.weight.T, atol=30 * BOUND[dtype], rtol=1e-2)
    for one, other in ((x, layer.weight.T), (layer.weight, x.T)):
        with pytest.raises(tenon.errors.InvalidArgumentError, match="gradients"):
            tenon.matmul(one, other)
    assert counted() == 0


def test_who_watches_is_asked(place, counted):
    """Gradients, compilers, modes, profilers and transformations see the operator."""
    q, k, v = inputs(place)
    wanted = ours(q, k, v)
    counted()
    with torch.profiler.profile() as profile:
        assert torch.equal(ours(q, k, v), wanted)
    assert any("attention_inference" in event.name for event in profile.events())
    assert torch.equal(torch.compile(ours, backend="eager", fullgraph=True)(q, k, v), wanted)
    assert torch.equal(torch.jit.trace(ours, (q, k, v), check_trace=False)(q, k, v), wanted)
    grads = torch.autograd.grad(ours(q.requires_grad_(), k, v).sum(), q)
    assert counted() == 0 and grads[0].shape == q.shape
    with torch.no_grad():
        assert torch.equal(ours(q, k, v), wanted) and counted() == 1
    with torch.inference_mode():
        again = ours(q.detach(), k, v)
        assert again.is_inference() and torch.equal(again, wanted) and counted() == 1


def test_refusals_are_the_same(place, counted, monkeypatch):
    """Whether the extension is there or not, and it leaves nothing behind."""
    q, k, v = inputs(place)
    other = torch.randn(2, 4, 48, 64, dtype=q.dtype)
    calls = [lambda: ours(q, k[..., :32], v), lambda: ours(q, k, v[:, :, :7]), lambda: ours(q, k.double(), v),
             lambda: ours(q, k, v, torch.ones(3, 1, 1, 5, device=q.device)), lambda: ours(q, k[:, :3], v),
             lambda: tenon.attention(q, k, v, mask="sideways"), lambda: tenon.matmul(q, k[0]),
             lambda: tenon.matmul(q, other.to("meta")), lambda: ours(q.int(), k.int(), v.int())]
    if not q.is_cpu:
        calls += [lambda: ours(q, other, v), lambda: ours(other, k, v), lambda: ours(q, k, v, other[:1, :1, :, :48]),
                  lambda: tenon.matmul(q, other.mT)]
    ours(q, k, v), counted()
    said = [refused(call) for call in calls]
    assert counted() == 0
    monkeypatch.setattr(tenon.operators, "_fast", None)
    assert said == [refused(call) for call in calls]


def refused(call):
    with pytest.raises(tenon.Error) as info:
        call()
    return type(info.value), info.value.message


def queue_between(q, k, v, cycles):
    """Ours between PyTorch's, on the current stream, behind so many cycles of waiting."""
    made = q.clone()
    torch.cuda._sleep(cycles)
    made *= 3
    out = ours(made, k, v)
    total = out * 1
    del made, out  # PyTorch may give the memory to what comes next on this stream
    torch.full_like(q, 7)
    return total


def test_streams(on_gpu, counted):
    """What PyTorch queued before is read, and what it queues behind sees the result, on whichever stream."""
    q, k, v = on_gpu
    wanted = theirs(q * 3, k, v)
    queue_between(q, k, v, 1), counted()  # what is loaded at its first use is waited for
    streams = [torch.cuda.current_stream(), *(torch.cuda.Stream() for _ in range(40))]
    torch.cuda.synchronize()
    for stream in streams:
        with torch.cuda.stream(stream):
            total = queue_between(q, k, v, 100_000_000)  # about 50 ms: a busy host queues in less
            assert not stream.query()  # nothing was waited for
            close(total, wanted)
    assert counted() == len(streams)


@pytest.mark.parametrize("length", [1000, 2048, 3072])
def test_large_masks_of_bool(on_gpu, length):
    """One that is added is made of them, however many elements they have."""
    q = torch.randn(2, 4, length, 64, device="cuda", dtype=on_gpu[0].dtype)
    seen = torch.rand(2, 1, length, length, device="cuda") < 0.5
    close(ours(q, q, q, seen), theirs(q, q, q, seen))


def test_results_are_pytorchs_own(on_gpu, counted):
    """Of its allocator's memory, so that record_stream keeps them."""
    q, k, v = on_gpu
    ours(q, k, v), counted()
    before = torch.cuda.memory_allocated()
    out = ours(q, k, v)
    assert counted() == 1 and torch.cuda.memory_allocated() - before == out.numel() * out.element_size()
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        torch.cuda._sleep(20_000_000)
        late = out * 1
        out.record_stream(side)
    kept = out.data_ptr()
    wanted = theirs(q, k, v)
    del out
    assert torch.empty_like(wanted).data_ptr() != kept
    torch.cuda.synchronize()
    close(late, wanted)


def test_graphs(on_gpu, counted):
    """A graph of PyTorch's that was captured through the extension computes with what its inputs hold then."""
    q, k, v = on_gpu
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        ours(q, k, v, is_causal=True)
    torch.cuda.current_stream().wait_stream(side)
    counted()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = ours(q, k, v, is_causal=True)
    assert counted() == 1
    for _ in range(3):
        q.normal_(), k.normal_()
        graph.replay()
        close(out, theirs(q, k, v, is_causal=True))


def test_compiled(on_gpu, counted):
    q, k, v = on_gpu
    compiled = torch.compile(lambda q, k, v: ours(q * 2, k, v, is_causal=True).relu(), backend="aot_eager",
                             fullgraph=True)
    close(compiled(q, k, v), theirs(q * 2, k, v, is_causal=True).relu())
