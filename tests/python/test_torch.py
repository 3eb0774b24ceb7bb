"""PyTorch's tensors, and attention inside its autograd and its compiler."""
import numpy
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not here")
from torch.nn.functional import scaled_dot_product_attention as theirs  # noqa: E402

import tenon  # noqa: E402
from tenon.integrations.torch import attention  # noqa: E402
from tenon.integrations.torch import scaled_dot_product_attention as ours  # noqa: E402

BOUND = {torch.float64: 1e-10, torch.float32: 2e-5, torch.bfloat16: 3e-2, torch.float16: 4e-3}


@pytest.fixture(autouse=True)
def seed(random):
    torch.manual_seed(int(random.integers(2**31)))


@pytest.mark.parametrize("dtype", BOUND, ids=str)
def test_operators(dtype):
    a, b = torch.randn(9, 7, dtype=dtype), torch.randn(7, 5, dtype=dtype)
    out = tenon.matmul(a, b)
    assert type(out) is torch.Tensor and out.dtype == dtype
    torch.testing.assert_close(out, a @ b, atol=30 * BOUND[dtype], rtol=1e-2)
    torch.testing.assert_close(tenon.matmul(b.T, a.T), (a @ b).T, atol=30 * BOUND[dtype], rtol=1e-2)
    torch.testing.assert_close(tenon.softmax(a), a.softmax(-1), atol=BOUND[dtype], rtol=1e-2)


def test_products_of_8_bit_floats():
    a, b = torch.randn(9, 16).to(torch.float8_e4m3fn), torch.randn(16, 5).to(torch.float8_e5m2)
    rows, columns = torch.rand(9, 1) + 0.5, torch.rand(1, 5) + 0.5
    plain = a.float() @ b.float()
    torch.testing.assert_close(tenon.matmul(a, b), plain)
    torch.testing.assert_close(tenon.matmul(a, b, scale_a=rows, scale_b=columns), plain * rows * columns)
    half = tenon.matmul(a, b, scale_a=torch.tensor(0.5), dtype="bf16")
    torch.testing.assert_close(half, (plain / 2).bfloat16(), atol=1e-2, rtol=1e-2)
    with pytest.raises(tenon.errors.InvalidArgumentError, match="one for each row"):
        tenon.matmul(a, b, scale_a=columns)


def test_mixed_libraries():
    a = torch.randn(3, 4)
    assert type(tenon.matmul(a, a.T.numpy())) is torch.Tensor
    assert type(tenon.matmul(a.numpy(), a.T)) is numpy.ndarray
    assert torch.from_dlpack(tenon.empty((2, 2))).shape == (2, 2)


def test_what_is_refused():
    a = torch.randn(3, 3, requires_grad=True)
    with pytest.raises(tenon.errors.InvalidArgumentError, match="gradients"):
        tenon.matmul(a, a)
    with torch.no_grad():
        tenon.matmul(a, a)
    with pytest.raises(tenon.errors.UnavailableError, match="meta"):
        tenon.matmul(torch.empty(2, 2, device="meta"), torch.empty(2, 2, device="meta"))
    with pytest.raises(tenon.errors.InvalidArgumentError, match="strided"):
        tenon.matmul(torch.eye(3).to_sparse(), torch.eye(3))
    lazy = torch.randn(3, 3, dtype=torch.complex64).conj()
    with pytest.raises(tenon.errors.InvalidArgumentError, match="lazily"):
        tenon.matmul(lazy, lazy)


def inputs(dtype=torch.float32, groups=4, queries=9, keys=9, grad=False):
    q = torch.randn(2, 4, queries, 16, dtype=dtype)
    k, v = (torch.randn(2, groups, keys, 16, dtype=dtype) for _ in range(2))
    return [x.requires_grad_(grad) for x in (q, k, v)]


@pytest.mark.parametrize("dtype", BOUND, ids=str)
@pytest.mark.parametrize("causal", [False, True])
def test_forward(dtype, causal):
    q, k, v = inputs(dtype)
    torch.testing.assert_close(ours(q, k, v, is_causal=causal), theirs(q, k, v, is_causal=causal),
                               atol=BOUND[dtype], rtol=BOUND[dtype])


def test_forward_options():
    q, k, v = inputs(groups=2, queries=5)
    seen = torch.rand(5, 9) < 0.7
    seen[:, 0] = True
    for options in ({"attn_mask": seen}, {"attn_mask": torch.randn(2, 1, 5, 9)}, {"scale": 0.3},
                    {"attn_mask": torch.randn(1, 4, 5, 9), "scale": 0.1}):
        torch.testing.assert_close(ours(q, k, v, enable_gqa=True, **options),
                                   theirs(q, k, v, enable_gqa=True, **options), atol=1e-5, rtol=1e-4)
    with pytest.raises(tenon.errors.InvalidArgumentError, match="enable_gqa"):
        ours(q, k, v)


@pytest.mark.parametrize("shape", [(7, 8), (3, 7, 8), (2, 2, 3, 7, 8)])
def test_other_ranks(shape):
    q, k, v = (torch.randn(shape) for _ in range(3))
    torch.testing.assert_close(ours(q, k, v), theirs(q, k, v), atol=1e-5, rtol=1e-4)
    if len(shape) == 3:
        mask = torch.randn(3, 7, 7)
        torch.testing.assert_close(ours(q, k, v, mask), theirs(q, k, v, mask), atol=1e-5, rtol=1e-4)


SHAPES = {  # of query, key, value and mask
    "5d-mask": ((2, 3, 4, 7, 8),) * 3 + ((2, 3, 4, 7, 7),),
    "5d-mask-of-inner": ((2, 3, 4, 7, 8),) * 3 + ((3, 1, 7, 7),),
    "5d-mask-of-outer": ((2, 3, 4, 7, 8),) * 3 + ((2, 1, 1, 7, 7),),
    "5d-mask-of-keys": ((2, 3, 4, 7, 8),) * 3 + ((7, 7),),
    "5d-and-fewer": ((2, 3, 4, 7, 8), (3, 4, 7, 8), (4, 7, 8)),
    "batch-of-query": ((1, 4, 7, 8), (3, 4, 7, 8), (3, 4, 7, 8)),
    "batch-of-key-and-value": ((3, 4, 7, 8), (1, 4, 7, 8), (1, 4, 7, 8), (3, 1, 7, 7)),
    "batch-of-value": ((1, 4, 7, 8), (1, 4, 7, 8), (3, 4, 7, 8)),
    "heads-of-query": ((2, 1, 7, 8), (2, 4, 7, 8), (2, 4, 7, 8)),
    "heads-of-key-and-value": ((2, 4, 7, 8), (2, 1, 7, 8), (2, 1, 7, 8)),
    "heads-of-value": ((2, 4, 7, 8), (2, 4, 7, 8), (2, 1, 7, 8)),
    "4d-and-3d": ((2, 4, 7, 8), (4, 7, 8), (4, 7, 8), (4, 7, 7)),
    "3d-and-4d": ((4, 7, 8), (2, 4, 7, 8), (2, 4, 7, 8)),
    "2d-and-4d": ((7, 8), (2, 4, 7, 8), (2, 4, 7, 8)),
    "value-of-2d": ((2, 4, 7, 8), (2, 4, 7, 8), (7, 8)),
    "3d-mask-for-all": ((3, 7, 8),) * 3 + ((1, 7, 7),),
}
GROUPED = {
    "3d": ((4, 7, 8), (2, 7, 8), (2, 7, 8), (4, 7, 7)),
    "5d": ((2, 3, 4, 7, 8), (2, 3, 2, 7, 8), (2, 3, 2, 7, 8)),
    "batch": ((3, 4, 7, 8), (1, 2, 7, 8), (1, 2, 7, 8)),
    "heads-of-value": ((1, 4, 7, 8), (1, 2, 7, 8), (1, 1, 7, 8)),
}
CASES = [(shapes, grouped) for table, grouped in ((SHAPES, False), (GROUPED, True)) for shapes in table.values()]


@pytest.mark.parametrize("shapes,grouped", CASES, ids=[*SHAPES, *("grouped-" + name for name in GROUPED)])
def test_shapes_broadcast(shapes, grouped):
    """As PyTorch's do, and their gradients are summed."""
    q, k, v, *mask = (torch.randn(shape) for shape in shapes)
    wanted = theirs(q, k, v, *mask, enable_gqa=grouped)
    found = ours(q, k, v, *mask, enable_gqa=grouped)
    assert found.shape == wanted.shape
    torch.testing.assert_close(found, wanted, atol=1e-5, rtol=1e-4)
    for x in (q, k, v):
        x.requires_grad_()
    weights = torch.randn_like(wanted)
    got, want = (torch.autograd.grad(f(q, k, v, *mask, enable_gqa=grouped), (q, k, v), weights) for f in (ours, theirs))
    for one, other in zip(got, want):
        torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-4)
    compiled = torch.compile(ours, backend="eager", fullgraph=True, dynamic=False)
    torch.compiler.reset()
    torch.testing.assert_close(compiled(q, k, v, *mask, enable_gqa=grouped), wanted, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("shapes,message", [
    (((2, 4, 7, 8), (3, 4, 7, 8), (3, 4, 7, 8)), "expected shapes that broadcast"),
    (((2, 4, 7, 8), (2, 4, 7, 8), (2, 3, 7, 8)), "expected shapes that broadcast"),
    (((4, 7, 8), (3, 7, 8), (3, 7, 8)), "query has 4 heads, key has 3: enable_gqa"),
    (((8,), (7, 8), (7, 8)), "two dimensions or more, got 1, 2 and 2"),
    (((2, 4, 7, 8),) * 3 + ((1, 2, 1, 7, 7),), "a mask of 5 dimensions beside operands of 4"),
    (((2, 3, 4, 7, 8),) * 3 + ((2, 1, 7, 7),), "expected shapes that broadcast"),
    (((1, 3, 4, 7, 8),) * 3 + ((2, 1, 1, 7, 7),), "before their heads")])
def test_shapes_that_do_not_fit(shapes, message):
    with pytest.raises(tenon.errors.InvalidArgumentError, match=message):
        ours(*(torch.randn(shape) for shape in shapes))


@pytest.mark.parametrize("grad", [False, True])
def test_all_is_dropped(grad):
    q, k, v = inputs(grad=grad)
    out = ours(q, k, v, dropout_p=1.0)
    assert torch.equal(out, theirs(q, k, v, dropout_p=1.0)) and out.requires_grad == grad
    if grad:
        assert not any(x.any() for x in torch.autograd.grad(out.sum(), (q, k, v)))


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_gradients(dtype, causal):
    q, k, v = inputs(dtype, grad=True)
    grad = torch.randn(2, 4, 9, 16, dtype=dtype)
    got = torch.autograd.grad(ours(q, k, v, is_causal=causal), (q, k, v), grad)
    want = torch.autograd.grad(theirs(q, k, v, is_causal=causal), (q, k, v), grad)
    for one, other in zip(got, want):
        torch.testing.assert_close(one, other, atol=6 * BOUND[dtype], rtol=BOUND[dtype])


def test_gradcheck():
    q, k, v = inputs(torch.float64, groups=2, queries=3, keys=5, grad=True)
    assert torch.autograd.gradcheck(lambda *x: ours(*x, enable_gqa=True, scale=0.4), (q, k, v))


def test_dropout_repeats_with_the_seed():
    q, k, v = inputs(torch.float64, grad=True)
    drawn = []
    for _ in range(2):
        torch.manual_seed(5)
        out = ours(q, k, v, dropout_p=0.5)
        drawn.append((out.detach(), *torch.autograd.grad(out.sum(), (q, k, v))))
    for one, other in zip(*drawn):
        assert torch.equal(one, other)
    torch.manual_seed(6)
    assert not torch.equal(ours(q, k, v, dropout_p=0.5), drawn[0][0])
    keep = ours(q, k, torch.ones_like(v), dropout_p=0.5).mean()
    assert abs(keep.item() - 1) < 0.35


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("shape", [(2, 4, 9, 7), (1, 1, 9, 7), (2, 1, 1, 7), (9, 7)])
def test_gradients_of_masks(shape, causal):
    q, k, v = (torch.randn(2, heads, length, 16, requires_grad=True)
               for heads, length in ((4, 9), (2, 7), (2, 7)))
    mask, weights = torch.randn(shape, requires_grad=True), torch.randn(2, 4, 9, 16)
    hidden = torch.ones(9, 7, dtype=torch.bool).triu(1) if causal else torch.zeros(9, 7, dtype=torch.bool)
    wanted = theirs(q, k, v, mask.masked_fill(hidden, float("-inf")), enable_gqa=True)
    wanted = torch.autograd.grad((wanted * weights).sum(), (q, k, v, mask))
    found = ours(q, k, v, mask, is_causal=causal, enable_gqa=True)
    found = torch.autograd.grad((found * weights).sum(), (q, k, v, mask))
    torch.testing.assert_close(found, wanted, atol=1e-5, rtol=1e-4)
    alone = ours(q.detach(), k.detach(), v.detach(), mask, is_causal=causal, enable_gqa=True)
    torch.testing.assert_close(torch.autograd.grad((alone * weights).sum(), mask)[0], wanted[3], atol=1e-5, rtol=1e-4)


def test_gradients_of_masks_come_in_parts(monkeypatch):
    """Of rows, a query that sees no key, and soft caps."""
    from tenon.integrations import _mask_gradient
    from tenon.integrations.torch import attention

    q, k, v = (torch.randn(1, 2, 9, 16) for _ in range(3))
    mask = torch.randn(1, 1, 9, 9).index_fill_(2, torch.tensor([4]), float("-inf")).requires_grad_()
    weights = torch.randn(1, 2, 9, 16)
    scores = 3 * torch.tanh(q @ k.mT / 4 / 3) + mask
    wanted, = torch.autograd.grad((torch.softmax(scores, -1).nan_to_num() @ v * weights)[:, :, [0, 1, 2, 3, 5, 6, 7, 8]].sum(),
                                  mask)
    for most in (1, 1 << 22):
        monkeypatch.setattr(_mask_gradient, "_MOST_SCORES", most)
        found, = torch.autograd.grad((attention(q, k, v, mask, softcap=3.0) * weights).sum(), mask)
        torch.testing.assert_close(found, wanted.nan_to_num(), atol=1e-5, rtol=1e-4)


def test_gradients_of_masks_that_are_refused():
    q, mask = torch.randn(1, 2, 5, 8), torch.randn(5, 5, requires_grad=True)
    with pytest.raises(tenon.errors.UnsupportedError, match="no gradients of a mask with dropout"):
        ours(q, q, q, mask, dropout_p=0.5)
    with pytest.raises(tenon.errors.UnsupportedError, match="no gradients of a mask with torch.func"):
        torch.func.grad(lambda m: ours(q, q, q, m).sum())(mask.detach())


def test_lse_of_the_differentiable_call():
    from tenon.integrations.torch import attention

    q, k, v = (torch.randn(2, 9, 4, 16, requires_grad=True) for _ in range(3))
    out, lse = attention(q, k, v, causal=True, layout="blhd", return_lse=True)
    scores = torch.einsum("bqhd,bkhd->bhqk", q, k) / 4
    scores = scores.masked_fill(torch.ones(9, 9, dtype=torch.bool).triu(1), float("-inf"))
    torch.testing.assert_close(lse, scores.logsumexp(-1), atol=1e-5, rtol=1e-4)
    wanted = torch.autograd.grad(attention(q, k, v, causal=True, layout="blhd").sum(), (q, k, v))
    torch.testing.assert_close(torch.autograd.grad(out.sum(), (q, k, v)), wanted)
    with torch.no_grad():
        torch.testing.assert_close(attention(q, k, v, causal=True, layout="blhd", return_lse=True)[1], lse)
    with pytest.raises(tenon.errors.UnsupportedError, match="no lse of attention with sinks"):
        attention(q, k, v, sinks=torch.zeros(4), return_lse=True)


def attention_and_lse(q, k, v, mask=None, causal=False, softcap=0.0):
    """PyTorch's own operators, with gradients of everything."""
    k, v = (x.repeat_interleave(q.size(1) // x.size(1), 1) for x in (k, v))
    scores = q @ k.mT / q.size(-1) ** 0.5
    scores = softcap * torch.tanh(scores / softcap) if softcap else scores
    scores = scores if mask is None else scores + mask
    if causal:
        scores = scores.masked_fill(torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1), float("-inf"))
    return scores.softmax(-1) @ v, scores.logsumexp(-1)


@pytest.mark.parametrize("groups", [4, 2])
@pytest.mark.parametrize("how", [{}, {"causal": True}, {"softcap": 3.0}, {"mask": True}], ids=str)
def test_gradients_through_lse(how, groups):
    from tenon.integrations.torch import attention

    q, k, v = inputs(torch.float64, groups, grad=True)
    operands, how = [q, k, v], dict(how)
    if "mask" in how:
        how["mask"] = torch.randn(1, 4, 9, 9, dtype=torch.float64, requires_grad=True)
        operands.append(how["mask"])
    of_out, of_lse = torch.randn(2, 4, 9, 16, dtype=torch.float64), torch.randn(2, 4, 9, dtype=torch.float64)
    found = attention(q, k, v, return_lse=True, **how)
    wanted = attention_and_lse(q, k, v, **how)
    torch.testing.assert_close(found, wanted, atol=1e-12, rtol=1e-10)
    for first, grads in ((0, (of_out, of_lse)), (1, (of_lse,))):  # of both, and of the lse alone
        torch.testing.assert_close(
            torch.autograd.grad(found[first:], operands, grads, retain_graph=True, allow_unused=True),
            torch.autograd.grad(wanted[first:], operands, grads, retain_graph=True, materialize_grads=True),
            atol=1e-11, rtol=1e-9)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
def test_gradients_through_lse_of_narrow_dtypes(dtype):
    """The gradient of the lse is not rounded to the dtype of the operands: with few bits, it would lose 3 digits here."""
    from tenon.integrations.torch import attention

    q, k, v = (x.detach().requires_grad_() for x in inputs(dtype))
    wide = [x.detach().double().requires_grad_() for x in (q, k, v)]
    of_lse = torch.full((2, 4, 9), 1000.25)
    found = torch.autograd.grad(attention(q, k, v, return_lse=True)[1], (q, k), of_lse)
    wanted = torch.autograd.grad(attention_and_lse(*wide)[1], wide[:2], of_lse.double())
    for ours_, theirs in zip(found, wanted):
        bound = 4 * torch.finfo(dtype).eps * 1000
        torch.testing.assert_close(ours_.double(), theirs, atol=bound, rtol=bound / 1000)


def test_gradients_through_merged_parts():
    """Attention of two halves of the keys, merged by their lse, has the gradients of attention of all."""
    from tenon.integrations.torch import attention

    q, k, v = inputs(torch.float64, grad=True)
    parts = [attention(q, k[:, :, half], v[:, :, half], return_lse=True) for half in (slice(0, 4), slice(4, 9))]
    weights = torch.softmax(torch.stack([lse for _, lse in parts]), 0)[..., None]
    merged = (weights * torch.stack([out for out, _ in parts])).sum(0)
    torch.testing.assert_close(torch.autograd.grad(merged.square().sum(), (q, k, v)),
                               torch.autograd.grad(ours(q, k, v).square().sum(), (q, k, v)), atol=1e-11, rtol=1e-9)


def test_gradients_through_lse_of_a_query_without_keys():
    from tenon.integrations.torch import attention

    q, k, v = inputs(grad=True)
    mask = torch.zeros(9, 9).masked_fill(torch.arange(9)[:, None] == 3, float("-inf"))
    out, lse = attention(q, k, v, mask[None, None], return_lse=True)
    for grad in torch.autograd.grad((out.sum() + lse.exp().sum()), (q, k, v)):
        assert torch.isfinite(grad).all()
    assert (torch.autograd.grad(attention(q, k, v, mask[None, None], return_lse=True)[1].sum(), q)[0][:, :, 3] == 0).all()


def test_gradients_through_lse_of_functions_and_compilations():
    from tenon.integrations.torch import attention

    q, k, v = inputs(torch.float64)

    def loss(run):
        return lambda q: sum(x.square().sum() for x in run(q, k, v))

    def found(q, k, v):
        return attention(q, k, v, return_lse=True)

    wanted = torch.func.grad(loss(attention_and_lse))(q)
    torch.testing.assert_close(torch.func.grad(loss(found))(q), wanted, atol=1e-11, rtol=1e-9)
    tracked = q.clone().requires_grad_()
    compiled = torch.compile(loss(found), backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(torch.autograd.grad(compiled(tracked), tracked)[0], wanted, atol=1e-11, rtol=1e-9)


def test_backward_keeps_the_settings_of_forward():
    """Forbidding what the forward pass took matters no more once it has run."""
    q, k, v = inputs(grad=True)
    decision = tenon.explain("attention-backward:f32:b=2,h=4,l=9,d=16@cpu")
    taken = decision.chosen.kernel
    with tenon.settings.scope({"rules": "forbid:" + taken}):
        out = ours(q, k, v)
    before = tenon.settings.current()
    torch.autograd.grad(out.sum(), (q, k, v))
    assert tenon.settings.current() is before
    out = ours(q, k, v)
    with tenon.settings.scope({"attention.backend": "require:NO_ATTENTION"}):
        torch.autograd.grad(out.sum(), (q, k, v))
        with pytest.raises(tenon.Error):
            ours(q, k, v)


def test_operator_is_well_registered():
    q, k, v = inputs(grad=True)
    torch.library.opcheck(torch.ops.tenon.attention, (q, k, v, None, 0.0, True, None, 0.0, ""))
    with torch.no_grad():
        torch.library.opcheck(torch.ops.tenon.attention_inference,
                              tuple(x.detach() for x in (q, k, v)) + (None, False, 0.3, 0.0, None, ""))


@pytest.mark.parametrize("grad", [False, True])
def test_compile_keeps_one_graph(grad):
    q, k, v = inputs(grad=grad)

    def layer(q, k, v):
        return ours(q * 2, k, v, is_causal=True).relu()

    compiled = torch.compile(layer, backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(compiled(q, k, v), layer(q, k, v))
    if grad:
        got = torch.autograd.grad(compiled(q, k, v).sum(), (q, k, v))
        want = torch.autograd.grad(layer(q, k, v).sum(), (q, k, v))
        for one, other in zip(got, want):
            torch.testing.assert_close(one, other)


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("compiled", [False, True])
def test_autocast(grad, compiled):
    """Floats are computed in its dtype, as PyTorch's are, mixed ones too; gradients are of the operands' own."""
    q, k, v = inputs(grad=grad)
    mask, sinks = torch.randn(9, 9), torch.zeros(4)
    run = torch.compile(ours, backend="aot_eager", fullgraph=True) if compiled else ours
    for dtype in (torch.bfloat16, torch.float16):
        torch.compiler.reset()  # so that what it makes anew for each case does not reach its limit
        with torch.autocast("cpu", dtype=dtype):
            for given in ((q, k, v), (q.half(), k.bfloat16(), v), (q, k, v, mask), (q, k, v, mask > 0),
                          (q.double(), k.double(), v.double())):
                found, wanted = run(*given), theirs(*given)
                assert found.dtype == wanted.dtype
                torch.testing.assert_close(found, wanted, atol=3e-2, rtol=3e-2)
            assert attention(q, k, v).dtype == attention(q, k, v, dropout=0.5).dtype == dtype
            with torch.no_grad():
                assert attention(q, k, v, sinks=sinks).dtype == attention(q, k, v, sinks=sinks.half()).dtype == dtype
            assert run(*(x.to("meta") for x in (q, k, v))).dtype == torch.float32
            if grad:
                got = torch.autograd.grad(run(q, k, v).sum(), (q, k, v))
                want = torch.autograd.grad(theirs(q, k, v).sum(), (q, k, v))
                for one, other in zip(got, want):
                    torch.testing.assert_close(one, other, atol=6e-2, rtol=3e-2)
    with torch.autocast("cuda", dtype=torch.float16, enabled=torch.cuda.is_available()):
        assert run(q, k, v).dtype == torch.float32


class Watch(torch.utils._python_dispatch.TorchDispatchMode):
    """Notes which operators run."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.seen.append(str(function))
        return function(*args, **(kwargs or {}))


def test_modes_see_the_operator():
    """Where nobody watches, the dispatcher is not asked; the result is the same."""
    q, k, v = (x.detach() for x in inputs())
    plain = ours(q, k, v)
    with Watch() as watch:
        watched = ours(q, k, v)
    assert any("attention_inference" in name for name in watch.seen)
    assert torch.equal(plain, watched) and plain.stride() == watched.stride()
    with torch.profiler.profile() as profile:
        ours(q, k, v)
    assert any("attention_inference" in event.name for event in profile.events())
    assert ours(*(x.to("meta") for x in (q, k, v))).shape == plain.shape
    negative = torch._neg_view(q)
    torch.testing.assert_close(ours(negative, k, v), ours(-q, k, v))
    mapped = torch.func.vmap(lambda a: a * 1)(torch.ones(2))  # the stack of transformations is empty again
    assert mapped.sum() == 2 and torch.equal(ours(q, k, v), plain)


@pytest.mark.parametrize("place", range(4))
@pytest.mark.parametrize("grad", [False, True])
def test_operands_lie_on_one_device(place, grad):
    """Also where an operator is only traced; nothing gives memory that nobody wrote."""
    given = [*inputs(grad=grad), torch.zeros(1, 1, 9, 9)]
    name = ("query", "key", "value", "mask")[place]
    given[place] = given[place].detach().to("meta")
    message = "key: expected meta, as query" if place == 0 else f"{name}: expected cpu, as query, got meta"
    q, k, v, mask = given
    for call in (lambda: ours(*given), lambda: attention(*given),
                 lambda: torch.ops.tenon.attention(*given, 0.0, False, None, 0.0, ""),
                 lambda: torch.ops.tenon.attention_inference(*given, False, None, 0.0, None, "")):
        with pytest.raises(tenon.errors.InvalidArgumentError, match=message):
            call()
    with pytest.raises(tenon.errors.InvalidArgumentError, match=message):
        torch.ops.tenon.attention_backward(q, q, k, v, q, q[..., 0].detach(), torch.zeros(1, dtype=torch.int64), mask,
                                           0.0, False, None, 0.0, "")
    with torch._subclasses.FakeTensorMode() as mode:
        faked = [mode.from_tensor(x) for x in given]
        with pytest.raises(tenon.errors.InvalidArgumentError, match=message):
            ours(*faked)


@pytest.mark.parametrize("place", range(4))
@pytest.mark.parametrize("grad", [False, True])
def test_sparse_tensors_are_refused(place, grad):
    given = [*inputs(grad=grad), torch.zeros(1, 1, 9, 9)]
    given[place] = given[place].detach().to_sparse()
    name = ("query", "key", "value", "mask")[place]
    for operands in (given, [x[0] for x in given]):
        with pytest.raises(tenon.errors.InvalidArgumentError, match=f"{name} is of torch.sparse_coo; .* dense"):
            ours(*operands)


def test_gradients_lie_as_what_they_are_of():
    q, k, v = (x.detach().transpose(1, 2).contiguous().transpose(1, 2).requires_grad_() for x in inputs())
    assert not q.is_contiguous()
    for x, grad in zip((q, k, v), torch.autograd.grad(ours(q, k, v).sum(), (q, k, v))):
        assert grad.stride() == x.stride()


PLACES = [("cpu", torch.float32), ("cpu", torch.bfloat16), ("cuda", torch.float32), ("cuda", torch.bfloat16)]


@pytest.mark.parametrize("place,dtype", PLACES, ids=lambda x: str(x).replace("torch.", ""))
def test_layers_get_gradients(place, dtype):
    """A layer of tenon.platforms, with PyTorch's tensors."""
    from tenon.platforms import attention as classes

    if place == "cuda" and not torch.cuda.is_available():
        pytest.skip("PyTorch sees no GPU")
    try:
        path = tenon.platforms.platform(place).get_attn_backend_cls(None, 64, dtype)
    except tenon.errors.UnsupportedError as error:
        if place == "cpu":
            raise
        pytest.skip(f"no kernel of cuda takes it: {error.message}")
    impl = getattr(classes, path.rpartition(".")[2]).get_impl_cls()(4, 64)
    q, k, v = (torch.randn(2, 48, 4, 64, device=place, dtype=dtype, requires_grad=True) for _ in range(3))
    out = impl.forward(q, k, v, None)
    want = theirs(*(x.transpose(1, 2) for x in (q, k, v))).transpose(1, 2)
    for one in (out, attention(q, k, v, layout="blhd")):  # the kernel of the layer's backend, and any
        torch.testing.assert_close(one, want, atol=min(BOUND[dtype], 1e-5) if dtype == torch.float32 else BOUND[dtype],
                                   rtol=max(BOUND[dtype], 1e-4))
    got, meant = (torch.autograd.grad(x.sum(), (q, k, v)) for x in (out, want))
    for one, other in zip(got, meant):
        torch.testing.assert_close(one, other, atol=8 * BOUND[dtype], rtol=max(BOUND[dtype], 1e-4))


@pytest.mark.parametrize("place", range(3))
def test_layers_get_gradients_of_one_operand(place):
    from tenon.platforms import attention as classes

    impl = classes.FLASH_ATTN.get_impl_cls()(4, 16)
    given = [x.detach().transpose(1, 2) for x in inputs()]
    given[place].requires_grad_()
    out, want = impl.forward(*given), theirs(*(x.transpose(1, 2) for x in given)).transpose(1, 2)
    got, meant = (torch.autograd.grad(x.sin().sum(), given[place])[0] for x in (out, want))
    torch.testing.assert_close(got, meant, atol=2e-5, rtol=1e-4)
    dropping = classes.FLASH_ATTN.get_impl_cls()(4, 16, dropout_p=0.5)
    assert dropping.forward(*given).requires_grad
    given[place] = given[place].detach()
    with torch.autograd.forward_ad.dual_level():
        given[place] = torch.autograd.forward_ad.make_dual(given[place], torch.ones_like(given[place]))
        with pytest.raises(tenon.errors.UnsupportedError, match="forward-mode"):
            impl.forward(*given)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("grad", [False, True])
def test_layers_follow_autocast(dtype, grad):
    """In inference too: as PyTorch's own attention has its operands, masks among them."""
    from tenon.platforms.attention import TORCH_SDPA as backend

    impl = backend.get_impl_cls()(4, 16, causal=True)
    q, k, v = (torch.randn(2, 9, 4, 16, requires_grad=grad) for _ in range(3))
    given = (q, k.to(torch.bfloat16 if dtype != torch.bfloat16 else torch.float16).detach(), v)
    mask = backend.get_metadata_cls()(0, attn_mask=torch.ones(2, 9).tril(-2) == 0)
    with torch.autocast("cpu", dtype=dtype):
        for meta in (None, mask):
            out = impl.forward(*given, meta)
            assert out.dtype == dtype and out.shape == q.shape and out.requires_grad == grad
            narrow = [x.detach().to(dtype) for x in given]
            with torch.autocast("cpu", enabled=False):
                torch.testing.assert_close(out.detach(), impl.forward(*narrow, meta), atol=2e-2, rtol=2e-2)
        assert impl.forward(*(x.detach().double() for x in given)).dtype == torch.float64
        array = q.detach().numpy()
        assert impl.forward(array, array, array).dtype == "float32"  # which no autocast is for
        with torch.autocast("cpu", enabled=False):
            assert impl.forward(q, q, q).dtype == torch.float32
    assert impl.forward(q, q, q).dtype == torch.float32
    with torch.autocast("cpu", dtype=dtype), pytest.raises(tenon.errors.InvalidArgumentError, match="for training"):
        backend.get_impl_cls()(4, 16, dropout_p=0.5).forward(*(x.detach() for x in given))


def test_layers_compile_in_one_graph():
    from tenon.platforms.attention import FLASH_ATTN

    impl = FLASH_ATTN.get_impl_cls()(4, 16)
    q = torch.randn(2, 9, 4, 16)
    seen = []

    def keep(graph, _):
        seen.append({str(node.target) for node in graph.graph.nodes})
        return graph

    out = torch.compile(lambda q: impl.forward(q * 2, q, q) + 1, backend=keep, fullgraph=True)(q)
    torch.testing.assert_close(out, impl.forward(q * 2, q, q) + 1)
    assert len(seen) == 1 and any("attention_inference" in name for name in seen[0])


def test_inference_mode():
    from tenon.platforms import current_platform

    with current_platform.inference_mode():
        assert torch.is_inference_mode_enabled()


@pytest.mark.parametrize("write", [
    lambda t: tenon.fill(t, 0.0),
    lambda t: tenon.copy(torch.zeros(3, 3), t),
    lambda t: tenon.matmul(torch.ones(3, 3), torch.ones(3, 3), out=t)])
def test_gradients_by_what_was_overwritten_are_refused(write):
    x, t = torch.ones(3, 3, requires_grad=True), torch.full((3, 3), 5.0)
    y = x * t
    write(t)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()
    with torch.inference_mode():
        write(torch.ones(3, 3))


class Odd:
    """Has everything of an array but being one."""


def test_what_is_no_tensor_is_named():
    q = torch.ones(1, 2, 4, 8)
    array = q.numpy()
    refusals = {
        "query: expected a torch.Tensor, got numpy.ndarray": lambda: ours(array, array, array),
        "key: expected a torch.Tensor, got numpy.ndarray": lambda: ours(q, array, q),
        "attn_mask: expected a torch.Tensor, got numpy.ndarray": lambda: ours(q, q, q, array[0, 0]),
        "key: expected a torch.Tensor, got builtins.NoneType": lambda: ours(q, None, q),
        "value: expected a torch.Tensor, got .*Odd": lambda: attention(q, q, Odd()),
        "is_causal: expected True or False, got 'no'": lambda: ours(q, q, q, is_causal="no"),
        "scale: expected a number, got str": lambda: ours(q, q, q, scale="x"),
        "layout: expected a str, got int": lambda: attention(q, q, q, layout=1),
    }
    for told, call in refusals.items():
        with pytest.raises(TypeError, match=told):
            call()
    with pytest.raises(tenon.errors.InvalidArgumentError, match='no layout "bldh"; did you mean'):
        attention(q, q, q, layout="bldh")


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize("layout", [torch.strided, torch.jagged])
def test_nested_tensors_are_refused(layout):
    nested = torch.nested.nested_tensor([torch.ones(2, 4, 8), torch.ones(2, 3, 8)], layout=torch.strided)
    if layout is torch.jagged:
        nested = torch.nested.nested_tensor([torch.ones(4, 2, 8), torch.ones(3, 2, 8)], layout=layout).transpose(1, 2)
    with pytest.raises(tenon.errors.InvalidArgumentError, match="query is a nested tensor"):
        ours(nested, nested, nested)
    with pytest.raises(tenon.errors.InvalidArgumentError, match="b: expected a tensor of one shape, got a nested tensor"):
        tenon.matmul(torch.ones(2, 2), nested)


@pytest.mark.filterwarnings("error")
def test_fake_tensors_are_refused_where_nothing_is_traced():
    from torch._subclasses import FakeTensorMode

    with FakeTensorMode():
        fake = torch.ones(1, 2, 4, 8)
        assert ours(fake, fake, fake).shape == fake.shape
    with pytest.raises(tenon.errors.InvalidArgumentError, match="k: a fake tensor has no numbers"):
        tenon.attention(torch.ones(1, 2, 4, 8), fake, fake)


def test_only_writes_count_as_writes():
    """Neither what explains a call nor one that fails."""
    x = torch.ones(3, 3, requires_grad=True)
    s = x.exp()
    y = s * s
    with torch.no_grad():
        tenon.explain(tenon.unary, "exp", torch.ones(3, 3), out=s)
        tenon.prepare(tenon.unary, "exp", torch.ones(3, 3), out=s)
        with pytest.raises(tenon.errors.InvalidArgumentError):
            tenon.matmul(torch.ones(3, 4), torch.ones(3, 3), out=s)
        q, lse = torch.ones(1, 1, 3, 3), torch.zeros(1, 1, 3)
        versions = q._version, lse._version
        tenon.attention_backward(q, q, q, q, out=q, lse=lse)  # which reads them
        assert (q._version, lse._version) == versions
    y.sum().backward()
    before = s._version
    with torch.no_grad():
        tenon.unary("exp", torch.ones(3, 3), out=s)
        tenon.fill(s, 1.0)
        tenon.copy(torch.ones(3, 3), s)
    assert s._version == before + 3


@pytest.mark.parametrize("a, b", [((3,), (3, 0)), ((0,), (0, 4)), ((4, 0), (0,)), ((0,), (0,))])
def test_products_of_empty_vectors(a, b):
    """Tensors without elements have no address."""
    x, y = torch.empty(a), torch.empty(b)
    assert torch.equal(tenon.matmul(x, y), torch.matmul(x, y))
