#!/usr/bin/env python3
"""A random campaign against a build, for a given time: what `make attack` runs.

    python3 tests/attack/attack.py BUILD... [--seconds N | --rounds N] [--seed N] [--kinds A,B]
                                   [--device NAME]

Kinds, of which each batch is a process of its own:

    numerics    every kernel of random problems against the reference, under random settings
    arguments   calls of every operator with damaged arguments
    bits        the same bits whatever the threads and the batch
    threads     everything at once from several threads
    forks       forks of a process with busy threads
    texts       damaged problem texts, settings and rules
    files       damaged settings, locks, caches, descriptions and lists; killed writers
    modules     damaged modules
    python      the Python package with NumPy, and with PyTorch where that is installed

A batch fails if it exits with anything but 0, or hangs. Each failure is printed with the command that repeats it. The
last line is "N passed, N failed". A second BUILD, with a sanitizer, takes turns with the first; Python runs on
builds without one. A device other than the CPU has the kinds numerics, threads, texts and python; exit 77 where it
is not here.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import time

FOLDER = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(FOLDER))
import script  # noqa: E402

PROGRAM = ("numerics", "arguments", "bits", "threads", "forks", "texts")
SCRIPTS = {"files": "files.py", "modules": "modules.py", "python": "python_calls.py"}
BATCH_SECONDS = 600  # a batch takes seconds, minutes on a busy machine with a sanitizer
CPU_ONLY = ("forks", "files", "modules", "bits", "arguments")


def find_python():
    """The first Python here that has PyTorch, or else NumPy; None without either."""
    names = [name for name in (os.environ.get("TN_TEST_PYTHON"), sys.executable, "python3", "/usr/bin/python3") if name]
    for package in ("torch", "numpy"):
        for name in names:
            if not subprocess.run([name, "-c", f"import numpy, {package}"], stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL, check=False).returncode:
                return name
    return None


class Campaign:
    def __init__(self, options):
        self.options = options
        self.builds = [self.read_build(path) for path in options.build]
        self.python = find_python()
        self.batches = dict.fromkeys(options.kinds, 0)
        self.failed = []

    @staticmethod
    def read_build(path):
        build = script.Build()
        build.read(path)
        return build

    def has_device(self):
        done = script.run(self.builds[0].tenon, "devices", "--json", env=self.environment(self.builds[0]))
        return self.options.device in [d["id"] for d in json.loads(done.stdout)["devices"]]

    def command(self, kind, build, seed):
        """What runs a batch; None where it cannot be run."""
        if kind in PROGRAM:
            return [os.path.join(build.folder, "tests", "attack", "attack"), kind, str(seed),
                    self.options.device]
        python = self.python if kind == "python" else sys.executable
        if not python or (kind == "python" and build.sanitizers):
            return None
        return [python, os.path.join(FOLDER, SCRIPTS[kind]), build.folder, str(seed), self.options.device]

    def run_batch(self, kind, build, seed):
        command = self.command(kind, build, seed)
        if command is None:
            return
        try:
            done = script.run(*command, env=self.environment(build), timeout=BATCH_SECONDS)
            code, text = done.returncode, done.stdout + done.stderr
        except subprocess.TimeoutExpired as expired:
            code, text = f"hung for {BATCH_SECONDS} s", str(expired.stdout) + str(expired.stderr)
        self.batches[kind] += 1
        if code:
            self.failed.append(kind)
            print(f"FAILED ({code}): {' '.join(command)}\n{text[-2000:]}", flush=True)
        elif self.options.verbose:
            print(done.stdout.strip() or f"{kind} {seed}", flush=True)

    def environment(self, build):
        changes = {"TENON_LIBRARY": build.library if not build.sanitizers else None,
                   "PYTHONPATH": script_path("bindings", "python"), "PYTHONDONTWRITEBYTECODE": "1",
                   "TMPDIR": self.options.scratch}
        if self.options.device == "cpu:0":  # a damaged tensor that claims host memory for a GPU's loses the GPU
            changes["CUDA_VISIBLE_DEVICES"] = ""
        values = script.environment(**changes)
        values.setdefault("TENON_CACHE", os.path.join(self.options.scratch, "cache"))
        return values

    def run(self):
        began = time.monotonic()
        seeds = random.Random(self.options.seed)
        turn = 0
        while True:
            kinds = self.options.kinds
            kind = kinds[turn % len(kinds)]
            build = self.builds[turn // len(kinds) % len(self.builds)]
            if self.options.rounds and turn >= self.options.rounds * len(kinds) * len(self.builds):
                break
            if not self.options.rounds and time.monotonic() - began > self.options.seconds:
                break
            self.run_batch(kind, build, seeds.randrange(1, 2**63))
            turn += 1
        for kind, count in self.batches.items():
            note = "" if count else "; nothing here can run it" if kind == "python" else "; no time"
            print(f"{kind}: {count} batches, {self.failed.count(kind)} failed{note}")


def script_path(*parts):
    return os.path.join(os.path.dirname(os.path.dirname(FOLDER)), *parts)


def read_options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", nargs="+")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--rounds", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kinds", default=",".join([*PROGRAM, *SCRIPTS]))
    parser.add_argument("--device", default="cpu:0")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    options.kinds = [k for k in options.kinds.split(",") if options.device == "cpu:0" or k not in CPU_ONLY]
    unknown = [k for k in options.kinds if k not in PROGRAM and k not in SCRIPTS]
    if unknown or not options.kinds:
        parser.error(f"expected kinds of {', '.join([*PROGRAM, *SCRIPTS])}, got {', '.join(unknown)}")
    options.seed = options.seed or random.SystemRandom().randrange(1, 2**31)
    return options


def main():
    options = read_options()
    print(f"attack: --seed {options.seed}", flush=True)
    with script.tempfile.TemporaryDirectory(prefix="tenon-attack-") as options.scratch:
        campaign = Campaign(options)
        if not campaign.has_device():
            print(f"skipped: attack: {options.device} is not here")
            sys.exit(77)
        campaign.run()
    failed = len(campaign.failed)
    print(f"{sum(campaign.batches.values()) - failed} passed, {failed} failed")
    sys.exit(1 if failed or not sum(campaign.batches.values()) else 0)


if __name__ == "__main__":
    main()
