"""tenon devices: the table, the choice of a platform, descriptions, and options with values."""

import json
import os
import pty
import re
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import names
import script

VERDICTS = ["ready", "hidden", "broken", "no-module", "no-driver", "absent"]
KINDS = "cpu cuda rocm tpu mps xpu npu opencl out-of-tree".split()
SHOWS = "hardware driver library module choice".split()
WIDTH = 100

DESCRIPTION = """[device big]
platform = cuda
name = {name}
capability = 9.0
memory = 80 GiB
multi_processor_count = 132
"""


def tenon(*arguments, **changes):
    return script.run(script.build.tenon, *arguments, env=script.environment(**changes))


def devices(*arguments, **changes):
    return tenon("devices", *arguments, **changes)


class Case(script.Case):
    def describe(self, file="big.device", name="NVIDIA Big"):
        return script.write_text(self.place(file), DESCRIPTION.format(name=name))

    def document(self, *arguments, code=0, **changes):
        done = devices("--json", *arguments, **changes)
        self.assertEqual((done.returncode, done.stderr), (code, ""))
        return json.loads(done.stdout)

    def text(self, *arguments, code=0, **changes):
        done = devices(*arguments, **changes)
        self.assertEqual((done.returncode, done.stderr), (code, ""))
        return done.stdout


class Table(Case):
    def test_the_processor(self):
        text = self.text(TENON_PLATFORM="cpu")
        self.assertRegex(text, r"(?m)^    id +name +capability +memory +available$")
        row = re.search(r"(?m)^  \* cpu:0  +(\S.*?)  +(-)  +(\S+ [KMGT]iB|unknown)  +\S.*$", text)
        self.assertTrue(row, text)
        facts = text.split(row.group(0))[1].split("\n\n")[0]
        facts = " ".join(facts.split())
        self.assertRegex(facts, r"^\S+, level \S+, \d+ cores?\b")
        self.assertRegex(facts, r"budget \d+ threads? \(by [a-z ]+\)$")
        self.assertRegex(text, r"(?m)^the current platform is cpu: ")

    def test_what_is_not_ready_is_in_one_line(self):
        reports = self.document()["platforms"]
        absent = [f"{p['name']} ({p['verdict']})" for p in reports if p["verdict"] != "ready"]
        line = " ".join(self.text().split("not ready: ")[1].split())
        self.assertEqual(line, ", ".join(absent) + "; --explain shows the evidence")

    def test_an_absent_platform_has_the_remedy_of_its_module(self):
        modules = json.loads(tenon("modules", "--json").stdout)["modules"]
        remedies = {module["name"]: module["remedy"] for module in modules if module["status"] == "unavailable"}
        for platform in self.document()["platforms"]:
            if platform["verdict"] == "absent":
                self.assertEqual(platform["remedy"], remedies.get(platform["module"], ""))

    def test_explain_has_every_piece(self):
        document = self.document()
        text = " ".join(self.text("--explain").split())
        self.assertNotIn("--explain", text)
        for platform in document["platforms"]:
            start = f" {platform['name']} {platform['verdict']} {platform['reason']}"
            self.assertIn(" ".join(start.split()), text)
            self.assertTrue(not platform["remedy"] or f"remedy: {platform['remedy']}" in text)
            for piece in platform["evidence"]:
                word = {True: "yes", False: "no", None: "?"}[piece["holds"]]
                self.assertIn(f"{word} {piece['shows']} {piece['what']}: {piece['found']}", text)

    def test_lines_are_short(self):
        self.describe(name="A" * 60)
        for arguments in ([], ["--explain"], ["--device-file", self.place("big.device")]):
            for line in self.text(*arguments).splitlines():
                longest = max(map(len, line.split()), default=0)
                self.assertTrue(len(line) <= WIDTH or longest > WIDTH // 2, line)

    def test_columns_stand_in_line(self):
        """Also below a name whose bytes are more than its characters."""
        text = self.text("--device-file", self.describe(name="Käse ☃ 9000"))
        heads, *rows = re.findall(r"(?m)^  [ *] (?:id|cpu:|cuda:).*$", text)
        self.assertGreaterEqual(len(rows), 2)
        for row in rows:
            self.assertEqual(len(row), len(heads), text)

    def test_a_name_cannot_write_to_the_terminal(self):
        path = self.place("odd.device")
        with open(path, "wb") as file:
            file.write(DESCRIPTION.format(name="x\u009b31mx").encode())
        done = devices("--device-file", path)
        self.assertRegex(done.stdout + done.stderr, r"^[^\x00-\x09\x0b-\x1f\x7f-\x9f]+$")


class Described(Case):
    def test_is_listed_and_says_where(self):
        path = self.describe()
        text = self.text("--device-file", path)
        self.assertRegex(text, r"(?m)^  [ *] cuda:\d+ +NVIDIA Big .* 9\.0  +80 GiB  +unknown$")
        self.assertIn(f"132 multiprocessors, plans only, described in {path}",
                      " ".join(text.split()))
        self.assertEqual(self.at_rest(text), self.at_rest(self.text(f"--device-file={path}")))

    @staticmethod
    def at_rest(text):
        """Without the processor's free memory, which other programs change between two runs."""
        return re.sub(r"(?m)^(.* cpu:0 .*GiB) +\S+ [KMG]iB$", r"\1", text)

    def test_document(self):
        path = self.describe()
        *found, described = self.document("--device-file", path)["devices"]
        for device in found:
            self.assertEqual((device["described"], device["plans_only"]), (None, False))
        self.assertEqual((described["described"], described["plans_only"]), (path, True))
        self.assertRegex(described["id"], r"^cuda:\d+$")
        self.assertEqual((described["kind"], described["capability"]), ("cuda", "9.0"))
        self.assertEqual(described["memory"]["total"], 80 << 30)
        self.assertIsNone(described["memory"]["available"])
        self.assertNotEqual(described["memory"]["available_origin"], "")
        self.assertEqual(described["numbers"],
                         {"memory": 80 << 30, "multi_processor_count": 132})
        self.assertEqual(described["dtypes"], [])

    def test_several_in_order(self):
        first = self.describe("a.device", "First")
        second = script.write_text(
            self.place("b.device"), "[device other]\nplatform = cuda\nname = Second\n")
        document = self.document("--device-file", second, f"--device-file={first}")
        self.assertEqual([d["name"] for d in document["devices"][-2:]], ["Second", "First"])

    def refuse(self, *arguments):
        done = devices(*arguments)
        self.assertEqual((done.returncode, done.stdout), (2, ""), arguments)
        self.assertRegex(done.stderr, r"^tenon[^\n]*\n$")
        return done.stderr

    def test_a_wrong_one_is_wrong_use(self):
        path = script.write_text(self.place("x"), "[device a]\nplatform = cuda\nmemroy = 3\n")
        self.assertIn(f"{path}:3: ", self.refuse("--device-file", path))
        self.assertIn("memory", self.refuse("--device-file", path))
        self.assertIn(f"{path}:3: ", self.refuse("--json", "--device-file", path))
        self.assertIn("/nowhere/x", self.refuse("--device-file", "/nowhere/x"))
        self.refuse("--device-file", self.folder)
        good = self.describe()
        self.assertIn(f"{path}:3: ", self.refuse("--device-file", good, "--device-file", path))


class Choice(Case):
    def test_a_platform_nobody_knows(self):
        text = self.text(code=3, TENON_PLATFORM="cpuu")
        self.assertIn('no platform is current: TENON_PLATFORM: unknown platform "cpuu"', text)
        self.assertIn("did you mean cpu?", text)
        self.assertRegex(text, r"(?m)^    cpu:0 ")
        document = self.document(code=3, TENON_PLATFORM="cpuu")
        self.assertEqual(document["choice"]["status"], "not-found")
        self.assertFalse(any(x["current"] for x in document["platforms"] + document["devices"]))

    def test_a_platform_that_is_not_ready(self):
        absent = [p["name"] for p in self.document()["platforms"] if p["verdict"] == "absent"]
        if not absent:
            self.skipTest("every platform is ready here")
        document = self.document(code=3, TENON_PLATFORM=absent[0])
        self.assertEqual(document["choice"]["status"], "unavailable")
        self.assertIn(absent[0], document["choice"]["text"])
        done = tenon("doctor", "--quick", TENON_PLATFORM=absent[0])
        self.assertEqual(done.returncode, 3)
        self.assertIn("nothing is broken, but no platform is current", done.stdout)

    def test_a_wish_that_can_be_met(self):
        if script.build.values.get("TENON_DESCRIBED") != "ON":
            self.skipTest("this build has no described devices")
        document = self.document(TENON_PLATFORM="described")
        current = [p["name"] for p in document["platforms"] if p["current"]]
        self.assertEqual((current, document["choice"]["status"]), (["described"], "ok"))
        self.assertNotRegex(self.text(TENON_PLATFORM="described"), r"(?m)^  \* cpu")
        two = script.write_text(self.place("two.device"), "[device]\nplatform = described\n" * 2)
        text = self.text("--device-file", two, TENON_PLATFORM="described")
        self.assertEqual(re.findall(r"(?m)^  ([ *]) (described:\d)", text),
                         [("*", "described:0"), (" ", "described:1")])


class Document(Case):
    def test_words(self):
        header = script.read_text(script.source("include", "tenon", "module", "device.h"))
        numbers = set(re.findall(r'X\(\w+, "(\w+)",', header))
        self.assertIn("warp_size", numbers)
        for device in self.document()["devices"]:
            self.assertIn(device["kind"], KINDS)
            self.assertLessEqual(set(device["numbers"]), numbers)
            self.assertNotIn("?", device["dtypes"])
        for platform in self.document()["platforms"]:
            self.assertIn(platform["verdict"], VERDICTS)
            self.assertIn(platform["kind"], KINDS)
            self.assertNotEqual(platform["reason"], "")
            for piece in platform["evidence"]:
                self.assertIn(piece["shows"], SHOWS)
        page = names.section("JSON")
        self.assertIn("`" + " ".join(VERDICTS) + "`", page)
        self.assertIn("`" + " ".join(KINDS) + "`", page)

    def test_explain_changes_nothing(self):
        first, second = self.document(), self.document("--explain")
        for document in (first, second):  # what differs from one moment to the next
            for device in document["devices"]:
                device["memory"].update(available=0, in_use=0)
        self.assertEqual(first, second)

    def test_one_platform_is_current(self):
        document = self.document()
        current = [p["name"] for p in document["platforms"] if p["current"]]
        self.assertEqual(len(current), 1)
        self.assertEqual(document["choice"]["status"], "ok")
        for device in document["devices"]:
            self.assertEqual(device["current"], device["id"] == f"{current[0]}:0")


class Options(Case):
    def refuse(self, *arguments):
        done = tenon(*arguments)
        self.assertEqual((done.returncode, done.stdout), (2, ""), arguments)
        self.assertRegex(done.stderr, r"^tenon \w+: [^\n]*\n$")
        return done.stderr

    def test_a_value_is_needed(self):
        for arguments in (["--device-file"], ["--device-file="], ["--device-file", "--json"]):
            self.assertIn("tenon devices: --device-file: expected a value, got nothing: --device-file F",
                          self.refuse("devices", *arguments))
        self.assertIn("tenon doctor: --html: expected a value, got nothing", self.refuse("doctor", "--html", "--json"))

    def test_a_flag_takes_none(self):
        self.assertIn('tenon devices: --json: expected no value, got "1"', self.refuse("devices", "--json=1"))

    def test_too_often(self):
        self.assertIn('--html: expected at most 1 value, got also "b"', self.refuse("doctor", "--html=a", "--html=b"))
        many = ["--device-file=x"] * 100
        self.assertIn("--device-file: expected at most 64 values, got also", self.refuse("devices", *many))

    def test_an_unknown_one_is_named_without_its_value(self):
        said = self.refuse("devices", "--device-flie=x")
        self.assertIn('unknown option "--device-flie"', said)
        self.assertIn("did you mean --device-file?", said)


class Surroundings(Case):
    def test_opens_no_library(self):
        """As the loader itself tells it."""
        done = devices(LD_DEBUG="files", TENON_MODULE_PATH=None)
        opened = set(re.findall(r"file=(\S+) \[\d+\];  dynamically loaded", done.stderr))
        if "libtenon" not in done.stderr:
            self.skipTest("the loader does not tell what it opens")
        own = {name for name in opened if os.path.basename(name).startswith("tenon-")}
        drivers = {"libcuda.so.1", "libnvidia-ml.so.1"}  # which a platform's probe asks
        self.assertEqual({n for n in opened - own if os.path.basename(n) not in drivers}, set())
        self.assertNotIn("hwloc", done.stderr)

    def run_on_terminal(self, **changes):
        ours, theirs = pty.openpty()
        process = subprocess.Popen(
            [script.build.tenon, "devices"], stdin=subprocess.DEVNULL, stdout=theirs,
            stderr=subprocess.DEVNULL, env=script.environment(**changes))
        os.close(theirs)
        text = b""
        try:
            while piece := os.read(ours, 4096):
                text += piece
        except OSError:  # how Linux tells that the other side has left
            pass
        os.close(ours)
        self.assertEqual(process.wait(), 0)
        return text.decode()

    def test_colours_are_for_terminals(self):
        self.assertIn("\x1b[", self.run_on_terminal(TERM="xterm", NO_COLOR=None))
        self.assertNotIn("\x1b[", self.run_on_terminal(TERM="xterm", NO_COLOR="1"))
        self.assertNotIn("\x1b[", self.run_on_terminal(TERM="dumb", NO_COLOR=None))
        self.assertNotIn("\x1b[", self.text(TERM="xterm", NO_COLOR=None))


if __name__ == "__main__":
    script.main()
