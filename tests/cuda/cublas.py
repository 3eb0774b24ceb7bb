"""Matrix products through cuBLASLt, without a GPU: what is decided for devices that are described, and what is
said of a library that refuses. The stubs (stub.h, stub_cublas.c) compute nothing."""

import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import script

LT = "cuda.matmul.cublaslt"


class Decisions(script.Case):
    def rows(self, problem, device="h200", *options):
        done = script.run(script.build.tenon, "explain", f"{problem}@{device}", "--json", "--device-file",
                          script.source("backends", "described", "devices", f"{device}.device"), *options,
                          env=script.environment())
        said = json.loads(done.stdout)
        return {row["kernel"]: row for row in said["candidates"]}

    def refused(self, rows, name):
        row = rows[name]
        self.assertEqual(row["verdict"], "refused", name)
        return row["why"]

    def taken(self, problem, name, *options, device="h200"):
        rows = self.rows(problem, device, *options)
        self.assertNotEqual(rows[name]["verdict"], "refused", problem)
        return rows

    def test_every_dtype_has_its_row(self):
        for dtype, name in (("f32", LT), ("f64", LT), ("c64", LT), ("c128", LT),
                            ("bf16", LT + ".half"), ("f16", LT + ".half")):
            self.taken(f"matmul:{dtype}:m=512,n=384,k=256", name)
        self.taken("matmul:i8:m=512,n=384,k=256,tb=1", LT + ".int8")

    def test_tf32_is_asked_for(self):
        problem = "matmul:f32:m=512,n=384,k=256"
        why = self.refused(self.rows(problem), LT + ".tf32")
        self.assertEqual((why["code"], why["needed"], why["found"]), ("precision", 24, 11))
        self.taken(problem, LT + ".tf32", "--set", "cuda.matmul.fp32_precision=tf32")

    def test_sums_in_16_bits_can_be_forbidden(self):
        for dtype, word in (("f16", "fp16"), ("bf16", "bf16")):
            rows = self.rows(f"matmul:{dtype}:m=512,n=384,k=256", "h200", "--set",
                             f"cuda.matmul.allow_{word}_reduced_precision_reduction=false")
            why = self.refused(rows, LT + ".half-reduced")
            self.assertEqual((why["code"], why["needed"], why["found"]), ("precision", 32, 16))
            self.assertNotEqual(rows[LT + ".half"]["verdict"], "refused")

    def test_what_it_cannot_be_told(self):
        for problem, name, code in (
                ("matmul:f32:m=8,n=8,k=0", LT, "shape"),
                ("matmul:f32:m=8,n=8,k=8,act=silu", LT, "feature"),
                ("matmul:f64:m=8,n=8,k=8,act=gelu-tanh", LT, "feature"),
                ("matmul:i8:m=8,n=8,k=8", LT + ".int8", "stride"),
                ("matmul:i8:m=8,n=8,k=6,tb=1", LT + ".int8", "shape"),
                ("matmul:f32:m=8,n=8,k=8,sa=16;2", LT, "stride")):
            self.assertEqual(self.refused(self.rows(problem), name)["code"], code, problem)

    def test_a_library_can_be_chosen_and_forbidden(self):
        why = self.refused(self.rows("matmul:f32:m=8,n=8,k=8", "h200", "--set",
                                     "rules=forbid:library:cublaslt"), LT)
        self.assertEqual(why["code"], "rule")


class Libraries(script.Case):
    PROBLEM = "matmul:f32:m=64,n=48,k=32@cuda:0"

    def check(self, **changes):
        stub = os.path.join(script.build.folder, "tests", "cuda", "stub")
        env = script.environment(LD_LIBRARY_PATH=stub, CUDA_VISIBLE_DEVICES=None, **changes)
        return script.run(script.build.tenon, "check", self.PROBLEM, "--all-kernels", env=env)

    def test_the_stub_is_taken_and_found_out(self):
        """It computes nothing, which the check tells."""
        done = self.check()
        self.assertIn(LT, done.stdout)
        self.assertIn("wrong", done.stdout)
        self.assertEqual(done.returncode, 1)

    def test_it_has_nothing_for_the_product(self):
        for value in ("15", "none"):
            done = self.check(STUB_LT=value)
            self.assertIn("cuBLASLt has nothing for this product", done.stdout + done.stderr)

    def test_it_has_no_memory(self):
        done = self.check(STUB_LT="3")
        self.assertIn("cuBLASLt has no memory for it", done.stdout + done.stderr)

    def test_it_does_not_start(self):
        done = self.check(STUB_LT_START="1")
        self.assertIn("cuBLASLt does not start", done.stdout + done.stderr)

    def test_it_is_too_new_for_the_driver(self):
        done = self.check(STUB_LT_START="1", STUB_VERSION="12040")
        self.assertRegex(" ".join(done.stdout.split()),
                         r"cuBLASLt 13\.\d+ does not start on a driver that serves CUDA 12\.4: "
                         "install a newer driver, or cuBLAS for CUDA 12")


if __name__ == "__main__":
    script.main()
