"""`tenon new-module`: what it writes, and what it refuses. That it builds, loads and passes is for
conformance/outside."""

import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import script

FILES = ["CMakeLists.txt", "Makefile", "README.md", "conformance", "tenon-acme.c"]


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
        done = self.ask("acme", "--platform")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(done.stdout,
                         "wrote tenon-acme; next: cd tenon-acme && make check\n")
        self.assertEqual(sorted(os.listdir(self.place("tenon-acme"))), FILES)
        self.assertEqual(sorted(os.listdir(self.place("tenon-acme", "conformance"))),
                         ["expected.txt", "unsupported.txt"])
        for folder, _, names in os.walk(self.place("tenon-acme")):
            for name in names:
                text = script.read_text(folder, name)
                self.assertNotRegex(text, r"@[A-Z]+@", name)
                self.assertTrue(text.endswith("\n"))
        self.assertIn('.name = "acme"', script.read_text(self.place("tenon-acme", "tenon-acme.c")))

    def test_the_name_may_come_last_and_the_folder_lie_elsewhere(self):
        os.mkdir(self.place("there"))
        done = self.ask("--dir", "there", "--platform", "acme")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(sorted(os.listdir(self.place("there", "tenon-acme"))), FILES)

    def test_as_a_document(self):
        document = json.loads(self.ask("acme", "--platform", "--json").stdout)
        self.assertEqual(document["folder"], "tenon-acme")
        for name in document["files"]:
            self.assertTrue(os.path.isfile(self.place("tenon-acme", name)), name)

    def test_never_overwrites(self):
        os.mkdir(self.place("tenon-acme"))
        self.assertIn("already-exists: tenon-acme", self.refuse("acme", "--platform"))
        self.assertEqual(os.listdir(self.place("tenon-acme")), [])

    def test_a_folder_that_is_not_there(self):
        self.assertIn("nowhere/tenon-acme: No such file",
                      self.refuse("acme", "--platform", "--dir", "nowhere"))

    def test_illegal_names(self):
        for name, legal in (("Acme", "acme"), ("my board!", "my-board"), ("_x", "x"),
                            ("../up", "up"), ("a/b", "a-b"), ("x" * 49, "x" * 48),
                            ("Größe", "gr-e")):
            self.assertIn(f"did you mean {legal}?", self.refuse(name, "--platform"))
        self.assertNotIn("did you mean", self.refuse("!!!", "--platform"))
        self.assertIn("a module name has 1 to 48 characters of a-z", self.refuse("", "--platform"))

    def test_names_that_tenon_uses(self):
        for name in ("cpu", "cuda", "described", "ref", "best", "out-of-tree"):
            self.assertIn(f"did you mean my-{name}?", self.refuse(name, "--platform"))

    def test_kinds(self):
        self.assertIn('expected the kind of module "acme": use --platform',
                      self.refuse("acme"))
        for kind in ("library", "kernel"):
            self.assertIn(f"--{kind} is not supported yet; use --platform",
                          self.refuse("acme", f"--{kind}"))

    def test_how_many_names(self):
        self.assertIn("expected a name: tenon new-module NAME", self.refuse("--platform"))
        self.assertIn('takes no more than one NAME, found "b"', self.refuse("a", "b", "--platform"))


if __name__ == "__main__":
    script.main()
