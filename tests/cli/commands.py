"""The command line: help, wrong use, and that docs/names.md says the same."""

import os
import re
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import names
import script


def tenon(*arguments, **options):
    return script.run(script.build.tenon, *arguments, **options)


def listed():
    """Commands as `tenon --help` has them."""
    return re.findall(r"^  ([a-z-]+) ", tenon("--help").stdout, re.M)


class Help(script.Case):
    def test_lists_every_command(self):
        for word in ("--help", "help"):
            done = tenon(word)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertIn("usage: tenon COMMAND", done.stdout)
            self.assertIn("Exit codes: 0 success", done.stdout)
        self.assertIn("modules", listed())

    def test_every_command_has_its_own(self):
        for name in listed():
            done = tenon(name, "--help")
            self.assertEqual((done.returncode, done.stderr), (0, ""), name)
            usage = re.match(r"usage: tenon (\S+) ?(.*)\n", done.stdout)
            self.assertEqual(usage.group(1), name)
            options = set(re.findall(r"^  (--[a-z-]+) +\S", done.stdout, re.M))
            self.assertLessEqual({"--help", "--set"}, options)
            named = set(re.findall(r"--[a-z-]+", usage.group(2)))
            self.assertEqual(options - {"--help", "--set"}, named, f"{name}: the usage line and the list")

    def test_wins_over_what_comes_after(self):
        self.assertEqual(tenon("modules", "--help", "--nonsense").returncode, 0)

    def test_short_options_and_help_of_a_command(self):
        self.assertEqual(tenon("-h").stdout, tenon("--help").stdout)
        self.assertEqual(tenon("-V").stdout, tenon("version").stdout)
        self.assertEqual(tenon("help", "modules").stdout, tenon("modules", "--help").stdout)
        self.assertEqual(tenon("help", "nothing").returncode, 2)

    def test_version_is_also_an_option(self):
        self.assertEqual(tenon("--version").stdout, tenon("version").stdout)
        self.assertRegex(tenon("version").stdout, r"^tenon \d+\.\d+\.\d+ \(module ABI \d+\.\d+, ")


class Page(script.Case):
    def test_lists_the_commands_there_are(self):
        self.assertEqual(sorted(names.commands()), sorted(listed()))

    def test_has_each_usage_as_the_command_says_it(self):
        for name, usage in names.commands().items():
            first = tenon(name, "--help").stdout.splitlines()[0]
            self.assertEqual(first, f"usage: tenon {name} {usage}".rstrip())


class WrongUse(script.Case):
    def refuse(self, *arguments):
        done = tenon(*arguments)
        self.assertEqual((done.returncode, done.stdout), (2, ""), arguments)
        return done.stderr

    def test_no_command(self):
        said = self.refuse()
        for name in listed():
            self.assertIn(name, said)

    def test_unknown_command(self):
        said = self.refuse("modlues")
        self.assertIn('unknown command "modlues"', said)
        for name in listed():
            self.assertIn(name, said)
        self.assertIn("did you mean modules?", said)
        self.assertNotIn("did you mean", self.refuse("zzzzzzzzzz"))

    def test_unknown_option(self):
        for name in listed():
            said = self.refuse(name, "--jsno")
            self.assertIn(f'tenon {name}: unknown option "--jsno"', said)
            self.assertIn("--json", said)
            self.assertIn("--help", said)
            self.assertIn("did you mean --json?", said)

    def test_extra_argument(self):
        for name in listed():
            said = self.refuse(name, "surplus")
            self.assertIn(f"tenon {name}: ", said)
            self.assertIn('"surplus"', said)

    def test_empty_and_odd_words(self):
        for word in ("", "-", "--", "-x", "x" * 5000, "\x1b[31m"):
            self.refuse(word)
            self.refuse("modules", word)

    def test_a_message_is_one_line(self):
        for arguments in (["modlues"], ["modules", "--jsno"], ["modules", "surplus"]):
            self.assertRegex(self.refuse(*arguments), r"^tenon[^\n]*\n$")


class Reader(unittest.TestCase):
    """The reader of the page itself: one that found nothing would let everything pass."""

    def test_keys(self):
        self.assertEqual(
            names.parse_keys("a, b[] {c, d {e, f}}, g"),
            {"a": None, "b": {"c": None, "d": {"e": None, "f": None}}, "g": None})
        with self.assertRaises(ValueError):
            names.parse_keys("a {b")

    def test_page(self):
        self.assertIn("modules", names.commands())
        self.assertIn("stage", names.documents()["modules"]["modules"])
        self.assertIn("stage", names.documents()["doctor"]["modules"])
        self.assertIn("broken", names.documents()["doctor"])


if __name__ == "__main__":
    script.main()
