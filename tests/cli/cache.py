"""tenon cache: what is in the folder, by kind; pruned and cleared; and where there is none."""

import json
import os
import stat
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import script


class Cache(script.Case):
    def setUp(self):
        super().setUp()
        self.cache = self.place("cache")

    def tenon(self, *arguments, code=0, **changes):
        changes.setdefault("TENON_CACHE", self.cache)
        done = script.run(script.build.tenon, "cache", *arguments, env=script.environment(**changes))
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def document(self, *arguments, **options):
        return json.loads(self.tenon("--json", *arguments, **options).stdout)

    def refuse(self, *arguments, code=2, **changes):
        done = self.tenon(*arguments, code=code, **changes)
        self.assertEqual(done.stdout, "")
        self.assertRegex(done.stderr, r"^tenon cache: [^\n]*\n$")
        return done.stderr

    def put(self, kind, number, size, used):
        """An entry by its file; what is in it does not count here."""
        os.makedirs(self.cache, 0o700, exist_ok=True)
        digest = f"{number:064x}"
        shelf = os.path.join(self.cache, kind, digest[:2])
        os.makedirs(shelf, 0o700, exist_ok=True)
        path = script.write_text(os.path.join(shelf, digest[2:]), "x" * size)
        os.utime(path, (used, used))
        return path

    def fill(self):
        return [self.put("verdict", 1, 100, 1000), self.put("tuning", 2, 200, 2000),
                self.put("tuning", 3, 300, 3000)]

    def test_counts_by_kind(self):
        self.fill()
        document = self.document()
        self.assertEqual(document["folder"], self.cache)
        self.assertEqual((document["entries"], document["bytes"], document["removed"]), (3, 600, 0))
        self.assertEqual(document["kinds"], [{"kind": "tuning", "entries": 2, "bytes": 500},
                                             {"kind": "verdict", "entries": 1, "bytes": 100}])
        text = self.tenon("list").stdout
        self.assertEqual(text, self.tenon().stdout)
        self.assertRegex(text, rf"^folder: {self.cache}\n  tuning +2 entries +500 bytes\n"
                               r"  verdict +1 entry +100 bytes\n  all +3 entries +600 bytes\n$")

    def test_what_is_not_its_own_does_not_count_and_stays(self):
        self.fill()
        stranger = script.write_text(os.path.join(self.cache, "tuning", "notes.txt"), "mine")
        self.assertEqual(self.document("clear")["entries"], 0)
        self.assertTrue(os.path.exists(stranger))

    def test_prunes_the_least_recently_used(self):
        first, second, third = self.fill()
        document = self.document("prune", "--limit", "550")
        self.assertEqual((document["entries"], document["removed"]), (2, 1))
        self.assertEqual([os.path.exists(p) for p in (first, second, third)], [False, True, True])
        self.assertEqual(self.document("prune", "--limit=1k")["removed"], 0)
        self.assertEqual(self.document("prune")["removed"], 0)
        self.assertIn("\n1 removed\n", self.tenon("prune", "--limit", "300").stdout)
        self.assertTrue(os.path.exists(third))

    def test_says_which_entry_could_not_be_removed(self):
        paths = self.fill()
        os.remove(paths[1])
        os.mkdir(paths[1])
        script.write_text(os.path.join(paths[1], "mine"), "x")
        said = self.refuse("clear")
        self.assertIn(f'expected a file, got a folder: "{paths[1]}"; remove the folder', said)
        self.assertEqual([os.path.exists(path) for path in paths], [False, True, False])
        self.assertTrue(os.path.exists(os.path.join(paths[1], "mine")))

    def test_a_folder_in_the_place_of_an_entry_is_not_said_to_be_removed(self):
        problem = script.write_text(self.place("list"), "softmax:f32:shape=8x64@cpu\n")
        env = script.environment(TENON_CACHE=self.cache, TENON_LOG="warning")
        command = (script.build.tenon, "warm", problem, "--set", "admission=always")
        self.assertEqual(script.run(*command, env=env).stderr, "")
        (path,) = [os.path.join(folder, name) for folder, _, names in os.walk(os.path.join(self.cache, "admission"))
                   for name in names]
        os.remove(path)
        os.mkdir(path)
        said = script.run(*command, env=env).stderr
        self.assertIn(f'expected a file, got a folder: "{path}"; remove the folder', said)
        self.assertNotIn("removed", said)
        self.assertTrue(os.path.isdir(path))

    def test_clears(self):
        paths = self.fill()
        document = self.document("clear")
        self.assertEqual((document["entries"], document["removed"], document["kinds"]), (0, 3, []))
        self.assertFalse([p for p in paths if os.path.exists(p)])

    def test_a_look_makes_no_folder(self):
        for action in ([], ["prune"], ["clear"]):
            document = self.document(*action)
            self.assertEqual((document["folder"], document["reason"], document["entries"]),
                             (self.cache, "", 0))
        self.assertEqual(os.listdir(self.folder), [])

    def test_no_folder_to_be_had(self):
        document = self.document(TENON_CACHE="")
        self.assertIsNone(document["folder"])
        self.assertNotEqual(document["reason"], "")
        self.assertIn("stored in memory only: ", self.tenon(TENON_CACHE="").stdout)
        self.assertIn("there is no cache directory: ", self.refuse("clear", code=3, TENON_CACHE=""))

    def test_a_folder_that_others_can_write_to_is_left_alone(self):
        (path, _, _) = self.fill()
        os.chmod(self.cache, 0o777)
        self.assertNotEqual(self.document()["reason"], "")
        self.refuse("clear", code=3)
        self.assertTrue(os.path.exists(path))
        self.assertEqual(stat.S_IMODE(os.stat(self.cache).st_mode), 0o777)

    def test_a_folder_of_ones_own_is_not_tagged(self):
        """Backups leave out what is tagged, and it may hold more than a cache."""
        os.mkdir(self.cache, 0o700)
        script.write_text(os.path.join(self.cache, "thesis.txt"), "mine")
        for arguments in (["cache"], ["cache", "clear"], ["explain", "softmax:f32:shape=8x64"],
                          ["devices"], ["warm", script.write_text(self.place("list"),
                                                                  "softmax:f32:shape=8x64\n"),
                                        "--set", "tuning.enabled=true"]):
            script.run(script.build.tenon, *arguments,
                       env=script.environment(TENON_CACHE=self.cache))
            self.assertNotIn("CACHEDIR.TAG", os.listdir(self.cache), arguments)
        self.assertEqual(self.document()["kinds"][0]["kind"], "tuning")

    def test_no_one_is_told_to_close_what_is_not_tenons(self):
        reason = self.document(TENON_CACHE="/")["reason"]
        self.assertNotIn("chmod", reason)
        self.assertIn("set TENON_CACHE to a writable folder that you own", reason)

    def test_has_what_other_commands_put(self):
        script.run(script.build.tenon, "warm",
                   script.write_text(self.place("list"), "softmax:f32:shape=8x64\n"), "--set",
                   "tuning.enabled=true", env=script.environment(TENON_CACHE=self.cache))
        self.assertIn("tuning", [row["kind"] for row in self.document()["kinds"]])

    def test_wrong_use(self):
        self.assertIn("expected list, prune or clear; did you mean clear?", self.refuse("claer"))
        self.assertIn("--limit is only for prune", self.refuse("clear", "--limit=1"))
        for limit in ("x", "-1", "1x", "1kk", "99999999999999999999", "99999999999g"):
            self.assertIn("--limit: expected bytes", self.refuse("prune", f"--limit={limit}"))


if __name__ == "__main__":
    script.main()
