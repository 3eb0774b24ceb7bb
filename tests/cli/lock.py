"""tenon lock and tenon warm: selections written down, held against this machine and others, compared; and
problems prepared ahead, those of a list or of a lock."""

import hashlib
import json
import os
import re
import stat
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
                         [("written", p + "@cpu:0", self.chosen(p)) for p in (MATMUL, SOFTMAX)])
        text = self.text("lock", "write", path, MATMUL, SOFTMAX, MATMUL + "@cpu")
        self.assertIn(f"  written      {SOFTMAX}@cpu:0: {self.chosen(SOFTMAX)}\n", text)
        self.assertIn(f"2 problems written to {path}", text)

    def test_says_what_is_untested(self):
        path = self.place("a.lock")
        write = ("lock", "write", path, SOFTMAX, SOFTMAX + "@cpu", "--set", "admission=always")
        chosen = self.document("explain", SOFTMAX, "--set", "admission=always")["chosen"]
        told = f"{SOFTMAX}@cpu:0: {chosen}"
        self.assertIn(f"  written      {told}, untested\n", self.text(*write))
        self.assertIn(f"1 problem written to {path}; 1 untested: ", " ".join(self.text(*write).split()))
        (row,) = self.document(*write)["rows"]
        self.assertEqual((row["locked"], row["text"]), (chosen, told + ", untested"))
        self.tenon("warm", path, "--set", "admission=always")
        self.assertIn(f"  written      {told}\n1 problem written to {path}\n", self.text(*write))

    def test_who_may_read_it_is_up_to_the_umask(self):
        """A lock is made to be shared."""
        for mask, mode in (("022", 0o644), ("027", 0o640)):
            path = self.place("a" + mask)
            script.run("sh", "-c", f'umask {mask}; exec "$0" "$@"', script.build.tenon, "lock",
                       "write", path, SOFTMAX)
            self.assertEqual(os.stat(path).st_mode & 0o777, mode)

    def test_no_folder_is_made(self):
        said = self.refuse("lock", "write", self.place("none", "a.lock"), SOFTMAX)
        self.assertIn(f"{self.place('none', 'a.lock')}: No such file or directory", said)
        self.assertEqual(os.listdir(self.folder), ["cache"] if os.path.exists(self.place("cache"))
                         else [])

    def test_what_is_no_file_is_written_into(self):
        path = self.place("pipe")
        os.mkfifo(path)
        reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        self.tenon("lock", "write", path, SOFTMAX)
        self.assertTrue(os.read(reader, 65536).startswith(b"checksum = sha256:"))
        os.close(reader)
        self.assertTrue(stat.S_ISFIFO(os.stat(path).st_mode))
        self.assertEqual([name for name in os.listdir(self.folder) if name != "cache"], ["pipe"])
        text = self.tenon("lock", "write", "/dev/stdout", SOFTMAX).stdout
        self.assertTrue(text.startswith("checksum = sha256:"))

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

    def test_the_lock_is_followed_at_every_alignment(self):
        path = self.lock("a.lock", MATMUL, TENON_RULES="require:cpu.matmul.ref")
        self.assertNotEqual(self.chosen(MATMUL), "cpu.matmul.ref")
        for align in ("16;16;16", "64;64;64", "4;32;8", "1;1;1"):
            self.assertEqual(self.chosen(f"{MATMUL},align={align}", TENON_LOCK=path), "cpu.matmul.ref", align)

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

    def alter(self, path, old, new):
        """Changes a lock, and signs it anew."""
        text = script.read_text(path).split("\n", 1)[1]
        self.assertIn(old, text)
        text = text.replace(old, new)
        digest = hashlib.sha256(text.encode()).hexdigest()
        script.write_text(path, f"checksum = sha256:{digest}\n{text}")

    def test_another_lock_in_use_does_not_count(self):
        """What would be taken without the lock is told, not what another one permits."""
        path = self.lock("a.lock", SOFTMAX)
        slow = self.lock("slow.lock", SOFTMAX, TENON_RULES="require:cpu.softmax.ref")
        document = self.document("lock", "check", path, TENON_LOCK=slow)
        self.assertEqual(self.kinds(document), ["same"])
        document = self.document("lock", "check", slow, code=4, TENON_LOCK=slow)
        self.assertEqual(self.kinds(document), ["kernel"])
        self.assertIn(f"without the lock, {self.chosen(SOFTMAX)} would be chosen",
                      document["rows"][0]["text"])

    def test_other_numerics_are_another_version(self):
        path, same = self.lock("a.lock", SOFTMAX), self.lock("b.lock", SOFTMAX)
        line = re.search(r"numerics = .*", script.read_text(path)).group()
        self.alter(path, line, "numerics = cross-device")
        document = self.document("lock", "check", path, code=4)
        self.assertEqual(self.kinds(document), ["version"])
        self.assertIn(f"declares cross-device in the lock, {line.split(' = ')[1]} here",
                      document["rows"][0]["text"])
        self.assertIn("declares", self.document("lock", "diff", path, same, code=1)["rows"][0]["text"])
        self.tenon("explain", SOFTMAX, code=4, TENON_LOCK=path)

    def test_a_version_that_the_lock_does_not_know(self):
        """Written for a device that is only described."""
        if not script.build.values.get("TENON_DESCRIBED") == "ON":
            self.skipTest("this build has no described platform")
        described = script.source("backends", "described", "devices", "arm-server.device")
        path = self.place("arm.lock")
        self.tenon("lock", "write", path, MATMUL + "@arm-server", f"--device-file={described}", "--set",
                   "matmul.library=prefer:openblas")
        done = script.run(script.build.tenon, "lock", "check", path, "--device", "cpu:0")
        self.assertNotIn("version -1", done.stdout)

    def test_a_format_of_another_tenon(self):
        path = self.lock("a.lock", SOFTMAX)
        self.alter(path, "format = 1", "format = 2")
        self.assertIn("format", self.refuse("lock", "check", path, code=3))

    def test_wrong_use(self):
        self.assertIn("tenon lock: expected ACTION, got nothing", self.refuse("lock"))
        said = self.refuse("lock", "wriet", "x")
        self.assertIn("expected write, check or diff; did you mean write?", said)
        self.assertIn('lock write: expected FILE PROBLEM..., got "x": tenon lock write FILE PROBLEM...', self.refuse("lock", "write", "x"))
        self.assertIn("lock check: expected FILE, got nothing: tenon lock check FILE", self.refuse("lock", "check"))
        self.assertIn('lock check: expected FILE, got "a" and 1 more', self.refuse("lock", "check", "a", "b"))
        self.assertIn('lock diff: expected FILE FILE, got "a"', self.refuse("lock", "diff", "a"))
        self.assertIn("--strict is only for write", self.refuse("lock", "check", "a", "--strict"))
        self.assertIn("--device is only for check", self.refuse("lock", "diff", "a", "b", "--device=x"))
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
        self.assertRegex(self.text("warm", path), r"\n2 of 2 problems prepared in [\d.]+ [num]?s\n")

    def test_goes_on_after_one_that_fails(self):
        path = self.write(f"nonsense\n{SOFTMAX}\n")
        document = self.document("warm", path, code=1)
        self.assertEqual((document["prepared"], document["failed"]), (1, 1))
        self.assertEqual([row["status"] for row in document["results"]], ["invalid-argument", "ok"])
        self.assertIn("nonsense", document["results"][0]["message"])
        text = self.text("warm", path, code=1)
        self.assertRegex(text, r"(?m)^  failed    line 1: invalid-argument: ")
        self.assertEqual([row["line"] for row in document["results"]], [1, 2])
        self.assertIn("1 of 2 problems prepared", text)

    def test_a_lock_is_followed(self):
        path = self.lock("slow.lock", SOFTMAX, TENON_RULES="require:cpu.softmax.ref")
        document = self.document("warm", path)
        self.assertIs(document["lock"], True)
        self.assertEqual([row["kernel"] for row in document["results"]], ["cpu.softmax.ref"])
        document = self.document("warm", path, "--set", "rules=forbid:cpu.softmax.ref", code=1)
        self.assertEqual([row["status"] for row in document["results"]], ["refused"])

    def test_a_line_is_a_line(self):
        """However long it is, and whatever stands before the first."""
        long = "#" + "x" * 4094
        for text, problems in ((f"{long}{SOFTMAX}\n", 0), (f"{SOFTMAX}{long}\n", 1),
                               (f"\ufeff{SOFTMAX}\n", 1), (f"\ufeff# x\r\n{SOFTMAX}", 1)):
            document = self.document("warm", self.write(text))
            self.assertEqual((document["prepared"], document["failed"]), (problems, 0), text[-40:])
        document = self.document("warm", self.write("x" * 1000000 + "\n" + SOFTMAX), code=1)
        self.assertEqual((document["prepared"], document["failed"]), (1, 1))
        document = self.document("warm", self.write(f"{SOFTMAX}\0more\n"), code=1)
        self.assertIn("a zero byte", document["results"][0]["message"])

    def test_a_list_without_end(self):
        self.assertIn("/dev/zero", self.refuse("warm", "/dev/zero"))

    def test_a_list_from_a_pipe(self):
        done = script.run("sh", "-c", f'echo {SOFTMAX} | "$0" warm /dev/stdin', script.build.tenon)
        self.assertIn("1 of 1 problem prepared", done.stdout)

    def test_says_what_is_kept(self):
        path = self.write(SOFTMAX + "\n")
        document = self.document("warm", path)
        self.assertEqual((document["due"], document["kept"], document["reason"]), (0, 0, ""))
        self.assertIsNone(document["results"][0]["kept"])
        self.assertIn("\nnothing to store: no kernel had to be tested, and none was timed, "
                      "because tuning.enabled is false\n", self.text("warm", path))
        text = self.text("warm", path, TENON_TUNING_ENABLED="1")
        self.assertIn(f"stored for later processes: 1 of 1, in {self.place('cache')}",
                      " ".join(text.split()))
        document = self.document("warm", path, TENON_TUNING_ENABLED="1")
        self.assertEqual(document["due"], 0)

    def test_a_damaged_entry_is_written_anew(self):
        """The new entry is as long as the damaged one: that counts as kept all the same."""
        path = self.write(SOFTMAX + "\n")
        tuned = {"TENON_TUNING_ENABLED": "1"}
        self.document("warm", path, **tuned)
        shelves = os.path.join(self.place("cache"), "tuning")
        entry, = (os.path.join(shelf, name) for shelf, _, names in os.walk(shelves) for name in names)
        with open(entry, "r+b") as file:
            file.seek(-1, os.SEEK_END)
            last, = file.read(1)
            file.seek(-1, os.SEEK_END)
            file.write(bytes([last ^ 1]))
        document = self.document("warm", path, **tuned)
        self.assertEqual((document["due"], document["kept"], document["reason"]), (1, 1, ""))
        document = self.document("warm", path, **tuned)
        self.assertEqual(document["due"], 0)

    def test_says_why_nothing_is_kept(self):
        path = self.write(SOFTMAX + "\n")
        os.mkdir(self.place("real"), 0o700)
        os.symlink(self.place("real"), self.place("link"))
        tuned = {"TENON_TUNING_ENABLED": "1"}
        for cache, why in (("", "TENON_CACHE is empty"), (path, "Not a directory"),
                           (self.place("link"), "is a symbolic link")):
            document = self.document("warm", path, code=1, TENON_CACHE=cache, **tuned)
            self.assertEqual((document["due"], document["kept"], document["results"][0]["kept"]),
                             (1, 0, False))
            self.assertIn(why, document["reason"])
            text = " ".join(self.text("warm", path, code=1, TENON_CACHE=cache, **tuned).split())
            self.assertIn("stored for later processes: 0 of 1: ", text)
            self.assertIn(why, text)

    def test_says_when_a_folder_takes_nothing(self):
        """A limit on the size of files does what a full disk does."""
        os.mkdir(self.place("cache"), 0o700)
        path = self.write(SOFTMAX + "\n")
        done = script.run("sh", "-c", 'ulimit -f 0; "$0" warm "$1" | cat; exit 0',
                          script.build.tenon, path,
                          env=script.environment(TENON_CACHE=self.place("cache"), TENON_LOG="warning",
                                                 TENON_TUNING_ENABLED="1"))
        self.assertIn(f"{self.place('cache')} accepts nothing more; TENON_LOG=warning shows why",
                      " ".join(done.stdout.split()))
        self.assertIn("tenon: warning: cache: a tuning is not stored: File too large", done.stderr)

    def test_an_empty_list(self):
        self.assertIn("0 of 0 problems prepared", self.text("warm", self.write("# none\n")))

    def test_wrong_use(self):
        self.assertIn("tenon warm: expected FILE, got nothing", self.refuse("warm"))
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
