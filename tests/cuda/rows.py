"""Every kernel row of the CUDA module has a problem among those that gpu.py checks on a GPU. By decisions on the stub
driver, beside the stubs of the libraries, so that a row without one is noticed where there is no GPU."""

import importlib.util
import json
import os
import sys

sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
import script


def load_gpu():
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "gpu.py")
    spec = importlib.util.spec_from_file_location("gpu", path)
    gpu = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(gpu)
    return gpu


def wanted_by(problem, missing):
    """Whether it is worth while to ask: a row of this op is missing."""
    return any(name.split(".")[1] == problem.split(":")[0] for name in missing)


class Rows(script.Case):
    def admitted(self, problem, settings):
        stub = os.path.join(script.build.folder, "tests", "cuda", "stub")
        compiler = os.path.join(script.build.folder, "tests", "cuda", "stub_compiler")
        words = [word for setting in settings for word in ("--set", setting)]
        done = script.run(script.build.tenon, *words, "explain", f"{problem}@cuda:0", "--json",
                          env=script.environment(LD_LIBRARY_PATH=f"{stub}:{compiler}", CUDA_VISIBLE_DEVICES=None))
        return {row["kernel"] for row in json.loads(done.stdout)["candidates"]
                if row["verdict"] in ("chosen", "admitted", "untested")}

    def test_each_has_a_problem(self):
        gpu = load_gpu()
        missing = set(gpu.kernel_rows())
        self.assertGreater(len(missing), 40)
        asked = [(problem, ()) for problem in (*gpu.own_attentions(), *gpu.attentions(), *gpu.sparse_attentions(), *gpu.products(),
                                               *gpu.problems())]
        for problem, settings in [(problem, settings) for problem, *settings in gpu.PERMITTED] + asked:
            if wanted_by(problem, missing):
                missing -= self.admitted(problem, settings)
        self.assertEqual(sorted(missing), [], "add a problem that these take to the lists of gpu.py")

    def test_what_was_missed_is_told_from_what_has_no_library(self):
        rows = {"a": "one", "b": "one", "c": "two", "d": "-"}
        self.assertEqual(load_gpu().not_run(rows, {"a", "c"}, {"one", "-"}), (["b", "d"], []))
        self.assertEqual(load_gpu().not_run(rows, {"a"}, {"one"}), (["b"], ["c", "d"]))


if __name__ == "__main__":
    script.main()
