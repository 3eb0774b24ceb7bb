"""What each upstream name does in Tenon, from evidence: the table tests/data/seed-names.tsv, and the page
docs/upstream-names.md that follows from it.

    python3 tests/seeds/walk.py BUILD --write     writes the page's table anew

Columns of the table: name; seed (the upstream interface); kind; area; `c`, the C symbol or the setting behind the
name; `effect`, the tests (FILE:FUNCTION, below tests/) that show what it changes or reports; `lacks`, what it still
cannot do. No status is written down. It follows from these facts, each of which the walk checks:

    missing     there is no such name, neither in the C headers nor in the Python package
    name only   it can be called or set, and no test shows an effect
    partly      a test shows the effect, but something is lacking: as `lacks` says; or, as the built library says,
                none of Tenon's own modules uses the setting or the library
    works       a test shows the effect

A test counts if it exists, names the symbol or the key, asserts something, and has just passed: the walk runs it. A
suite that this machine cannot run, because PyTorch is not here, must at least have the test.
"""

import ast
import collections
import csv
import functools
import json
import os
import platform
import re
import subprocess
import sys
from concurrent import futures

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import script

COLUMNS = ["name", "seed", "kind", "area", "c", "effect", "lacks"]
STATUSES = ["works", "partly", "name only", "missing"]
PAGE = ("docs", "upstream-names.md")
MARK = "<!-- From here on: tests/seeds/walk.py BUILD --write. -->\n"
SKIPPED = 77  # a suite's exit code when this machine lacks what it needs

# Suites whose tests take their cases from a table in another file.
TABLES = {"unit/settings_readers.c": "unit/settings_plans.c"}
# Libraries that exist for one architecture only; elsewhere no module can use them.
X86_ONLY = ("mkl",)
# Backends of attention that a name asks for, on CUDA as elsewhere.
CUDA_BACKENDS = {"TN_BACKEND_FLASH_ATTN": "FLASH_ATTN", "TN_SETTING_CUDA_FLASH_SDP": "flash",
                 "TN_SETTING_CUDA_MEM_EFFICIENT_SDP": "mem_efficient", "TN_SETTING_CUDA_MATH_SDP": "math",
                 "TN_SETTING_CUDA_CUDNN_SDP": "cudnn"}


def read_table():
    with open(script.source("tests", "data", "seed-names.tsv"), encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    for row in rows:
        assert list(row) == COLUMNS and None not in row.values(), row
    return rows


def tests_of(row):
    """(file, function) of each test in the row's evidence."""
    return [] if row["effect"] == "-" else [tuple(part.split(":")) for part in row["effect"].split(", ")]


class Names:
    """Which names exist: in the headers, and in the Python package."""

    def __init__(self, rows):
        sys.path.append(script.source("bindings", "python", "tenon"))
        import _headers

        include = script.source("include", "tenon")
        self.exports = set(_headers.read(include).functions)
        self.text = "\n".join(script.read_text(folder, file) for folder, _, files in sorted(os.walk(include))
                              for file in sorted(files) if file.endswith(".h"))
        self.interface = script.read_text(script.source("bindings", "python", "tenon", "device_interface.py"))
        self.python = self._find_in_python([row["name"] for row in rows if row["seed"] == "torch.backends"])

    @staticmethod
    def _find_in_python(names):
        program = ("import json, sys\nfrom tenon import backends\nfound = []\n"
                   "for name in json.load(sys.stdin):\n"
                   "    held = backends\n"
                   "    for part in name.split('.'):\n"
                   "        held = getattr(held, part, None)\n"
                   "    found += [name] if held is not None else []\n"
                   "print(json.dumps(found))\n")
        env = script.environment(TENON_LIBRARY=script.build.library,
                                 PYTHONPATH=script.source("bindings", "python"))
        done = subprocess.run([sys.executable, "-B", "-c", program], input=json.dumps(names), env=env, text=True,
                              stdout=subprocess.PIPE, check=True)
        return set(json.loads(done.stdout))

    def has_symbol(self, symbol):
        """Whether C programs can use it: a function must be exported."""
        if symbol.startswith("tn_") and "." not in symbol:
            return symbol in self.exports
        if symbol.startswith("TN_SETTING_"):  # a row of the table, whose macro adds the prefix
            return re.search(r"\bX\(\w+,\s*(\\\s*)?%s," % symbol[len("TN_SETTING_"):], self.text) is not None
        return re.search(r"\b%s\b" % re.escape(symbol.split(".")[-1]), self.text) is not None

    def has(self, row):
        if row["c"] != "-":
            return self.has_symbol(row["c"])
        return row["name"] in self.python or re.search(r"\b%s\b" % re.escape(row["name"]), self.interface) is not None


def body_of(path, function):
    """The text of a test, or None."""
    text = script.read_text(script.source("tests"), path)
    if path.endswith(".py"):
        return next((ast.get_source_segment(text, node) for node in ast.parse(text).body
                     if isinstance(node, ast.FunctionDef) and node.name == function), None)
    found = re.search(r"^static [^;={}]*\b%s\([^;{}]*\)\n\{\n(.*?)^\}" % re.escape(function), text, re.M | re.S)
    return found.group(1) if found else None


def callers_of(path, function):
    """The test itself, or the tests that call it."""
    text = script.read_text(script.source("tests"), path)
    tests = re.findall(r"cmocka_unit_test(?:_setup_teardown)?\((\w+)", text)
    if path.endswith(".py") or function in tests:
        return [function]
    return [test for test in tests if re.search(r"\b%s\(" % function, body_of(path, test) or "")]


def words_for(row):
    """Words of which a test of the name must have one."""
    key = row["c"][len("TN_SETTING_"):].lower() if row["c"].startswith("TN_SETTING_") else None
    # Tenon has one function for the three of PyTorch, and a class for the texts of one of them.
    ours = ["register", "OpOverrides"] if row["name"].startswith("register_") else []
    return [row["c"].split(".")[-1], row["name"], row["name"].split(".")[-1], *([key] if key else []), *ours]


def fault_of_test(row, path, function):
    """What is wrong with one piece of evidence, or None."""
    if not os.path.isfile(script.source("tests", path)):
        return f"no file tests/{path}"
    code = body_of(path, function)
    if code is None:
        return f"no function {function} in tests/{path}"
    if not callers_of(path, function):
        return f"{function} is neither a test nor called by one"
    text = code + (script.read_text(script.source("tests", TABLES[path])) if path in TABLES else "")
    if not any(re.search(r"\b%s\b" % re.escape(word), text) for word in words_for(row)):
        return f"{function} names none of {', '.join(words_for(row))}"
    asserts = r"assert|fail_msg|pytest\.raises" + (r"|\bflip\(\)|show_" if path in TABLES else "")
    return None if re.search(asserts, code) else f"{function} asserts nothing"


@functools.lru_cache(maxsize=None)
def environments():
    """The variables that ctest sets for each suite."""
    done = script.run("ctest", "--test-dir", script.build.folder, "--show-only=json-v1")
    assert done.returncode == 0, done.stderr
    return {test["name"]: dict(pair.split("=", 1) for one in test["properties"] if one["name"] == "ENVIRONMENT"
                               for pair in one["value"]) for test in json.loads(done.stdout)["tests"]}


def run_suite(path, functions):
    """Runs a suite; gives the tests that passed, or None if this machine cannot run it."""
    if path.endswith(".c"):
        folder, name = os.path.split(path[:-len(".c")])
        done = script.run(os.path.join(script.build.folder, "tests", folder, f"test_{folder}_{name}"),
                          env={**os.environ, **environments().get(f"{folder}.{name}", {})})
        return set(re.findall(r"^\[ +OK \] (\w+)", done.stdout + done.stderr, re.M))
    done = script.run(sys.executable, "-B", script.source("tests", "python", "run.py"), script.build.folder,
                      os.path.basename(path), "-rps", "-k", " or ".join(sorted(functions)), env=dict(os.environ))
    if done.returncode == SKIPPED:
        return None
    return {re.sub(r"\[.*", "", test) for test in re.findall(r"^PASSED \S*::(\S+)", done.stdout, re.M)}


def run_tests(rows):
    """What passed of each suite that the evidence names."""
    wanted = collections.defaultdict(set)
    for row in rows:
        for path, function in tests_of(row):
            wanted[path].update(callers_of(path, function))
    with futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = pool.map(lambda item: run_suite(*item), wanted.items())
        return dict(zip(wanted, results))


def faults_of(row, passed):
    """What is wrong with the evidence of a row."""
    for path, function in tests_of(row):
        fault = fault_of_test(row, path, function)
        if not fault and passed[path] is not None and not passed[path] & set(callers_of(path, function)):
            fault = f"tests/{path}: {function} did not pass"
        if fault:
            yield f"{row['name']}: {fault}"


class Modules:
    """What Tenon's own modules use, as the built library says. They need no devices to be loaded."""

    def __init__(self):
        settings = self._run("settings")["settings"]
        self.settings = {"TN_SETTING_" + row["env"][len("TENON_"):]: row for row in settings}
        self.libraries = {row["name"]: row for row in self._run("libraries")["libraries"]}
        self.platforms = {row["name"]: row for row in self._run("devices")["platforms"]}
        h200 = script.source("backends", "described", "devices", "h200.device")
        decision = self._run("explain", "attention:f16:b=1,h=8,l=1024,d=64@h200", "--device-file", h200)
        self.backends = {row["name"] for row in decision["backends"] if row["verdict"] != "refused"}

    @staticmethod
    def _run(*command):
        done = script.run(script.build.tenon, *command, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def _has_module(self, platform_name):
        return platform_name not in self.platforms or self.platforms[platform_name]["module"] is not None

    def why_unused(self, row):
        """Why no module of Tenon uses the setting or the library behind a name; "" if one does."""
        first = row["name"].split(".")[0]
        if first in X86_ONLY and platform.machine() != "x86_64":
            return ""
        unused = self.settings[row["c"]]["unused_because"] if row["c"] in self.settings else None
        if unused:
            return unused
        if row["c"].startswith("tn_library_state.") and "no loaded module" in self.libraries[first]["reason"]:
            return f"no module of Tenon uses {first}"
        served = "rocm" if row["c"] == "tn_is_ck_sdpa_available" else row["name"].partition("PlatformEnum.")[2].lower()
        if not self._has_module(served):
            return f"no module of Tenon serves {served}"
        backend = CUDA_BACKENDS.get(row["c"])
        return f"no kernel on cuda has the name {backend}" if backend and backend not in self.backends else ""


def status_of(row, names, modules):
    """The status, and what is lacking."""
    if not names.has(row):
        return "missing", ""
    if row["effect"] == "-":
        return "name only", ""
    lacks = modules.why_unused(row) or ("" if row["lacks"] == "-" else row["lacks"])
    return ("partly" if lacks else "works"), lacks


def summary_of(found):
    """Markdown: how many names of each area have each status."""
    areas = list(dict.fromkeys(row["area"] for row, _, _ in found))
    counts = collections.Counter((row["area"], status) for row, status, _ in found)
    lines = ["| area | " + " | ".join(STATUSES) + " | names |", "|---|" + "---|" * (len(STATUSES) + 1)]
    for area in areas:
        numbers = [counts[area, status] for status in STATUSES]
        lines.append(f"| {area} | {' | '.join(map(str, numbers))} | {sum(numbers)} |")
    totals = [sum(counts[area, status] for area in areas) for status in STATUSES]
    lines.append(f"| all | {' | '.join(map(str, totals))} | {sum(totals)} |")
    return "\n".join(lines)


def page_of(found):
    """What follows the mark on the page."""
    parts = ["## How many names work?\n", summary_of(found), ""]
    for area in dict.fromkeys(row["area"] for row, _, _ in found):
        parts += [f"## {area}\n", "| name | status | in C | shown by | lacks |", "|---|---|---|---|---|"]
        for row, status, lacks in found:
            if row["area"] == area:
                symbol = "-" if row["c"] == "-" else f"`{row['c']}`"
                tests = "<br>".join(f"`{path}`: {function}" for path, function in tests_of(row)) or "-"
                parts.append(f"| `{row['name']}` | {status} | {symbol} | {tests} | {lacks or '-'} |")
        parts.append("")
    return "\n".join(parts).rstrip("\n") + "\n"


def find_statuses():
    rows = read_table()
    names, modules = Names(rows), Modules()
    return [(row, *status_of(row, names, modules)) for row in rows]


class Walk(script.Case):
    def setUp(self):
        super().setUp()
        if script.build.sanitizers or script.build.values.get("TENON_CUDA") == "OFF":
            self.skipTest("needs a build without sanitizers, with the module cuda")

    def test_names_are_there_once(self):
        names = [row["name"] for row in read_table()]
        self.assertEqual([name for name, count in collections.Counter(names).items() if count > 1], [])

    def test_evidence_exists_and_passes(self):
        rows = read_table()
        passed = run_tests(rows)
        for path in sorted(path for path, result in passed.items() if result is None):
            print(f"tests/{path} cannot run here")
        self.assertEqual([fault for row in rows for fault in faults_of(row, passed)], [])

    def test_symbols_are_declared(self):
        rows = read_table()
        names = Names(rows)
        self.assertEqual([row["name"] for row in rows if row["c"] != "-" and not names.has_symbol(row["c"])], [])

    def test_page_is_the_table(self):
        found = find_statuses()
        print(summary_of(found))
        page = script.read_text(script.source(*PAGE))
        self.assertEqual(page[page.index(MARK) + len(MARK):].lstrip("\n"), page_of(found),
                         "docs/upstream-names.md: write it anew with --write")

    def test_wrong_evidence_is_found(self):
        row = {"name": "cuda.is_built", "c": "tn_library_state.built", "effect": "-"}
        self.assertIn("no file", fault_of_test(row, "unit/nothing.c", "x"))
        self.assertIn("no function", fault_of_test(row, "unit/libraries.c", "no_such_test"))
        self.assertEqual(callers_of("unit/libraries.c", "no_such_test"), [])
        self.assertIn("names none of", fault_of_test(row, "unit/libraries.c", "unknown_names_are_told_the_nearest"))
        self.assertIsNone(fault_of_test(row, "unit/libraries.c", "xnnpack_tells_whether_it_is_enabled"))
        row["effect"] = "unit/libraries.c:xnnpack_tells_whether_it_is_enabled"
        self.assertEqual(list(faults_of(row, {"unit/libraries.c": set()})),
                         ["cuda.is_built: tests/unit/libraries.c: xnnpack_tells_whether_it_is_enabled did not pass"])

    def test_status_follows_from_the_facts(self):
        class There:
            @staticmethod
            def has(row):
                return row["name"] != "gone"

        class Used:
            @staticmethod
            def why_unused(row):
                return "no module" if row["name"] == "unused" else ""

        for name, effect, lacks, status in (("gone", "-", "-", "missing"), ("a", "-", "-", "name only"),
                                            ("a", "x.c:y", "-", "works"), ("a", "x.c:y", "a lot", "partly"),
                                            ("unused", "x.c:y", "-", "partly")):
            self.assertEqual(status_of({"name": name, "effect": effect, "lacks": lacks}, There, Used)[0], status)


if __name__ == "__main__":
    if sys.argv[2:] == ["--write"]:
        script.build.read(sys.argv[1])
        path = script.source(*PAGE)
        text = script.read_text(path)
        script.write_text(path, text[:text.index(MARK)] + MARK + "\n" + page_of(find_statuses()))
    else:
        script.main()
