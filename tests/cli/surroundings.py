"""The command in the world: logs, closed outputs, broken modules, homes, folders, users."""

import json
import os
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import script

COMMANDS = [["devices"], ["modules"], ["doctor", "--quick"], ["libraries"], ["settings"], ["cache"],
            ["version"]]
NOBODY = 65534


def tenon(*arguments, **changes):
    return script.run(script.build.tenon, *arguments, env=script.environment(**changes))


def shell(text, *arguments, env=None):
    return script.run("/bin/sh", "-c", text, script.build.tenon, *arguments, env=env)


class Log(script.Case):
    def test_levels(self):
        script.write_text(self.place("tenon-broken.so"), "no library\n")
        said = {}
        for level in ("off", "error", "warning", "info", "debug"):
            done = tenon("modules", TENON_LOG=level, TENON_MODULE_PATH=self.folder)
            self.assertEqual(done.returncode, 0)
            said[level] = done.stderr
        self.assertEqual((said["off"], said["error"]), ("", ""))
        self.assertRegex(said["warning"], r"^tenon: warning: module broken stopped at found: ")
        self.assertNotIn("tenon: info: ", said["warning"])
        for level in ("info", "debug"):
            self.assertRegex(said[level], r"(?m)^tenon: info: module ref .* is ready")
            self.assertIn("tenon: warning: module broken", said[level])

    def test_unset_and_empty_are_silent(self):
        self.assertEqual(tenon("modules").stderr, "")
        self.assertEqual(tenon("modules", TENON_LOG="").stderr, "")

    def test_a_bad_level(self):
        for words in COMMANDS:
            done = tenon(*words, TENON_LOG="inof")
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn('TENON_LOG: unknown log level "inof"', done.stderr)
            self.assertIn("off, error, warning, info or debug", done.stderr)
            self.assertIn("did you mean info?", done.stderr)


class Bytes(script.Case):
    """What users, files and the environment say is escaped: no byte of it reaches the terminal raw."""

    ODD = "x\udcff\x1b[31m"  # a byte that is no UTF-8, and what colours a terminal
    SHOWN = rb"x\xff\x1b[31m"

    def say(self, *arguments, **changes):
        done = subprocess.run([script.build.tenon, *arguments], env=script.environment(**changes), check=False,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        said = done.stdout.decode("utf-8")  # or fails
        self.assertRegex(said, r"^[^\x00-\x09\x0b-\x1f\x7f-\x9f]*$", (arguments, changes))
        return b" ".join(done.stdout.split())

    def test_of_the_environment(self):
        for variable in ("TENON_LOG", "TENON_DETERMINISM", "TENON_RULES", "TENON_CPU_THREADS", "TENON_PLATFORM"):
            self.assertIn(self.SHOWN, self.say("devices", **{variable: self.ODD}), variable)
        self.assertIn(self.SHOWN.upper().replace(rb"\XFF\X1B", rb"\xff\x1b"),
                      self.say("devices", **{"TENON_" + self.ODD.upper(): "1"}))
        for variable in ("TENON_CONFIG", "TENON_MODULE_PATH", "TENON_LOCK", "TENON_CACHE"):
            command = {"TENON_CACHE": "cache", "TENON_MODULE_PATH": "modules", "TENON_CONFIG": "settings"}
            script.write_text(self.place(self.ODD), "[")
            said = self.say(*command.get(variable, "explain softmax:f32:shape=4x4").split(),
                            **{variable: self.place(self.ODD)})
            self.assertIn(self.SHOWN, said, variable)

    def test_of_arguments(self):
        problem = "softmax:f32:shape=4x4"
        for arguments in ([self.ODD], ["devices", "--" + self.ODD], ["devices", self.ODD], ["cache", self.ODD],
                          ["settings", "get", self.ODD], ["settings", "set", self.ODD], ["explain", self.ODD],
                          ["explain", "softmax:f32:shape=" + self.ODD], ["explain", f"{problem}@{self.ODD}"],
                          ["--set", self.ODD, "devices"], ["--set", "rules=" + self.ODD, "devices"],
                          ["--set", "determinism=" + self.ODD, "devices"], ["cache", "prune", "--limit", self.ODD],
                          ["devices", "--device-file", self.place(self.ODD)], ["warm", self.place(self.ODD)],
                          ["lock", "check", self.place(self.ODD)],
                          ["lock", "write", self.place("none", self.ODD), problem],
                          ["check", problem, "--dump", self.place("none", self.ODD)],
                          ["conformance", "--platform", "cpu", "--case", self.ODD]):
            self.assertIn(self.SHOWN, self.say(*arguments), arguments)


class Output(script.Case):
    def check_lost(self, done):
        self.assertEqual(done.returncode, 5)
        self.assertIn("cannot write the output", done.stderr)

    def test_a_full_device(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("/dev/full is not here")
        for words in COMMANDS:
            for option in ("--json", "--help"):
                self.check_lost(shell('"$0" "$@" >/dev/full', *words, option))
        self.check_lost(shell('"$0" --help >/dev/full'))

    def test_closed(self):
        for words in COMMANDS:
            self.check_lost(shell('"$0" "$@" >&-', *words))
            self.check_lost(shell('"$0" "$@" >&- <&-', *words, "--json"))

    def test_all_closed(self):
        done = shell('"$0" modules <&- >&- 2>&-')
        self.assertEqual(done.returncode, 5)

    def test_a_reader_that_has_left(self):
        reader, writer = os.pipe()
        os.close(reader)
        done = script.run(script.build.tenon, "modules", stdout=writer)
        os.close(writer)
        self.assertIn(done.returncode, (5, -signal.SIGPIPE))


class Broken(script.Case):
    def setUp(self):
        super().setUp()
        script.write_text(self.place("tenon-broken.so"), "no library\n")

    def test_modules_shows_it_and_goes_on(self):
        done = tenon("modules", TENON_MODULE_PATH=self.folder)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(done.stdout, r"(?m)^  ref +\S+ +ready +ok ")
        self.assertRegex(done.stdout, r"(?m)^  broken +- +found +corrupt .* TENON_MODULE_PATH$")
        self.assertIn("remedy: install the module again, or remove the file", done.stdout)
        self.assertIn(f"file: {self.place('tenon-broken.so')}", done.stdout)
        self.assertIn(f"{self.folder} (TENON_MODULE_PATH): 1 module", done.stdout)

    def test_doctor_exits_with_1(self):
        done = tenon("doctor", "--quick", TENON_MODULE_PATH=self.folder)
        self.assertEqual(done.returncode, 1)
        verdict = " ".join(done.stdout.split("\n\n")[0].split())
        self.assertRegex(verdict, r"^verdict: 1 thing is broken; \d+ of \d+ platforms ready, \d+ devices?, "
                                  r"\d+ of \d+ modules ready module broken: .* remedy: install the module again, "
                                  r"or remove the file$")

    def test_doctor_without_it_exits_with_0(self):
        done = tenon("doctor", "--quick")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertRegex(done.stdout, r"(?m)^verdict: nothing is broken; ")


class Places(script.Case):
    """An unknown module, so that the child and the cache are both in use."""

    def setUp(self):
        super().setUp()
        os.mkdir(self.place("modules"))
        module = os.path.join(script.build.folder, "tests", "abi", "tenon-twice.so")
        shutil.copy(module, self.place("modules"))

    def check_ready(self, done):
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        row = json.loads(done.stdout)["modules"][-1]
        self.assertEqual((row["name"], row["stage"], row["status"]), ("twice", "ready", "ok"), row)

    def environment(self, **changes):
        return script.environment(TENON_MODULE_PATH=self.place("modules"), **changes)

    def ask(self, **changes):
        done = script.run(script.build.tenon, "modules", "--json", env=self.environment(**changes))
        self.check_ready(done)

    def test_homes(self):
        script.write_text(self.place("file"), "in the way\n")
        os.mkdir(self.place("closed"), 0o500)
        nowhere = {"TENON_CACHE": None, "XDG_CACHE_HOME": None, "HOME": None}
        self.ask(**nowhere)
        for home in ("", "/proc", "/proc/none", self.place("closed"), self.place("file")):
            for name in nowhere:
                self.ask(**dict(nowhere, **{name: home}))

    def test_a_relative_home_is_none(self):
        for name in ("XDG_CACHE_HOME", "HOME"):
            changes = {"TENON_CACHE": None, "XDG_CACHE_HOME": None, "HOME": None, name: "relative"}
            env = self.environment(**changes)
            self.check_ready(
                script.run(script.build.tenon, "modules", "--json", env=env, cwd=self.folder))
        self.assertEqual(os.listdir(self.folder), ["modules"])

    def test_the_cache_is_where_the_variable_says(self):
        self.ask(TENON_CACHE=self.place("new", "cache"))
        self.assertEqual(os.stat(self.place("new", "cache")).st_mode & 0o777, 0o700)
        self.assertTrue(os.listdir(self.place("new", "cache")))
        self.ask(TENON_CACHE=self.place("new", "cache"))

    def test_any_current_folder(self):
        os.mkdir(self.place("here"))
        script.write_text(self.place("here", "tenon-here.so"), "never opened\n")
        for folder in ("/", "/proc", self.place("here")):
            done = script.run(
                script.build.tenon, "modules", "--json", env=self.environment(), cwd=folder)
            self.check_ready(done)
            self.assertNotIn("tenon-here.so", done.stdout)
        os.mkdir(self.place("gone"))
        done = script.run(
            "/bin/sh", "-c", 'rmdir "$PWD" && exec "$0" modules --json', script.build.tenon,
            env=self.environment(), cwd=self.place("gone"))
        self.check_ready(done)

    def test_any_way_to_call_it(self):
        os.symlink(script.build.tenon, self.place("link"))
        env = self.environment(PATH=script.build.folder)
        for name in (self.place("link"), "./tenon", "tenon"):
            done = script.run(name, "modules", "--json", env=env, cwd=script.build.folder)
            self.check_ready(done)

    def test_only_absolute_folders_of_the_variable(self):
        script.write_text(self.place("tenon-here.so"), "never opened\n")
        done = script.run(
            script.build.tenon, "modules", cwd=self.folder,
            env=script.environment(TENON_MODULE_PATH=":.:./modules:/proc/none"))
        self.assertEqual(done.returncode, 0)
        self.assertNotIn("tenon-here.so", done.stdout)
        self.assertNotIn("twice", done.stdout)
        self.assertIn("./modules (TENON_MODULE_PATH): ignored: not an absolute path", done.stdout)
        self.assertIn("/proc/none (TENON_MODULE_PATH): no such folder", done.stdout)

    def test_closed_descriptors_do_not_reach_the_child(self):
        done = shell('exec "$0" modules --json <&- 2>&-', env=self.environment())
        self.check_ready(done)

    def test_another_user(self):
        if os.geteuid() != 0:
            self.skipTest("only root can run the command as another user")
        os.chmod(self.folder, 0o755)
        os.mkdir(self.place("build"), 0o755)
        for name in ("tenon", "libtenon.so.0"):
            shutil.copy(os.path.join(script.build.folder, name), self.place("build"))
        shutil.copytree(script.build.modules, self.place("build", "backends"))
        for home in ("/root", self.folder):
            try:
                done = script.run(
                    self.place("build", "tenon"), "modules", "--json",
                    env=self.environment(TENON_CACHE=None, XDG_CACHE_HOME=None, HOME=home),
                    cwd="/", user=NOBODY, group=NOBODY, extra_groups=[])
            except PermissionError:
                self.skipTest("the temporary folder is closed to other users")
            self.check_ready(done)


if __name__ == "__main__":
    script.main()
