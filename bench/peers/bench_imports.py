"""How long a fresh process takes to say which devices there are: Tenon's command and its Python package beside
PyTorch and ONNX Runtime.

    python3 bench/peers/bench_imports.py BUILD

Each operation is a whole process, from its start to its end, with its files in the page cache. A rival that this
Python does not have is lacking.
"""

import importlib.util
import os
import subprocess
import sys

import pairs

ROUNDS = 11
OURS = "import tenon; [d.name for d in tenon.devices()]"
RIVALS = {
    "torch": "import torch; [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]",
    "onnxruntime": "import onnxruntime; onnxruntime.get_available_providers()",
}


def process(*command):
    package = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bindings", "python")
    env = dict(os.environ, PYTHONPATH=package, TENON_LIBRARY=os.path.join(build, "libtenon.so"))
    return lambda: subprocess.run(command, env=env, stdout=subprocess.DEVNULL, check=True) and None


def main():
    for name, code in RIVALS.items():
        rival = process(sys.executable, "-c", code) if importlib.util.find_spec(name) else None
        for ours, side in (("tenon devices", process(os.path.join(build, "tenon"), "devices")),
                           ("import tenon", process(sys.executable, "-c", OURS))):
            pairs.compare(f"{ours}, a whole process", 1e9, side, name, rival, 1, "per s", rounds=ROUNDS)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    build = os.path.abspath(sys.argv[1])
    main()
