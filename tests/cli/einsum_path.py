"""`tenon einsum-path`: the path of an einsum as text and as JSON, and what it refuses."""

import json
import os
import sys
import tempfile
import xml.etree.ElementTree

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import script

CHAIN = ("ij,jk,kl->il", "10x20,20x30,30x5")


class Case(script.Case):
    def ask(self, *options):
        done = script.run(script.build.tenon, "einsum-path", *options, env=script.environment())
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def refuse(self, words, *options, code=2):
        done = script.run(script.build.tenon, "einsum-path", *options, env=script.environment())
        if code is not None:
            self.assertEqual(done.returncode, code)
        self.assertEqual(done.stdout, "")
        self.assertIn(words, done.stderr)


class EinsumPath(Case):
    def test_json_has_the_costs(self):
        document = json.loads(self.ask(*CHAIN, "--json"))
        self.assertEqual((document["strategy"], document["cost"], document["cost_at_once"]), ("optimal", 8000, 90000))
        self.assertEqual([(step["first"], step["second"]) for step in document["steps"]], [(1, 2), (0, 1)])
        self.assertEqual(document["steps"][0]["calls"][0]["problem"], "matmul:f32:m=20,n=5,k=30@cpu:0")
        self.assertEqual(document["largest"], 100)

    def test_json_costs_are_exact(self):
        document = json.loads(self.ask("ij,jk->ik", "1234567x3,3x7", "--json"))
        self.assertEqual((document["cost"], document["cost_at_once"]), (1234567 * 3 * 7 * 2,) * 2)
        self.assertEqual((document["largest"], document["steps"][0]["elements"]), (1234567 * 7,) * 2)
        self.assertEqual(document["steps"][0]["cost"], 1234567 * 3 * 7 * 2)

    def test_steps_have_labels_of_size_1(self):
        steps = json.loads(self.ask("ab,bc,c->a", "1x3,3x4,4", "--strategy", "left", "--json"))["steps"]
        self.assertEqual([(step["equation"], step["remaining"]) for step in steps],
                         [("ab,bc->ac", "c,ac->a"), ("c,ac->a", "a->a")])

    def test_calls_are_problems_of_explain(self):
        for step in json.loads(self.ask("abc,cbd,dd->a", "2x3x4,4x3x5,5x5", "--json"))["steps"]:
            for row in step["calls"]:
                done = script.run(script.build.tenon, "explain", row["problem"], "--json", env=script.environment())
                self.assertEqual(json.loads(done.stdout)["chosen"], row["kernel"])

    def test_strategy_and_setting_change_the_path(self):
        for options in (["--strategy", "left"], ["--set", "opt_einsum.enabled=false"]):
            document = json.loads(self.ask(*CHAIN, "--json", *options))
            self.assertEqual((document["strategy"], document["cost"]), ("left", 15000))

    def test_text_has_a_row_for_each_step_and_a_tree(self):
        text = self.ask(*CHAIN)
        self.assertRegex(text, r"\n1     \(1, 2\) +6000 +100 +jk,kl->jl\n      cpu\.matmul")
        self.assertRegex(text, r"speed-up +11\.25\n")
        self.assertTrue(text.endswith("\nil  step 2\n├─ ij  operand 0\n└─ jl  step 1\n"
                                      "   ├─ jk  operand 1\n   └─ kl  operand 2\n"), text)

    def test_numbers_and_single_operands(self):
        self.assertIn("1  step 1\n└─ ii  operand 0\n", self.ask("ii->", "3x3"))
        self.assertIn("1  step 1\n├─ 1  operand 0\n└─ i  operand 1\n", self.ask(",i->", ",4"))

    def test_as_many_operands_as_einsum(self):
        document = json.loads(self.ask(",".join("a" * 4096) + "->", ",".join("2" * 4096), "--strategy", "left", "--json"))
        self.assertEqual(len(document["steps"]), 4095)

    def test_picture(self):
        """A box for each operand and step, inside the picture, a line for each operand of a step, and no box on another."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "path.svg")
            for equation, shapes in (CHAIN, ("ii->", "3x3"), ("abx,bc,cdy,<->a".replace("<", "\u03b1"), "4x5x6,5x3,3x7x2,2"),
                                     (",".join("abcdefghijklmnopqrst") + "->" + "abcdefghijklmnopqrst", ",".join(20 * "1"))):
                text = self.ask(equation, shapes, "--svg", path)
                self.assertEqual(text, self.ask(equation, shapes))
                picture = xml.etree.ElementTree.parse(path).getroot()
                steps = json.loads(self.ask(equation, shapes, "--json"))["steps"]
                boxes = [(float(one.get("x")), float(one.get("y"))) for one in picture if one.tag.endswith("rect")]
                self.assertEqual(len(boxes), shapes.count(",") + 1 + len(steps))
                lines = [one for one in picture if one.tag.endswith("line")]
                self.assertEqual(len(lines), sum(1 + (step["second"] is not None) for step in steps))
                width, height = (float(picture.get(side)) for side in ("width", "height"))
                for at, (x, y) in enumerate(boxes):
                    self.assertTrue(0 <= x <= width - 100 and 0 <= y <= height - 44)
                    self.assertFalse([other for other in boxes[:at] if abs(other[0] - x) < 100 and abs(other[1] - y) < 44])
                texts = [one.text for one in picture if one.tag.endswith("text")]
                self.assertEqual(sum(one.startswith("operand ") for one in texts), shapes.count(",") + 1)
                self.assertEqual(sum(one.startswith("step ") for one in texts), len(steps))
            self.refuse("No such file or directory", *CHAIN, "--svg", os.path.join(folder, "none", "path.svg"))

    def test_memory_limit(self):
        """Slices that fit, and the same path without a limit; a limit that nothing fits is an error."""
        network = ("abc,dbe,fgc->adfg", "6x8x10,6x8x5,6x8x10")
        whole = json.loads(self.ask(*network, "--json"))
        self.assertEqual(whole["slices"], 1)
        self.assertGreater(whole["workspace"], 3000)
        for limit in ("1000", "1k"):
            document = json.loads(self.ask(*network, "--json", "--memory-limit", limit))
            self.assertGreater(document["slices"], 1)
            self.assertLessEqual(document["workspace"], 1024)
            self.assertGreaterEqual(document["cost"], whole["cost"])
        self.assertRegex(self.ask(*network, "--memory-limit", "1000"), r"slices +\d+; the steps are those of one\n")
        self.assertNotIn("slices", self.ask(*network, "--memory-limit=1G"))
        self.refuse("--memory-limit: expected a limit that slices fit in, got 64 bytes; intermediate results need ",
                    *network, "--memory-limit", "64", code=None)
        for wrong in ("0", "x", "-1", "1x", "1kk", "99999999999999999999", "99999999999g"):
            self.refuse("--memory-limit: expected a number of bytes above 0 such as 4096 or 16m, got", *network,
                        "--memory-limit", wrong)

    def test_wrong_use(self):
        self.refuse('expected EQUATION SHAPES, got nothing: tenon einsum-path EQUATION SHAPES')
        self.refuse('expected EQUATION SHAPES, got "i->i": tenon einsum-path', "i->i")
        self.refuse('SHAPES: expected at most 4096 shapes, got "2"', ",".join("a" * 4097), ",".join("2" * 4097))
        self.refuse('SHAPES: expected at most 32 sizes such as 10x20, got "ax3"', "ij->i", "ax3")
        self.refuse('SHAPES: expected x and a size, or a comma, got "x"', "ij->i", "2x")
        self.refuse('SHAPES: expected x and a size, or a comma, got "-3"', "ij->i", "2-3")
        self.refuse("SHAPES: expected at most 32 sizes", "i->i", "99999999999999999999")
        self.refuse("label 'j': expected one size", "ij,jk", "2x3,4x5")
        self.refuse("did you mean greedy?", *CHAIN, "--strategy", "greed")


if __name__ == "__main__":
    script.main()
