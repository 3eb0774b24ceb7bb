"""Attention inside torch.func's transformations and PyTorch's forward mode: right, or refused with the reason."""
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not here")
import torch.autograd.forward_ad as forward  # noqa: E402
from torch.func import functionalize, grad, hessian, jacfwd, jacrev, jvp, vjp, vmap  # noqa: E402
from torch.nn.attention import SDPBackend, sdpa_kernel  # noqa: E402
from torch.nn.functional import scaled_dot_product_attention as theirs  # noqa: E402

import tenon  # noqa: E402
from tenon.integrations.torch import attention  # noqa: E402
from tenon.integrations.torch import scaled_dot_product_attention as ours  # noqa: E402


@pytest.fixture
def qkv(random):
    torch.manual_seed(int(random.integers(2**31)))
    return [torch.randn(2, 3, 5, 8) for _ in range(3)]


@pytest.fixture(params=["extension", "ctypes"], autouse=True)
def way(request, monkeypatch):
    """With the extension in use where it can be built, and without."""
    if request.param == "extension":
        request.getfixturevalue("extension")
    else:
        monkeypatch.setattr(tenon.operators, "_fast", None)


def refused():
    return pytest.raises(tenon.errors.UnsupportedError, match="no forward-mode derivatives of attention")


@pytest.mark.parametrize("place", range(3))
def test_dual_tensors_are_refused(qkv, place):
    with forward.dual_level():
        given = list(qkv)
        given[place] = forward.make_dual(qkv[place], torch.randn_like(qkv[place]))
        for call in (lambda: ours(*given), lambda: ours(*given, dropout_p=0.5), lambda: attention(*given),
                     lambda: ours(*(x.clone().requires_grad_() for x in qkv[:2]), given[place])):
            with refused():
                call()
        mask = forward.make_dual(torch.zeros(5, 5), torch.ones(5, 5))
        with refused():
            ours(*qkv, mask)
        torch.testing.assert_close(ours(*qkv), theirs(*qkv))  # nothing has a tangent: nothing is lost
    torch.testing.assert_close(ours(*qkv), theirs(*qkv))


PLAIN = {
    "matmul": lambda x, y: tenon.matmul(x, y.mT), "matmul-right": lambda x, y: tenon.matmul(y.mT, x),
    "matmul-bias": lambda x, y: tenon.matmul(y.mT, y, bias=x[:1, :1, :1]), "attention": lambda x, y: tenon.attention(x, y, y),
    "attention-value": lambda x, y: tenon.attention(y, y, x), "softmax": lambda x, y: tenon.softmax(x),
    "attention-mask": lambda x, y: tenon.attention(y, y, y, mask=x[..., :5]), "cast": lambda x, y: tenon.cast(x, "f64"),
    "binary": lambda x, y: tenon.binary("add", y, x), "reduce": lambda x, y: tenon.reduce("sum", x),
    "rms-norm": lambda x, y: tenon.rms_norm(x), "copy": lambda x, y: tenon.copy(x, y.clone()),
    "copy-to": lambda x, y: tenon.copy(y, x), "fill": lambda x, y: tenon.fill(x, 1.0),
    "out": lambda x, y: tenon.unary("exp", y, out=x), "explain": lambda x, y: tenon.explain(tenon.softmax, x),
}


@pytest.mark.parametrize("name", PLAIN)
def test_operators_lose_no_tangents(qkv, name):
    """As with gradients: an operator that has no derivatives refuses who wants them."""
    x, y, _ = qkv
    given = x.clone()
    with forward.dual_level():
        dual = forward.make_dual(given, torch.ones_like(x))
        for guard in (torch.enable_grad(), torch.no_grad()):
            with guard, pytest.raises(tenon.errors.InvalidArgumentError, match="would lose its tangent"):
                PLAIN[name](dual, y)
        assert torch.equal(given, x)  # nothing was written
        PLAIN[name](x.clone(), y), PLAIN[name](forward.unpack_dual(dual).primal.clone(), y)
        tenon.cast(torch.arange(3), "i32")
        with torch.inference_mode():
            PLAIN[name](dual.clone(), y)  # where PyTorch has none either
    PLAIN[name](x.clone(), y)


@pytest.mark.parametrize("name", ["matmul", "attention", "softmax"])
def test_operators_in_transformations_are_refused(qkv, name):
    x, y, _ = qkv
    calls = [lambda: vmap(lambda a: PLAIN[name](a[None], y[:1]))(x), lambda: jvp(lambda a: PLAIN[name](a, y), (x,), (y,)),
             lambda: grad(lambda a: PLAIN[name](a, y).sum())(x)]
    for call, told in zip(calls, ("tenon.integrations.torch there", "integrations.torch|tangent", "requires gradients")):
        with pytest.raises(tenon.errors.InvalidArgumentError, match=told):
            call()


def test_forward_transformations_are_refused(qkv):
    q, k, v = qkv
    along = torch.randn_like(q)

    def by_query(a):
        return ours(a, k, v)

    calls = [lambda: jvp(by_query, (q,), (along,)), lambda: jacfwd(by_query)(q),
             lambda: hessian(lambda a: by_query(a).sum())(q),
             lambda: vmap(lambda a: jvp(lambda b: ours(b, a, a), (a,), (a,))[1])(q),
             lambda: jvp(vmap(lambda a: ours(a, a, a)), (q,), (along,)),
             lambda: grad(lambda a: jvp(lambda b: ours(b, a, v).sum(), (q,), (along,))[1])(k),
             lambda: jvp(lambda a: grad(lambda b: ours(b, a, v).sum())(q), (k,), (along,)),
             lambda: jvp(lambda a: jvp(lambda b: by_query(a) * b, (q,), (along,))[1], (q,), (along,))]
    with forward.dual_level():
        dual = forward.make_dual(q, along)
        calls.append(lambda: vmap(by_query)(dual[:, None]))
        for call in calls[-1:]:
            with refused():
                call()
    for call in calls[:-1]:
        with refused():
            call()


def test_what_forward_mode_does_not_touch(qkv):
    q, k, v = qkv
    _, tangent = jvp(lambda a: ours(q, k * 2, v + 1) * a, (q,), (torch.ones_like(q),))
    torch.testing.assert_close(tangent, theirs(q, k * 2, v + 1))
    inside = jvp(lambda a: vmap(ours, in_dims=(0, None, None))(q, k[0], v[0]) * a, (q,), (torch.ones_like(q),))[1]
    torch.testing.assert_close(inside, theirs(q, k[:1].expand_as(k), v[:1].expand_as(v)))
    out, tangent = jvp(lambda a: ours(q, k, v) * a, (q,), (torch.ones_like(q),))
    torch.testing.assert_close(tangent, theirs(q, k, v))
    torch.testing.assert_close(out, theirs(q, k, v) * q)


def per_sample(f, q, k, v):
    return vmap(grad(lambda a, b: f(a[None], b[None], v[:1]).sin().sum(), (0, 1)), in_dims=(0, None))(q, k[0])


def inside_autograd(f, q, k, v):
    """The caller's own gradients, around a transformation."""
    stacked, shared = torch.stack([q, v]).requires_grad_(), k.clone().requires_grad_()
    out = vmap(f, in_dims=(0, None, None))(stacked, shared, v)
    return torch.autograd.grad(out.sin().sum(), (stacked, shared))


def without_gradients(f, q, k, v):
    def product(a):
        with torch.no_grad():
            out = f(a, k, v)
        return (out * a).sum()

    return grad(product)(q)


TRANSFORMED = {
    "grad": lambda f, q, k, v: grad(lambda *x: f(*x).sin().sum(), (0, 1, 2))(q, k, v),
    "grad-causal": lambda f, q, k, v: grad(lambda a: f(a, k, v, is_causal=True).sin().sum())(q),
    "grad-mask": lambda f, q, k, v: grad(lambda a: f(q, a, v, q[:, :1] @ k[:, :1].mT).sin().sum())(k),
    "vjp": lambda f, q, k, v: vjp(lambda a, b: f(a, b, v), q, k)[1](v),
    "jacrev": lambda f, q, k, v: jacrev(lambda a, b: f(a, b, v[:1]), (0, 1))(q[:1], k[:1]),
    "no-grad": without_gradients,
    "vmap": lambda f, q, k, v: vmap(f)(q, k, v),
    "vmap-twice": lambda f, q, k, v: vmap(vmap(f))(q, k, v),
    "vmap-value": lambda f, q, k, v: vmap(f, in_dims=(None, None, -1))(q, k, torch.stack([q, v], -1)),
    "vmap-mask": lambda f, q, k, v: vmap(f, in_dims=(None, None, None, 0))(q, k, v, q[:, 0] @ k[:, 0].mT),
    "vmap-one-mask": lambda f, q, k, v: vmap(lambda a: f(a, k, v, q[:, :1] @ k[:, :1].mT))(torch.stack([q, v])),
    "vmap-of-grad": per_sample,
    "grad-of-vmap": lambda f, q, k, v: grad(
        lambda a, b: vmap(f, in_dims=(0, None, None))(a, b, v).sin().sum(), (0, 1))(torch.stack([q, v]), k),
    "vmap-inside-autograd": inside_autograd,
    "functionalize": lambda f, q, k, v: functionalize(f)(q, k, v),
}


@pytest.mark.parametrize("name", TRANSFORMED)
def test_transformations(qkv, name):
    with sdpa_kernel(SDPBackend.MATH):
        wanted = TRANSFORMED[name](theirs, *qkv)
    torch.testing.assert_close(TRANSFORMED[name](ours, *qkv), wanted, atol=2e-5, rtol=1e-4)


def test_second_derivatives_are_refused(qkv):
    q, k, v = qkv

    def first(a):
        return grad(lambda b: ours(b, k, v).sin().sum())(a)

    x = q.clone().requires_grad_()
    once, = torch.autograd.grad(ours(x, k, v).sin().sum(), x, create_graph=True)
    for call in (lambda: grad(lambda a: first(a).sum())(q), lambda: jacrev(first)(q),
                 lambda: torch.autograd.grad(once.sum(), x)):
        with pytest.raises(tenon.errors.UnsupportedError, match="no second derivatives of attention"):
            call()


def test_dropout_in_vmap(qkv):
    q, k, v = qkv
    stacked = torch.stack([q, q])
    for randomness in ("error", "same"):
        with pytest.raises(tenon.errors.UnsupportedError, match=f'"different", got "{randomness}"'):
            vmap(lambda a: ours(a, k, v, dropout_p=0.5), randomness=randomness)(stacked)
    one, other = vmap(lambda a: ours(a, k, v, dropout_p=0.5), randomness="different")(stacked)
    assert not torch.equal(one, other)
    grads = vmap(grad(lambda a: ours(a, k, v, dropout_p=0.5).sum()), randomness="different")(stacked)
    assert grads.shape == stacked.shape and grads.isfinite().all()


def test_masks_have_no_gradients_in_transformations(qkv):
    mask = torch.zeros(1, 5, 5)
    for call in (lambda m: ours(*qkv, m).sum(), lambda m: vmap(lambda one: ours(*qkv, one))(m).sum()):
        with pytest.raises(tenon.errors.UnsupportedError, match="no gradients of a mask with torch.func"):
            grad(call)(mask)
