#!/usr/bin/env python3
"""Walks the names that the seeds of this project have (tests/data/seed-names.tsv).

Each row: name, seed, kind, home, the C symbol (or setting) that stands for it, and the test that
calls it and asserts a value, as FILE:FUNCTION below tests/. A row of a finished home must have both,
and both must be real: the symbol is exported by the library, or is a constant or field that a public
header declares, and the function's own text names it and asserts. Rows of later homes are listed as
open.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "bindings" / "python" / "tenon"))
import _headers

FINISHED = {"attention", "devices", "platforms", "settings"}


def headers():
    files = sorted((ROOT / "include" / "tenon").rglob("*.h"))
    return "\n".join(path.read_text() for path in files)


def body(path, function):
    """The text of a C function, from its name to the brace in the first column."""
    text = (ROOT / "tests" / path).read_text()
    found = re.search(r"^static [^;={}]*\b%s\([^;{}]*\)\n\{\n(.*?)^\}" % re.escape(function), text, re.M | re.S)
    return found.group(1) if found else None


def declared(symbol, text, exports):
    """Whether the symbol is there to be used: a function must also be exported."""
    if symbol.startswith("tn_") and "." not in symbol:
        return symbol in exports
    if symbol.startswith("TN_SETTING_"):  # a row of the table, whose macro puts the prefix on
        return re.search(r"\bX\(\w+,\s*(\\\s*)?%s," % symbol[len("TN_SETTING_"):], text) is not None
    name = symbol.split(".")[-1]
    return re.search(r"\b%s\b" % re.escape(name), text) is not None


def fault_of(row, text, exports):
    """What is wrong with one row of a finished home, or None."""
    name, symbol, test = row["name"], row["c"], row["test"]
    if symbol == "-" or test == "-":
        return f"{name}: no {'symbol' if symbol == '-' else 'test'}"
    if not declared(symbol, text, exports):
        return f"{name}: {symbol} is not declared or not exported"
    path, _, function = test.partition(":")
    if not (ROOT / "tests" / path).is_file():
        return f"{name}: no file tests/{path}"
    code = body(path, function)
    if code is None:
        return f"{name}: no function {function} in tests/{path}"
    word = symbol.split(".")[-1]
    if not re.search(r"\b%s\b" % re.escape(word), code):
        return f"{name}: {function} does not use {word}"
    if "assert_" not in code:
        return f"{name}: {function} asserts nothing"
    text = (ROOT / "tests" / path).read_text()
    if f"cmocka_unit_test({function})" not in text and not re.search(r"^ +%s\(" % function, text, re.M):
        return f"{name}: {function} is neither a test nor called by one"
    return None


def main():
    lines = (ROOT / "tests" / "data" / "seed-names.tsv").read_text().splitlines()
    columns = lines[0].split("\t")
    assert columns == ["name", "seed", "kind", "home", "c", "test"], columns
    rows = [dict(zip(columns, line.split("\t"))) for line in lines[1:]]
    names = [row["name"] for row in rows]
    exports = set(_headers.read(str(ROOT / "include" / "tenon")).functions)
    text = headers()
    faults = [f"{name}: twice" for name in sorted(set(names)) if names.count(name) > 1]
    faults += [f"{row['name']}: {len(row)} columns" for row in rows if len(row) != len(columns)]
    open_rows = {}
    for row in rows:
        if row["home"] in FINISHED:
            fault = fault_of(row, text, exports)
            faults += [fault] if fault else []
        else:
            open_rows.setdefault(row["home"], []).append(row["name"])
    for missing in sorted(FINISHED - {row["home"] for row in rows}):
        faults.append(f"no row has the home {missing}")
    for home, open_names in sorted(open_rows.items()):
        print(f"open: {home}: {len(open_names)}: {', '.join(open_names)}")
    for fault in faults:
        print(f"error: {fault}")
    print(f"{len(rows)} names, {len(rows) - sum(map(len, open_rows.values()))} of finished homes, "
          f"{len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
