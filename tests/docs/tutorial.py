"""docs/modules.md has a tutorial for a kernel: it is followed word by word, with the installed files and nothing
else of this tree, and each command must print what the page shows. The tables after it must have every field.

    python3 tests/docs/tutorial.py BUILD --write     writes the sessions anew that have changed

A block marked `tutorial file=NAME` is saved as that file. One marked `tutorial edit=NAME` replaces everything between
the includes of the file and its list of kernels. A block that is only marked `tutorial` is a session in a shell. Lines
about the machine, numbers and units are shown as they were found and not compared.
"""

import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import script

PAGE = "modules.md"
BLOCK = re.compile(r"^```(\w*) tutorial(?: (file|edit)=(\S+))?\n(.*?)^```$", re.M | re.S)
LIST = "static const tn_kernel_row *const kernels[]"
MACHINE = [
    (r"(?m)^  cpu:0 .*\n", ""),
    (r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?%?", "N"),
    (r"N (?:[num]?s|[KMGT]?(?:FLOP|B)/s)(?= |$)", "N U"),
    (r" not measurable here", ""),
    (r"(?m) - ", " N "),  # the spread of times that could not be measured
]


def comparable(shown):
    for pattern, instead in MACHINE:
        shown = re.sub(pattern, instead, shown)
    return shown.split()


class Follower:
    """Someone who follows the page in an empty folder."""

    def __init__(self, folder, env):
        self.folder, self.env = folder, env
        self.state = ""  # what a shell keeps from line to line

    def show(self, line):
        """What a terminal shows."""
        done = script.run("sh", "-c", f"{self.state}\n{line}", cwd=self.folder, env=self.env,
                          stderr=script.subprocess.STDOUT)
        if re.match(r"(cd|export) ", line):
            self.state += line + "\n"
        return f"$ {line}\n{done.stdout}".replace(self.folder, "~")

    def follow(self, kind, name, text):
        """Does what a block asks for; returns what it then has to contain."""
        path = os.path.join(self.folder, name or "")
        if kind == "edit":
            old = script.read_text(path)
            head, tail = old.rindex("#include"), old.index(LIST)
            script.write_text(path, old[:old.index("\n", head)] + "\n\n" + text + "\n" + old[tail:])
        elif kind == "file":
            script.write_text(path, text)
        else:
            return "".join(self.show(line[2:]) for line in text.splitlines() if line.startswith("$ "))
        return text


def install(case):
    """Installs the build into a folder of the test; returns the environment of a user who did so."""
    prefix = case.place("prefix")
    case.run_well(script.build.cmake, "--install", script.build.folder, "--prefix", prefix)
    libdir = os.path.join(prefix, script.build.values["CMAKE_INSTALL_LIBDIR"])
    return script.environment(
        PKG_CONFIG_PATH=os.path.join(libdir, "pkgconfig"), PKG_CONFIG_LIBDIR=case.folder,
        PATH=os.path.join(prefix, "bin") + os.pathsep + os.environ["PATH"],
        TENON_CACHE=case.place("cache"), CC=script.build.compiler)


class Tutorial(script.Case):
    def test_is_followed_word_by_word(self):
        if not script.build.is_release:
            self.skipTest("the page builds without the host's sanitizer")
        self.need("pkg-config")
        os.mkdir(self.place("tutorial"))
        follower = Follower(self.place("tutorial"), install(self))
        page = script.read_text(script.source("docs", PAGE))
        kinds = [match[2] for match in BLOCK.finditer(page)]
        self.assertEqual((kinds.count("file"), kinds.count("edit")), (2, 2))
        self.assertGreaterEqual(kinds.count(None), 7)
        for match in BLOCK.finditer(page):
            shown = follower.follow(match[2], match[3], match[4])
            with self.subTest(match[4].splitlines()[0]):
                self.assertEqual(comparable(match[4]), comparable(shown))


class Fields(script.Case):
    """The page has every field of the structs that authors of kernels fill or read."""

    def fields(self, struct):
        text = script.read_text(script.source("include", "tenon", "module", "kernel.h"))
        body = re.search(rf"typedef struct {struct} {{\n(.*?)\n}} {struct};", text, re.S)[1]
        body = re.sub(r"/\*.*?\*/", "", body, flags=re.S)
        names = []
        for field in body.split(";")[:-1]:
            pointer = re.search(r"\(\*(\w+)\)", field)
            names.append(pointer[1] if pointer else re.search(r"(\w+)(?:\[\d+\])?\s*$", field)[1])
        return names

    def test_each_has_a_row(self):
        page = script.read_text(script.source("docs", PAGE))
        for struct, least in (("tn_kernel_row", 24), ("tn_query", 9), ("tn_run", 14), ("tn_refusal", 7)):
            names = self.fields(struct)
            self.assertGreaterEqual(len(names), least, struct)
            table = re.search(rf"(?m)^### `{struct}`.*?(?=^##)", page, re.S)[0]
            found = [name for cell in re.findall(r"(?m)^\| (`.*?) \|", table)
                     for name in re.findall(r"`(\w+)`", cell)]
            self.assertEqual(found, names, struct)


def write():
    class Writer(Tutorial):
        def runTest(self):
            os.mkdir(self.place("tutorial"))
            follower = Follower(self.place("tutorial"), install(self))
            path = script.source("docs", PAGE)

            def again(match):
                shown = follower.follow(match[2], match[3], match[4])
                same = comparable(match[4]) == comparable(shown)
                return match[0] if same else f"```{match[1]} tutorial\n{shown}```"
            script.write_text(path, BLOCK.sub(again, script.read_text(path)))
    result = script.unittest.TextTestRunner().run(Writer())
    sys.exit(not result.wasSuccessful())


if __name__ == "__main__":
    if sys.argv[2:] == ["--write"]:
        script.build.read(sys.argv[1])
        write()
    script.main()
