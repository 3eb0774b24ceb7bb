"""Arrays on a GPU: PyTorch's, CuPy's and JAX's, on their own streams, against the same on the host."""
import numpy
import pytest
import tenon

try:
    DEVICE = tenon.device("cuda:0")
except tenon.Error as error:
    pytest.skip(f"no device of cuda: {error.message}", allow_module_level=True)


@pytest.fixture
def torch():
    module = pytest.importorskip("torch", reason="PyTorch is not here")
    if not module.cuda.is_available():
        pytest.skip("PyTorch sees no GPU")
    module.manual_seed(1)
    return module


def test_softmax_and_norm(torch):
    x = torch.randn(64, 256, device="cuda", dtype=torch.bfloat16)
    torch.testing.assert_close(tenon.softmax(x), x.softmax(-1), atol=2e-3, rtol=2e-2)
    torch.testing.assert_close(tenon.rms_norm(x), torch.nn.functional.rms_norm(x, (256,), eps=1e-5),
                               atol=2e-2, rtol=2e-2)
    assert tenon.softmax(x).device == x.device


def test_work_is_ordered_on_their_stream(torch):
    """What PyTorch queued before is read, and what it queues behind sees the result, without waiting."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for turn in range(20):
            x = torch.full((1 << 20,), float(turn), device="cuda")
            torch.cuda._sleep(200_000)
            x += 1
            out = tenon.binary("add", x, x)
            total = (out * 1).sum()
            del x, out
            assert total.item() == 2 * (turn + 1) * (1 << 20)


def test_matmul_and_attention(torch):
    a, b = (torch.randn(64, 64, device="cuda") for _ in range(2))
    q = torch.randn(1, 4, 128, 64, device="cuda", dtype=torch.bfloat16)
    try:
        torch.testing.assert_close(tenon.matmul(a, b), a @ b, atol=1e-1, rtol=1e-2)
        torch.testing.assert_close(
            tenon.attention(q, q, q, mask="causal"),
            torch.nn.functional.scaled_dot_product_attention(q, q, q, is_causal=True), atol=3e-2, rtol=3e-2)
    except (tenon.errors.UnsupportedError, tenon.errors.RefusedError) as error:
        pytest.skip(f"no kernel of cuda takes it: {error.message}")


def test_fft(torch):
    """Operands that cuFFT takes as they are, and those that are copied; inputs stay as they were."""
    fft = tenon.fft
    x = torch.randn(6, 60, device="cuda", dtype=torch.complex64)
    half = torch.fft.rfftn(torch.randn(3, 12, 20, device="cuda"), dim=(1, 2))
    half[0] = torch.fft.rfft(torch.randn(12, 20, device="cuda"))
    kept = half.clone()
    try:
        torch.testing.assert_close(fft.fft(x), torch.fft.fft(x))
        torch.testing.assert_close(fft.ifft(x.t(), norm="ortho"), torch.fft.ifft(x.t(), norm="ortho"))
        torch.testing.assert_close(fft.fft(x[:, ::2]), torch.fft.fft(x[:, ::2]))
        torch.testing.assert_close(fft.fft2(x), torch.fft.fft2(x))
        torch.testing.assert_close(fft.rfft(x.real), torch.fft.rfft(x.real))
        torch.testing.assert_close(fft.ihfft(x.real), torch.fft.ihfft(x.real))
        torch.testing.assert_close(fft.irfftn(half[1:], axes=(1, 2)), torch.fft.irfftn(half[1:], dim=(1, 2)))
        torch.testing.assert_close(fft.hfft(half[0]), torch.fft.hfft(half[0]))
        assert torch.equal(half, kept)
    except (tenon.errors.UnsupportedError, tenon.errors.RefusedError) as error:
        pytest.skip(f"no kernel of cuda takes it: {error.message}")


def test_wrong_devices(torch):
    a, b = torch.randn(4, 4, device="cuda"), torch.randn(4, 4)
    for one, other in ((a, b), (b, a)):
        with pytest.raises(tenon.Error):
            tenon.binary("add", one, other)
    target = torch.zeros(4, 4)
    tenon.copy(a, target)
    tenon.synchronize("cuda:0")
    torch.cuda.synchronize()
    assert torch.equal(target, a.cpu())


def test_cupy():
    cupy = pytest.importorskip("cupy", reason="CuPy is not here")
    x = cupy.arange(12, dtype="float32").reshape(3, 4)
    with cupy.cuda.Stream():
        out = tenon.softmax(x * 2)
        assert type(out) is cupy.ndarray
        wanted = numpy.exp(2 * x.get() - (2 * x.get()).max(-1, keepdims=True))
        numpy.testing.assert_allclose(out.get(), wanted / wanted.sum(-1, keepdims=True), 1e-5)


def test_cuda_array_interface(torch):
    """The driver says where memory is; what is being written on the stream that is told comes first."""
    from tenon import _arrays

    class Said:
        def __init__(self, tensor, stream):
            self.keep = tensor
            self.__cuda_array_interface__ = {**tensor.__cuda_array_interface__, "version": 3, "stream": stream}

    mine = torch.cuda.Stream()
    for stream, raw in ((mine, mine.cuda_stream), (torch.cuda.default_stream(), 1)):
        with torch.cuda.stream(stream):
            x = torch.zeros(1 << 20, device="cuda")
            assert _arrays.ask_cuda(x.data_ptr()) == x.device.index
            torch.cuda._sleep(20_000_000)
            x += 3
            out = torch.from_dlpack(tenon.unary("neg", Said(x, raw)))
            assert float(out.min()) == float(out.max()) == -3


def test_two_libraries_in_one_call(torch):
    """Each on a stream of its own: a call is behind what both have queued, and both go on behind it."""
    cupy = pytest.importorskip("cupy", reason="CuPy is not here")
    mine, theirs = torch.cuda.Stream(), cupy.cuda.Stream(non_blocking=True)
    with torch.cuda.stream(mine), theirs:
        for turn in range(20):
            one, other = torch.zeros(1 << 20, device="cuda"), cupy.zeros(1 << 20, dtype="float32")
            if turn % 2:
                torch.cuda._sleep(2_000_000)
            else:
                busy = cupy.ones((1024, 1024), "float32")
                for _ in range(20):
                    busy = busy @ busy * 1e-3
            one += turn
            other += 2 * turn
            arrays = (one, other) if turn % 4 < 2 else (other, one)
            out = tenon.binary("add", *arrays)
            one.zero_(), other.fill(0)  # behind the call, which still reads them
            assert float(out.min()) == float(out.max()) == 3 * turn


def test_jax():
    jax = pytest.importorskip("jax", reason="JAX is not here")
    if jax.default_backend() != "gpu":
        pytest.skip("JAX sees no GPU")
    x = jax.numpy.arange(12, dtype="float32").reshape(3, 4)
    out = tenon.softmax(x)
    numpy.testing.assert_allclose(numpy.asarray(out), numpy.asarray(jax.nn.softmax(x)), 1e-5)
