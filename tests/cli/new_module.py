"""`tenon new-module`: what it writes, and what it refuses. That it builds, loads and passes is for
conformance/outside."""

import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import script

FILES = ["CMakeLists.txt", "Makefile", "README.md", "conformance", "tenon-acme.c"]
KINDS = {"platform": FILES, "kernel": FILES, "library": sorted([*FILES, "stand-in"])}


class NewModule(script.Case):
    def ask(self, *arguments):
        return script.run(script.build.tenon, "new-module", *arguments, cwd=self.folder)

    def refuse(self, *arguments):
        before = sorted(os.listdir(self.folder))
        done = self.ask(*arguments)
        self.assertEqual((done.returncode, done.stdout), (2, ""), arguments)
        self.assertRegex(done.stderr, r"^tenon[^\n]*\n$")
        self.assertEqual(sorted(os.listdir(self.folder)), before)
        return done.stderr

    def test_writes_a_folder(self):
        for kind, files in KINDS.items():
            with self.subTest(kind):
                os.mkdir(self.place(kind))
                done = self.ask("acme", f"--{kind}", "--dir", kind)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                self.assertEqual(done.stdout,
                                 f"wrote {kind}/tenon-acme; next: cd {kind}/tenon-acme && make check\n")
                folder = self.place(kind, "tenon-acme")
                self.assertEqual(sorted(os.listdir(folder)), files)
                self.check_files(folder)
                self.assertIn('.name = "acme"', script.read_text(folder, "tenon-acme.c"))

    def check_files(self, folder):
        for place, _, names in os.walk(folder):
            for name in names:
                text = script.read_text(place, name)
                self.assertNotRegex(text, r"@[A-Z]+@", name)
                self.assertTrue(text.endswith("\n"))

    def test_the_name_may_come_last_and_the_folder_lie_elsewhere(self):
        os.mkdir(self.place("there"))
        done = self.ask("--dir", "there", "--platform", "acme")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(sorted(os.listdir(self.place("there", "tenon-acme"))), FILES)

    def test_as_a_document(self):
        for kind in KINDS:
            name = "acme-" + kind
            document = json.loads(self.ask(name, f"--{kind}", "--json").stdout)
            self.assertEqual((document["folder"], document["kind"]), ("tenon-" + name, kind))
            written = [os.path.relpath(os.path.join(place, file), self.place("tenon-" + name))
                       for place, _, files in os.walk(self.place("tenon-" + name)) for file in files]
            self.assertEqual(sorted(document["files"]), sorted(written))

    def test_never_overwrites(self):
        os.mkdir(self.place("tenon-acme"))
        for kind in KINDS:
            self.assertIn("already-exists: tenon-acme exists, and nothing is overwritten; choose another name "
                          "or --dir", self.refuse("acme", f"--{kind}"))
        self.assertEqual(os.listdir(self.place("tenon-acme")), [])

    def test_a_folder_that_is_not_there(self):
        self.assertIn("nowhere/tenon-acme: No such file",
                      self.refuse("acme", "--platform", "--dir", "nowhere"))

    def test_illegal_names(self):
        for name, legal in (("Acme", "acme"), ("my board!", "my-board"), ("_x", "x"),
                            ("x" * 49, "x" * 48), ("Größe", "gr-e")):
            for kind in KINDS:
                error = self.refuse(name, f"--{kind}")
                self.assertIn("a module name has 1 to 48 characters of a-z", error)
                self.assertIn(f"did you mean {legal}?", error)
        self.assertNotIn("did you mean", self.refuse("!!!", "--platform"))
        self.assertIn('got ""', self.refuse("", "--platform"))

    def test_a_path_as_the_name(self):
        self.assertIn('expected a name, got the path "a/b"; did you mean b --kernel --dir a?',
                      self.refuse("a/b", "--kernel"))
        self.assertIn('the path "../Up"; did you mean up --library --dir ..?',
                      self.refuse("../Up", "--library"))
        self.assertNotIn("did you mean", self.refuse("a/", "--kernel"))

    def test_names_that_tenon_uses(self):
        for name in ("cpu", "cuda", "described", "ref", "best", "out-of-tree"):
            self.assertIn(f'"{name}" is reserved by Tenon; did you mean my-{name}?',
                          self.refuse(name, "--kernel"))
        self.assertIn("the folder is called tenon-NAME already; did you mean acme?",
                      self.refuse("tenon-acme", "--kernel"))

    def test_keywords(self):
        for name in ("int", "static", "class"):
            self.assertIn(f'"{name}" is a keyword of C or C++', self.refuse(name, "--kernel"))

    def test_libraries_that_there_are(self):
        self.assertIn('module cpu already offers the library "openblas"; did you mean my-openblas?',
                      self.refuse("openblas", "--library"))
        done = self.ask("openblas", "--kernel")  # a kernel's name does not clash with a library
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_kinds(self):
        self.assertIn('expected one kind of module for "acme", got 0; use --platform, --kernel or --library',
                      self.refuse("acme"))
        self.assertIn("got 2", self.refuse("acme", "--kernel", "--library"))

    def test_how_many_names(self):
        self.assertIn("expected a name: tenon new-module NAME", self.refuse("--platform"))
        self.assertIn('expected at most 1 word, got also "b"', self.refuse("a", "b", "--platform"))


if __name__ == "__main__":
    script.main()
