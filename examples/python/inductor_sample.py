"""A small model compiled by Inductor for a device that came with a module of Tenon's, up to generated code.

    python3 inductor_sample.py MODULE.so [PLATFORM]

MODULE.so is any module that offers a platform, such as build/tests/conformance/modules/tenon-seed-sample.so, whose
platform is "sample". `make build` leaves that one out, as it is of the tests; in a tree that it has configured

    cmake --build build --target conformance_seed-sample

makes it. Without a file of that name this ends with a message that says so, and exit 1. No tensor of the device is needed: the graph is traced with fake ones, and what is printed is
the program that Inductor would run. Triton's driver, which a machine without a GPU lacks, is asked for nothing but a
part of the cache's key, which is replaced.

Measured with PyTorch 2.11 and Triton 3.6, on a machine without a GPU and on one with an H200, which it does not touch:
one fused Triton kernel in the program, written for 80 multiprocessors, as the module says.
"""

import os
import sys

import torch
import torch.utils._triton
from torch._inductor.debug import DebugContext
from torch._inductor.graph import GraphLowering
from torch._inductor.virtualized import V
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx

DEVICE_TYPE = "privateuseone"
SAMPLE = "build/tests/conformance/modules/tenon-seed-sample.so"
USAGE = "usage: inductor_sample.py MODULE.so [PLATFORM]"


def model(x, weight):
    return torch.relu(torch.sin(x) * weight + x.sum(-1, keepdim=True))


def generate(*shapes):
    """The program for inputs of these shapes."""
    with FakeTensorMode() as mode:
        given = [torch.empty(shape, device=DEVICE_TYPE) for shape in shapes]
        graph = GraphLowering(make_fx(model)(*given), shape_env=None)
        with V.set_fake_mode(mode), V.set_graph_handler(graph), V.set_debug_handler(DebugContext()):
            graph.run(*given)
            code = graph.codegen()[0]
    return getattr(code, "value", code)


def main():
    if len(sys.argv) < 2:
        raise SystemExit(USAGE)
    if not os.path.exists(sys.argv[1]):
        raise SystemExit(f"no file {sys.argv[1]}; of a tree that is configured, `cmake --build build --target "
                         f"conformance_seed-sample` makes {SAMPLE}\n{USAGE}")
    module, platform = sys.argv[1], (sys.argv[2:] or ["sample"])[0]
    os.environ["TENON_MODULE_PATH"] = os.path.dirname(os.path.abspath(module))  # before the library is opened
    from tenon import device_interface

    device_interface.register(platform, DEVICE_TYPE)
    torch.utils._triton.triton_hash_with_backend = lambda *_: platform
    print(generate((8, 64), (8, 64)))


if __name__ == "__main__":
    main()
