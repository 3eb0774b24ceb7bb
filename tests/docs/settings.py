"""The pages about settings: docs/settings.md ends with what `tenon settings list --markdown` writes,
and docs/migrating-from-torch-backends.md has every name of upstream's and every key of ours.

    python3 tests/docs/settings.py BUILD --write     writes the end of docs/settings.md anew
"""

import csv
import json
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import script

MARK = "<!-- From here on: tenon settings list --markdown."


def split_page():
    """What people wrote, to the end of the mark's line, and what follows it."""
    page = script.read_text(script.source("docs", "settings.md"))
    end = page.index("\n", page.index(MARK)) + 2
    return page[:end], page[end:]


def tables():
    """With all of Tenon's modules, which need no devices to be loaded."""
    return script.run(script.build.tenon, "settings", "list", "--markdown").stdout


def comparable(text):
    """Less the rows of libraries for x86-64, whose module has them there only."""
    return [line for line in text.splitlines() if not line.startswith("| `mkl.")]


def keys():
    document = script.run(script.build.tenon, "settings", "--json").stdout
    return [row["key"] for row in json.loads(document)["settings"]]


def upstream():
    path = script.source("tests", "data", "seed-names.tsv")
    with open(path, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    return [row["name"] for row in rows if row["seed"] == "torch.backends"]


class Table(script.Case):
    def test_is_what_the_command_writes(self):
        if script.build.values.get("TENON_CUDA") == "OFF":
            self.skipTest("needs the module cuda")
        self.assertEqual(comparable(split_page()[1]), comparable(tables()),
                         "docs/settings.md: write it anew with --write")
        self.assertGreater(len(tables()), 5000)

    def test_the_words_above_it_name_keys_that_exist(self):
        known = set(keys())
        for key in re.findall(r"`([a-z0-9_]+(?:\.[a-z0-9_]+)+)`", split_page()[0]):
            self.assertIn(key, known)


class Migration(script.Case):
    def missing(self, names):
        """Those that do not stand in `...`, whole; what follows may be a call's or an assignment's."""
        page = script.read_text(script.source("docs", "migrating-from-torch-backends.md"))
        return [name for name in names if not re.search(f"`{re.escape(name)}[`(=]", page)]

    def test_has_every_name_of_upstream(self):
        self.assertGreater(len(upstream()), 70)
        self.assertEqual(self.missing(upstream()), [])

    def test_has_every_key(self):
        self.assertEqual(self.missing(keys()), [])

    def test_would_miss_one(self):
        self.assertEqual(self.missing(["cuda.matmul.allow_tf3", "cudnn.enabled"]),
                         ["cuda.matmul.allow_tf3"])


if __name__ == "__main__":
    if sys.argv[2:] == ["--write"]:
        script.build.read(sys.argv[1])
        script.write_text(script.source("docs", "settings.md"), split_page()[0] + tables())
    else:
        script.main()
