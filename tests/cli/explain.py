"""tenon explain: every candidate with its verdict and reason, as text for a bug report and as JSON; what
--set changes; exit codes."""

import json
import os
import platform
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import names
import script

MATMUL = "matmul:f32:m=48,n=40,k=24,tb=1"
SOFTMAX = "softmax:f32:shape=8x64"
BASE = f"cpu.softmax.{script.base_isa()}"
VERDICTS = ["chosen", "admitted", "untested", "refused", "quarantined"]


class Case(script.Case):
    def tenon(self, *arguments, code=0, **changes):
        changes.setdefault("TENON_CACHE", self.place("cache"))
        done = script.run(script.build.tenon, "explain", *arguments,
                          env=script.environment(**changes))
        if code is not None:
            self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def text(self, *arguments, **options):
        done = self.tenon(*arguments, **options)
        self.assertEqual(done.stderr, "")
        return done.stdout

    def document(self, *arguments, **options):
        return json.loads(self.text("--json", *arguments, **options))

    def refuse(self, *arguments, code=2, **changes):
        done = self.tenon(*arguments, code=code, **changes)
        self.assertEqual(done.stdout, "")
        self.assertRegex(done.stderr, r"^tenon explain: [^\n]*\n$")
        return done.stderr


class Document(Case):
    def test_has_the_problem_in_full_and_its_device(self):
        document = self.document("matmul:f32:k=24,n=40,m=48,tb=1")
        self.assertEqual(document["problem"], MATMUL + "@cpu:0")
        self.assertEqual(document["device"], "cpu:0")
        self.assertEqual(document["further"], [])
        self.assertIsNone(document["without_set"])
        self.assertEqual(document["settings"], [])

    def test_candidates_make_sense(self):
        for problem in (MATMUL, SOFTMAX, "matmul:i8:m=4,n=4,k=4", "norm:bf16:kind=rms,shape=2x3"):
            document = self.document(problem)
            rows = document["candidates"]
            self.assertGreater(len(rows), 1)
            self.assertEqual(document["chosen"], rows[0]["kernel"])
            self.assertEqual((document["status"], document["message"]), ("ok", ""))
            self.assertEqual([row["kernel"] for row in rows if row["verdict"] == "chosen"], [document["runs_now"]])
            self.assertIsNone(document["runs_once_tested"])
            for row in rows:
                self.assertIn(row["verdict"], VERDICTS)
                self.assertGreater(row["predicted_us"], 0)
                self.assertIn(row["predicted_by"], ["figures", "cost"])
                self.assertEqual(row["why"] is not None,
                                 row["verdict"] in ("refused", "quarantined"), row)
                self.assertTrue(row["kernel"].startswith(row["platform"] + "."))

    def test_what_runs_now_and_what_once_tested(self):
        """No verdict contradicts it, and the text has the same words."""
        asked = ("--set", "admission=always", "--set", f"rules=prefer:{BASE}", SOFTMAX)
        document = self.document(*asked)
        now, later = "cpu.softmax.ref", BASE
        self.assertEqual([document[key] for key in ("runs_now", "runs_once_tested", "chosen")], [now, later, later])
        verdicts = {row["kernel"]: row["verdict"] for row in document["candidates"]}
        self.assertEqual((verdicts[now], verdicts[later]), ("admitted", "untested"))
        self.assertNotIn("chosen", verdicts.values())
        self.assertIn(f"\nruns now: {now}\nruns once tested: {later}\n", self.text(*asked))
        script.write_text(self.place("list"), SOFTMAX + "\n")
        script.run(script.build.tenon, "warm", self.place("list"), *asked[:-1],
                   env=script.environment(TENON_CACHE=self.place("cache")))
        document = self.document(*asked)
        self.assertEqual([document[key] for key in ("runs_now", "runs_once_tested", "chosen")], [later, None, later])
        self.assertEqual(document["candidates"][0]["verdict"], "chosen")
        text = self.text(*asked)
        self.assertIn(f"\nruns now: {later}\n", text)
        self.assertNotIn("runs once tested", text)

    def test_own_kernels_and_listed_libraries_run_at_once(self):
        """On an empty cache, on the architectures of tested.form."""
        listed = re.findall(r"\[own\.(\w+)\]", script.read_text(script.source("src", "policy", "admission", "tested.form")))
        if platform.machine() not in listed:
            self.skipTest("no kernel is listed as tested on this architecture")
        for problem in (MATMUL, SOFTMAX):
            for row in self.document(problem)["candidates"]:
                if not row["library"]:
                    self.assertNotEqual(row["verdict"], "untested", row)

    def test_a_refusal_says_what_is_needed_and_found(self):
        rows = self.document("matmul:i8:m=4,n=4,k=4")["candidates"]
        why = next(row["why"] for row in rows if row["library"] == "openblas")
        self.assertEqual((why["code"], why["what"], why["needed"], why["found"]),
                         ("dtype", "i8", 1, 0))
        self.assertIn("f32", why["text"])
        limited = self.document("--set", "rules=forbid:library:openblas", MATMUL)["candidates"]
        why = next(row["why"] for row in limited if row["library"] == "openblas")
        self.assertEqual(why["code"], "rule")
        self.assertIn("forbid:library:openblas", why["text"])

    def test_settings_are_those_that_are_not_default(self):
        document = self.document("--set", "determinism=run-to-run", MATMUL, TENON_INFERENCE="1")
        self.assertEqual({row["key"]: (row["value"], row["default"]) for row in document["settings"]},
                         {"determinism": ("run-to-run", "any"), "inference": ("true", "false")})
        origins = {row["key"]: row["origin"] for row in document["settings"]}
        self.assertEqual(origins["inference"], "environment: TENON_INFERENCE")

    def test_views_of_a_setting_are_not_told_again(self):
        rows = self.document("--set", "fp32_precision=tf32", MATMUL)["settings"]
        self.assertEqual([row["key"] for row in rows], ["fp32_precision"])

    def test_several_problems(self):
        document = self.document(MATMUL, SOFTMAX, MATMUL)
        self.assertEqual([document["problem"]] + [row["problem"] for row in document["further"]],
                         [p + "@cpu:0" for p in (MATMUL, SOFTMAX, MATMUL)])
        shared = {"schema", "command", "version", "lock", "settings", "problems",
                  "further"}
        for row in document["further"]:
            self.assertEqual(set(row), set(document) - shared)


class Backends(Case):
    CPU = "attention:f32:b=1,h=2,l=64,d=32@cpu"
    NAMES = ["FLASH_ATTN", "SLIDING_TILE_ATTN", "TORCH_SDPA", "SAGE_ATTN", "VIDEO_SPARSE_ATTN", "NO_ATTENTION",
             "SAGE_ATTN_THREE", "ATTN_QAT_INFER", "ATTN_QAT_TRAIN", "VIDEO_SPARSE_ATTN_H3", "BSA_ATTN",
             "VMOBA_ATTN", "SLA_ATTN", "SAGE_SLA_ATTN", "NABLA_ATTN"]
    FAMILY = ["flash", "mem_efficient", "math", "cudnn", "overrideable"]

    def backends(self, *arguments, **options):
        return {row["name"]: row for row in self.document(*arguments, **options)["backends"]}

    def test_are_all_told_with_a_reason(self):
        rows = self.document(self.CPU)["backends"]
        self.assertEqual([row["name"] for row in rows if not row["family"]][:15], self.NAMES)
        self.assertEqual([row["name"] for row in rows if row["family"]], self.FAMILY)
        self.assertEqual({row["family"] for row in rows}, {None, "TORCH_SDPA"})
        for row in rows:
            self.assertIn(row["verdict"], VERDICTS)
            self.assertEqual(row["why"] is not None, row["verdict"] == "refused", row)
            self.assertIsNone(row["conditions"])
        self.assertEqual(len([row for row in rows if row["verdict"] == "chosen" and not row["family"]]), 1)
        text = self.text(self.CPU)
        for row in rows:
            self.assertRegex(text, rf"(?m)^ +{row['name']} +{row['verdict']}( |$)")

    def test_a_long_video(self):
        """Every backend has a kernel or a reason, whatever the processor has."""
        problem = "attention:bf16:b=1,h=24,l=32760,d=128,mask=causal@cpu"
        rows = self.document(problem)["backends"]
        self.assertLessEqual(set(self.NAMES + self.FAMILY), {row["name"] for row in rows})
        for row in rows:
            self.assertTrue(row["kernel"] or row["why"]["text"], row)
        rows = {row["name"]: row for row in rows}
        self.assertEqual(rows["TORCH_SDPA"]["verdict"] in ("chosen", "admitted"), True)
        self.assertIn("no kernel on cpu yet", rows["SAGE_ATTN_THREE"]["why"]["text"])
        self.assertIn("computed by tn_attention_quantized instead", rows["SAGE_ATTN"]["why"]["text"])
        self.assertIn("only cuda can have it", rows["cudnn"]["why"]["text"])
        self.assertIn("only cuda and rocm can have it", rows["mem_efficient"]["why"]["text"])

    def test_a_problem_asks(self):
        document = self.document(self.CPU.replace("@", ",backend=NO_ATTENTION@"), code=4)
        self.assertIn("attention is disabled: the problem requests NO_ATTENTION", document["message"])
        document = self.document(self.CPU.replace("@", ",backend=torch_sdpa@"))
        self.assertIn(",backend=TORCH_SDPA@cpu:0", document["problem"])
        told = self.refuse(self.CPU.replace("@", ",backend=FLASH_ATN@"))
        self.assertIn('no attention backend "FLASH_ATN"; did you mean FLASH_ATTN?', told)

    def test_math_says_what_it_forms(self):
        """Rows at once follow from the limit; nothing else forms scores, or has a note."""
        def told(*arguments):
            rows = self.document("--set", "attention.backend=math", *arguments, self.CPU)["candidates"]
            self.assertTrue(rows[0]["kernel"].startswith("cpu.attention.math."), rows[0])
            for row in rows[1:]:
                self.assertTrue(row["note"] is None or ".math" in row["kernel"], row)
            found = re.match(r"forms scores of (\d+) rows? at once on each of (\d+) threads?$", rows[0]["note"])
            return int(found[1]) * int(found[2]), rows[0]["workspace"]
        (many, bytes), (few, limited) = told(), told("--set", "workspace.limit=600k")
        self.assertLess(few, many)
        self.assertLess(limited, bytes)
        self.assertLessEqual(limited, 600 << 10)
        self.assertRegex(self.text("--set", "attention.backend=math", self.CPU), r"forms\s+scores\s+of\s+\d+")

    def test_are_of_attention_alone(self):
        self.assertEqual(self.document(MATMUL)["backends"], [])
        self.assertNotIn("backend ", self.text(MATMUL).split("\n\n")[2])

    def test_switches_are_named(self):
        rows = self.backends("--set", "cuda.math_sdp=false", self.CPU, code=None)
        self.assertIn("cuda.math_sdp is off, set by the process", rows["math"]["why"]["text"])

    def test_the_environment_asks(self):
        self.assertEqual(self.backends(self.CPU, TENON_ATTENTION_BACKEND="torch_sdpa")["TORCH_SDPA"]["verdict"],
                         "chosen")
        document = self.document(self.CPU, code=4, TENON_ATTENTION_BACKEND="NO_ATTENTION")
        self.assertEqual(document["status"], "refused")
        self.assertIn("attention.backend (environment: TENON_ATTENTION_BACKEND) requests NO_ATTENTION",
                      document["message"])
        document = self.document(self.CPU, code=3, TENON_ATTENTION_BACKEND="SAGE_ATTN")
        self.assertIn("no kernel on cpu has the name SAGE_ATTN", document["message"])
        told = self.refuse(self.CPU, code=2, TENON_ATTENTION_BACKEND="SAGE_ATN")
        self.assertIn('no attention backend "sage_atn"; did you mean SAGE_ATTN?', told)

    def test_a_device_that_is_not_here(self):
        file = script.source("backends", "described", "devices", "h200.device")
        problem = "attention:bf16:b=1,h=24,l=32760,d=128,mask=causal@h200"
        document = self.document("--device-file", file, problem, code=None)
        rows = {row["name"]: row for row in document["backends"]}
        for name in ("FLASH_ATTN", "flash", "mem_efficient", "cudnn"):
            outcomes = {row["name"]: row["outcome"] for row in rows[name]["conditions"]}
            own = rows["flash" if name == "FLASH_ATTN" else name]  # the conditions are of the kernel of that name
            self.assertEqual(outcomes.pop("kernel"), "holds" if own["kernel"] else "fails")
            self.assertEqual(set(outcomes.values()), {"holds", "not-asked"})
            if rows[name]["kernel"]:
                continue  # of a module for cuda
            self.assertIn("PyTorch's other conditions hold", rows[name]["why"]["text"])
        text = self.text("--device-file", file, problem, code=None)
        for name in ("flash", "mem_efficient", "cudnn"):
            told = re.search(rf"PyTorch's conditions for {name}\n((?: {{4}}.*\n)+)", text).group(1)
            found = {"holds": set(), "fails": set(), "not-asked": set()}
            for outcome, names in re.findall(r"(?m)^ {4}(\S+) +((?:.|\n {15})*)", told):
                found[outcome] = set(re.split(r",\s+", names.strip()))
            for row in rows[name]["conditions"]:
                self.assertIn(row["name"], found[row["outcome"]])
            self.assertEqual(sum(map(len, found.values())), len(rows[name]["conditions"]))
        wide = self.document("--device-file", file, problem.replace("d=128", "d=320"), code=None)
        flash = next(row for row in wide["backends"] if row["name"] == "flash")
        if not flash["kernel"]:
            self.assertEqual((flash["why"]["needed"], flash["why"]["found"]), (256, 320))


class Fields(Case):
    """docs/names.md and --help list the fields that an op takes: no more, no less."""

    # Of ops with fields that they have only where another one asks for it: those are asked for here. Of other ops, the
    # first of the op's own test problems has all fields.
    SOUND = {"matmul": ["m=1,n=1,k=1,bias=1,scale_a=tensor,scale_b=tensor"],
             "norm": ["kind=layer,shape=4,weight=1,bias=1"],
             "attention": ["b=1,h=1,l=4,d=4,mask=additive,sink=1,lse=1,used=1", "h=1,varlen=4,d=4",
                           "b=1,h=1,l=4,d=4,page=4"],
             "attention-backward": ["b=1,h=1,l=4,d=4,mask=additive"], "attention-merge": ["b=1,h=1,l=4,d=4,lse=1"],
             "attention-quantized": ["h=1,l=4,d=4,lse=1"],
             "attention-sparse": ["h=1,l=4,d=4,bq=2,sizes=1,slots=4,lse=1", "h=1,l=4,d=4,bq=2,entries=2"],
             "attention-sparse-backward": ["h=1,l=4,d=4,bq=2,sizes=1", "h=1,l=4,d=4,bq=2,entries=2"]}

    def setUp(self):
        super().setUp()
        rows = re.findall(r"^\| `([\w-]+)` \| ((?:`\w+`,? ?)+)\|", names.section("Problems"), re.M)
        self.page = {op: re.findall(r"`(\w+)`", fields) for op, fields in rows}

    def there_are(self, problem):
        return re.search(r"; there are ([\w -]+)", self.refuse(problem)).group(1).split()

    def expected_one_of(self, problem):
        return re.search(r"expected one of ([\w -]+),", self.refuse(problem)).group(1).split()

    def test_of_every_op(self):
        self.assertEqual(set(self.page), set(self.there_are("nonsense:f32:m=1")))
        tested = script.op_problems()
        self.assertEqual(set(self.page), set(tested))
        for op, fields in self.page.items():
            shapes = [problem for aspect, problem in tested[op] if aspect == "shapes"]
            taken = set()
            for problem in self.SOUND.get(op, shapes[:1]):
                taken |= set(self.there_are(f"{op}:f32:{problem},zz=1"))
            self.assertEqual(sorted(fields), sorted(taken), op)

    def test_in_the_help(self):
        text = self.text("--help")
        for op, fields in self.page.items():
            self.assertIn(f"\n  {op:<8} {' '.join(fields)}\n", re.sub(r"\n {11}(?=\w)", " ", text))

    def test_have_a_row_each(self):
        rows = re.findall(r"^\| ((?:`\w+`,? ?)+)\| [a-z0-9]", names.section("Problems"), re.M)
        told = {field for row in rows for field in re.findall(r"`(\w+)`", row)}
        self.assertLessEqual({field for fields in self.page.values() for field in fields}, told)

    def test_words_of_kind_and_act(self):
        page = names.section("Problems")
        for op in ("unary", "binary", "reduce", "norm", "rotary"):
            words = self.expected_one_of(f"{op}:f32:kind=zz,shape=4x4")
            self.assertIn(f"for {op}: `{' '.join(words)}`", " ".join(page.split()))
        words = self.expected_one_of("matmul:f32:m=1,n=1,k=1,act=zz")
        self.assertIn(f"`{' '.join(words)}`", " ".join(page.split()))


class Unknown(Case):
    """A rule about a library or a kernel that is misspelt can never be met, and forbids nothing: that is said."""

    def test_names_the_nearest(self):
        for setting, name in (("matmul.library=opneblas", "matmul.library"),
                              ("rules=require:matmul/library:opneblas", "rules")):
            done = self.tenon(MATMUL, "--set", setting, code=4)
            said = f'{name}: unknown library "opneblas": '
            self.assertRegex(done.stderr, rf"^tenon: settings: {said}[^\n]*; did you mean openblas\?\n$")
            self.assertIn("unknown: " + said, " ".join(done.stdout.split()))

    def test_names_the_nearest_kernel(self):
        for rule, code in (("forbid:cpu.matmul.opnblas", 0), ("require:cpu.matmul.opnblas", 4),
                           ("avoid:matmul/kernel:cpu.matmul.opnblas", 0)):
            said = 'rules: no kernel "cpu.matmul.opnblas"; '
            done = self.tenon(MATMUL, "--set", f"rules={rule}", code=code)
            self.assertRegex(done.stderr, rf"^tenon: settings: {said}[^\n]*; did you mean "
                                          r"cpu\.matmul\.openblas\?\n$")
            self.assertIn("unknown: " + said, " ".join(done.stdout.split()))
            done = self.tenon("--json", MATMUL, "--set", f"rules={rule}", code=code)
            (problem,) = json.loads(done.stdout)["problems"]
            self.assertTrue(problem.startswith(said), problem)

    def test_names_what_a_name_alone_is_near_to(self):
        done = self.tenon(MATMUL, "--set", "rules=forbid:opnblas")
        self.assertEqual(done.stderr, 'tenon: settings: rules: no kernel, library, backend, platform or language '
                                      'is named "opnblas"; did you mean openblas?\n')

    def test_is_said_once(self):
        done = self.tenon(MATMUL, "--set", "rules=forbid:cpu.no", TENON_RULES="avoid:cpu.no")
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)

    def test_is_silent_of_what_is_known(self):
        """Which need not be here."""
        self.text(MATMUL, "--set", "matmul.library=prefer:mkl,openblas", "--set",
                  "rules=avoid:library:cublas,avoid:matmul/library:x*,avoid:cpu.no*,avoid:language:triton,"
                  "avoid:mkl,avoid:cuda,avoid:flash_attn,avoid:cpu.matmul.openblas,avoid:softmax/library:mkl,"
                  "avoid:backend:nobody")


class DryRun(Case):
    def test_says_which_wish_is_not_met(self):
        wish = ("--set", "rules=prefer:matmul/library:nnpack", MATMUL)
        document = self.document(*wish)
        self.assertEqual(document["unmet"], "matmul/library:nnpack")
        self.assertIsNone(document["without_set"]["unmet"])
        self.assertRegex(self.text(*wish), r"(?m)^not met: matmul/library:nnpack: no candidate that it")
        self.assertNotIn("not met: ", self.text(MATMUL))

    def test_shows_what_changes(self):
        plain = self.document(MATMUL)
        document = self.document("--set", "determinism=cross-device", MATMUL)
        self.assertEqual(document["without_set"],
                         {"chosen": plain["chosen"], "runs_now": plain["runs_now"], "runs_once_tested": None,
                          "status": "ok", "message": "", "unmet": None})
        self.assertEqual(document["chosen"], "cpu.matmul.ref")
        refused = [row["kernel"] for row in document["candidates"]
                   if row["why"] and row["why"]["code"] == "determinism"]
        self.assertEqual(document["offenders"], refused)
        if plain["chosen"] == "cpu.matmul.ref":
            self.skipTest("there is no faster kernel here to be refused")
        self.assertIn(plain["chosen"], document["offenders"])
        text = self.text("--set", "determinism=cross-device", MATMUL)
        self.assertIn(f"dry run: {plain['chosen']} -> cpu.matmul.ref because of --set\n", text)
        offenders = " ".join(text.split("\nnot cross-device: ")[1].split("\ndry run: ")[0].split())
        self.assertIn(f"{plain['chosen']} (selected without --set)",
                      offenders.split(", "))

    def test_says_when_nothing_changes(self):
        text = self.text("--set", "determinism=run-to-run", SOFTMAX)
        self.assertIn("not run-to-run: none of them\n", text)
        self.assertIn("dry run: the same without --set\n", text)

    def test_says_when_a_test_comes_first(self):
        """The kernel stays the same, but it runs only once it is tested."""
        plain = self.document(SOFTMAX)
        document = self.document("--set", "admission=always", SOFTMAX)
        if document["runs_now"] == plain["runs_now"]:
            self.skipTest("the same kernel runs at once")
        self.assertIn(f"dry run: {plain['runs_now']} -> {document['runs_now']} "
                      f"(once tested: {document['runs_once_tested']}) because of --set",
                      " ".join(self.text("--set", "admission=always", SOFTMAX).split()))

    def test_a_setting_of_the_environment_is_no_dry_run(self):
        text = self.text(MATMUL, TENON_DETERMINISM="cross-device")
        self.assertIn("settings  determinism=cross-device (environment: TENON_DETERMINISM)", text)
        self.assertIn("not cross-device: ", text)
        self.assertNotIn("dry run", text)

    def test_what_holds_for_the_process_alone(self):
        before = self.document(SOFTMAX)["chosen"]
        document = self.document("--set", "cpu.isa_mask=baseline", SOFTMAX)
        self.assertEqual(document["without_set"]["chosen"], before)
        self.assertIn(document["chosen"], (BASE, "cpu.softmax.ref"))

    def test_libraries_keep_to_the_level_of_instructions(self):
        own = re.search(r"level\s([\w-]+),", self.text(SOFTMAX))[1]
        if own == "baseline":
            self.skipTest("this processor has one level")
        for row in self.document("--set", "cpu.isa_mask=baseline", MATMUL)["candidates"]:
            if row["platform"] == "cpu" and row["library"]:
                self.assertEqual(row["verdict"], "refused")
                if row["why"]["code"] not in ("dtype", "precision"):
                    self.assertEqual((row["why"]["code"], row["why"]["what"]), ("device", "instructions"))
                    self.assertIn(row["library"] + " chooses its own instructions", row["why"]["text"])
        for row in self.document("--set", "cpu.isa_mask=" + own, MATMUL)["candidates"]:
            self.assertNotIn("chooses its own instructions", str(row["why"]))


class Text(Case):
    def test_is_a_bug_report(self):
        text = self.text("--full", "matmul:bf16:m=4,n=4,k=4")
        version = script.run(script.build.tenon, "version").stdout.split(" ", 1)[1]
        flat = " ".join(text.split())
        self.assertTrue(text.startswith("device    cpu:0, "))
        self.assertIn("\nproblem   matmul:bf16:m=4,n=4,k=4@cpu:0\n\n  kernel ", text)
        self.assertIn("tenon " + " ".join(version.split()), flat)
        self.assertIn("settings  all at their defaults\n", text)
        for row in self.document("matmul:bf16:m=4,n=4,k=4")["candidates"]:
            time = r"[\d.]+ (ns|us|ms|s) +(predicted|modelled|measured)"
            if row["why"] and row["why"]["code"] == "dtype":
                time = "- "
            self.assertRegex(text, rf"(?m)^  {re.escape(row['kernel'])} +{row['verdict']} +{time}")
            if row["why"]:
                self.assertIn(f"{row['why']['code']}: {row['why']['text']}", flat)
        self.assertRegex(text, r"(?m)^runs now: \S+$")

    def print_from_c(self, *arguments, **changes):
        changes.setdefault("TENON_CACHE", self.place("cache"))
        return self.run_well(os.path.join(script.build.folder, "tests", "cli", "print_decision"), *arguments,
                             env=script.environment(**changes))

    def test_a_program_in_c_prints_the_same(self):
        """From the line of the problem on: what stands before it is of the process."""
        attention = "attention:f32:b=1,h=2,l=64,d=32,mask=causal"
        for problem in (MATMUL, SOFTMAX, attention, "matmul:i8:m=4,n=4,k=4"):
            text = self.text(problem)
            head, _, rest = text.partition("\nproblem ")
            self.assertTrue(head.startswith("device "), text)
            self.assertEqual(self.print_from_c(problem), "problem " + rest)
            self.assertIn("\nruns now: ", rest)
        refused = dict(TENON_RULES="forbid:platform:cpu")
        text = self.text(SOFTMAX, code=4, **refused)
        self.assertIn("\nnothing selected: ", text)
        self.assertTrue(text.endswith("\n" + self.print_from_c(SOFTMAX, **refused)))

    def test_a_program_in_c_chooses_width_and_colors(self):
        plain, painted = self.print_from_c(MATMUL), self.print_from_c(MATMUL, "60")
        self.assertNotIn("\033", plain)
        bare = re.sub(r"\033\[\d+m", "", painted)
        self.assertNotEqual(bare, painted)
        self.assertEqual(bare.split(), plain.split())
        self.assertGreater(len(bare.splitlines()), len(plain.splitlines()))
        self.print_from_c()  # tests what is refused

    def test_kernels_of_other_dtypes_are_counted(self):
        """One line, unless --full lists them, without times; JSON has them all."""
        rows = self.document(MATMUL)["candidates"]
        others = [row["kernel"] for row in rows if row["why"] and row["why"]["code"] == "dtype"]
        self.assertGreater(len(others), 1)
        text, full = self.text(MATMUL), self.text("--full", MATMUL)
        self.assertIn(f"\n  {len(others)} kernels compute with other dtypes (`tenon explain --full` lists them)\n",
                      text)
        self.assertNotIn("with other dtypes (", full)
        for row in rows:
            name = rf"(?m)^  {re.escape(row['kernel'])} "
            (self.assertNotRegex if row["kernel"] in others else self.assertRegex)(text, name)
            self.assertRegex(full, name + (r" *refused +- " if row["kernel"] in others else ""))

    def test_says_what_the_words_of_times_mean(self):
        """Only of words that stand there."""
        meant = {"measured": "timed on this device", "modelled": "from the kernel's cost function",
                 "predicted": "from the kernel's compute rate and bandwidth"}
        script.write_text(self.place("list"), SOFTMAX + "\n")
        for problem, words in ((MATMUL, {"modelled", "predicted"}), (SOFTMAX, {"measured"})):
            tuned = ("--set", "tuning.enabled=true") if words == {"measured"} else ()
            if tuned:
                script.run(script.build.tenon, "warm", self.place("list"), *tuned,
                           env=script.environment(TENON_CACHE=self.place("cache")))
            text = self.text(problem, *tuned)
            told = " ".join(re.search(r"(?m)^  times: (.*(?:\n {9}.*)*)$", text)[1].split())
            shown = set(re.findall(r"\d [num]?s (\w+)", text))
            self.assertLessEqual(words, shown)
            self.assertEqual(told, "; ".join(f"{word} = {meant[word]}" for word in meant if word in shown))

    def test_numbers_of_a_refusal(self):
        """A limit has both of its numbers; what is there or not has neither."""
        text = self.text("--set", "workspace.limit=0", "matmul:f32:m=33,n=31,k=37,sa=74;2")
        for found in re.findall(r"(?m)^      memory: .*", text):
            self.assertRegex(found, r"workspace bytes: expected \d+, got 0; ")
        self.assertNotIn("expected 1, got 0", text)

    def test_what_is_not_there_is_said_in_words(self):
        cases = {
            ("--full", "matmul:i8:m=4,n=4,k=4"): "dtype: i8; it computes with f32, f64, ",
            ("matmul:f32:m=4,n=4,k=4,sa=8;2,acc=f64",):
                "feature: the kernel does not support strides, acc",
            ("--set", "determinism=cross-device", MATMUL):
                "determinism: it does not guarantee batch-invariant, which "
                "determinism=cross-device requires",
            ("--set", "rules=forbid:library:openblas", MATMUL):
                "rule: it is forbidden by the rule forbid:library:openblas of the process",
            ("--set", "mkldnn.enabled=false", MATMUL):
                "rule: mkldnn.enabled is off, set by the process",
            ("--set", "rules=require:cpu.matmul.ref", MATMUL):
                "rule: another one is required by the rule require:cpu.matmul.ref of the process",
        }
        for arguments, said in cases.items():
            text = self.text(*arguments)
            flat = " ".join(text.split())
            self.assertIn(said, flat)
            self.assertNotRegex(flat, r"expected [01], got [01]\b")

    def test_a_library_that_is_not_there(self):
        """The reason and the remedy, in a call's error too."""
        script.write_text(self.place("libopenblas.so.0"), "")
        hidden = {"LD_LIBRARY_PATH": os.path.dirname(self.place("libopenblas.so.0"))}
        rows = self.document(MATMUL, **hidden)["candidates"]
        why = next(row["why"] for row in rows if row["library"] == "openblas")
        self.assertEqual((why["code"], why["what"], why["needed"], why["found"]),
                         ("library", "openblas", 1, 0))
        self.assertRegex(why["text"], r"^openblas is not available: libopenblas\.so\.0: .*"
                                      r"; install libopenblas0 \(Debian\) or openblas ")
        refused = self.document("--set", "matmul.library=openblas", MATMUL, code=4, **hidden)
        self.assertIn(f"cpu.matmul.openblas: library: {why['text']}; {MATMUL}",
                      refused["message"])

    def test_fits_the_width(self):
        for line in self.text(MATMUL, SOFTMAX).splitlines():
            self.assertTrue(len(line) <= 100 or " " not in line.strip(), line)


    def test_no_path_is_cut(self):
        """A long one loses leading folders, where a text has no room for all of it."""
        folder = self.place(*(f"folder-{i}-{'x' * 40}" for i in range(6)))
        os.makedirs(folder)
        lock = os.path.join(folder, "a.lock")
        script.run(script.build.tenon, "lock", "write", lock, SOFTMAX, "--set", f"rules=require:{BASE}",
                   env=script.environment(TENON_CACHE=self.place("cache")))
        damaged, missing = script.write_text(os.path.join(folder, "b.lock"), "checksum = x\n"), lock + ".none"
        for path in (lock, damaged, missing):
            code = 0 if path == lock else 4
            document = self.document(SOFTMAX, TENON_LOCK=path, code=code)
            self.assertEqual(document["lock"], path)
            self.assertIn(path, self.text(SOFTMAX, TENON_LOCK=path, code=code))
            texts = [row["why"]["text"] for row in document["candidates"]
                     if row["why"] and row["why"]["code"] == "lock"]
            self.assertNotEqual(texts, [])
            for text in [*texts, document["message"]]:
                shown = re.findall(r"[./][^ :]*/[^ :]*", text)
                self.assertTrue(shown or not text, text)
                for found in shown:
                    tail = found[3:] if found.startswith(".../") else found
                    self.assertTrue(path == tail or (path.endswith(tail) and found != tail), (found, path))

    def test_a_library_that_is_absent_was_sought_somewhere(self):
        """The remedy is always told; the places are, unless there is no room for all of them."""
        everywhere = "the system's library cache and folders"
        for path, places in ((None, f"; searched in {everywhere}"),
                             ("/nowhere/" + "x" * 200, r"(; searched in LD_LIBRARY_PATH \([^();]*\)[^();]*)?"),
                             (":".join(["/nowhere/" + "x" * 20] * 9),
                              r"(; searched in LD_LIBRARY_PATH \((/nowhere/x{20}:)*(\.\.\.)?\)[^();]*)?")):
            rows = self.document("matmul:f32:m=256,n=256,k=256", LD_LIBRARY_PATH=path)["candidates"]
            texts = [row["why"]["text"] for row in rows if row["why"] and row["why"]["code"] == "library"]
            for text in texts:
                if "No such file" in text:
                    self.assertRegex(text, rf": [^;]*No such file or directory{places}; install ")


class Described(Case):
    """A processor that is not here is judged by its description."""

    def explain(self, problem, *lines):
        path = script.write_text(self.place("x.device"), "\n".join(["[device x]", "platform = cpu", *lines, ""]))
        rows = self.document("--device-file", path, problem + "@x")["candidates"]
        return {row["kernel"]: row for row in rows}

    def test_features_permit_kernels(self):
        for line, refused in (("features = f16c, fma, avx2", {"avx512"}), ("", {"avx2", "avx512"})):
            rows = self.explain(SOFTMAX, "architecture = x86_64", line)
            if "cpu.softmax.avx512" not in rows:
                self.skipTest("this build has no kernels for x86_64")
            for level in ("avx2", "avx512"):
                why = rows[f"cpu.softmax.{level}"]["why"]
                self.assertEqual(why is not None, level in refused, why)
                if why:
                    self.assertEqual((why["code"], why["what"]), ("device", "instructions"))
                    self.assertIn(f"{level}", why["text"])
                    self.assertIn("the description has no such features", why["text"])


    def test_a_library_made_for_another_processor(self):
        for architecture, fits in (("aarch64", False), ("x86_64", True), (None, True)):
            rows = self.explain(MATMUL, f"architecture = {architecture}" if architecture else "")
            if "cpu.matmul.mkl" not in rows:
                self.skipTest("this build has no kernels of mkl")
            self.assertIsNone(rows["cpu.matmul.openblas"]["why"])
            why = rows["cpu.matmul.mkl"]["why"]
            self.assertEqual(why is None, fits, why)
            if why:
                self.assertEqual((why["code"], why["what"]), ("library", "mkl"))
                self.assertIn("mkl needs x86_64, but the description says aarch64", why["text"])


class Codes(Case):
    def test_refused_by_settings(self):
        document = self.document("--set", "rules=forbid:matmul/platform:cpu", MATMUL, code=4)
        self.assertEqual((document["chosen"], document["status"]), (None, "refused"))
        self.assertIn("forbid:matmul/platform:cpu", document["message"])
        text = self.text("--set", "rules=forbid:matmul/platform:cpu", MATMUL, code=4)
        self.assertRegex(text, r"(?m)^nothing selected: refused: no kernel can compute it")
        self.assertRegex(text, r"(?m)^dry run: cpu\.\S+ -> nothing because of --set$")

    def test_the_first_that_is_not_taken_decides(self):
        self.tenon("--set", "rules=forbid:matmul/platform:cpu", SOFTMAX, MATMUL, code=4)
        self.tenon("--set", "rules=forbid:matmul/platform:cpu", SOFTMAX)

    def test_unsupported_here(self):
        described = script.source("backends", "described", "devices", "tpu-v5e.device")
        document = self.document("--device-file", described, f"{MATMUL}@tpu-v5e", code=3)
        self.assertEqual((document["chosen"], document["status"]), (None, "unsupported"))
        self.assertEqual(document["candidates"], [])
        self.assertIn("has no kernel for matmul", document["message"])

    def test_wrong_use(self):
        self.assertIn("expected PROBLEM, got nothing: tenon explain PROBLEM...", self.refuse())
        self.assertIn('no operator "matmull"', self.refuse("matmull:f32:m=1"))
        self.assertIn("k is missing", self.refuse("matmul:f32:m=1,n=1"))
        self.assertIn('no device "cpu:7"', self.refuse(MATMUL + "@cpu:7"))
        self.refuse(MATMUL, "wrong")

    def test_a_lock_that_is_wrong(self):
        lock = script.write_text(self.place("x.lock"), "checksum = nothing\n")
        document = self.document(MATMUL, code=4, TENON_LOCK=lock)
        self.assertEqual((document["lock"], document["chosen"]), (lock, None))
        locked = [row["why"]["text"] for row in document["candidates"]
                  if row["why"]["code"] == "lock"]
        self.assertNotEqual(locked, [])
        for text in locked:
            self.assertIn(lock + ":1: ", text)


if __name__ == "__main__":
    script.main()
