#!/usr/bin/env python3
"""What the pages say of each other and of the code: links lead somewhere, the rules of docs/modules.md
name suites that exist, status words and versions are the headers' own, the man page is sound."""
import re
import shutil
import subprocess
import sys
from pathlib import Path

source, build = Path(sys.argv[1]), Path(sys.argv[2])
failures = []


def check(condition, text):
    if not condition:
        failures.append(text)


def check_links(path):
    prose = re.sub(r"^```.*?^```", "", path.read_text(), flags=re.M | re.S)  # a C++ lambda looks like a link
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", prose):
        check((path.parent / target).exists(), f"{path.name}: no file {target}")


def check_rules():
    """Every rule names suites that ctest runs, and tests that their sources have."""
    listed = subprocess.run(["ctest", "--test-dir", str(build), "-N"], capture_output=True, text=True)
    suites = set(re.findall(r"Test +#\d+: (\S+)", listed.stdout))
    rules = re.findall(r"^\| (M\d+) \|.*\| ([^|]+) \|$", (source / "docs/modules.md").read_text(), re.M)
    check([r[0] for r in rules] == [f"M{i + 1}" for i in range(len(rules))],
          "modules.md: rules are not numbered in order")
    check(len(rules) >= 14, "modules.md: rules are missing")
    for number, tests in rules:
        check("`" in tests, f"modules.md: {number} names no suite")
        for suite, names in re.findall(r"`([\w.]+)`([^`;]*)", tests):
            check(suite in suites, f"modules.md: {number} names {suite}, which ctest does not run")
            file = source / "tests" / (suite.replace(".", "/") + ".c")
            for name in re.findall(r"\w+", names):
                check(f"cmocka_unit_test({name})" in file.read_text(),
                      f"modules.md: {number} names {name}, which {suite} does not have")


def check_statuses():
    header = (source / "include/tenon/module/abi.h").read_text()
    page = (source / "docs/names.md").read_text()
    rows = re.findall(r'X\((TN_\w+), \d+, "([\w-]+)",\s*\\?\s*"([^"]+)"\)', header)
    check(len(rows) >= 19, "abi.h: the list of statuses was not found")
    for name, word, meaning in rows:
        check(f"| `{word}` | `{name}` | {meaning} |" in page, f"names.md: no row for {name}")


def check_version():
    number = version()
    abi = ".".join(re.findall(r"#define TN_MODULE_ABI_M\w+ (\d+)",
                              (source / "include/tenon/module/module.h").read_text()))
    check(f"## {number}" in (source / "CHANGELOG.md").read_text(), f"CHANGELOG.md: no {number}")
    changes = (source / "docs/abi-changes.md").read_text()
    check(f"| {number} |" in changes and f"| {abi} |" in changes, f"abi-changes.md: no {number} or {abi}")
    check(f"Tenon {number}" in (source / "man/tenon.1.scd").read_text(), f"man page: not of {number}")


def check_benchmarks():
    """Every figure that a benchmark prints has its row, and a ratio below 1 is bold."""
    page = (source / "docs/benchmarks.md").read_text()
    for words in ("`tenon modules`", "opening one module", "empty tasks on 2 threads", "uniform f32 fill",
                  "`tenon devices`", "resident memory", "current platform"):
        check(words in page, f"benchmarks.md: no figure for {words}")
    for table in re.findall(r"(?:^\|.*\n)+", page, re.M):
        header, _, *rows = [line.strip("|").split("|") for line in table.splitlines()]
        for column in [i for i, title in enumerate(header) if title.strip() == "ratio"]:
            for row in rows:
                cell = re.sub(r"A/A.*|\d+ below.*|\*\*[\d.]+\*\*(?: to [\d.]+)?", "", row[column])
                check(not re.search(r"(?<![\d.])0\.\d", cell), f"benchmarks.md: not bold: {'|'.join(row)}")
    check("gcc" in page and "A/A" in page, "benchmarks.md: no compiler or no spread")


def check_doctor():
    """README.md shows a report as it is now: its first line, and no line that the command does not print."""
    sample = (source / "README.md").read_text()
    done = subprocess.run([str(build / "tenon"), "doctor", "--quick"], capture_output=True, text=True)

    def first_words(text):
        return [re.sub(r"\d+", "N", line.replace("devices", "device"))
                for line in text.splitlines() if line.startswith("verdict: ")][:1]
    check(first_words(sample) == first_words(done.stdout), "README.md: the verdict reads otherwise now")
    check(f"tenon {version()}; more: " in sample, "README.md: its report has another end")
    check((source / "docs/doctor.png").stat().st_size < 1 << 20, "doctor.png: more than a megabyte")


def version():
    header = (source / "include/tenon/version.h").read_text()
    return ".".join(re.findall(r"#define TN_VERSION_\w+ (\d+)", header))


def check_example(path):
    """A page starts with an example: code, a command or output, or a sentence "Example: `...`", at most three
    lines below its title."""
    lines = path.read_text().splitlines()
    start = next((i for i, line in enumerate(lines) if re.match(r"```|    \S|Example: `", line)), len(lines))
    words = [line for line in lines[1:start] if line.strip()]
    check(lines[0].startswith("# ") and len(words) <= 3, f"{path.name}: {len(words)} lines before an example")


def check_man():
    if not shutil.which("scdoc"):
        print("scdoc is not here: the man page is not checked")
        return
    with open(source / "man/tenon.1.scd") as page:
        made = subprocess.run(["scdoc"], stdin=page, capture_output=True, text=True)
    check(made.returncode == 0, f"man page: {made.stderr}")
    if shutil.which("mandoc"):
        lint = subprocess.run(["mandoc", "-T", "lint", "-W", "error"], input=made.stdout,
                              capture_output=True, text=True)
        check(lint.returncode == 0, f"man page: {lint.stdout}")
    names = (source / "docs/names.md").read_text()
    for command in re.findall(r"^\| `tenon ([\w-]+)", names, re.M):
        check(f"*tenon {command}*" in (source / "man/tenon.1.scd").read_text(), f"man page: no {command}")


for page in [*source.glob("*.md"), *(source / "docs").rglob("*.md")]:
    check_links(page)
for page in (source / "docs").rglob("*.md"):
    check_example(page)
check_rules()
check_statuses()
check_version()
check_benchmarks()
check_doctor()
check_man()
print("\n".join(f"FAILED {f}" for f in failures) or "the pages agree with each other and the code")
sys.exit(1 if failures else 0)
