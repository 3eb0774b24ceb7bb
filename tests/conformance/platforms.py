"""The conformance suite on every platform there is: cpu, described devices, the seed's sample, the ferry,
and a platform that does nothing wrong. What one device cannot show is unavailable; the lists are empty,
save where a case says so."""

import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import script

TWO = """[device pair]
platform = described
memory = 256 MiB
count = 2
"""


class Platforms(script.Case):
    def hold(self, *options, unsupported=(), unavailable, changes=None):
        """Runs the suite; everything passes but what is named."""
        if unsupported:
            path = script.write_text(self.place("unsupported.txt"), "\n".join(unsupported) + "\n")
            options += ("--unsupported", path)
        text = self.run_well(
            script.build.tenon, "conformance", "--json", "--patience", script.PATIENCE, *options,
            env=script.environment(**(changes or {})))
        platform, = json.loads(text)["platforms"]
        results = {row["case"]: row for row in platform["results"]}
        self.assertEqual(platform["failed"] + platform["expected_failures"], 0)
        found = {name for name, row in results.items() if row["outcome"] == "unsupported"}
        self.assertEqual(found, set(unsupported))
        for name, row in results.items():
            if row["outcome"] == "unavailable":
                self.assertIn(row["text"], unavailable, name)
        self.assertGreaterEqual(platform["passed"], 120)
        return platform

    ONE = ("needs 2 devices, has 1", "needs a command that makes the device fail: --lose COMMAND")

    def module(self, name):
        return os.path.join(
            script.build.folder, "tests", "conformance", "modules", f"tenon-{name}.so")

    def test_cpu(self):
        self.hold("--platform", "cpu",
                  unavailable=(*self.ONE, "needs a platform besides the cpu"))

    def test_described(self):
        if script.build.values.get("TENON_DESCRIBED") != "ON":
            self.skipTest("the module described is not built")
        path = script.write_text(self.place("two.device"), TWO)
        self.hold("--platform", "described", "--device-file", path, unavailable=self.ONE[1:])

    def test_seed_sample(self):
        platform = self.hold("--module", self.module("seed-sample"),
                             unsupported=["event.interprocess"], unavailable=self.ONE)
        self.assertEqual([row["id"] for row in platform["devices"]], ["sample:0"])

    def test_without_a_fault(self):
        self.hold("--module", self.module("faulty"), unsupported=["event.interprocess"],
                  unavailable=self.ONE)

    def test_ferry(self):
        """Nothing is unavailable: two devices, and one of them can be killed."""
        lose = f"kill -9 $(cat '{self.folder}/ferry-0.pid')"
        platform = self.hold("--module", self.module("ferry"), "--lose", lose,
                             unsupported=["event.interprocess"], unavailable=(),
                             changes={"FERRY_RUN": self.folder})
        self.assertEqual(platform["unavailable"], 0)

    def test_ferry_without_its_server(self):
        """Absent hardware: exit 3, and the reason."""
        alone = self.place("tenon-ferry.so")
        with open(self.module("ferry"), "rb") as file, open(alone, "wb") as copy:
            copy.write(file.read())
        done = script.run(script.build.tenon, "conformance", "--module", alone)
        self.assertEqual((done.returncode, done.stdout), (3, ""))
        self.assertIn("ferry-server: No such file or directory", done.stderr)


if __name__ == "__main__":
    script.main()
