"""tenon doctor on one screen: the verdict first, at most 40 lines on any machine and in any terminal, and
--full for everything."""

import fcntl
import json
import os
import pty
import re
import struct
import sys
import termios
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import script

MOST = 40
MACHINES = ["server", "hybrid", "small", "wide", "bare", "crowd", "busy"]
LABELS = ["verdict", "machine", "memory", "budget", "platforms", "devices", "modules", "libraries", "kernels",
          "refused", "tenon"]


def labels(text):
    return re.findall(r"(?m)^(\w+)", text)


class Case(script.Case):
    def made(self, kind):
        program = os.path.join(script.build.folder, "tests", "cli", "page_big")
        return [program, kind, self.place("page.html")]

    def on_terminal(self, columns, *command):
        """What a command writes to a terminal of that many columns."""
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
        env = script.environment(NO_COLOR="1")
        with script.subprocess.Popen(command, stdout=theirs, stderr=script.subprocess.DEVNULL, env=env) as child:
            os.close(theirs)
            parts = []
            while True:
                try:
                    part = os.read(ours, 65536)
                except OSError:  # the terminal's way to say that the other side is closed
                    break
                if not part:
                    break
                parts.append(part)
        os.close(ours)
        self.assertEqual(child.returncode, 0, b"".join(parts))
        return b"".join(parts).decode().replace("\r\n", "\n")


class Screen(Case):
    def check(self, text, columns=100):
        lines = text.splitlines()
        self.assertLessEqual(len(lines), MOST - 1, text)  # the path of a page may follow
        self.assertTrue(text.startswith("verdict: "), text)
        shown = labels(text)
        self.assertEqual(shown, [label for label in LABELS if label in shown], text)
        self.assertTrue({"verdict", "machine", "devices", "tenon"} <= set(shown), text)
        for line in lines[1:]:
            self.assertLessEqual(len(line), columns, line)

    def test_made_up_machines(self):
        for kind in MACHINES:
            for columns in (60, 100):
                with self.subTest(kind=kind, columns=columns):
                    self.check(self.on_terminal(columns, *self.made(kind)), columns)

    def test_this_machine(self):
        self.check(self.run_well(script.build.tenon, "doctor", "--quick"))
        self.check(self.on_terminal(60, script.build.tenon, "doctor", "--quick"), 60)

    def test_with_a_page(self):
        text = self.run_well(script.build.tenon, "doctor", "--quick", "--html", self.place("page.html"))
        self.assertEqual(text.splitlines()[-1], "page: " + self.place("page.html"))

    def test_what_is_broken_has_its_remedy(self):
        text = self.run_well(*self.made("server"))
        self.assertIn("\n  library openblas: it lacks openblas_get_config\n"
                      "    remedy: install another version of it\n\nmachine ", text)

    def test_a_crowd_is_counted(self):
        text = self.run_well(*self.made("crowd"))
        broken = 16 + 21 + 1 + 1  # platforms, modules, a library, a kernel
        self.assertRegex(text, rf"^verdict: {broken} things are broken, and no platform is current; ")
        named = len(re.findall(r"(?m)^  (?:platform|module) \S+: ", text))
        self.assertIn(f"\n  and {broken - named} more: `tenon doctor --full`\n", text)
        self.assertGreaterEqual(named, 2)
        self.assertIn("* platform0:0 to platform0:7: Accelerator, 80 GiB in total\n", text)
        self.assertIn("and 55 more: `tenon devices`", text)
        self.assertRegex(text, r"(?m)^modules +ready: module-0, module-3, .* and \d+ more$")
        self.assertRegex(text, r"(?m)^ +partly in use \(`tenon modules`\): module-0, .* and \d+ more$")
        self.assertRegex(text, r"(?m)^ +absent: platform3, .* and \d+ more$")

    def test_refused_rows_are_summarised(self):
        """How many, by which reason, and the command for details; every kernel is counted once."""
        text = self.run_well(*self.made("hybrid"))
        self.assertRegex(text, r"(?m)^refused +2 of 4, by reason: 2 shape; details: `tenon explain "
                               r"matmul:f32:m=8,n=8,k=30@cpu:0`$")
        self.assertNotIn("k: expected 32", text)

    def test_a_kernel_without_a_time(self):
        text = self.run_well(*self.made("busy"))
        self.assertRegex(text, r"(?m)^  matmul:\S+ +cpu\.matmul\.fast +not timed$")
        self.assertRegex(text, r"(?m)^  norm:\S+ +none +-$")

    def test_only_hardware_is_counted_and_a_setting_is_named(self):
        text = self.run_well(script.build.tenon, "doctor", "--quick", env=script.environment(TENON_CPU_THREADS="1"))
        platforms = json.loads(self.run_well(script.build.tenon, "devices", "--json"))["platforms"]
        count = len(platforms) - ("described" in [platform["name"] for platform in platforms])
        self.assertRegex(text, rf"(?m)^verdict: .*; \d+ of {count} platforms ready, ")
        self.assertRegex(text, r"(?m)^budget +1 thread \(by the setting cpu\.threads\)$")

    def test_libraries_agree_with_the_topology(self):
        """What gave the topology is in use; an OpenMP runtime that no code loaded is not."""
        rows = json.loads(self.run_well(script.build.tenon, "libraries", "--json"))["libraries"]
        openmp = next(row for row in rows if row["name"] == "openmp")
        text = self.run_well(script.build.tenon, "doctor", "--quick")
        used = (re.findall(r"(?m)^libraries +in use: (.*)$", text) or [""])[0]
        if "no OpenMP runtime is loaded" in openmp["reason"]:
            self.assertNotIn("openmp", used)
        document = json.loads(self.run_well(script.build.tenon, "doctor", "--json"))
        state = next(row["available"] for row in document["libraries"] if row["name"] == "hwloc")
        self.assertEqual(state == "yes", document["topology"]["source"].startswith("hwloc "))

    def test_rates_in_the_units_of_people(self):
        """Products and attention by their operations, operators on rows by their bytes."""
        text = self.run_well(*self.made("crowd"))
        rows = dict(re.findall(r"(?m)^  (\w+):\w+:\S+ .* (G(?:FLOP|B)/s)$", text))
        self.assertEqual(rows, {"matmul": "GFLOP/s", "norm": "GB/s", "attention": "GFLOP/s"})

    def test_each_device_has_its_share_of_the_kernels(self):
        text = self.run_well(*self.made("crowd"))
        shown = re.findall(r"(?m)^  \w+:\w+:\S+@([abc]):0 ", text)
        counts = [shown.count(device) for device in "abc"]
        self.assertLessEqual(max(counts) - min(counts), 1)
        self.assertIn(f"\n  and {64 - len(shown)} more problems\n", text)


class Full(Case):
    def test_has_everything(self):
        text = self.run_well(script.build.tenon, "doctor", "--quick", "--full")
        headings = [line for line in text.splitlines() if line and not line.startswith(" ")]
        self.assertTrue(text.startswith("verdict: nothing is broken; "))
        for heading in ("machine", "platforms", "devices", "modules", "searched folders", "libraries"):
            self.assertIn(heading, headings)
        self.assertGreater(len(text.splitlines()), MOST)
        self.assertIn("  budget ", text)


if __name__ == "__main__":
    script.main()
