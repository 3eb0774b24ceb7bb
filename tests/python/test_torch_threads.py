"""Loops of Tenon's on the threads that PyTorch has."""
import pytest

pytest.importorskip("torch", reason="PyTorch is not here")

START = """
import os
import warnings
import torch
import tenon
from tenon.integrations.torch import scaled_dot_product_attention as ours
from tenon._library import lib

warnings.simplefilter("ignore")  # of forking with threads
q = torch.randn(2, 8, 160, 32)


def threads():
    return len(os.listdir("/proc/self/task"))


def is_right():
    wanted = torch.nn.functional.scaled_dot_product_attention(q, q, q)
    return torch.allclose(ours(q, q, q), wanted, atol=1e-5)
"""


def test_they_are_shared(script):
    """The number is PyTorch's, and no other threads are started. In a child that was forked they are Tenon's own."""
    script(START + """
assert (tenon.settings.get("cpu.pool"), tenon.settings.origin("cpu.pool")) == ("openmp", "process")
torch.set_num_threads(5)
torch.mm(torch.ones(512, 512), torch.ones(512, 512))
assert lib.tn_parallel_threads() == 5
assert is_right()
before = threads()
assert is_right() and threads() == before
torch.set_num_threads(2)
assert lib.tn_parallel_threads() == 2 and is_right()
child = os.fork()
if child == 0:
    torch.set_num_threads(1)
    os._exit(0 if is_right() else 1)
assert os.waitpid(child, 0)[1] == 0
assert is_right()
tenon.settings.set("cpu.pool", "own")
tenon.settings.set("cpu.threads", 3)
assert lib.tn_parallel_threads() == 3 and is_right()
""")


def test_a_child_of_one_that_used_pytorch_alone(script):
    """Tenon had run no loop before the fork, and PyTorch had: its threads are not there, and are not waited for."""
    script(START + """
(torch.ones(4000000) + 1).sum()
child = os.fork()
if child == 0:
    ours(q, q, q)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
assert is_right()
""")


@pytest.mark.parametrize("way", ["environment", "set before", "frozen"])
def test_who_chose_is_followed(script, way):
    """Who set something else before has it."""
    before = {"environment": "", "set before": "import tenon; tenon.settings.set('cpu.pool', 'own')",
              "frozen": "import tenon; tenon.settings.freeze()"}[way]
    script(before + START + """
assert tenon.settings.get("cpu.pool") == "own" and is_right()
""", **({"TENON_CPU_POOL": "own"} if way == "environment" else {}))
