"""`tenon conformance`: its options, its list of cases, the file it writes, its exit codes. What it finds
is for conformance/."""

import json
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import script


class Conformance(script.Case):
    def ask(self, *arguments, **changes):
        return script.run(script.build.tenon, "conformance", *arguments, cwd=self.folder,
                          env=script.environment(**changes))

    def refuse(self, *arguments, code=2):
        done = self.ask(*arguments)
        self.assertEqual((done.returncode, done.stdout), (code, ""), arguments)
        self.assertRegex(done.stderr, r"^tenon[^\n]*\n$")
        return done.stderr

    def cases(self):
        return re.findall(r"^([a-z0-9.-]+) +\S", self.ask("--list").stdout, re.M)

    def test_the_list(self):
        done = self.ask("--list")
        names = self.cases()
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(len(names), len(done.stdout.splitlines()))
        self.assertEqual(len(names), len(set(names)))
        for name in ("device.count", "current.minus-one", "guard.twice", "stream.wait-event",
                     "event.elapsed.not-ready", "memory.oom-message", "copy.2d", "fill.patterns",
                     "pinned", "capability", "worker.fork", "dlpack.deleter-once", "lost.sticky"):
            self.assertIn(name, names)
        document = json.loads(self.ask("--list", "--json").stdout)
        self.assertEqual([row["name"] for row in document["cases"]], names)
        self.assertEqual(document["platforms"], [])

    def test_only_some(self):
        done = self.ask("--platform", "cpu", "--case", "copy", "--case", "pinned", "--json")
        self.assertEqual(done.returncode, 0)
        platform, = json.loads(done.stdout)["platforms"]
        ran = [row["case"] for row in platform["results"]]
        self.assertEqual(ran, [n for n in self.cases() if n.startswith("copy.") or n == "pinned"])

    def test_what_it_prints(self):
        done = self.ask("--platform", "cpu", "--case", "device.count", "--case", "device.link",
                        "--seed", "5")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(done.stdout, r"^platform cpu, module cpu \S+, seed 5\n  cpu:0 ")
        self.assertRegex(done.stdout, r"(?m)^  device\.count +pass$")
        self.assertRegex(done.stdout,
                         r"(?m)^  device\.link +unavailable\n      needs 2 devices, has 1$")
        self.assertTrue(done.stdout.endswith(
            "\ncpu: 1 passed, 0 failed, 0 unsupported, 0 expected failures, 1 unavailable; "
            "seed 5\n"))

    def test_the_current_platform_without_a_name(self):
        done = self.ask("--case", "device.count")
        self.assertRegex(done.stdout, r"^platform cpu, ")
        done = self.ask("--case", "device.count", TENON_PLATFORM="no-such")
        self.assertEqual((done.returncode, done.stdout), (3, ""))

    def test_the_file(self):
        path = self.place("result.txt")
        done = self.ask("--platform", "cpu", "--case", "copy", "--seed", "9", "--out", path)
        self.assertEqual(done.returncode, 0)
        text = script.read_text(path)
        self.assertRegex(text, r"(?m)^tenon = \"\d+\.\d+\.\d+\"$")
        self.assertRegex(text, r"(?m)^date = \"\d{4}-\d\d-\d\dT\d\d:\d\dZ\"$")
        self.assertIn("\nseed = 9\n", text)
        self.assertIn('\noutcome = "pass"\n', text)
        self.assertIn('\n[module]\nname = "cpu"\n', text)
        self.assertIn("\n[platform cpu]\n", text)
        self.assertIn('\n[cases cpu]\ncopy.host-device = "pass"\n', text)
        self.assertIn('\ncopy.two-devices = "unavailable: needs 2 devices, has 1"\n', text)
        for line in text.splitlines():  # Tenon's text form
            self.assertRegex(line, r'^(#.*|\[[^\]]+\]|[\w.+/@:-]+ = ("([^"\\]|\\.)*"|[\w.]+)|)$')

    def test_a_file_that_cannot_be_written(self):
        done = self.ask("--platform", "cpu", "--case", "device.count", "--out", "nowhere/result")
        self.assertEqual((done.returncode, done.stdout), (2, ""))  # before the first case
        self.assertIn("--out nowhere/result: No such file or directory", done.stderr)

    def test_a_file_of_before_stays_until_there_is_another(self):
        path = script.write_text(self.place("result.txt"), "of before\n")
        self.assertEqual(self.ask("--platform", "nosuch", "--out", path).returncode, 3)
        self.assertEqual(script.read_text(path), "of before\n")
        fresh = self.place("fresh.txt")
        self.assertEqual(self.ask("--platform", "nosuch", "--out", fresh).returncode, 3)
        self.assertFalse(os.path.exists(fresh))

    def test_a_way_to_lose_the_device_that_fails(self):
        for command, words in (("exit 3", "ended with exit code 3"), ("kill -9 $$", "signal 9")):
            done = self.ask("--platform", "cpu", "--case", "lost.sticky", "--lose", command)
            self.assertEqual(done.returncode, 1)
            said = " ".join(done.stdout.split())
            self.assertRegex(said, "--lose: the command .*" + words)
            self.assertIn(": " + command, said)

    def test_lists_that_are_wrong(self):
        script.write_text(self.place("list"), "# one\ncopy.2d\n\ncopy.3d # what?\n")
        for option in ("--unsupported", "--expected"):
            said = self.refuse("--platform", "cpu", option, "list")
            self.assertIn('list:4: unknown case "copy.3d"; did you mean copy.2d?', said)
            self.assertIn("nowhere: No such file", self.refuse(option, "nowhere"))
        self.assertIn('unknown case "cpoy"', self.refuse("--case", "cpoy"))

    def test_numbers_that_are_wrong(self):
        for option in ("--seed", "--patience"):
            for text in ("x", "-1", "1x", "99999999999999999999", "0x10"):
                self.assertIn(f'{option}: expected', self.refuse(option, text))
        self.assertIn("--patience: expected a number from 1 to 3600", self.refuse("--patience", "0"))

    def test_what_excludes_each_other(self):
        self.assertIn("use either --module or --platform, not both",
                      self.refuse("--module", "x.so", "--platform", "cpu"))

    def test_platforms_that_are_not_here(self):
        self.assertIn("nosuch", self.refuse("--platform", "nosuch", code=3))
        self.assertIn("cuda", self.refuse("--platform", "tpu" if os.path.exists(
            "/dev/nvidiactl") else "cuda", code=3).replace("tpu", "cuda"))

    def test_nothing_could_be_tried(self):
        done = self.ask("--platform", "cpu", "--case", "device.link")
        self.assertEqual(done.returncode, 3)

    def test_modules_that_do_not_come_in(self):
        path = script.write_text(self.place("tenon-broken.so"), "no library\n")
        self.assertIn("module broken stopped at found: corrupt: ",
                      self.refuse("--module", path, code=1))
        self.assertIn("tenon-gone.so", self.refuse("--module", self.place("tenon-gone.so"), code=1))


if __name__ == "__main__":
    script.main()
