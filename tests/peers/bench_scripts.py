"""The benches in Python start with a build folder alone, as `make bench` starts them: their imports succeed, whatever
rivals are absent. Nothing is measured."""

import glob
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness
import script

harness.import_numpy()  # goes on in a Python that has it, as the benches do; they would measure otherwise

# The folder of the file is where Python looks for its imports first, as if the file were started by its name.
IMPORT = """
import os, runpy, sys
sys.path[0] = os.path.dirname(sys.argv[1])
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="imported")
"""


class Scripts(unittest.TestCase):
    def test_import(self):
        scripts = sorted(glob.glob(script.source("bench", "peers", "bench_*.py")))
        self.assertGreater(len(scripts), 5)
        for path in scripts:
            with self.subTest(os.path.basename(path)):
                env = script.environment()
                env.pop("PYTHONPATH", None)
                done = script.run(sys.executable, "-B", "-c", IMPORT, path, script.build.folder, env=env)
                self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    script.main()
