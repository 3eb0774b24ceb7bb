"""`tenon libraries`: what the library says of vendors' libraries, as text and as JSON; and what `tenon
doctor` takes over from it."""

import json
import os
import re
import resource
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import script

OF_CPU = ("blis", "hwloc", "mkl", "mkldnn", "openblas")


def offered():
    """Libraries that a module of this build goes through, and which module."""
    rows = {name: "cpu" for name in OF_CPU}
    if script.build.values.get("TENON_CUDA") == "ON":
        rows.update(cublas="cuda", cublaslt="cuda", cuda="cuda", cudnn="cuda", cufft="cuda", nvml="cuda",
                    nvrtc="cuda")
    return rows


class Case(script.Case):
    def ask(self, *options, **changes):
        done = script.run(script.build.tenon, "libraries", *options,
                          env=script.environment(**changes))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def rows(self, *options, **changes):
        rows = json.loads(self.ask("--json", *options, **changes))["libraries"]
        self.assertEqual([r["name"] for r in rows], sorted(r["name"] for r in rows))
        return {row["name"]: row for row in rows}


class Libraries(Case):
    def test_every_row_makes_sense(self):
        for name, row in self.rows().items():
            self.assertIn(row["available"], ("yes", "no", "untried"), name)
            self.assertIs(row["enabled"], True, name)
            self.assertGreaterEqual(row["kernels"], 0)
            self.assertNotEqual(row["reason"], "", name)
            self.assertEqual(row["available"] == "untried", name in offered(), name)
            self.assertEqual(row["module"], offered().get(name))
            if row["path"]:
                self.assertTrue(os.path.exists(row["path"]), row)
            if row["available"] == "no":
                self.assertFalse(row["built"])
                self.assertTrue(row["remedy"] or re.search("but this is|does not have", row["reason"]), row)

    def test_names_that_upstream_has_are_there(self):
        rows = self.rows()
        for name in ("cpu cuda cudnn cusparselt mps mkl mkldnn nnpack openmp opt_einsum xnnpack "
                     "kleidiai miopen").split():
            self.assertIn(name, rows)
        self.assertEqual(rows["mkl"]["verbose"], "mkl.verbose")
        self.assertIn("not Python's package", rows["opt_einsum"]["what"])

    def test_try_leaves_nothing_untried(self):
        before, after = self.rows(), self.rows("--try")
        self.assertEqual(list(before), list(after))
        for name, row in after.items():
            self.assertIn(row["available"], ("yes", "no"), name)
            if before[name]["available"] != "untried":
                if name != "openmp":  # what is opened may bring a run-time
                    self.assertEqual(row, before[name])
            elif row["available"] == "yes":
                self.assertNotEqual(row["version_text"], None)
                self.assertTrue(os.path.exists(row["path"]))
            else:
                self.assertNotEqual(row["remedy"], "")
        self.assertEqual(self.rows("--try"), after)

    def test_listing_opens_no_library(self):
        done = script.run(script.build.tenon, "libraries",
                          env=script.environment(TENON_LOG="info"))
        self.assertEqual(done.returncode, 0)
        self.assertNotIn("opened", done.stderr)

    def test_rules_take_effect(self):
        rows = self.rows(TENON_RULES="forbid:library:openblas", TENON_MKLDNN_ENABLED="0")
        off = sorted(name for name, row in rows.items() if not row["enabled"])
        self.assertEqual(off, ["mkldnn", "openblas"])
        for library in ("openblas", "nnpack"):  # of either list
            text = self.ask("--set", f"rules=forbid:library:{library}")
            row = re.search(rf"^  {library} .*\n(?: {{23}}.*\n)*", text, re.M).group()
            self.assertIn("a rule of the settings forbids it", " ".join(row.split()))
            self.assertEqual(" ".join(text.split()).count("a rule of the settings forbids it"), 1)

    def test_text_has_every_library_and_fits_the_width(self):
        text = self.ask()
        named = re.findall(r"^  (\S+) +(yes|no|untried) ", text, re.M)
        rows = self.rows()
        self.assertEqual(sorted(named), sorted((n, r["available"]) for n, r in rows.items()))
        self.assertIn("libraries that no module uses", text)
        for line in text.splitlines():
            self.assertTrue(len(line) <= 100 or " " not in line.strip(), line)


class Explain(Case):
    """Listens to what the command asks of libraries, in the place of the function itself, and notes who asked."""

    LISTENER = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
int tn_library_state_get(const void *library, const void *context, void *out, void *err)
{
    int (*real)(const void *, const void *, void *, void *);
    Dl_info caller = {0};
    *(void **)&real = dlsym(RTLD_NEXT, "tn_library_state_get");
    dladdr(__builtin_return_address(0), &caller);
    FILE *file = fopen(getenv("LISTENER_FILE"), "a");
    fprintf(file, "%s %p\n", caller.dli_fname, library);
    fclose(file);
    return real(library, context, out, err);
}
"""

    def test_asks_each_library_once(self):
        if script.build.sanitizers:
            self.skipTest("the run-time of a sanitizer has to come before the listener")
        source = script.write_text(self.place("listener.c"), self.LISTENER)
        listener = self.place("listener.so")
        self.run_well(script.build.compiler, "-shared", "-fPIC", "-o", listener, source, "-ldl")
        for form in ([], ["--json"]):
            file = script.write_text(self.place("asked"), "")
            script.run(script.build.tenon, "explain", "matmul:f32:m=48,n=40,k=24", "matmul:bf16:m=48,n=40,k=24", *form,
                       env=script.environment(LD_PRELOAD=listener, LISTENER_FILE=file))
            asked = re.findall(r"(?m)/tenon (\S+)$", script.read_text(file))
            self.assertGreater(len(asked), 2)
            self.assertEqual(len(asked), len(set(asked)), asked)


class Doctor(Case):
    """`tenon doctor --full` has those that are here in full, and the others by name."""

    def section(self, **changes):
        done = script.run(script.build.tenon, "doctor", "--quick", "--full", env=script.environment(**changes))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return re.search(r"^libraries\n((?:  .*\n)+)", done.stdout, re.M).group(1)

    def test_has_each_once(self):
        text, rows = self.section(), self.rows()
        named = re.findall(r"^  (\S+) +(yes|no|untried) ", text, re.M)
        self.assertEqual(named, [(n, r["available"]) for n, r in rows.items() if self.is_here(r)])
        others = " ".join(text.split("  not used: ")[1].split())
        self.assertEqual(others, ", ".join(n for n, r in rows.items() if not self.is_here(r))
                         + " (details: `tenon libraries`)")

    def is_here(self, row):
        return bool(row["built"] or row["path"] or row["available"] == "yes")

    def test_quick_opens_none(self):
        self.assertEqual(re.findall(r"^  (\S+) +untried ", self.section(), re.M),
                         sorted(offered()))

    def test_quick_opens_no_file_of_one(self):
        """By what the loader itself says: of all libraries, the drivers that find devices alone are sought."""
        env = script.environment(LD_DEBUG="files", LD_DEBUG_OUTPUT=self.place("debug"))
        quick = script.run(script.build.tenon, "doctor", "--quick", "--full", env=env)
        self.assertEqual((quick.returncode, quick.stderr), (0, ""))
        said = "".join(script.read_text(self.folder, name) for name in os.listdir(self.folder))
        sought = set(re.findall(r"file=(\S+) \[0\];  dynamically loaded by \S*/(?:lib)?tenon", said))
        if not sought:
            self.skipTest("this loader does not say what it opens")
        drivers = {"libcuda.so.1", "libnvidia-ml.so.1"}
        self.assertEqual({name for name in sought if not os.path.basename(name).startswith("tenon-")} - drivers, set())
        self.assertIn("a basic reading of the system: opening libraries was not requested", " ".join(quick.stdout.split()))

    def test_says_what_libraries_says(self):
        """The rows of a library that code here goes through, word for word."""
        changes = {"TENON_RULES": "forbid:library:openblas"}
        row = re.search(r"^  openblas .*\n(?: {23}.*\n)*", self.section(**changes), re.M).group()
        self.assertIn("a rule of the settings forbids it", row)
        self.assertIn(row, self.ask(**changes))

    def test_one_that_is_there_and_does_not_open_is_broken(self):
        row = self.rows("--try")["openblas"]
        if row["available"] != "yes":
            self.skipTest("OpenBLAS is not here")
        path = self.place("libopenblas.so.0")
        self.run_well(script.build.compiler, "-shared", "-x", "c", "/dev/null", "-o", path)
        changes = {"LD_LIBRARY_PATH": self.folder}
        row = self.rows("--try", **changes)["openblas"]
        self.assertEqual((row["available"], row["path"]), ("no", path))
        only = "rules=require:library:openblas"  # kernels of others are not tried, which would take long
        done = script.run(script.build.tenon, "doctor", "--set", only,
                          env=script.environment(**changes))
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout, r"(?m)^  library openblas: ")

    def test_one_that_is_found_and_not_used_is_not_broken(self):
        path = script.write_text(self.place("x.c"), "int tenon_test_x;\n")
        library = self.place("libnnpack.so")
        self.run_well(script.build.compiler, "-shared", "-fPIC", "-o", library, path)
        text = self.section(LD_LIBRARY_PATH=self.folder)
        row = " ".join(re.search(r"^  nnpack .*\n(?: {23}.*\n)*", text, re.M).group().split())
        self.assertRegex(row, "^nnpack no .*" + re.escape(library) + ", but no loaded module uses it$")
        self.assertNotRegex(text.split("  not used: ")[1], r"\bnnpack\b")


@unittest.skipUnless(sys.platform == "linux", "limits of Linux")
class Limits(Case):
    """OpenBLAS ends the process, or waits for ever, where a limit denies it what it takes: it is refused first."""

    def openblas(self, limit, value, user=None, **changes):
        if self.rows("--try")["openblas"]["available"] != "yes":
            self.skipTest("OpenBLAS is not here")

        def narrow():
            if user is not None:
                os.setgroups([])
                os.setuid(user)
            resource.setrlimit(limit, (value, value))

        try:
            done = script.run(script.build.tenon, "libraries", "--try", "--json", preexec_fn=narrow,
                              env=script.environment(**changes))
        except (PermissionError, subprocess.SubprocessError):
            self.skipTest("the build folder is closed to other users")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        rows = json.loads(done.stdout)["libraries"]
        return next(row for row in rows if row["name"] == "openblas")

    def test_threads(self):
        if script.build.sanitizers:
            self.skipTest("a sanitizer needs a thread of its own at the end")
        if os.getuid() != 0 or len(os.sched_getaffinity(0)) < 2:
            self.skipTest("another user, and two processors, are needed")
        row = self.openblas(resource.RLIMIT_NPROC, 1, user=65531)
        self.assertEqual(row["available"], "no")
        self.assertRegex(row["reason"], r"unless it can make \d+ threads, and 0 can be made here")
        row = self.openblas(resource.RLIMIT_NPROC, 1, user=65531, OPENBLAS_NUM_THREADS="1")
        self.assertEqual(row["available"], "yes")

    def test_addresses(self):
        if script.build.sanitizers:
            self.skipTest("a sanitizer takes more addresses than any limit")
        row = self.openblas(resource.RLIMIT_AS, 300 << 20)
        self.assertEqual(row["available"], "no")
        self.assertRegex(row["reason"], r"\d+ MiB of addresses, and \d+ MiB are left")


if __name__ == "__main__":
    script.main()
