"""tenon settings, and --set of every command: the table as a manual and as JSON, values and where they
came from, changes that are checked and saved, and what could not be taken from environment and file."""

import json
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import names
import script

BAD_KEY = ('unknown setting "fp32_precison"; `tenon settings` lists them; '
           "did you mean fp32_precision?")


class Case(script.Case):
    def setUp(self):
        super().setUp()
        self.file = self.place("folder", "config")
        self.write("")

    def tenon(self, *arguments, **changes):
        changes.setdefault("TENON_CONFIG", self.file)
        return script.run(script.build.tenon, *arguments, env=script.environment(**changes))

    def well(self, *arguments, **changes):
        """What a command that must succeed without a word on stderr prints."""
        done = self.tenon(*arguments, **changes)
        self.assertEqual((done.returncode, done.stderr), (0, ""), arguments)
        return done.stdout

    def document(self, *arguments, **changes):
        return json.loads(self.well("settings", *arguments, "--json", **changes))

    def rows(self, *arguments, **changes):
        return {row["key"]: row for row in self.document(*arguments, **changes)["settings"]}

    def refuse(self, *arguments, code=2, **changes):
        """What is said on stderr, in one line."""
        done = self.tenon(*arguments, **changes)
        self.assertEqual((done.returncode, done.stdout), (code, ""), (arguments, done.stderr))
        self.assertRegex(done.stderr, r"^tenon[^\n]*\n$")
        return done.stderr

    def write(self, text):
        os.makedirs(os.path.dirname(self.file), exist_ok=True)
        script.write_text(self.file, text)

    def flat(self, *arguments, **changes):
        """The words of a text, however its lines are broken."""
        return " ".join(self.well(*arguments, **changes).split())


class List(Case):
    def test_has_every_row_with_value_and_effect(self):
        text = self.well("settings")
        self.assertEqual(text, self.well("settings", "list"))
        flat = " ".join(text.split())
        rows = self.rows()
        self.assertGreater(len(rows), 60)
        for key, row in rows.items():
            value = re.escape(row["value"] or "(empty)").replace(r"\ ", r"\s+")
            self.assertRegex(text, rf"(?m)^  {re.escape(key)}\s+{value}(?: |$)")
            self.assertIn(row["effect"], flat)
            if row["type"] != "bool":
                self.assertIn("allowed: " + row["allowed"], flat)
        self.assertNotIn("set by", text)
        self.assertNotIn("default ", text.split("general\n")[1].replace("default, ", ""))

    def test_is_grouped_by_the_first_word(self):
        groups = []
        for block in self.well("settings").split("\n\n")[1:-1]:
            heading, *lines = block.split("\n")
            keys = [line.split()[0] for line in lines if re.match(r"  \S", line)]
            groups.append(heading)
            for key in keys:
                self.assertEqual(key.split(".")[0] if "." in key else "general", heading)
        self.assertEqual(len(groups), len(set(groups)))
        self.assertEqual(groups[:2], ["general", "cuda"])

    def test_values_of_a_group_stand_in_one_column(self):
        text = self.well("settings").split("\ncudnn\n")[1].split("\n\n")[0]
        found = re.findall(r"(?m)^(  \S+ +)\S", text)
        self.assertGreater(len(found), 5)
        self.assertEqual(len({len(part) for part in found}), 1)

    def test_a_row_that_inherits_says_what_holds(self):
        self.assertRegex(self.well("settings"),
                         r"(?m)^  cuda.matmul.fp32_precision +none \(ieee holds\)$")

    def test_says_default_and_origin_where_they_differ(self):
        text = self.well("settings", "--set", "cudnn.benchmark_limit=3", TENON_FP32_PRECISION="tf32")
        self.assertRegex(text, r"(?m)^  fp32_precision +tf32$")
        self.assertIn("default none; set by the environment: TENON_FP32_PRECISION\n", text)
        self.assertIn("default 10; set by the process\n", text)
        self.assertIn("default false; set by the environment: TENON_FP32_PRECISION, through "
                      "fp32_precision\n", text)

    def test_names_the_file(self):
        self.assertIn(f"the file ({self.file})", self.flat("settings"))
        self.assertIn("the file (none: ", self.flat("settings", TENON_CONFIG=""))

    def test_fits_the_terminal(self):
        for columns, most in ((300, 100), (100, 100), (80, 80), (20, 60)):
            text = self.on_terminal(columns, "settings")
            lengths = [len(line) for line in text.splitlines()]
            self.assertLessEqual(max(lengths), most, columns)
            self.assertGreater(max(lengths), most - 8, columns)
            for key in self.rows():
                self.assertIn(f"\n  {key}", text)

    def on_terminal(self, columns, *arguments):
        try:
            import fcntl
            import pty
            import struct
            import termios
        except ImportError:
            self.skipTest("this Python has no terminals")
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        env = script.environment(NO_COLOR="1", TENON_CONFIG="/x")
        with script.subprocess.Popen([script.build.tenon, *arguments], stdout=theirs,
                                     env=env) as child:
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
        self.assertEqual(child.returncode, 0)
        return b"".join(parts).decode().replace("\r\n", "\n")


class One(Case):
    def test_get_prints_the_value_alone(self):
        self.assertEqual(self.well("settings", "get", "fp32_precision"), "none\n")
        self.assertEqual(self.well("settings", "get", "rules"), "\n")
        for key, row in self.rows().items():
            self.assertEqual(self.well("settings", "get", key), row["value"] + "\n")

    def test_get_as_json_is_the_row(self):
        rows = self.rows("get", "cudnn.benchmark")
        self.assertEqual(list(rows), ["cudnn.benchmark"])
        self.assertEqual(rows, {"cudnn.benchmark": self.rows()["cudnn.benchmark"]})

    def test_origin_is_one_line_for_each_level(self):
        self.write("[cuda.matmul]\n\nallow_tf32 = yes\n")
        key = "cuda.matmul.allow_tf32"
        variable = {"TENON_CUDA_MATMUL_ALLOW_TF32": "0"}
        set_it = ["--set", key + "=1"]
        row = "cuda.matmul.fp32_precision"
        for line, arguments, changes in (
                ("default", [], {"TENON_CONFIG": ""}),
                (f"file: {self.file}:3, through {row}", [], {}),
                (f"environment: TENON_CUDA_MATMUL_FP32_PRECISION, through {row}", [],
                 {"TENON_CUDA_MATMUL_FP32_PRECISION": "tf32"}),
                (f"process, through {row}", set_it, variable)):
            said = self.well("settings", "origin", key, *arguments, **changes)
            self.assertEqual(said, line + "\n")

    def test_precedence(self):
        self.write("plan.cache_size = 1\n")
        get = ["settings", "get", "plan.cache_size"]
        self.assertEqual(self.well(*get, TENON_CONFIG=""), "4096\n")
        self.assertEqual(self.well(*get), "1\n")
        self.assertEqual(self.well(*get, TENON_PLAN_CACHE_SIZE="2"), "2\n")
        self.assertEqual(self.well("--set", "plan.cache_size=3", *get, TENON_PLAN_CACHE_SIZE="2"),
                         "3\n")

    def test_an_unknown_key(self):
        for action in ("get", "origin"):
            said = self.refuse("settings", action, "fp32_precison")
            self.assertEqual(said, f"tenon settings: {BAD_KEY}\n")

    def test_a_key_is_needed_and_no_more(self):
        for action in ("get", "origin", "set"):
            self.assertIn(f"settings {action}: expected KEY", self.refuse("settings", action))
            self.assertIn("expected at most 2 words, got also",
                          self.refuse("settings", action, "inference=1", "surplus"))
        self.assertIn('settings list: expected nothing more, got "inference"', self.refuse("settings", "list", "inference"))

    def test_an_unknown_action(self):
        said = self.refuse("settings", "gte", "inference")
        self.assertIn('unknown action "gte": expected list, get, origin or set; did you mean get?', said)

    def test_what_strangers_typed_reaches_no_terminal_raw(self):
        for word in ("\x1b[31m", os.fsdecode(b"\x9b31m")):
            for arguments in ([word], ["get", word], ["set", word + "=1"], ["--set", word + "=1"]):
                self.assertRegex(self.refuse("settings", *arguments), r"^[ -~]*\n$")


class Set(Case):
    def test_says_what_it_would_do_and_does_nothing(self):
        text = self.flat("settings", "set", "fp32_precision=ieee")
        self.assertIn("fp32_precision = ieee lowest precision allowed for float32 operands", text)
        self.assertIn("now none, by the default", text)
        self.assertIn("cudnn.allow_tf32 would become false; now true", text)
        self.assertNotIn(" fp32_precision would become ", text)
        self.assertIn(f"nothing was saved; --save writes it to {self.file}", text)
        self.assertEqual(script.read_text(self.file), "")

    def test_as_json(self):
        document = self.document("set", "fp32_precision=ieee")
        self.assertEqual([row["key"] for row in document["settings"]], ["fp32_precision"])
        self.assertEqual(document["settings"][0]["value"], "ieee")
        changes = {row["key"]: (row["now"], row["then"]) for row in document["changes"]}
        self.assertEqual(changes["cudnn.allow_tf32"], ("true", "false"))
        self.assertNotIn("inference", changes)
        self.assertEqual((document["saved"], document["file"]), (False, self.file))
        self.assertEqual(self.document("set", "inference=0")["changes"], [])

    def test_save_writes_what_the_next_one_reads(self):
        text = self.flat("settings", "set", "plan.cache_bytes=3g", "--save")
        self.assertIn(f"written to {self.file}", text)
        self.assertEqual(script.read_text(self.file), "plan.cache_bytes = 3g\n")
        self.assertEqual(self.well("settings", "get", "plan.cache_bytes"), "3g\n")
        self.assertTrue(self.document("set", "inference=1", "--save")["saved"])
        self.assertEqual(self.well("settings", "get", "inference"), "true\n")

    def test_save_keeps_the_other_lines(self):
        self.write("# mine\ninference = 1\n\n[plan]\ncache_size = 7 # few\n")
        self.well("settings", "set", "plan.cache_size=8", "--save")
        self.well("settings", "set", "debug.sync=1", "--save")
        self.assertEqual(script.read_text(self.file),
                         "# mine\ninference = 1\n\ndebug.sync = 1\n[plan]\ncache_size = 8\n")

    def test_save_where_the_environment_goes_before(self):
        text = self.flat("settings", "set", "inference=1", "--save", TENON_INFERENCE="0")
        self.assertIn(f"written to {self.file}; the environment: TENON_INFERENCE takes precedence",
                      text)

    def test_save_in_a_home(self):
        home = self.place("home")
        changes = {"TENON_CONFIG": None, "XDG_CONFIG_HOME": home, "HOME": "/nowhere"}
        self.well("settings", "set", "inference=1", "--save", **changes)
        self.assertEqual(script.read_text(home, "tenon", "config"), "inference = 1\n")

    def test_save_that_cannot_be(self):
        set_it = ["settings", "set", "inference=1", "--save"]
        said = self.refuse(*set_it, code=3, TENON_CONFIG="")
        self.assertIn("set TENON_CONFIG to a path, or HOME", said)
        done = self.tenon(*set_it, TENON_CONFIG="/proc/none/config")
        self.assertEqual((done.returncode, done.stdout), (3, ""))
        self.assertIn("/proc/none: ", done.stderr.splitlines()[-1])
        self.assertIn("--save is only for set", self.refuse("settings", "--save"))

    def test_save_into_a_file_that_is_none(self):
        self.write("inference = 1\nwhat\n")
        done = self.tenon("settings", "set", "plan.cache_size=8", "--save")
        self.assertEqual(done.returncode, 2)
        self.assertIn(self.file + ":2:", done.stderr.splitlines()[-1])
        self.assertEqual(script.read_text(self.file), "inference = 1\nwhat\n")

    def test_saves_at_the_same_time_are_all_there(self):
        keys = [key for key, row in self.rows().items() if row["type"] == "int"
                and not row["view"] and key != "cpu.threads"]
        keys += ["inference", "debug.sync", "tuning.enabled", "plan.only_prepared",
                 "may_cross_devices", "mkldnn.deterministic", "cudnn.deterministic"]
        self.assertGreaterEqual(len(keys), 10)
        environment = script.environment(TENON_CONFIG=self.file)
        running = [subprocess.Popen([script.build.tenon, "settings", "set", key + "=1", "--save"],
                                    env=environment, stdout=subprocess.DEVNULL) for key in keys]
        self.assertEqual([child.wait() for child in running], [0] * len(keys))
        lines = script.read_text(self.file).splitlines()
        self.assertEqual(sorted(lines), sorted(key + " = 1" for key in keys))
        self.assertEqual(os.listdir(os.path.dirname(self.file)), ["config"])

    def test_a_wrong_value_writes_nothing(self):
        self.write("inference = 1\n")
        for text, said in (
                ("plan.cache_size=-1", "allowed: at least 0"),
                ("fp32_precision=ieeee", "allowed: none, ieee, tf32, bf16; did you mean ieee?"),
                ("cuda.matmul.fp32_precision=bf16", "allowed: none, ieee, tf32"),
                ("inference=maybe", 'inference cannot be "maybe"; allowed: true, false'),
                ("rules=mkl", "does not begin with require:"),
                ("cuda.sdp_priority=math,math", "duplicate"),
                ("fp32_precison=ieee", BAD_KEY),
                ("inference", "expected key=value")):
            self.assertIn(said, self.refuse("settings", "set", text, "--save"))
        self.assertEqual(script.read_text(self.file), "inference = 1\n")

    def test_rules_that_contradict_are_refused(self):
        text = "rules=require:library:mkl,forbid:library:mkl"
        said = self.refuse("settings", "set", text, "--save", code=4)
        self.assertIn("require:library:mkl", said)
        self.assertEqual(script.read_text(self.file), "")


class Option(Case):
    """--set, which every command has."""

    def commands(self):
        return [name for name in names.commands() if name not in ("conformance", "new-module")]

    def test_before_and_behind_every_command(self):
        for name in self.commands():
            whole = [name, *names.needs(name, self.folder)]
            for arguments in (["--set", "inference=1", *whole], [*whole, "--set", "inference=1"],
                              ["--set=inference=1", *whole], [*whole, "--set=inference=1"]):
                self.assertNotEqual(self.well(*arguments), "")
        self.assertEqual(self.well("--set", "inference=1", "--version"), self.well("--version"))

    def test_again_and_the_last_one_counts(self):
        get = ["settings", "get", "plan.cache_size"]
        self.assertEqual(
            self.well("--set", "plan.cache_size=1", "--set", "inference=1", *get,
                      "--set", "plan.cache_size=2"), "2\n")
        self.assertEqual(self.well("--set", "plan.cache_size=1", "--set", "inference=1", *get),
                         "1\n")

    def test_is_in_force(self):
        document = json.loads(self.well("--set", "cpu.isa_mask=baseline", "doctor", "--quick", "--json"))
        self.assertEqual(document["machine"]["level"], "baseline")

    def test_wrong_and_refused(self):
        for name in names.commands():
            whole = [name, *names.needs(name, self.folder)]
            for arguments in (["--set", "fp32_precison=1", *whole], [*whole, "--set=fp32_precison=1"]):
                self.assertEqual(self.refuse(*arguments), f"tenon: --set: {BAD_KEY}\n")
            self.assertIn('inference cannot be "2"', self.refuse(*whole, "--set", "inference=2"))
            contrary = "rules=require:library:mkl,forbid:library:mkl"
            self.assertIn("require", self.refuse(*whole, "--set", contrary, code=4))

    def test_needs_a_value(self):
        self.assertIn("tenon: --set: expected a value, got nothing: --set KEY=VALUE", self.refuse("--set"))
        self.assertIn("tenon: --set: expected a value, got nothing: --set KEY=VALUE", self.refuse("--set", "--json"))
        self.assertIn('tenon: --set: expected KEY=VALUE, got "devices"', self.refuse("--set", "devices"))
        self.assertIn("tenon devices: --set: expected a value, got nothing: --set KEY=VALUE", self.refuse("devices", "--set"))
        self.assertEqual(self.tenon("--set", "inference=1").returncode, 2)

    def test_help_goes_before_it(self):
        self.assertIn("usage: ", self.well("devices", "--set", "nothing=1", "--help"))
        self.assertIn("usage: ", self.well("--set", "nothing=1", "--help"))


class Problems(Case):
    def test_are_told_on_stderr_and_in_the_document(self):
        self.write("inference = 1\nplan.cache_size = few\n[cuda]\nmatmul.allow_tf32 = 1\n"
                   "no_such = 1\n")
        changes = {"TENON_FP32_PRECISON": "tf32", "TENON_DEBUG_SYNC": "maybe"}
        for arguments in (["settings"], ["settings", "get", "inference"],
                          ["settings", "set", "inference=0"]):
            done = self.tenon(*arguments, **changes)
            self.assertEqual(done.returncode, 0)
            lines = sorted(done.stderr.splitlines())
            self.assertEqual(len(lines), 4, lines)
            self.assertRegex(lines[0], rf'{self.file}:2: plan.cache_size cannot be "few"')
            self.assertRegex(lines[1], rf'{self.file}:5: unknown setting "cuda.no_such"')
            self.assertIn('TENON_DEBUG_SYNC: debug.sync cannot be "maybe"', lines[2])
            self.assertIn("TENON_FP32_PRECISON: unknown variable; did you mean "
                          "TENON_FP32_PRECISION?", lines[3])
        document = json.loads(self.tenon("settings", "--json", **changes).stdout)
        said = [line.removeprefix("tenon: settings: ") for line in lines]
        self.assertEqual(sorted(document["problems"]), sorted(said))
        rows = {row["key"]: row["value"] for row in document["settings"]}
        self.assertEqual((rows["inference"], rows["cuda.matmul.allow_tf32"]), ("true", "true"))

    def test_are_told_by_every_command(self):
        """A choice under other settings than those that were asked for is no choice to rely on."""
        said = re.compile(r'^tenon: settings: TENON_DETERMINISM: determinism cannot be "batch-invarint"[^\n]*\n'
                          r"tenon: settings: TENON_FOO: unknown variable[^\n]*\n")
        for name in set(names.commands()) - {"conformance"}:  # whose cases take long
            done = self.tenon(name, *names.needs(name, self.folder), "--json",
                              TENON_DETERMINISM="batch-invarint", TENON_FOO="1",
                              TENON_CACHE=self.place("cache"))
            self.assertRegex(done.stderr, said, name)

    def test_explain_says_what_is_not_followed(self):
        arguments = ["explain", "matmul:f32:m=4,n=4,k=4"]
        done = self.tenon(*arguments, TENON_DETERMINISM="batch-invarint")
        self.assertRegex(done.stdout, r"(?m)^settings  all at their defaults\n          ignored: "
                                      r"TENON_DETERMINISM: determinism cannot be ")
        document = json.loads(self.tenon(*arguments, "--json",
                                         TENON_DETERMINISM="batch-invarint").stdout)
        (problem,) = document["problems"]
        self.assertIn("did you mean batch-invariant?", problem)

    def test_a_file_that_is_not_there(self):
        """One that TENON_CONFIG names is meant to be there; the one in a home need not be."""
        done = self.tenon("settings", "get", "inference", TENON_CONFIG=self.place("none"))
        self.assertEqual((done.returncode, done.stderr),
                         (0, f"tenon: settings: TENON_CONFIG: {self.place('none')}: "
                             "No such file or directory\n"))
        self.well("settings", "get", "inference", TENON_CONFIG=None, XDG_CONFIG_HOME=self.folder)

    def test_a_file_that_is_none(self):
        self.write("inference = 1\n= what\n")
        done = self.tenon("settings", "get", "inference")
        self.assertEqual((done.returncode, done.stdout), (0, "false\n"))
        self.assertIn(self.file + ":2:", done.stderr)
        self.assertIn("; the whole file is ignored\n", done.stderr)

    def test_doctor_finds_them(self):
        self.write("inference = 1\nplan.cache_size = few\n")
        done = self.tenon("doctor", "--quick")
        self.assertEqual(done.returncode, 1)
        self.assertIn(f'setting ignored: {self.file}:2: plan.cache_size cannot be "few"',
                      " ".join(done.stdout.split()))
        self.assertRegex(done.stdout, r"^verdict: 1 thing is broken; ")
        document = json.loads(self.tenon("doctor", "--quick", "--json").stdout)
        self.assertEqual((document["broken"], len(document["problems"])), (1, 1))
        page = self.tenon("doctor", "--quick", "--html", "-").stdout
        self.assertIn("setting ignored", page)
        self.assertIn("plan.cache_size cannot be", page)

    def test_doctor_is_silent_without_any(self):
        self.assertNotIn("settings", self.well("doctor", "--quick"))
        self.assertEqual(json.loads(self.well("doctor", "--quick", "--json"))["problems"], [])


class Document(Case):
    def check(self, document):
        keys = names.documents()["settings"]
        self.assertEqual((document["schema"], document["command"]), (1, "settings"))
        self.assertEqual(set(document) - {"schema", "command"}, set(keys))
        for part in ("settings", "changes"):
            for row in document[part]:
                self.assertEqual(set(row), set(keys[part]))

    def test_every_action_has_the_keys_of_the_page(self):
        for arguments in ([], ["list"], ["get", "inference"], ["origin", "inference"],
                          ["set", "fp32_precision=ieee"], ["set", "inference=1", "--save"]):
            self.check(self.document(*arguments))

    def test_rows(self):
        for key, row in self.rows(TENON_CONFIG="").items():
            self.assertEqual(row["env"], "TENON_" + key.upper().replace(".", "_"))
            self.assertIn(row["type"], ("bool", "int", "bytes", "word", "order", "rule", "rules"))
            self.assertEqual((row["value"], row["origin"], row["level"]),
                             (row["default"], "default", "default"), key)
            self.assertNotEqual(row["effective"] == "none" and "precision" in key, True, key)
            self.assertNotEqual(row["effect"], "")
            self.assertRegex(row["since"], r"^\d+\.\d+$")

    def test_what_changes_nothing_says_why(self):
        rows, manual = self.rows(), self.flat("settings")
        for key, row in rows.items():
            self.assertEqual(row["used"], bool(row["readers"]), key)
            self.assertEqual(row["used"], row["unused_because"] is None, key)
            if not row["used"]:
                self.assertIn(f'{row["effect"]}; changes nothing here: {row["unused_because"]}', manual)
        no_operator = "this version has no operator that reads it"
        self.assertEqual(rows["quantized.engine"]["unused_because"], no_operator)
        self.assertIn(f"changes nothing here: {no_operator}", self.flat("settings", "set", "quantized.engine=fbgemm"))
        self.assertNotIn("changes nothing", self.flat("settings", "set", "cpu.threads=1"))
        used = sum(row["used"] for row in rows.values())
        self.assertIn(f"{used} of {len(rows)} settings can change something", manual)

    def test_what_is_written_can_be_set(self):
        """A value as it is printed is one that --set takes, and it stays what it was."""
        for key, row in self.rows().items():
            if key == "cpu.isa_mask" or (row["view"] and row["type"] == "word"):
                continue
            again = self.rows("--set", f"{key}={row['value']}")[key]
            self.assertEqual(again["value"], row["value"], key)

    def test_markdown_is_the_same_everywhere(self):
        text = self.well("settings", "list", "--markdown")
        self.assertEqual(text, self.well("settings", "--markdown", "--set", "inference=1",
                                         TENON_FP32_PRECISION="tf32"))
        self.assertEqual(text.count("\n| `"), len(self.rows()))
        for arguments in (["get", "inference", "--markdown"], ["--markdown", "--json"]):
            self.assertIn("--markdown is only for list", self.refuse("settings", *arguments))


class Unknown(Case):
    """A rule whose name nobody knows holds, and every command says that it speaks of nothing."""

    SAID = {"matmul.library=opnblas": r'matmul\.library: unknown library "opnblas": [^\n]*; did you mean openblas\?',
            "rules=forbid:library:opnblas": r'rules: unknown library "opnblas": [^\n]*; did you mean openblas\?',
            "rules=forbid:cpu.matmul.opnblas":
                r'rules: no kernel "cpu\.matmul\.opnblas"; [^\n]*; did you mean cpu\.matmul\.openblas\?'}

    def test_set_says_so(self):
        for change, said in self.SAID.items():
            done = self.tenon("settings", "set", change)
            self.assertEqual(done.returncode, 0)
            self.assertRegex(done.stderr, rf"^tenon: settings: {said}\n$")
            (problem,) = json.loads(self.tenon("settings", "set", change, "--json").stdout)["problems"]
            self.assertRegex(problem, rf"^{said}$")

    def test_other_commands_say_so(self):
        change, said = list(self.SAID.items())[-1]
        for command in (("settings",), ("settings", "get", "rules"), ("devices",), ("libraries",), ("modules",),
                        ("doctor", "--quick")):
            done = self.tenon(*command, TENON_RULES=change.split("=")[1])
            self.assertRegex(done.stderr, rf"^tenon: settings: {said}\n$", command)

    def test_set_is_silent_of_what_is_known(self):
        for change in ("matmul.library=mkl", "rules=forbid:library:openblas,avoid:cpu.matmul.*,forbid:cpu.matmul.ref"):
            self.well("settings", "set", change)


if __name__ == "__main__":
    script.main()
