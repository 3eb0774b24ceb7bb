"""A platform with one fault at a time: the suite notices each, by the case that faults.h names, and comes
to an end whatever the platform does."""

import json
import os
import re
import signal
import sys
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import script

ROW = re.compile(r'X\((\w+),\s*(?:\\\s*)?"([\w-]+)",\s*(?:\\\s*)?"([\w.-]*)",\s*(?:\\\s*)?"([^"]*)"\)')


def faults():
    """word -> the case that must fail."""
    rows = ROW.findall(script.read_text(script.source("tests", "conformance", "faults.h")))
    return {word: case for _, word, case, _ in rows}


class Faulty(script.Case):
    @staticmethod
    def suite(fault, *options):
        module = os.path.join(
            script.build.folder, "tests", "conformance", "modules", "tenon-faulty.so")
        return script.run(
            script.build.tenon, "conformance", "--module", module, *options,
            env=script.environment(FAULTY=fault))

    @classmethod
    def results(cls, fault, *options):
        """The exit code, and the row of each case."""
        done = cls.suite(fault, "--json", *options)
        if not done.stdout:
            raise AssertionError(f"no document: {done.stderr}")
        platform, = json.loads(done.stdout)["platforms"]
        return done.returncode, {row["case"]: row for row in platform["results"]}


class Faults(Faulty):
    @classmethod
    def setUpClass(cls):
        """Starts what waits for a platform that hangs, and all faults: several at a time, since they mostly wait."""
        cls.listed = {fault: case for fault, case in faults().items() if case}
        cls.pool = ThreadPoolExecutor(8)
        cls.hang = cls.pool.submit(cls.results, "event-never", "--case", "event", "--patience", "1")
        cls.never = cls.pool.submit(cls.suite, "property-hangs", "--patience", "1")
        cls.found = {fault: cls.pool.submit(cls.results, fault, "--case", case, "--patience", "3")
                     for fault, case in cls.listed.items()}
        cls.addClassCleanup(cls.pool.shutdown)

    def test_each_is_noticed(self):
        self.assertGreaterEqual(len(self.listed), 30)
        for fault, case in self.listed.items():
            with self.subTest(fault):
                code, results = self.found[fault].result()
                self.assertEqual((code, results[case]["outcome"]), (1, "fail"), results[case])
                self.assertNotEqual(results[case]["text"], "")

    def test_none_is_seen_where_there_is_none(self):
        cases = sorted(set(self.listed.values()))
        options = [word for case in cases for word in ("--case", case)]
        _, sound = self.results("", "--patience", script.PATIENCE, *options)
        for case in cases:
            self.assertEqual(sound[case]["outcome"], "pass", sound[case])

    def test_a_hang_is_left_behind(self):
        """Three cases that do not end are enough; the rest is not run, and the command ends."""
        code, results = self.hang.result()
        self.assertEqual(code, 1)
        late = [row for row in results.values() if row["text"].startswith("did not finish within 1 s")]
        self.assertEqual(len(late), 3)
        self.assertIn("not run: 3 earlier cases did not finish",
                      [row["text"] for row in results.values()])

    def test_a_crash_names_its_case(self):
        if script.build.sanitizers:
            self.skipTest("a sanitizer reports crashes its own way")
        done = self.suite("crashes", "--case", "copy.large")
        self.assertEqual(done.returncode, -signal.SIGSEGV)
        self.assertIn("tenon conformance: crashed in the case copy.large\n", done.stderr)

    def test_devices_that_are_never_found(self):
        """Before the first case: within the patience, and by name."""
        done = self.never.result()
        self.assertEqual(done.returncode, 1)
        self.assertIn("blocked for 1 s while searching for devices: in an entry, a probe or "
                      "device_properties; on a busy machine, --patience 10 allows more\n", done.stderr)
        if not script.build.sanitizers:
            done = self.suite("property-crashes")
            self.assertEqual(done.returncode, -signal.SIGSEGV)
            self.assertIn("tenon conformance: crashed while searching for devices: in an entry, a probe "
                          "or device_properties\n", done.stderr)

    def test_a_message_says_what_was_expected_and_found(self):
        _, results = self.results("memory-hides", "--case", "device.memory")
        self.assertRegex(results["device.memory"]["text"], r"in_use is 0 while \d+ bytes are allocated")
        _, results = self.results("property-fails", "--case", "properties")
        self.assertEqual(results["properties"]["text"], "faulty:0 does not report its properties: the "
                         "board does not answer")
        _, results = self.results("property-sense", "--case", "properties")
        self.assertIn("impossible values, treated as unknown: multi_processor_count -3",
                      results["properties"]["text"])
        _, results = self.results("copy-away", "--case", "copy.host-device")
        self.assertEqual(results["copy.host-device"]["text"],
                         "tn_memory_copy gave unavailable, expected ok: faulty:0: not today")
        _, results = self.results("copy-flips", "--case", "copy.device-host")
        self.assertRegex(results["copy.device-host"]["text"],
                         r"^destination of the copy: 1 of \d+ bytes are wrong, the first at \d+: "
                         r"0x[0-9a-f]{2}, expected 0x[0-9a-f]{2}$")

    def test_what_is_published_names_no_folder(self):
        path = self.place("result.txt")
        self.suite("", "--case", "device.count", "--out", path)
        text = script.read_text(path)
        self.assertIn('\nfile = "tenon-faulty.so"\n', text)
        self.assertNotIn(script.build.folder, text)

    def test_a_seed_repeats_a_run(self):
        texts = set()
        for _ in range(2):
            _, results = self.results("copy-flips", "--case", "copy.device-host", "--seed", "7")
            texts.add(results["copy.device-host"]["text"])
        self.assertEqual(len(texts), 1)
        _, results = self.results("copy-flips", "--case", "copy.device-host", "--seed", "8")
        self.assertNotIn(results["copy.device-host"]["text"], texts)


class Lists(Faulty):
    """What the lists make of an outcome."""

    def judge(self, fault, case, **lists):
        options = ["--case", case]
        for name, cases in lists.items():
            options += [f"--{name}", script.write_text(self.place(name), "\n".join(cases))]
        code, results = self.results(fault, *options)
        return code, results[case]["outcome"], results[case]["text"]

    def test_unsupported(self):
        case = "stream.priority"
        code, outcome, text = self.judge("priority-refused", case)
        self.assertEqual((code, outcome), (1, "fail"))
        self.assertIn("not in the --unsupported list", text)
        self.assertIn("no priorities here", text)
        code, outcome, text = self.judge("priority-refused", case, unsupported=[f"  {case} # no"])
        self.assertEqual((code, outcome), (0, "unsupported"))
        self.assertIn("no priorities here", text)
        code, outcome, text = self.judge("", case, unsupported=["# why", "", case])
        self.assertEqual((code, outcome), (1, "fail"))
        self.assertIn("passes, but is in the --unsupported list", text)

    def test_expected(self):
        case = "event.elapsed"
        code, outcome, text = self.judge("time-unsigned", case, expected=[case])
        self.assertEqual((code, outcome), (0, "expected-failure"))
        self.assertIn("backwards", text)
        code, outcome, text = self.judge("", case, expected=[case])
        self.assertEqual((code, outcome), (1, "fail"))
        self.assertIn("passes, but is in the --expected list", text)

    def test_a_failure_is_not_unsupported(self):
        code, outcome, _ = self.judge("copy-flat", "copy.2d", unsupported=["copy.2d"])
        self.assertEqual((code, outcome), (1, "fail"))


if __name__ == "__main__":
    script.main()
