"""Gradients of tenon.integrations.torch.einsum, against finite differences and torch.einsum."""
import pytest
import tenon

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from tenon.integrations.torch import einsum  # noqa: E402

CASES = (("ij,jk->ik", (2, 3), (3, 4)), ("ij,jk->ki", (2, 3), (3, 4)), ("i,j->ij", (2,), (3,)), ("ij->", (2, 3)),
         ("ij->ji", (2, 3)), ("ii->i", (3, 3)), ("ii->", (3, 3)), ("iii->i", (2, 2, 2)), ("iij,jk->k", (2, 2, 3), (3, 2)),
         ("jij,k->ik", (3, 2, 3), (2,)), ("ij,jk,kl->il", (2, 3), (3, 2), (2, 2)), ("ij,kl->ik", (2, 3), (2, 2)),
         ("...ij,...jk->...ik", (2, 2, 3), (3, 2)), ("ij,jk->ik", (2, 1), (3, 2)), ("bij,bjk->bik", (1, 2, 3), (2, 3, 2)),
         ("iij,iij->j", (2, 2, 2), (2, 2, 2)), ("ijij->ji", (2, 3, 2, 3)), (",i->i", (), (3,)))


@pytest.mark.parametrize("equation, shapes", [(one[0], one[1:]) for one in CASES])
def test_gradients(equation, shapes):
    torch.manual_seed(3)
    for dtype in (torch.float64, torch.complex128):
        operands = [torch.randn(shape, dtype=dtype, requires_grad=True) for shape in shapes]
        assert torch.autograd.gradcheck(lambda *given: einsum(equation, *given), operands)
        assert torch.autograd.gradgradcheck(lambda *given: einsum(equation, *given), operands)
        ours = torch.autograd.grad(einsum(equation, *operands).abs().sum(), operands)
        theirs = torch.autograd.grad(torch.einsum(equation, *operands).abs().sum(), operands)
        for one, other in zip(ours, theirs):
            assert one.shape == other.shape
            torch.testing.assert_close(one, other)


def test_only_needed_gradients():
    a, b = torch.ones(2, 3, requires_grad=True), torch.ones(3, 4)
    einsum("ij,jk->ik", a, b).sum().backward()
    assert b.grad is None and a.grad.tolist() == [[4.0] * 3] * 2
    assert not einsum("ij,jk->ik", a.detach(), b).requires_grad
    with torch.no_grad():
        assert not einsum("ij,jk->ik", a, b).requires_grad
    assert einsum(a, [0, 1], b, [1, 2], [0, 2], strategy="greedy").requires_grad
    with pytest.raises(tenon.errors.InvalidArgumentError, match="label 'j'"):
        einsum("ij,jk->ik", a, a)


def test_lazily_conjugated_and_negated_tensors():
    """Operands and gradients that PyTorch conjugates or negates when they are read."""
    torch.manual_seed(5)
    x, w = (torch.randn(3, 3, dtype=torch.complex128, requires_grad=True) for _ in range(2))
    c = torch.randn(3, 3, dtype=torch.complex128)
    losses = (lambda f: f("ij,jk->ik", x, w).conj().sum().imag,
              lambda f: (f("ij,jk->ik", x, w).conj() * c).sum().real,
              lambda f: (f("ij,jk->ik", x, w).mH @ c).real.sum(),
              lambda f: f("ij,jk->ik", x.mH, w.conj()).abs().sum(),
              lambda f: f("ij,jk->ik", x.conj().imag, w.conj().imag).sum())
    for loss in losses:
        ours, theirs = (torch.autograd.grad(loss(one), (x, w)) for one in (einsum, torch.einsum))
        for one, other in zip(ours, theirs):
            torch.testing.assert_close(one, other)
    assert torch.autograd.gradgradcheck(lambda *given: einsum("ij,jk->ik", *given).conj().imag, (x, w))
    assert c.conj().imag.is_neg()
    torch.testing.assert_close(einsum("ij,jk->ik", c.conj().imag, c.imag), -(c.imag @ c.imag))
    torch.testing.assert_close(einsum("ij,jk->ik", c.mH, c), c.mH @ c)
    with torch.no_grad():
        torch.testing.assert_close(einsum("ij,jk->ik", x.mH, w.conj()), x.mH @ w.conj())
