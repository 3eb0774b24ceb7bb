"""docs/dispatch.md and docs/attention.md show what the command writes: every session is run again and compared.

    python3 tests/docs/dispatch.py BUILD --write     writes those anew that have changed

A session is a comment with lines for a shell, then what they write. Each begins in an empty folder, which is
its home, with nothing kept yet and the descriptions that ship in `.local/share/tenon/devices/`, where
`make install PREFIX=$HOME/.local` puts them. What belongs to the machine and not to the choice is shown as it was found and not compared: the lines about device, build and libraries, the
versions of libraries, times that were measured or modelled, and the numbers of a test. The sessions speak of OpenBLAS and
of described devices; where either is absent they are skipped.
"""

import json
import os
import platform
import re
import shutil
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import script

PAGES = {"dispatch.md": 3, "attention.md": 2}  # and how many sessions each has at least
SESSION = re.compile(r"(<!-- session\n(.*?)-->\n```\n)(.*?)(```\n)", re.S)

# What differs from machine to machine, and what stands for it. Kernels of libraries that may or may not be
# here are rows of their own, with what is said of them below.
MACHINE = [
    (r"(?m)^ +cpu\.matmul\.(?:mkl|blis|onednn)\S* .*\n(?:^ {6,}.*\n)*", ""),
    (r"(?m)^(device|tenon|libraries) .*(?:\n {10}.*)*", r"\1"),
    (r"(openblas) [0-9.]+", r"\1"),
    (r"(not usable here:)\s+[\w,]+(?:; cpu.isa_mask hides them)?", r"\1"),
    (r" +[0-9.]+ [num]?s +(measured|modelled)", r" T \1"),
    (r"\bin [0-9.]+ [num]?s\b", "in T"),
    (r"-?[0-9]+\.[0-9]+(e[-+][0-9]+)?(?=[,; ]|$)", "N"),
    (r"[0-9.]+(e[-+][0-9]+)?(?= apart)", "N"),
    (r"--seed [0-9]+", "--seed N"),
]


def run_session(lines):
    """What a terminal would show."""
    folder = os.path.realpath(tempfile.mkdtemp(prefix="tenon-"))
    try:
        shutil.copytree(script.source("backends", "described", "devices"),
                        os.path.join(folder, ".local", "share", "tenon", "devices"))
        env = script.environment(HOME=folder, XDG_CACHE_HOME=None, XDG_CONFIG_HOME=None,
                                 TENON_CACHE=None, TENON_CONFIG=None,
                                 PATH=script.build.folder + os.pathsep + os.environ["PATH"])
        shown = ""
        for line in lines.splitlines():
            done = script.run("sh", "-c", line, env=env, cwd=folder, stderr=script.subprocess.STDOUT)
            shown += f"$ {line}\n{done.stdout}"
        return shown.replace(folder, "~")
    finally:
        shutil.rmtree(folder)


def comparable(shown):
    for pattern, instead in MACHINE:
        shown = re.sub(pattern, instead, shown)
    return shown.split()


def written(page):
    def again(match):
        shown = run_session(match[2])
        old = comparable(match[3]) == comparable(shown)
        return match[0] if old else match[1] + shown + match[4]
    return SESSION.sub(again, page)


def has_openblas():
    libraries = json.loads(script.run(script.build.tenon, "libraries", "--json").stdout)["libraries"]
    state = next(row for row in libraries if row["name"] == "openblas")
    return state["available"] == "yes" or bool(state["path"])


class Sessions(script.Case):
    def test_are_what_the_command_writes(self):
        if not has_openblas():
            self.skipTest("OpenBLAS is not here, which the sessions speak of")
        if script.build.values.get("TENON_DESCRIBED") != "ON":
            self.skipTest("this build has no described platform")
        if platform.machine() != "x86_64":
            self.skipTest("this is no x86-64, whose kernels the sessions speak of")
        for name, least in PAGES.items():
            page = script.read_text(script.source("docs", name))
            sessions = SESSION.findall(page)
            self.assertGreaterEqual(len(sessions), least)
            self.assertEqual(len(sessions), page.count("<!-- session"), f"docs/{name}: a session is malformed")
            for _, lines, shown, _ in sessions:
                self.assertEqual(comparable(shown), comparable(run_session(lines)),
                                 f"docs/{name}: write it anew with --write\n" + lines)


if __name__ == "__main__":
    if sys.argv[2:] == ["--write"]:
        script.build.read(sys.argv[1])
        for page in PAGES:
            path = script.source("docs", page)
            script.write_text(path, written(script.read_text(path)))
    else:
        script.main()
