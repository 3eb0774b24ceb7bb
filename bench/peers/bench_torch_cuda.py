"""What it takes to queue small work on a GPU beside PyTorch: a sum of two tensors, a softmax, a matmul, attention
(by cuDNN in PyTorch, by the kernel that is taken here), and the record of an event; and what cuBLASLt's own call
takes of the matmul.

    python3 bench/peers/bench_torch_cuda.py BUILD

Ours are timed by BUILD/bench/cuda_calls, which Python would be charged to otherwise; what Python itself
costs PyTorch is part of using it. Both are timed until the call returns, 128 at a time, so that no queue is
full, on squares of f32 of side 64; attention is of four heads of bf16, 64 long and wide.
"""

import os
import statistics
import subprocess
import sys
import time

import pairs

try:
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel
except ImportError:
    torch = None

AT_ONCE, TIMES, AIM = 128, 2048, 3


class Calls:
    """The program that calls the library."""

    def __init__(self, folder):
        path = os.path.join(folder, "bench", "cuda_calls")
        self.process = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True)
        self.device = self.process.stdout.readline().strip()

    def seconds(self, operation):
        self.process.stdin.write(f"{operation} {TIMES}\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline()) * TIMES / 1e9

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def seconds_of(call):
    """Of TIMES calls, less the waiting between."""
    taken = 0
    for _ in range(TIMES // AT_ONCE):
        start = time.perf_counter_ns()
        for _ in range(AT_ONCE):
            call()
        taken += time.perf_counter_ns() - start
        torch.cuda.synchronize()
    return taken / 1e9


def rivals():
    """Operation, the rival's name and call, the aim; a call of cuBLASLt itself has none."""
    x, y = (torch.ones(64, 64, device="cuda") for _ in range(2))
    out = torch.empty_like(x)
    q, k, v = (torch.ones(1, 4, 64, 64, device="cuda", dtype=torch.bfloat16) for _ in range(3))
    attend = torch.nn.functional.scaled_dot_product_attention
    event = torch.cuda.Event(enable_timing=True)
    yield "add", "add", lambda: torch.add(x, y, out=out), AIM
    yield "softmax", "softmax", lambda: torch.softmax(x, -1), AIM
    yield "matmul", "matmul", lambda: torch.matmul(x, y, out=out), AIM
    yield "cublasLtMatmul", "matmul", lambda: torch.matmul(x, y, out=out), None
    with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
        yield "attention", "cuDNN attention", lambda: attend(q, k, v), AIM
    yield "record", "event.record", event.record, AIM


def compare(calls, operation, rival_name, rival, aim):
    spread = float("inf")
    for _ in range(pairs.REPEATS):
        taken = pairs.measure(lambda: calls.seconds(operation), lambda: seconds_of(rival))
        spread = pairs.spread_of(taken[0], taken[2])
        if spread <= pairs.WIDEST:
            break
    ratio = statistics.median(b / a for a, b in zip(taken[0], taken[1]))
    us = [statistics.median(side) * 1e6 / TIMES for side in taken]
    verdict = f"  aim ratio >= {aim:g}  {pairs.verdict(ratio, spread, aim)}" if aim else ""
    print(f"{operation:<14} {'ours' if aim else 'itself'} {us[0]:7.2f} us  PyTorch's {rival_name} "
          f"{us[1]:7.2f} us  ratio {ratio:6.2f}  A/A spread {100 * spread:4.1f} %{verdict}", flush=True)


def main():
    if torch is None or not torch.cuda.is_available():
        pairs.compare("small work on a GPU", 0, None, "PyTorch with CUDA, and a GPU", None, AIM)
        return
    calls = Calls(sys.argv[1])
    print(f"{calls.device}; PyTorch {torch.__version__}, Python {sys.version.split()[0]}")
    for row in rivals():
        compare(calls, *row)
    calls.end()


if __name__ == "__main__":
    main()
