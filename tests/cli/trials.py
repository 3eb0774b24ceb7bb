"""tenon check and tenon bench: kernels against the reference and the clock; and what tenon doctor makes of
both. A device that lies comes from a description."""

import json
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import names
import script

MATMUL = "matmul:f32:m=24,n=20,k=16"
SOFTMAX = "softmax:f32:shape=8x64"
NO_CPU = ("--set", "rules=forbid:platform:cpu")  # doctor then tries the kernels of other platforms alone


class Case(script.Case):
    def tenon(self, *arguments, code=0, **changes):
        changes.setdefault("TENON_CACHE", self.place("cache"))
        done = script.run(script.build.tenon, *arguments, env=script.environment(**changes))
        if code is not None:
            self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def document(self, *arguments, **options):
        done = self.tenon(*arguments, "--json", **options)
        self.assertEqual(done.stderr, "")
        return json.loads(done.stdout)

    def refuse(self, *arguments, code=2):
        done = self.tenon(*arguments, code=code)
        self.assertEqual(done.stdout, "")
        self.assertRegex(done.stderr, r"^tenon[^\n]*\n$")
        return done.stderr

    def usable(self, problem):
        """Kernels that could be taken, best first."""
        rows = self.document("explain", problem)["candidates"]
        return [r["kernel"] for r in rows if r["verdict"] not in ("refused", "quarantined")]


class Failures(Case):
    def test_a_device_that_fails_is_a_failure_that_was_found(self):
        path = script.write_text(
            self.place("broken.device"),
            "[device broken]\nplatform = described\nmemory = 1 GiB\nbehaviour.fail_run = 1\n")
        self.tenon("check", MATMUL + "@broken", "--device-file", path, "--set", "admission=never",
                   code=1)

    def test_one_call_may_be_all_there_is_time_for(self):
        (row,) = self.document("bench", "matmul:f32:m=64,n=64,k=64", "--kernel", "cpu.matmul.ref",
                               "--seconds", "1e-7")["results"]
        self.assertEqual(row["runs"], 1)


class Check(Case):
    def test_the_kernel_that_is_taken(self):
        (row,) = self.document("check", MATMUL)["results"]
        self.assertEqual(row["problem"], MATMUL + "@cpu:0")
        self.assertEqual(row["kernel"], self.usable(MATMUL)[0])
        self.assertEqual((row["status"], row["ok"], row["checked"], row["sampled"]),
                         ("ok", True, 24 * 20, False))
        self.assertLessEqual(row["error"], 1)
        self.assertGreater(row["bound"], 0)
        self.assertGreater(int(row["seed"]), 0)

    def test_every_kernel_of_every_problem(self):
        rows = self.document("check", MATMUL, SOFTMAX, "--all-kernels")["results"]
        self.assertEqual([row["kernel"] for row in rows], self.usable(MATMUL) + self.usable(SOFTMAX))
        self.assertEqual({row["ok"] for row in rows}, {True})
        self.assertEqual(len({row["seed"] for row in rows}), 1)

    def test_not_those_that_are_refused(self):
        problem = "matmul:i8:m=4,n=4,k=4"
        rows = self.document("check", problem, "--all-kernels")["results"]
        self.assertEqual([row["kernel"] for row in rows], self.usable(problem))
        self.assertLess(len(rows), len(self.document("explain", problem)["candidates"]))

    def test_a_seed_repeats_a_run(self):
        first, second, other = (
            self.document("check", MATMUL, "--seed", seed)["results"][0] for seed in ("7", "7", "8"))
        self.assertEqual(first, second)
        self.assertEqual((first["seed"], other["seed"]), ("7", "8"))
        self.assertNotEqual(first["expected"], other["expected"])

    def test_text(self):
        text = self.tenon("check", MATMUL, "--all-kernels", "--seed=5").stdout
        self.assertTrue(text.startswith(MATMUL + "@cpu:0\n"))
        usable = self.usable(MATMUL)
        self.assertEqual(re.findall(r"(?m)^  (\S+) +ok +error ", text), usable)
        self.assertIn(f"\n{len(usable)} checked, no errors found; --seed 5 repeats it\n", text)

    def test_one_kernel_by_name(self):
        (row,) = self.document("check", MATMUL, "--kernel", "cpu.matmul.ref")["results"]
        self.assertEqual((row["kernel"], row["error"]), ("cpu.matmul.ref", 0))

    def test_one_that_cannot_run(self):
        (row,) = self.document("check", SOFTMAX, "--kernel=cpu.matmul.ref", code=3)["results"]
        self.assertEqual((row["status"], row["ok"]), ("unsupported", None))
        self.assertIn("computes matmul", row["message"])
        self.tenon("check", MATMUL, "--set", "rules=forbid:platform:cpu", code=4)
        (row,) = self.document("check", MATMUL, "--kernel=cpu.matmul.reff", code=2)["results"]
        self.assertIn("did you mean cpu.matmul.ref?", row["message"])
        (row,) = self.document("bench", MATMUL, "--kernel=nope", code=2)["results"]
        self.assertIn("`tenon explain PROBLEM` lists the kernels of a problem", row["message"])

    def test_wrong_use(self):
        self.assertIn("expected PROBLEM, got nothing: tenon ", self.refuse("check"))
        self.assertIn("not both",
                      self.refuse("check", MATMUL, "--kernel=x", "--all-kernels"))
        for seed in ("0", "-1", "x", "1x", "99999999999999999999"):
            self.assertIn("--seed: expected a number", self.refuse("check", MATMUL, f"--seed={seed}"))
        path = self.place("none", "dump")  # told before the run, not after it
        self.assertIn(f"--dump {path}: No such file or directory",
                      self.refuse("check", "matmul:f32:m=4000,n=4000,k=4000", f"--dump={path}"))
        self.assertIn("--dump: expected one problem",
                      self.refuse("check", MATMUL, SOFTMAX, "--dump=x"))


class Einsum(Case):
    """A whole einsum, then the problems of its steps."""

    CHAIN = "einsum:f32:ij,jk,kl->il:10x20,20x30,30x5"

    def test_results_of_every_dtype(self):
        for dtype in "f64 f32 f16 bf16 c64 c128 i8 i16 i32 i64 u8 u16 u32 u64".split():
            texts = [f"einsum:{dtype}:{rest}@cpu:0" for rest in (
                "ij,jk,kl->il:10x20,20x30,30x5", "...a,ba,aa->b...:2x3x7,4x7,7x7", "ii->:40x40",
                "i,j,ik->kj:300,0,300x2", "ab,cb->a:5x1,3x9", ",a->a:,6")]
            rows = self.document("check", *texts)["results"]
            self.assertEqual({(row["status"], row["ok"]) for row in rows}, {("ok", True)}, rows)
            whole = [row for row in rows if row["kernel"] == "tn_einsum"]
            self.assertEqual([row["problem"] for row in whole], texts)
            self.assertEqual([row["checked"] for row in whole], [50, 24, 1, 0, 5, 6])

    def test_steps_follow(self):
        rows = self.document("check", self.CHAIN, "--seed=3")["results"]
        self.assertEqual([row["problem"] for row in rows],
                         [self.CHAIN + "@cpu:0", "matmul:f32:m=20,n=5,k=30@cpu:0", "matmul:f32:m=10,n=5,k=20@cpu:0"])
        self.assertEqual({row["seed"] for row in rows}, {"3"})
        self.assertEqual((rows[0]["checked"], rows[0]["sampled"]), (50, False))
        every = self.document("check", self.CHAIN, "--all-kernels")["results"]
        self.assertEqual(sum(row["kernel"] == "tn_einsum" for row in every), 1)
        self.assertGreater(len(every), 4)

    def test_wrong_numbers_are_found(self):
        if script.build.values.get("TENON_DESCRIBED") != "ON":
            self.skipTest("this build has no described platform")
        path = script.write_text(self.place("liar.device"),
                                 "[device liar]\nplatform = described\nmemory = 1 GiB\nbehaviour.lie_every = 1\n")
        rows = self.document("check", self.CHAIN + "@described:0", "--device-file", path, "--set", "admission=never",
                             code=1)["results"]
        self.assertEqual((rows[0]["kernel"], rows[0]["ok"]), ("tn_einsum", False))
        self.assertRegex(rows[0]["message"], r"output \d+: expected \S+, got ")

    def test_large_ones_are_sampled(self):
        rows = self.document("check", "einsum:f32:ij,jk->ik:2000x1000,1000x2000")["results"]
        self.assertEqual((rows[0]["sampled"], rows[0]["ok"], rows[0]["checked"]), (True, True, 4096))

    def test_times(self):
        whole, first, second = self.document("bench", self.CHAIN, "--seconds=0.05")["results"]
        self.assertEqual((whole["kernel"], whole["status"]), ("tn_einsum", "ok"))
        self.assertAlmostEqual(whole["gflops"], 8000 / (whole["ms"] * 1e6), delta=whole["gflops"] / 100)
        self.assertGreaterEqual(whole["runs"], 15)
        self.assertEqual((first["problem"], second["status"]), ("matmul:f32:m=20,n=5,k=30@cpu:0", "ok"))

    def test_wrong_use(self):
        for text, words in (("f32:ij,jk->ik", "expected einsum:DTYPE:EQUATION:SHAPES[@DEVICE], such as"),
                            ("f33:ij->i:2x2", 'got "f33"'), ("bool:ij->i:2x2", 'got "bool"'),
                            ("f32:ij->i:2xx", "SHAPES: expected"), ("f32:ij->k:2x2", "label 'k' of out"),
                            ("f32:ij->i:2x2@cpu:77", "cpu:77")):
            self.assertIn(words, self.refuse("check", "einsum:" + text, code=None))
        for options in (["check", "--kernel=cpu.matmul.ref"], ["bench", "--against=cpu.matmul.ref"], ["check", "--nonfinite"]):
            self.assertIn("expected problems of operators, got an einsum", self.refuse(options[0], self.CHAIN, options[1]))
        self.assertIn("--dump: expected one problem", self.refuse("check", self.CHAIN, "--dump=x"))


class Bench(Case):
    def test_figures(self):
        document = self.document("bench", MATMUL, "--seconds=0.02")
        (row,) = document["results"]
        self.assertEqual((row["kernel"], row["status"]), (self.usable(MATMUL)[0], "ok"))
        self.assertGreater(row["ms"], 0)
        self.assertGreaterEqual(row["runs"], 15)
        self.assertAlmostEqual(row["gflops"], 2 * 24 * 20 * 16 / (row["ms"] * 1e6),
                               delta=row["gflops"] / 100)
        self.assertGreater(row["gbps"], 0)
        self.assertIsNone(row["against"])
        self.assertIs(row["measurable"], row["spread"] <= 0.5)
        self.assertGreater(document["machine"]["threads"], 0)

    def test_one_that_cannot_run(self):
        rows = self.document("bench", SOFTMAX, MATMUL, "--kernel=cpu.matmul.ref", "--seconds=0.02",
                             code=3)["results"]
        self.assertEqual([row["status"] for row in rows], ["unsupported", "ok"])
        self.assertIsNone(rows[0]["ms"])

    def test_every_kernel_against_one(self):
        rows = self.document("bench", SOFTMAX, "--all-kernels", "--seconds=0.02",
                             "--against=cpu.softmax.ref")["results"]
        self.assertEqual([row["kernel"] for row in rows], self.usable(SOFTMAX))
        for row in rows:
            self.assertEqual(row["against"]["kernel"], "cpu.softmax.ref")
            self.assertGreater(row["against"]["ratio"], 0)
            self.assertGreaterEqual(row["against"]["aa_spread"], 0)

    def test_text(self):
        text = self.tenon("bench", MATMUL, "--kernel=cpu.matmul.ref", "--seconds=0.02").stdout
        self.assertRegex(text, r"(?m)^  cpu\.matmul\.ref +[\d.]+ [num]?s +[\d.]+ [KMGT]FLOP/s +[\d.]+ "
                               r"[KMGT]B/s +[\d.]+% +\d+(  not measurable here)?$")

    def test_no_memory(self):
        """More than there is here is no fault of the command's."""
        if script.build.sanitizers:
            self.skipTest("a sanitizer has its own way with memory")
        (row,) = self.document("bench", "matmul:f32:m=30000000,n=1,k=30000000",
                               code=3)["results"]
        self.assertEqual(row["status"], "out-of-memory")

    def test_wrong_use(self):
        self.assertIn("expected PROBLEM, got nothing: tenon ", self.refuse("bench"))
        for seconds in ("0", "-1", "x", "nan", "4000"):
            self.assertIn("--seconds: expected", self.refuse("bench", MATMUL, f"--seconds={seconds}"))


class Liar(Case):
    """A described device whose matmul is wrong."""

    def setUp(self):
        super().setUp()
        if script.build.values.get("TENON_DESCRIBED") != "ON":
            self.skipTest("this build has no described platform")
        self.file = script.write_text(
            self.place("liar.device"),
            "[device liar]\nplatform = described\nname = Liar\nmemory = 1 GiB\n"
            "behaviour.lie_every = 1\n")

    def test_check_finds_it(self):
        arguments = [MATMUL + "@described:0", "--device-file", self.file,
                     "--kernel=described.matmul.plain"]
        (row,) = self.document("check", *arguments, "--dump", self.place("dump"), code=1)["results"]
        self.assertEqual((row["kernel"], row["ok"]), ("described.matmul.plain", False))
        self.assertGreater(row["error"], 1)
        self.assertGreater(abs(row["found"] - row["expected"]), row["bound"])
        self.assertIn("described.matmul.plain", script.read_text(self.place("dump")))
        text = self.tenon("check", *arguments, code=1).stdout
        self.assertRegex(text, r"(?m)^  described.matmul.plain +wrong +error ")
        self.assertIn("\n1 of 1 wrong; --seed ", text)

    def test_check_finds_it_at_its_first_test(self):
        """And later on, when it is in quarantine for that."""
        arguments = [MATMUL + "@described:0", "--device-file", self.file]
        for more in ([], [], ["--all-kernels"]):
            (row,) = self.document("check", *arguments, *more, code=1)["results"]
            self.assertEqual((row["kernel"], row["ok"]), ("described.matmul.plain", False))
        self.assertEqual(row["status"], "ok")
        text = self.tenon("check", *arguments, code=1).stdout
        self.assertRegex(text, r"(?m)^  described.matmul.plain +wrong +unsupported: ")
        self.assertIn("\n1 of 1 wrong\n", text)

    def test_bench_finds_it(self):
        arguments = [MATMUL + "@described:0", "--device-file", self.file, "--seconds=0.02", "--set",
                     "debug.sample=1", "--set", "admission=never"]
        (row,) = self.document("bench", *arguments, code=1)["results"]
        self.assertEqual(row["status"], "corrupt")
        self.assertRegex(self.tenon("bench", *arguments, code=1, TENON_CACHE="").stdout,
                         r"(?m)^  described.matmul.plain +wrong: corrupt: ")

    def test_doctor_finds_it(self):
        """And shows a bar meanwhile, on a terminal alone and not beside a document."""
        arguments = ["doctor", "--device-file", self.file, *NO_CPU]
        written, seen = self.on_terminal(*arguments, "--json", code=1)
        self.assertEqual(seen, "")
        document = json.loads(written)
        broken = [row for row in document["kernels"] if row["broken"]]
        self.assertEqual({row["kernel"] for row in broken}, {"described.matmul.plain"})
        self.assertEqual(document["broken"], len(broken))
        for row in broken:
            self.assertIs(row["ok"], False)
            self.assertNotEqual(row["text"], "")
        text, seen = self.on_terminal(*arguments, code=1)
        self.assertRegex(text, r"(?m)^  matmul:f32:\S+ +described.matmul.plain +wrong$")
        broken = " ".join(text.split("\n\n")[0].split())
        self.assertIn("kernel described.matmul.plain for matmul:f32:", broken)
        self.assertRegex(seen, r"\r\x1b\[K\[\.{24}\] 0 of \d+  described\.")
        self.assertRegex(seen, r"\[#+\.*\] \d+ of \d+  described\.")
        self.assertTrue(seen.endswith("\r\x1b[K"), repr(seen[-80:]))
        self.assertEqual(self.on_terminal("doctor", "--quick")[1], "")

    def on_terminal(self, *arguments, code=0):
        """What is written to stdout, a pipe, and to stderr, a terminal."""
        try:
            import pty
        except ImportError:
            self.skipTest("this Python has no terminals")
        ours, theirs = pty.openpty()
        env = script.environment(TERM="xterm", TENON_CACHE=self.place("cache"))
        with open(self.place("stdout"), "w+", encoding="utf-8") as stdout, script.subprocess.Popen(
                [script.build.tenon, *arguments], stderr=theirs, env=env, stdout=stdout) as child:
            os.close(theirs)
            parts = []
            while True:
                try:
                    part = os.read(ours, 65536)
                except OSError:  # the terminal's way to say that the other side is closed
                    part = b""
                if not part:
                    break
                parts.append(part)
        os.close(ours)
        self.assertEqual(child.returncode, code)
        return script.read_text(self.place("stdout")), b"".join(parts).decode()


    def test_doctor_calls_nothing_sound_that_could_not_run(self):
        small = script.write_text(self.place("small.device"),
                                  "[device small]\nplatform = described\nname = Small\n"
                                  "memory = 4 KiB\n")
        self.assertEqual(self.tenon("doctor", "--device-file", small, *NO_CPU, code=1).stderr, "")
        document = self.document("doctor", "--device-file", small, *NO_CPU, code=1)
        row = next(row for row in document["kernels"] if row["broken"])
        self.assertEqual(row["kernel"], "described.matmul.plain")
        self.assertIn("out-of-memory: ", row["text"])
        self.assertGreater(document["broken"], 0)

    def test_doctor_tells_of_quarantine(self):
        """What a first use has put there."""
        self.tenon("check", MATMUL + "@described:0", "--device-file", self.file, code=1)
        document = self.document("doctor", "--device-file", self.file, *NO_CPU, code=1)
        row = next(row for row in document["kernels"] if row["broken"])
        self.assertEqual((row["verdict"], row["ok"]), ("quarantined", None))
        self.assertTrue(row["text"].startswith("quarantine: "), row)


class Doctor(Case):
    def test_checks_and_times_every_kernel(self):
        """One run, as document and as page: it takes seconds."""
        document = self.document("doctor", "--html", self.place("page.html"))
        self.check_rows(document)
        self.check_attention(document["attention"])
        self.check_page(document, script.read_text(self.place("page.html")))

    def check_rows(self, document):
        rows = document["kernels"]
        self.assertEqual(document["broken"], 0)
        self.assertGreater(len(document["decisions"]), 10)
        for key in ("decisions", "kernels"):
            self.assertEqual(set(document[key][0]), set(names.documents()["doctor"][key]))
        for row in rows:
            runs = row["verdict"] not in ("refused", "quarantined")
            self.assertEqual(row["ok"], True if runs else None, row)
            self.assertEqual(row["text"] == "", runs, row)
        timed = {row["kernel"] for row in rows if row["ms"] is not None}
        checked = {row["kernel"] for row in rows if row["ok"]}
        self.assertIn(rows[0]["kernel"], timed)
        self.assertLessEqual(timed, checked)  # where time is short, not all are timed
        for op in ("matmul", "permute", "cast", "fill", "unary", "binary", "reduce", "softmax", "norm",
                   "rotary", "fft"):
            self.assertIn(f"cpu.{op}.ref", checked)
        first = {}  # of a problem, the first that can run is taken, if need be once it has passed its test
        for row in rows:
            if row["verdict"] not in ("refused", "quarantined"):
                first.setdefault(row["problem"], row["kernel"])
        self.assertEqual({row["problem"]: row["chosen"] for row in document["decisions"]}, first)

    def check_attention(self, rows):
        """Every backend has a kernel, which its function uses, or a reason."""
        self.assertEqual(set(rows[0]), set(names.documents()["doctor"]["attention"]))
        rows = {row["name"]: row for row in rows}
        self.assertEqual(len(rows), 15)
        for name, operator, function in (
                ("SLIDING_TILE_ATTN", "attention-sparse", "tn_attention_video"), ("VMOBA_ATTN", "attention", "vmoba_attention"),
                ("BSA_ATTN", "attention-sparse", "bsa_attention"), ("SAGE_ATTN", "attention-quantized", "tn_attention_quantized")):
            self.assertEqual(rows[name]["kernel"].split(".")[:2], ["cpu", operator])
            self.assertIn(function, rows[name]["text"])
        self.assertEqual([name for name, row in rows.items() if row["kernel"] is None],
                         ["NO_ATTENTION", "SAGE_ATTN_THREE", "ATTN_QAT_INFER", "ATTN_QAT_TRAIN", "SAGE_SLA_ATTN"])
        self.assertTrue(all(row["kernel"] or row["text"] for row in rows.values()))

    def check_page(self, document, text):
        part = text[text.index('<section id="attention">'):].split("</section>")[0]
        self.assertEqual(re.findall(r'<th scope="row"><code>(\w+)</code>', part), [row["name"] for row in document["attention"]])
        part = text[text.index('<section id="kernels">'):]
        problems = re.findall(r"<h3><code>([^<]+)</code></h3>", part)
        self.assertEqual(problems, [row["problem"] for row in document["decisions"]])
        self.assertEqual(part.count("<summary>The decision</summary>"), len(problems))
        timed = [row for row in document["kernels"] if row["ms"] is not None]
        self.assertEqual(part.count('<svg class="bar"'), len(timed))

    def test_quick_has_none(self):
        document = self.document("doctor", "--quick")
        self.assertEqual((document["decisions"], document["kernels"]), ([], []))
        self.assertNotIn("\nkernels", self.tenon("doctor", "--quick", "--full").stdout)

    def test_a_lock_that_is_wrong_is_broken(self):
        lock = script.write_text(self.place("x.lock"), "checksum = nothing\n")
        for options in ([], ["--quick"]):
            document = self.document("doctor", *options, code=1, TENON_LOCK=lock)
            self.assertEqual((document["broken"], document["kernels"]), (1, []))
            self.assertIn(lock, document["decisions"][0]["message"])
            text = self.tenon("doctor", *options, code=1, TENON_LOCK=lock).stdout
            self.assertTrue(text.startswith("verdict: 1 thing is broken; "), text)
            self.assertIn("\n  deciding TENON_LOCK: ", text)


if __name__ == "__main__":
    script.main()
