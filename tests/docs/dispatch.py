"""docs/dispatch.md shows what `tenon explain` writes: every example is run again and compared.

    python3 tests/docs/dispatch.py BUILD --write     writes the examples anew

What belongs to the machine and not to the choice is put under fixed words: the processor's name and level,
and kernels that this processor has no instructions for.
"""

import os
import re
import shlex
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import script

PAGE = ("docs", "dispatch.md")
EXAMPLE = re.compile(r"(<!-- explain: (.*?) -->\n```\n)(.*?)(```\n)", re.S)


def explained(arguments):
    """What the command writes, at the lowest level of instructions, without what is the machine's."""
    text = script.run(script.build.tenon, "explain", *shlex.split(arguments),
                      env=script.environment(TENON_CPU_ISA_MASK="baseline")).stdout
    text = re.sub(r"(?m)^(\s*device\s+\S+).*$", r"\1  (the processor)", text)
    return f"$ tenon explain {arguments}\n{text}"


def written(page):
    return EXAMPLE.sub(lambda match: match[1] + explained(match[2]) + match[4], page)


class Examples(script.Case):
    def test_are_what_the_command_writes(self):
        page = script.read_text(script.source(*PAGE))
        self.assertGreaterEqual(len(EXAMPLE.findall(page)), 3)
        self.assertEqual(page, written(page), "docs/dispatch.md: write it anew with --write")


if __name__ == "__main__":
    if sys.argv[2:] == ["--write"]:
        script.build.read(sys.argv[1])
        path = script.source(*PAGE)
        script.write_text(path, written(script.read_text(path)))
    else:
        script.main()
