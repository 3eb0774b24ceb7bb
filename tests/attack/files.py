"""Damaged files: the command says what is wrong with a file, or reads it; it never crashes, hangs or writes bytes that
are no text. Killed writers leave a cache that can be used.

    python3 tests/attack/files.py BUILD SEED
"""

import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

FOLDER = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(FOLDER))
import script  # noqa: E402

ROUNDS = 8
WRITERS = 6
LIST = "matmul:f32:m=24,n=24,k=24@cpu:0\nsoftmax:f32:shape=4x64@cpu:0\n"
CONFIG = "determinism = run-to-run\nrules = avoid:library:openblas\nworkspace.limit = 64m\n"
TESTED = ("--set", "admission=always")


class Found(Exception):
    pass


class Files:
    def __init__(self, build, dice, folder):
        self.build, self.dice, self.folder = build, dice, folder
        self.env = script.environment(TENON_CACHE=self.place("cache"), TENON_CONFIG=self.place("config"))

    def place(self, *parts):
        return os.path.join(self.folder, *parts)

    def run(self, *arguments, env=None):
        """Runs the command and checks what every run promises."""
        done = subprocess.run([self.build.tenon, *arguments], env=env or self.env, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, timeout=600)
        said = f"tenon {' '.join(arguments)}: exit {done.returncode}\n{done.stderr[-2000:]!r}"
        if done.returncode not in (0, 1, 2, 3, 4):
            raise Found(said)
        if done.returncode and not done.stdout + done.stderr:
            raise Found(f"{said}: no word")
        try:
            (done.stdout + done.stderr).decode("utf-8")
        except UnicodeDecodeError as err:
            raise Found(f"{said}: {err}") from err
        return done

    def run_well(self, *arguments):
        done = self.run(*arguments)
        if done.returncode:
            raise Found(f"tenon {' '.join(arguments)}: exit {done.returncode}\n{done.stderr!r}\n{done.stdout!r}")

    def make(self):
        """A sound set of files."""
        script.write_text(self.place("list"), LIST)
        script.write_text(self.place("config"), CONFIG)
        shutil.copy(script_file("backends", "described", "devices", "h200.device"), self.place("device"))
        self.run_well("warm", self.place("list"), *TESTED)
        self.run_well("lock", "write", self.place("lock"), *LIST.split())

    def files(self):
        found = [self.place(name) for name in ("list", "config", "device", "lock")]
        for folder, _, names in os.walk(self.place("cache")):
            found += [os.path.join(folder, name) for name in names]
        return sorted(path for path in found if os.path.isfile(path))

    def damage(self, path):
        dice = self.dice
        with open(path, "rb") as file:
            data = bytearray(file.read())
        way = dice.randrange(8)
        at = dice.randrange(len(data) + 1)
        if way == 0:
            data = data[:at]
        elif way == 1:
            data[at:at] = dice.randbytes(dice.randrange(1, 40))
        elif way == 2:
            data = bytearray(dice.randbytes(dice.randrange(0, 300)))
        elif way == 3:
            data[at:] = data[at:] * 3
        elif way == 4:
            os.remove(path)
            os.mkdir(path)
            return
        elif way == 5:
            os.remove(path)
            os.symlink(path, path)
            return
        else:
            for _ in range(dice.randrange(1, 6)):
                if data:
                    data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
        with open(path, "wb") as file:
            file.write(data)

    def use(self):
        """Each command that reads one of the files, in a random order."""
        problem = LIST.split()[0]
        locked = dict(self.env, TENON_LOCK=self.place("lock"))
        uses = [lambda: self.run("warm", self.place("list"), *TESTED),
                lambda: self.run("warm", self.place("lock")),
                lambda: self.run("settings"),
                lambda: self.run("explain", problem, *TESTED),
                lambda: self.run("explain", problem, env=locked),
                lambda: self.run("check", problem, env=locked),
                lambda: self.run("lock", "check", self.place("lock")),
                lambda: self.run("devices", "--device-file", self.place("device")),
                lambda: self.run("cache", "list"),
                lambda: self.run("doctor", "--quick", env=locked)]
        self.dice.shuffle(uses)
        for use in uses:
            use()

    def empty(self):
        for name in os.listdir(self.folder):
            path = self.place(name)
            if os.path.isdir(path) and not os.path.islink(path):
                shutil.rmtree(path)
            else:
                os.remove(path)

    def attack_damage(self):
        self.empty()
        self.make()
        for path in self.dice.sample(self.files(), k=min(2, len(self.files()))):
            self.damage(path)
        self.use()

    def attack_writers(self):
        """Writers that are killed at any time; the next one writes and reads everything."""
        self.empty()
        script.write_text(self.place("list"), LIST)
        script.write_text(self.place("config"), "")
        for _ in range(WRITERS):
            writer = subprocess.Popen([self.build.tenon, "warm", self.place("list"), *TESTED], env=self.env,
                                      stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(self.dice.random() * 0.15)
            writer.send_signal(signal.SIGKILL)
            writer.wait()
        self.run_well("warm", self.place("list"), *TESTED)
        self.run_well("cache", "list")
        self.run_well("cache", "clear")


def script_file(*parts):
    return os.path.join(os.path.dirname(os.path.dirname(FOLDER)), *parts)


def main():
    build = script.Build()
    build.read(sys.argv[1])
    dice = random.Random(int(sys.argv[2]))
    with tempfile.TemporaryDirectory(prefix="tenon-files-") as folder:
        files = Files(build, dice, os.path.realpath(folder))
        for turn in range(ROUNDS):
            try:
                files.attack_writers() if turn % 8 == 7 else files.attack_damage()
            except (Found, subprocess.TimeoutExpired) as found:
                sys.exit(f"FOUND by files {sys.argv[2]}, round {turn}: {found}")


if __name__ == "__main__":
    main()
