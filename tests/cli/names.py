"""docs/names.md, read as the tests need it: the commands and the keys of their JSON documents."""

import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import script


def section(title):
    page = script.read_text(script.source("docs", "names.md"))
    return re.search(rf"^## {title}$(.*?)(?=^## |\Z)", page, re.M | re.S).group(1)


def commands():
    """name -> what follows it on its usage line, as the table of commands has it."""
    rows = re.findall(r"^\| `tenon (\S+) ?([^`]*)`", section("Commands"), re.M)
    return {name: usage.replace("\\|", "|") for name, usage in rows}


def parse_keys(text):
    """`a, b[] {c, d {e}}` as {"a": None, "b": {"c": None, "d": {"e": None}}}."""
    keys, last, stack = {}, None, []
    for token in re.findall(r"[\w-]+|[{}]", text):
        if token == "{":
            stack.append(keys)
            keys[last] = {}
            keys = keys[last]
        elif token == "}":
            keys = stack.pop()
        else:
            keys[token] = None
            last = token
    if stack:
        raise ValueError(f"braces do not match in {text}")
    return keys


def documents():
    """command -> keys of its document, besides those that every one has."""
    found = {}
    for name, text in re.findall(r"^- ([\w-]+): (.*(?:\n  .*)*)", section("JSON"), re.M):
        found[name] = {}
        for other in re.findall(r"lists of `([\w-]+)`", text):
            found[name].update(found[other])
        for key, other in re.findall(r"key `([\w-]+)` of `([\w-]+)`", text):
            found[name][key] = found[other][key]
        text = re.sub(r"lists of `[\w-]+`|key `[\w-]+` of `[\w-]+`", "", text)
        for part in re.findall(r"`([^`]*)`", text):
            found[name].update(parse_keys(part))
    return found


def needs(name, folder):
    """What a command cannot do without, or not soon; files are made in `folder`."""
    problem = "matmul:f32:m=4,n=4,k=4"
    if name == "warm":
        return [script.write_text(os.path.join(folder, "list"), problem + "\n")]
    return {
        "new-module": ["acme", "--platform", "--dir", folder],
        "einsum-path": ["ij,jk,kl->il", "10x20,20x30,30x5"],
        "explain": [problem, "--set", "determinism=run-to-run"],
        "bench": [problem, "--seconds=0.01", "--against=cpu.matmul.ref"],
        "check": [problem, "--all-kernels"],
        "lock": ["write", os.path.join(folder, "x.lock"), problem],
        "doctor": ["--quick"],
    }.get(name, [])
