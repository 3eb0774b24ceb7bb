"""Attention inside torch.func's transformations and PyTorch's forward mode: right, or refused with the reason."""
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not here")
import torch.autograd.forward_ad as forward  # noqa: E402
from torch.func import hessian, jacfwd, jvp, vmap  # noqa: E402
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


def test_forward_transformations_are_refused(qkv):
    q, k, v = qkv
    along = torch.randn_like(q)

    def by_query(a):
        return ours(a, k, v)

    calls = [lambda: jvp(by_query, (q,), (along,)), lambda: jacfwd(by_query)(q),
             lambda: hessian(lambda a: by_query(a).sum())(q),
             lambda: vmap(lambda a: jvp(lambda b: ours(b, a, a), (a,), (a,))[1])(q),
             lambda: jvp(vmap(lambda a: ours(a, a, a)), (q,), (along,)),
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
    out, tangent = jvp(lambda a: ours(q, k, v) * a, (q,), (torch.ones_like(q),))
    torch.testing.assert_close(tangent, theirs(q, k, v))
    torch.testing.assert_close(out, theirs(q, k, v) * q)
