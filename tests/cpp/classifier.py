"""The example of an image classifier: built as its Makefile does, it recognises drawings that it was not trained on."""

import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import script

KINDS = ["cross", "disc", "ring", "square", "triangle"]


class Classifier(script.Case):
    def setUp(self):
        super().setUp()
        if script.build.sanitizers:
            self.skipTest("the example's Makefile builds without sanitizers: it cannot link a library that has them")
        compiler = (script.find_programs(os.environ.get("CXX"), "g++", "clang++") or [None])[0]
        if not compiler:
            self.skipTest("no C++ compiler is here")
        self.program = self.place("classifier")
        self.run_well(
            compiler, "-std=c++17", "-O2", "-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Werror",
            "-I" + script.source("include"), script.source("examples", "classifier", "classifier.cc"),
            script.build.library, "-Wl,-rpath," + script.build.folder, "-o", self.program)

    def test_it_recognises_new_drawings(self):
        """Guessing would be right in 20%."""
        text = self.run_well(self.program, "--device", "cpu", "--steps", "200", "--samples", self.folder)
        self.assertGreater(float(re.search(r"recognised ([\d.]+)% of new drawings", text)[1]), 75, text)

    def test_files_and_mistakes(self):
        files = [self.place(kind + ".pgm") for kind in KINDS]
        self.run_well(self.program, "--device", "cpu", "--steps", "0", "--samples", self.folder)
        text = self.run_well(self.program, "--device", "cpu", "--steps", "1", *files)
        self.assertEqual([line.split(": ")[0] for line in text.splitlines()[2:]], files)
        for words, message in [(["--device", "nowhere"], 'no device "nowhere"'), (["--steps"], "usage: "),
                               (["none.pgm"], "none.pgm: cannot be opened"),
                               ([__file__], ": expected a binary PGM file")]:
            done = script.run(self.program, *words)
            self.assertEqual((done.returncode, done.stdout), (1, ""))  # nothing was trained
            self.assertIn(message, done.stderr)


if __name__ == "__main__":
    script.main()
