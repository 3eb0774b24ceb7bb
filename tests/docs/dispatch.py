"""docs/dispatch.md and docs/attention.md show what `tenon explain` writes: every example is run again and
compared.

    python3 tests/docs/dispatch.py BUILD --write     writes the examples anew

What belongs to the machine and not to the choice is left out: the lines about device, build and libraries,
and the versions of libraries. The examples speak of OpenBLAS; where it is absent they are skipped.
"""

import json
import os
import re
import shlex
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import script

PAGES = {"dispatch.md": 3, "attention.md": 1}  # and how many examples each has at least
EXAMPLE = re.compile(r"(<!-- explain: (.*?) -->\n```\n)(.*?)(```\n)", re.S)


def explained(arguments):
    """What the command writes, at the lowest level of instructions, without what is the machine's."""
    text = script.run(script.build.tenon, "explain", *shlex.split(arguments),
                      env=script.environment(TENON_CPU_ISA_MASK="baseline"), cwd=script.source()).stdout
    text = re.sub(r"(?ms)^device .*?^(?=settings)", "", text)
    text = re.sub(r"(openblas) [0-9.]+,", r"\1,", text)
    return f"$ tenon explain {arguments}\n{text}"


def has_openblas():
    libraries = json.loads(script.run(script.build.tenon, "libraries", "--json").stdout)["libraries"]
    state = next(row for row in libraries if row["name"] == "openblas")
    return state["available"] == "yes" or bool(state["path"])


def written(page):
    return EXAMPLE.sub(lambda match: match[1] + explained(match[2]) + match[4], page)


class Examples(script.Case):
    def test_are_what_the_command_writes(self):
        if not has_openblas():
            self.skip("OpenBLAS is not here, which the examples speak of")
        for name, least in PAGES.items():
            page = script.read_text(script.source("docs", name))
            self.assertGreaterEqual(len(EXAMPLE.findall(page)), least)
            self.assertEqual(page, written(page), f"docs/{name}: write it anew with --write")


if __name__ == "__main__":
    if sys.argv[2:] == ["--write"]:
        script.build.read(sys.argv[1])
        for page in PAGES:
            path = script.source("docs", page)
            script.write_text(path, written(script.read_text(path)))
    else:
        script.main()
