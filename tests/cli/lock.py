"""tenon lock and tenon warm: selections written down, held against this machine and others, compared; and
problems prepared ahead, those of a list or of a lock."""

import json
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import script

MATMUL = "matmul:f32:m=24,n=20,k=16"
SOFTMAX = "softmax:f32:shape=8x64"


class Case(script.Case):
    def tenon(self, *arguments, code=0, **changes):
        changes.setdefault("TENON_CACHE", self.place("cache"))
        done = script.run(script.build.tenon, *arguments, env=script.environment(**changes))
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def text(self, *arguments, **options):
        done = self.tenon(*arguments, **options)
        self.assertEqual(done.stderr, "")
        return done.stdout

    def document(self, *arguments, **options):
        return json.loads(self.text(*arguments, "--json", **options))

    def refuse(self, *arguments, code=2, **changes):
        done = self.tenon(*arguments, code=code, **changes)
        self.assertEqual(done.stdout, "")
        self.assertRegex(done.stderr, r"^tenon[^\n]*\n$")
        return done.stderr

    def lock(self, name, *problems, **changes):
        path = self.place(name)
        self.tenon("lock", "write", path, *problems, **changes)
        return path

    def chosen(self, problem, **changes):
        return self.document("explain", problem, **changes)["chosen"]

    def kinds(self, document):
        return [row["kind"] for row in document["rows"]]


class Lock(Case):
    def test_writes_what_explain_says(self):
        path = self.place("a.lock")
        document = self.document("lock", "write", path, MATMUL, SOFTMAX)
        self.assertEqual((document["action"], document["file"], document["differences"]),
                         ("write", path, 0))
        self.assertEqual([(r["kind"], r["problem"], r["locked"]) for r in document["rows"]],
                         [("same", p + "@cpu:0", self.chosen(p)) for p in (MATMUL, SOFTMAX)])
        self.assertIn(f"2 problems written to {path}", self.text("lock", "write", path, MATMUL, SOFTMAX))

    def test_check_of_the_same_machine(self):
        path = self.lock("a.lock", MATMUL, SOFTMAX)
        self.assertEqual(self.kinds(self.document("lock", "check", path)), ["same", "same"])
        text = self.text("lock", "check", path)
        self.assertIn(f"  same         {MATMUL}@cpu:0: {self.chosen(MATMUL)}\n", text)
        self.assertTrue(text.endswith("\nno difference\n"))

    def test_check_that_is_not_met(self):
        path = self.lock("a.lock", SOFTMAX)
        rule = f"rules=forbid:{self.chosen(SOFTMAX)}"
        document = self.document("lock", "check", path, "--set", rule, code=4)
        (row,) = document["rows"]
        self.assertEqual((row["kind"], row["locked"]), ("refused", self.chosen(SOFTMAX)))
        self.assertIn(rule.split("=")[1], row["text"])
        self.assertEqual(document["differences"], 1)
        text = " ".join(self.text("lock", "check", path, "--set", rule, code=4).split())
        self.assertIn(row["text"], text)
        self.assertTrue(text.endswith(" 1 difference"))

    def test_a_difference_that_changes_no_kernel(self):
        """It is told, and the lock is met."""
        path = self.lock("a.lock", SOFTMAX)
        document = self.document("lock", "check", path, "--set", "determinism=run-to-run")
        self.assertEqual(self.kinds(document), ["settings"])

    def test_check_on_another_machine(self):
        path = self.lock("a.lock", MATMUL)
        described = script.source("backends", "described", "devices", "tpu-v5e.device")
        document = self.document("lock", "check", path, "--device=tpu-v5e",
                                 f"--device-file={described}", code=4)
        self.assertIn("machine", self.kinds(document))
        self.assertIn("refused", self.kinds(document))
        self.assertIn("no device", self.refuse("lock", "check", path, "--device=nowhere:1"))

    def test_the_lock_is_followed(self):
        slow = self.lock("slow.lock", SOFTMAX, TENON_RULES="require:cpu.softmax.ref")
        self.assertEqual(self.chosen(SOFTMAX, TENON_LOCK=slow), "cpu.softmax.ref")
        document = self.document("lock", "check", slow, code=4)
        self.assertIn("kernel", self.kinds(document))

    def test_strict(self):
        path = self.place("strict.lock")
        self.tenon("lock", "write", path, SOFTMAX, "--strict")
        self.tenon("explain", SOFTMAX, TENON_LOCK=path)
        self.tenon("explain", MATMUL, TENON_LOCK=path, code=4)

    def test_diff(self):
        first, second = self.lock("a.lock", SOFTMAX), self.lock("b.lock", SOFTMAX, MATMUL)
        same = self.lock("c.lock", SOFTMAX)
        self.assertEqual(self.document("lock", "diff", first, same)["differences"], 0)
        document = self.document("lock", "diff", first, second, code=1)
        self.assertIn("second-only", self.kinds(document))
        self.assertIn("first-only", self.kinds(self.document("lock", "diff", second, first, code=1)))

    def test_nothing_is_written_when_one_cannot_be_computed(self):
        path = self.place("a.lock")
        self.refuse("lock", "write", path, SOFTMAX, MATMUL, "--set",
                    "rules=forbid:matmul/platform:cpu", code=4)
        self.assertFalse(os.path.exists(path))

    def test_a_file_that_was_changed(self):
        path = self.lock("a.lock", SOFTMAX)
        script.write_text(path, script.read_text(path).replace("cpu.softmax", "cpu.hardmax"))
        self.assertIn(path, self.refuse("lock", "check", path))
        self.assertIn(path, self.refuse("lock", "diff", path, path))

    def test_wrong_use(self):
        self.assertIn("needs a ACTION", self.refuse("lock").replace("an ACTION", "a ACTION"))
        said = self.refuse("lock", "wriet", "x")
        self.assertIn("there are write, check, diff; did you mean write?", said)
        self.assertIn("write takes FILE PROBLEM...", self.refuse("lock", "write", "x"))
        self.assertIn("check takes FILE", self.refuse("lock", "check"))
        self.assertIn("check takes FILE", self.refuse("lock", "check", "a", "b"))
        self.assertIn("diff takes FILE FILE", self.refuse("lock", "diff", "a"))
        self.assertIn("--strict belongs to write", self.refuse("lock", "check", "a", "--strict"))
        self.assertIn("--device belongs to check", self.refuse("lock", "diff", "a", "b", "--device=x"))
        self.assertIn(self.place("none"), self.refuse("lock", "check", self.place("none")))


class Warm(Case):
    def write(self, text):
        return script.write_text(self.place("list"), text)

    def test_a_list(self):
        path = self.write(f"# what serves\n\n  {MATMUL}  # the first\r\n{SOFTMAX}@cpu")
        document = self.document("warm", path)
        self.assertEqual((document["file"], document["lock"], document["prepared"],
                          document["failed"]), (path, False, 2, 0))
        self.assertEqual([(r["problem"], r["kernel"], r["status"]) for r in document["results"]],
                         [(p + "@cpu:0", self.chosen(p), "ok") for p in (MATMUL, SOFTMAX)])
        self.assertGreaterEqual(document["ms"], sum(row["ms"] for row in document["results"]))
        self.assertRegex(self.text("warm", path), r"\n2 of 2 problems prepared in [\d.]+ [num]?s\n$")

    def test_goes_on_after_one_that_fails(self):
        path = self.write(f"nonsense\n{SOFTMAX}\n")
        document = self.document("warm", path, code=1)
        self.assertEqual((document["prepared"], document["failed"]), (1, 1))
        self.assertEqual([row["status"] for row in document["results"]], ["invalid-argument", "ok"])
        self.assertIn("nonsense", document["results"][0]["message"])
        text = self.text("warm", path, code=1)
        self.assertRegex(text, r"(?m)^  failed    invalid-argument: ")
        self.assertIn("1 of 2 problems prepared", text)

    def test_a_lock_is_followed(self):
        path = self.lock("slow.lock", SOFTMAX, TENON_RULES="require:cpu.softmax.ref")
        document = self.document("warm", path)
        self.assertIs(document["lock"], True)
        self.assertEqual([row["kernel"] for row in document["results"]], ["cpu.softmax.ref"])
        document = self.document("warm", path, "--set", "rules=forbid:cpu.softmax.ref", code=1)
        self.assertEqual([row["status"] for row in document["results"]], ["refused"])

    def test_an_empty_list(self):
        self.assertIn("0 of 0 problems prepared", self.text("warm", self.write("# none\n")))

    def test_wrong_use(self):
        self.assertIn("needs a FILE", self.refuse("warm"))
        self.assertIn("No such file or directory", self.refuse("warm", self.place("none")))
        self.assertIn("Is a directory", self.refuse("warm", self.folder))
        path = self.lock("a.lock", SOFTMAX)
        script.write_text(path, script.read_text(path) + "more = 1\n")
        self.assertIn(path, self.refuse("warm", path))

    def test_times_are_kept_for_later_processes(self):
        """What is timed here is what another process orders by."""
        path = self.write(SOFTMAX + "\n")
        tuned = {"TENON_TUNING_ENABLED": "1"}
        before = self.document("explain", SOFTMAX, **tuned)["candidates"]
        self.tenon("warm", path, **tuned)
        after = self.document("explain", SOFTMAX, **tuned)["candidates"]
        self.assertEqual([row["kernel"] for row in before if row["tuned_us"]], [])
        self.assertNotEqual([row["kernel"] for row in after if row["tuned_us"]], [])
        self.assertIn(" measured ", self.text("explain", SOFTMAX, **tuned))


if __name__ == "__main__":
    script.main()
