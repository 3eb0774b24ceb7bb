"""`tenon conformance` and kernels: right ones pass, each fault of a wrong one is noticed by the case that it
belongs to, and there are problems for everything that an operator can be asked for."""

import json
import os
import re
import shutil
import signal
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import script

# Which case notices, and words of what it says.
FAULTS = {
    "wrong-for-m-above-40": ("shapes", r"problems gave wrong results; the first: output \d+ is 0, the reference has"),
    "ignores-a-stride": ("strides", "the reference has"),
    "ignores-alpha": ("alpha", "the reference has"),
    "wrong-for-negative-strides": ("strides", r"tenon check 'matmul:\S+,sa=\S*-\d"),
    "wrong-for-zero-strides": ("strides", r"tenon check 'matmul:\S+,sa=0;"),
    "drops-nan": ("nonfinite", "is 0, the reference has -?nan, .* --nonfinite` repeats it"),
    "drops-infinity": ("nonfinite", "is 0, the reference has -?inf, .* --nonfinite` repeats it"),
    "needs-alignment": ("alignment", "the reference has"),
    "wrong-in-f64": ("shapes", "tenon check 'matmul:f64:"),
    "writes-behind": ("shapes", "a byte outside the outputs was written"),
    "refuses-late": ("shapes", "it accepts the problem, then fails with unsupported: lathe:0: not today"),
}
MATMUL = "kernels.lathe.lathe.matmul"


class Kernels(script.Case):
    def module(self, name):
        return os.path.join(
            script.build.folder, "tests", "conformance", "modules", f"tenon-{name}.so")

    def ask(self, *options, fault="", module="lathe", code=0):
        done = script.run(
            script.build.tenon, "conformance", "--module", self.module(module), "--json",
            "--patience", script.PATIENCE, *options,
            env=script.environment(KERNEL_FAULT=fault, TENON_CACHE=self.place("cache")))
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        document = json.loads(done.stdout)
        return document, {row["case"]: row for platform in document["platforms"]
                          for row in platform["results"]}

    def test_right_kernels_pass_with_the_platform(self):
        document, results = self.ask()
        self.assertEqual([p["failed"] for p in document["platforms"]], [0])
        for aspect in ("shapes", "pitches", "alignment", "transpose", "strides", "alpha", "beta",
                       "together", "nonfinite"):
            self.assertEqual(results[f"{MATMUL}.{aspect}"]["outcome"], "pass")
        for aspect in ("shapes", "alignment"):
            self.assertEqual(results[f"kernels.lathe.lathe.add.{aspect}"]["outcome"], "pass")
        self.assertEqual(results["copy.2d"]["outcome"], "pass")
        for aspect in ("bias", "batch", "activation"):  # not honoured: no case
            self.assertNotIn(f"{MATMUL}.{aspect}", results)
        names = [row["name"] for row in document["cases"]]
        self.assertTrue(set(results) <= set(names))

    def test_each_fault_is_noticed(self):
        for fault, (aspect, words) in FAULTS.items():
            with self.subTest(fault):
                case = f"{MATMUL}.{aspect}"
                _, results = self.ask("--kernels", "--case", case, fault=fault, code=1)
                self.assertEqual(list(results), [case])
                self.assertEqual(results[case]["outcome"], "fail")
                self.assertRegex(results[case]["text"], words)

    def test_a_fault_fails_the_default_run(self):
        """What the device interface alone does not notice."""
        document, results = self.ask(fault="wrong-for-m-above-40", code=1)
        failed = {name for name, row in results.items() if row["outcome"] == "fail"}
        self.assertIn(f"{MATMUL}.shapes", failed)
        self.assertTrue(all(name.startswith(MATMUL) for name in failed), failed)

    def test_a_seed_repeats_a_run(self):
        case = f"{MATMUL}.shapes"
        texts = [self.ask("--kernels", "--case", case, "--seed", seed, fault="wrong-in-f64",
                          code=1)[1][case]["text"] for seed in ("7", "7", "8")]
        self.assertEqual(texts[0], texts[1])
        self.assertNotEqual(texts[0], texts[2])

    def test_what_it_says_can_be_repeated(self):
        folder = self.place("modules")
        os.mkdir(folder, 0o700)
        shutil.copy(self.module("lathe"), folder)
        for fault, aspect in (("wrong-for-m-above-40", "shapes"), ("drops-nan", "nonfinite")):
            with self.subTest(fault):
                case = f"{MATMUL}.{aspect}"
                _, results = self.ask("--kernels", "--case", case, fault=fault, code=1)
                problem, kernel, options = re.search(
                    r"`tenon check '(\S+)' --kernel (\S+) (--seed \d+.*)` repeats it",
                    results[case]["text"]).groups()
                done = script.run(
                    script.build.tenon, "check", problem, "--kernel", kernel, *options.split(),
                    "--json",
                    env=script.environment(KERNEL_FAULT=fault, TENON_MODULE_PATH=folder,
                                           TENON_CACHE=self.place("cache")))
                self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
                result, = json.loads(done.stdout)["results"]
                self.assertIn(result["message"], results[case]["text"])

    def test_a_crash_names_its_problem(self):
        """So do calls of exit and _exit, and a call that never returns."""
        problem = rf"in the case {MATMUL}.alpha; `tenon check 'matmul:\S+,alpha=\S+@lathe:0' --kernel lathe.lathe.matmul "
        for fault, words in (("crashes", "crashed "), ("exits", "the process was ended by a call of exit "),
                             ("exits-at-once", "the process was ended by a call of _exit ")):
            if fault == "crashes" and script.build.sanitizers:
                continue  # a sanitizer reports crashes its own way
            done = script.run(script.build.tenon, "conformance", "--module", self.module("lathe"), "--case",
                              f"{MATMUL}.alpha", env=script.environment(KERNEL_FAULT=fault))
            self.assertEqual(done.returncode, -signal.SIGSEGV if fault == "crashes" else 1)
            self.assertRegex(done.stderr, f"tenon conformance: {words}{problem}--seed \\d+` repeats it\n$")
        if not script.FULL:
            return  # a busy machine needs seconds to find the kernels, too
        done = script.run(script.build.tenon, "conformance", "--module", self.module("lathe"), "--case",
                          f"{MATMUL}.alpha", "--patience", "20", "--json",
                          env=script.environment(KERNEL_FAULT="hangs"))
        self.assertEqual(done.returncode, 1)
        self.assertRegex(json.loads(done.stdout)["platforms"][0]["results"][0]["text"],
                         "did not finish within 20 s: a call blocks forever; `tenon check 'matmul:\\S+' .* repeats it")

    def test_a_crash_while_kernels_are_asked(self):
        if script.build.sanitizers:
            self.skipTest("a sanitizer reports crashes its own way")
        done = script.run(script.build.tenon, "conformance", "--module", self.module("lathe-cpu"),
                          env=script.environment(KERNEL_FAULT="admit-crashes"))
        self.assertEqual(done.returncode, -signal.SIGSEGV)
        self.assertEqual(done.stderr, "tenon conformance: crashed while asking kernels what they accept: in "
                         "`admit`, `workspace` or `cost`\n")

    def test_kernels_without_a_platform(self):
        document, results = self.ask(module="lathe-cpu")
        self.assertEqual([p["name"] for p in document["platforms"]], ["cpu"])
        self.assertTrue(all(name.startswith("kernels.cpu.lathe.") for name in results))
        self.assertEqual(results["kernels.cpu.lathe.matmul.shapes"]["outcome"], "pass")
        _, results = self.ask(module="lathe-cpu", fault="ignores-alpha", code=1)
        self.assertEqual(results["kernels.cpu.lathe.matmul.alpha"]["outcome"], "fail")

    def test_lists(self):
        case = f"{MATMUL}.alpha"
        expected = script.write_text(self.place("expected"), case + "  # alpha is on its way\n")
        _, results = self.ask("--kernels", "--case", case, "--expected", expected,
                              fault="ignores-alpha")
        self.assertEqual(results[case]["outcome"], "expected-failure")
        _, results = self.ask("--kernels", "--case", case, "--expected", expected, code=1)
        self.assertIn("passes, but is in the --expected list", results[case]["text"])

    def test_names_that_are_none(self):
        done = script.run(script.build.tenon, "conformance", "--module", self.module("lathe"),
                          "--case", MATMUL + ".alphas")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertEqual(done.stderr, f'tenon conformance: unknown case "{MATMUL}.alphas"; did you mean '
                         f"{MATMUL}.alpha?; list them with --list --kernels\n")
        done = script.run(script.build.tenon, "conformance", "--module", self.module("seed-sample"),
                          "--kernels")
        self.assertEqual((done.returncode, done.stdout), (3, ""))
        self.assertEqual(done.stderr,
                         "tenon conformance: there is no kernel to check\n")


class Problems(script.Case):
    """The tables of problems, by the reference, which takes everything."""

    def names(self):
        done = script.run(script.build.tenon, "conformance", "--platform", "cpu", "--kernels",
                          "--list", env=script.environment())
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return re.findall(r"(?m)^(kernels\.\S+) ", done.stdout)

    def words(self, name):
        """Of the USES bits of an operator's header, as problems and cases name them."""
        text = script.read_text(script.source("include", "tenon", "module", "op", f"{name}.h"))
        special = {"out-dtype": "out", "value-size": "dv", "offset": "shift"}
        found = [bit.lower().replace("_", "-") for bit in re.findall(rf"TN_{name.upper()}_USES_(\w+) = 1 <<", text)]
        return {special.get(word, word) for word in found}

    def test_every_bit_has_problems(self):
        matmul, each, attention = self.words("matmul"), self.words("elementwise"), self.words("attention")
        self.assertEqual((len(matmul), len(each), len(attention)), (12, 8, 16))
        plain = {"strides", "broadcast"}
        quantized = {"raw", "f16", "f8", "i8"}
        needed = {
            "matmul": matmul, "attention": attention, "permute": plain, "fill": {"strides"},
            "cast": plain | {"in-place"}, "unary": plain | {"out", "in-place"},
            "binary": plain | {"out", "in-place"}, "reduce": plain | {"out"},
            "softmax": plain | {"out", "in-place", "log"},
            "norm": plain | {"out", "in-place", "weight", "bias"},
            "rotary": plain | {"out", "in-place", "partial"},
            "attention-backward": attention - {"sinks", "lse", "packed", "lengths", "pages", "out"},
            "attention-merge": {"strides", "out"},
            "attention-sparse": {"window", "mask", "lists", "sizes", "groups", "lse", "dv", "strides", "out"},
            "attention-sparse-backward": {"window", "mask", "lists", "sizes", "groups", "dv", "strides", "out"},
            "attention-quantized": {"window", "groups", "lse", "dv", "strides", "out"} | quantized,
            "fft": plain | {"in-place"},
        }
        names = self.names()
        self.assertEqual(set.union(*needed.values()), matmul | each | attention | quantized | {"lists", "sizes"})
        for op, words in needed.items():
            prefix = f"kernels.cpu.{op}.ref."
            found = {name[len(prefix):] for name in names if name.startswith(prefix)}
            self.assertEqual(words - found, set(), op)
            self.assertLessEqual({"shapes", "alignment"}, found)
        for op in ("matmul", "reduce", "softmax", "norm", "rotary", "attention"):
            self.assertIn(f"kernels.cpu.{op}.ref.nonfinite", names)

    def test_the_reference_passes(self):
        """Of two operators; those of attention take long."""
        done = script.run(
            script.build.tenon, "conformance", "--platform", "cpu", "--case",
            "kernels.cpu.softmax.ref", "--case", "kernels.cpu.reduce.ref", "--json",
            "--patience", script.PATIENCE)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        platform, = json.loads(done.stdout)["platforms"]
        self.assertEqual({row["outcome"] for row in platform["results"]}, {"pass"})


if __name__ == "__main__":
    script.main()
