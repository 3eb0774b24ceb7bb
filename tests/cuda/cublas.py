"""Matrix products through cuBLAS and cuBLASLt, without a GPU: what is decided for devices that are described, and
what is said of a library that refuses. The stubs (stub.h, stub_blas.h) compute nothing."""

import json
import os
import sys

# In place of this folder, whose platform.py is not Python's.
sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
import script

OWN = "cuda.matmul.own"
LT = "cuda.matmul.cublaslt"
BLAS = "cuda.matmul.cublas"
MIB = 1 << 20
LOST = 192  # to align a workspace


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

    def test_every_dtype_has_its_row_of_each_library(self):
        for library in (LT, BLAS):
            for dtype, kind in (("f32", ""), ("f64", ""), ("c64", ""), ("c128", ""), ("bf16", ".half"),
                                ("f16", ".half"), ("f16", ".half-reduced")):
                self.taken(f"matmul:{dtype}:m=512,n=384,k=256", library + kind)
            self.taken("matmul:f16:m=512,n=384,k=256,acc=f16", library + ".f16-sums")
            self.taken("matmul:f32:m=512,n=384,k=256,batch=3x2", library)
            self.taken("matmul:i8:m=512,n=384,k=256,tb=1", library + ".int8")

    def test_8_bit_floats_and_their_scales(self):
        f8, name = "matmul:f8_e4m3fn:m=512,n=384,k=256,tb=1", LT + ".f8"
        for more in ("", ",b=f8_e5m2", ",out=bf16,bias=1", ",out=f16,act=relu", ",scale_a=tensor,scale_b=tensor",
                     ",scale_a=tensor", ",scale_a=rows,scale_b=columns,out=bf16",
                     ",batch=3,scale_a=tensor,scale_b=tensor"):
            self.taken(f8 + more, name)
        for problem, code, needed in (
                (f8.replace(",tb=1", ""), "stride", 1), (f8.replace("k=256", "k=248"), "shape", 16),
                (f8 + ",align=8;8;8", "alignment", 16), (f8 + ",bias=1", "dtype", None),
                (f8.replace("e4m3fn", "e5m2"), "dtype", None), (f8 + ",scale_a=rows", "feature", 2),
                (f8 + ",scale_a=rows,scale_b=tensor", "feature", 2),
                (f8 + ",scale_a=rows,scale_b=columns,align=64;64;64;64;8", "alignment", 16),
                (f8 + ",batch=3,scale_a=rows,scale_b=columns", "stride", 0)):
            why = self.refused(self.rows(problem), name)
            self.assertEqual(why["code"], code, problem)
            if needed is not None:
                self.assertEqual(why["needed"], needed, problem)
        why = self.refused(self.rows(f8, "a100"), name)
        self.assertEqual((why["code"], why["needed"], why["found"]), ("device", 89, 80))

    def test_later_answers_come_after_the_first(self):
        """They are for tuning to find."""
        rows = [name for name, row in self.rows("matmul:bf16:m=4096,n=4096,k=4096").items() if not row["why"]]
        places = [rows.index(LT + ".half-reduced" + answer) for answer in ("", ".2", ".3")]
        self.assertEqual(places, [0, 1, 2])

    def test_what_follows_a_product_is_of_cublaslt_alone(self):
        rows = self.rows("matmul:f32:m=512,n=384,k=256,bias=1,act=relu")
        self.assertNotEqual(rows[LT]["verdict"], "refused")
        why = self.refused(rows, BLAS)
        self.assertEqual((why["code"], why["what"]), ("feature", "bias"))

    def test_a_bias_lies_as_its_kernels_read_it(self):
        problem = "matmul:bf16:m=512,n=384,k=256,bias=1,align=64;64;64;"
        for name in (LT + ".half", LT + ".half-reduced.2"):
            why = self.refused(self.rows(problem + "8"), name)
            self.assertEqual((why["code"], why["what"], why["needed"], why["found"]), ("alignment", "bias", 16, 8))
            self.assertNotEqual(self.rows(problem + "16")[name]["verdict"], "refused")
        f8 = "matmul:f8_e4m3fn:m=512,n=384,k=256,tb=1,out=bf16,bias=1,align=64;64;64;"
        why = self.refused(self.rows(f8 + "2"), LT + ".f8")
        self.assertEqual((why["code"], why["what"], why["needed"], why["found"]), ("alignment", "bias", 16, 2))
        # What follows by a kernel of our own reads it as it lies.
        self.assertNotEqual(self.rows(f8.replace("bias=1", "bias=1,act=gelu") + "2")[LT + ".f8"]["verdict"], "refused")

    def test_8_bits_lie_together_along_out(self):
        for order, sizes in (("", "n, k"), (",sc=1;520", "m, k")):
            why = self.refused(self.rows("matmul:f8_e4m3fn:m=520,n=520,k=256,tb=1,out=bf16" + order), LT + ".f8")
            self.assertEqual((why["code"], why["what"], why["needed"], why["found"]), ("shape", sizes, 16, 8))

    def test_sizes_are_named(self):
        for problem, what in (("m=3000000000,n=8,k=8", "m"), ("m=8,n=3000000000,k=8", "n"), ("m=8,n=8,k=3000000000", "k")):
            why = self.refused(self.rows("matmul:bf16:" + problem), LT + ".half")
            self.assertEqual((why["what"], why["needed"], why["found"]), (what, 2147483647, 3000000000))

    def chosen(self, problem, *settings):
        words = [word for setting in settings for word in ("--set", setting)]
        rows = self.rows(problem, "h200", *words)
        return next(name for name, row in rows.items() if row["verdict"] in ("chosen", "untested"))

    def test_each_setting_changes_what_is_taken(self):
        f32, f16, bf16 = (f"matmul:{dtype}:m=4096,n=4096,k=4096" for dtype in ("f32", "f16", "bf16"))
        for problem, setting, before, after in (
                (f32, "cuda.preferred_blas_library=cublas", LT, BLAS),
                (f32, "matmul.library=cublas", LT, BLAS),
                (f32, "fp32_precision=tf32", LT, LT + ".tf32"),
                (f32, "cuda.fp32_precision=tf32", LT, LT + ".tf32"),
                (f32, "cuda.matmul.fp32_precision=tf32", LT, LT + ".tf32"),
                (f32, "cuda.matmul.allow_tf32=true", LT, LT + ".tf32"),
                (f32, "float32_matmul_precision=high", LT, LT + ".tf32"),
                (f16, "cuda.matmul.allow_fp16_reduced_precision_reduction=false", LT + ".half-reduced",
                 LT + ".half"),
                (bf16, "cuda.matmul.allow_bf16_reduced_precision_reduction=false", LT + ".half-reduced",
                 LT + ".half"),
                (f16, "cuda.matmul.allow_fp16_reduced_precision_reduction_split_k=false",
                 LT + ".half-reduced", LT + ".half-whole"),
                (bf16, "cuda.matmul.allow_bf16_reduced_precision_reduction_split_k=false",
                 LT + ".half-reduced", LT + ".half-whole"),
                (f16, "cuda.matmul.allow_fp16_accumulation=true", LT + ".half-reduced", LT + ".f16-sums")):
            self.assertEqual(self.chosen(problem), before, problem)
            self.assertEqual(self.chosen(problem, setting), after, setting)

    def test_small_products_are_our_own_kernels(self):
        """Queueing a library's takes longer than computing them."""
        for dtype in ("f32", "bf16", "f16", "f64"):
            for sizes in ("m=16,n=16,k=16", "m=64,n=64,k=64", "m=128,n=128,k=128", "m=1,n=64,k=64",
                          "m=16,n=16,k=16,batch=512", "m=64,n=64,k=64,batch=32", "m=64,n=64,k=64,bias=1,act=relu"):
                self.assertEqual(self.chosen(f"matmul:{dtype}:{sizes}"), OWN, f"{dtype} {sizes}")
            for sizes in ("m=1024,n=1024,k=1024", "m=4096,n=4096,k=64", "m=64,n=64,k=16384", "m=1,n=4096,k=4096",
                          "m=384,n=384,k=384", "m=64,n=64,k=64,batch=2000"):
                self.assertTrue(self.chosen(f"matmul:{dtype}:{sizes}").startswith(LT), f"{dtype} {sizes}")

    def test_a_library_that_is_asked_for_comes_before_our_own(self):
        problem = "matmul:f32:m=64,n=64,k=64"
        for setting, name in (("cuda.preferred_blas_library=cublas", BLAS), ("matmul.library=cublas", BLAS),
                              ("cuda.preferred_blas_library=cublaslt", LT), ("matmul.library=cublaslt", LT),
                              (f"rules=forbid:{OWN}", LT), ("determinism=run-to-run", OWN),
                              ("cuda.matmul.fp32_precision=tf32", OWN), ("workspace.limit=0", OWN)):
            self.assertEqual(self.chosen(problem, setting), name, setting)

    def test_what_only_our_own_takes(self):
        for more in ("k=0", "k=8,act=silu", "k=8,act=gelu", "k=8,sa=16;2", "k=8,acc=f64",
                     "k=8,batch=2x3,sa=0;64;8;1,sb=64;0;8;1"):
            problem = f"matmul:f32:m=8,n=8,{more}"
            self.assertEqual(self.chosen(problem), OWN, problem)
        for dtype in ("f32", "bf16", "f16", "f64"):
            problem = f"matmul:{dtype}:m=4096,n=4096,k=4096"
            self.assertEqual(self.chosen(problem, "determinism=batch-invariant"), OWN, dtype)
        for problem, code in (("matmul:c64:m=8,n=8,k=8", "dtype"), ("matmul:i8:m=8,n=8,k=8,tb=1", "dtype"),
                              ("matmul:f16:m=8,n=8,k=8,acc=f16", "dtype"),
                              ("matmul:f32:m=8,n=8,k=8,align=2;64;64", "alignment"),
                              ("matmul:bf16:m=1000000000,n=1000000000,k=1", "shape")):
            self.assertEqual(self.refused(self.rows(problem), OWN)["code"], code, problem)

    def test_sums_in_f16_are_asked_for(self):
        rows = self.rows("matmul:f16:m=512,n=384,k=256")
        for library in (LT, BLAS):
            why = self.refused(rows, library + ".f16-sums")
            self.assertEqual((why["code"], why["needed"], why["found"]), ("precision", 32, 16))
            self.assertIn("cuda.matmul.allow_fp16_accumulation=true permits it", why["text"])
        rows = self.rows("matmul:f16:m=512,n=384,k=256,out=f32", "h200", "--set",
                         "cuda.matmul.allow_fp16_accumulation=true")
        self.assertEqual(self.refused(rows, LT + ".f16-sums")["code"], "feature")

    def test_sums_need_not_be_split(self):
        rows = self.rows("matmul:bf16:m=512,n=384,k=256", "h200", "--set",
                         "cuda.matmul.allow_bf16_reduced_precision_reduction_split_k=false")
        for name in (LT + ".half", LT + ".half-reduced", BLAS + ".half", BLAS + ".half-reduced"):
            why = self.refused(rows, name)
            self.assertEqual((why["code"], why["what"]), ("precision", "split sums"))

    def test_which_may_round_a_product_before_more_is_added(self):
        rows = self.rows("matmul:bf16:m=512,n=384,k=256,beta=1")
        for name in (LT + ".half", LT + ".half-reduced", LT + ".half-whole", BLAS + ".half",
                     BLAS + ".half-reduced"):
            self.assertIn("rounds-product", rows[name]["numerics"])
        for name in (LT, LT + ".tf32", BLAS):
            self.assertNotIn("rounds-product", self.rows("matmul:f32:m=8,n=8,k=8")[name]["numerics"])

    def test_groups_are_of_cublas_where_nothing_says_otherwise(self):
        name, setting = BLAS + ".grouped-half", "cuda.matmul.prefer_cublaslt_grouped_gemm=true"
        problem = "matmul:bf16:m=64,n=384,k=256"
        why = self.refused(self.rows(problem), name)
        self.assertEqual((why["code"], why["what"]), ("feature", "grouped"))
        self.assertEqual(self.chosen(problem + ",grouped=1"), name)
        self.assertTrue(self.chosen(problem + ",grouped=1", setting).startswith(LT))
        why = self.refused(self.rows(problem + ",grouped=1", "h200", "--set", setting), name)
        self.assertEqual((why["code"], why["what"]), ("setting", "prefer_cublaslt_grouped_gemm"))
        self.assertIn(setting, why["text"])
        self.assertEqual(self.chosen("matmul:f16:m=64,n=384,k=256,grouped=1", setting), name)
        self.assertEqual(self.chosen("matmul:f64:m=64,n=384,k=256,grouped=1"), BLAS + ".grouped")
        for more, code in ((",batch=3", "feature"), (",align=4;64;64", "alignment")):
            rows = self.rows(f"matmul:f32:m=64,n=384,k=256{more},grouped=1")
            self.assertEqual(self.refused(rows, BLAS + ".grouped")["code"], code)

    def test_memory_is_what_the_settings_say(self):
        small, large = ("matmul:f32:m=%d,n=%d,k=%d" % (size, size, size) for size in (64, 4096))
        for problem, library, setting, expected in (
                (small, LT, None, 4 * MIB + LOST), (large, LT, None, 32 * MIB + LOST),
                (large, LT, "cuda.cublaslt_workspace_size=1m", MIB + LOST),
                (large, LT, "cuda.cublaslt_workspace_size=0", 0),
                (large, LT, "workspace.limit=2m", 2 * MIB),
                (small, BLAS, None, 32 * MIB + LOST),
                (small, BLAS, "cuda.cublas_workspace_size=1m", MIB + LOST),
                (small, BLAS, "workspace.limit=2m", 2 * MIB),
                (small + ",grouped=1", BLAS + ".grouped", "workspace.limit=2m", 2 * MIB)):
            options = ("--set", setting) if setting else ()
            self.assertEqual(self.rows(problem, "h200", *options)[library]["workspace"], expected, setting)
        why = self.refused(self.rows(small, "h200", "--set", "cuda.cublas_workspace_size=1k"), BLAS)
        self.assertEqual((why["code"], why["needed"], why["found"]), ("setting", 16384, 1024))
        why = self.refused(self.rows(small, "h200", "--set", "workspace.limit=1k"), BLAS)
        self.assertEqual((why["code"], why["needed"]), ("memory", 16384 + LOST))

    def test_what_either_can_promise(self):
        """Results repeat, as each product has memory of its own; they may depend on the batch, but for integers."""
        for kind in ("run-to-run", "batch-invariant"):
            rows = self.rows("matmul:f32:m=512,n=384,k=256", "h200", "--set", f"determinism={kind}")
            whole = self.rows("matmul:i8:m=512,n=384,k=256,tb=1", "h200", "--set", f"determinism={kind}")
            for library in (LT, BLAS):
                self.assertNotEqual(whole[library + ".int8"]["verdict"], "refused")
                if kind == "run-to-run":
                    self.assertNotEqual(rows[library]["verdict"], "refused")
                else:
                    self.assertEqual(self.refused(rows, library)["code"], "determinism")

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
                ("matmul:f64:m=8,n=8,k=8,act=silu", LT, "feature"),
                ("matmul:f64:m=8,n=8,k=8,act=gelu-tanh", LT, "feature"),
                ("matmul:bf16:m=8,n=8,k=8,act=gelu,beta=0.5", LT + ".half", "feature"),
                ("matmul:f16:m=8,n=8,k=8,act=gelu,acc=f16", LT + ".f16-sums", "feature"),
                ("matmul:i8:m=8,n=8,k=8", LT + ".int8", "stride"),
                ("matmul:i8:m=8,n=8,k=6,tb=1", LT + ".int8", "shape"),
                ("matmul:f32:m=8,n=8,k=8,sa=16;2", LT, "stride")):
            self.assertEqual(self.refused(self.rows(problem), name)["code"], code, problem)

    def test_i8_that_the_libraries_do_not_take_is_ours(self):
        for fields in ("m=4096,n=4096,k=4096", "m=63,n=65,k=33,tb=1", "m=64,n=64,k=64,tb=1"):
            self.assertEqual(self.chosen(f"matmul:i8:{fields}"), OWN + ".int8", fields)
        self.assertEqual(self.chosen("matmul:i8:m=4096,n=4096,k=4096,tb=1"), LT + ".int8")
        self.taken("matmul:i8:m=64,n=64,k=64", OWN + ".int8", "--set", "determinism=cross-device")

    def test_what_it_has_not_follows_its_sums(self):
        """In f32, in workspace where out is not of it, which is told and which a limit is held against."""
        for problem, name in (("matmul:bf16:m=512,n=384,k=256,bias=1,act=gelu", LT + ".half"),
                              ("matmul:f16:m=512,n=384,k=256,act=gelu-tanh", LT + ".half"),
                              ("matmul:bf16:m=512,n=384,k=256,act=silu,sc=768;2", LT + ".half"),
                              ("matmul:f8_e4m3fn:m=512,n=384,k=256,tb=1,out=bf16,act=gelu", LT + ".f8")):
            plain = self.rows(problem.partition(",bias")[0].partition(",act")[0].partition(",sc")[0])[name]
            row = self.taken(problem, name)[name]
            self.assertEqual(row["workspace"], plain["workspace"] + 4 * 512 * 384, problem)
            self.assertIn(f"sums of f32 go to {4 * 512 * 384} bytes of workspace", row["note"])
            self.assertNotIn("sums of f32", plain.get("note") or "")
        why = self.refused(self.rows("matmul:bf16:m=512,n=384,k=256,act=gelu", "h200", "--set", "workspace.limit=512k"),
                           LT + ".half")
        self.assertEqual(why["code"], "memory")
        why = self.refused(self.rows("matmul:bf16:m=65536,n=8192,k=256,act=gelu"), LT + ".half")
        self.assertEqual((why["code"], why["needed"], why["found"]), ("memory", 1 << 31, 1 << 30))
        plain, row = (self.rows(f"matmul:bf16:m=4096,n=4096,k=64{more}")[LT + ".half"] for more in ("", ",act=gelu"))
        self.assertAlmostEqual(row["predicted_us"], plain["predicted_us"] + 4 + 2 * 4 * 4096**2 / 3.5e6, delta=0.2)
        for more in ("act=silu", "act=gelu,beta=0.5,bias=1"):
            row = self.taken(f"matmul:f32:m=512,n=384,k=256,{more}", LT)[LT]
            self.assertEqual(row["workspace"], self.rows("matmul:f32:m=512,n=384,k=256")[LT]["workspace"])
        self.assertEqual(self.chosen("matmul:bf16:m=4096,n=4096,k=4096,bias=1,act=gelu"), LT + ".half-reduced")

    def test_misaligned_operands_are_copied_where_that_pays(self):
        """Misaligned operands of large 16-bit products are copied; aligned operands and small products are not."""
        great, direct = "m=3333,n=5555,k=7777", LT + ".half-reduced"
        for dtype in ("bf16", "f16"):
            for fields in (great, great + ",tb=1", great.replace("5555", "5552") + ",bias=1,act=relu", great + ",act=gelu", great + ",beta=0.5",
                           "m=1500,n=1501,k=1502", "m=4096,n=4096,k=4096,align=2;64;64", "m=1501,n=1500,k=1500,ta=1",
                           "m=4100,n=4100,k=4100", "m=4096,n=4096,k=4097,sa=4104;1"):
                self.assertEqual(self.chosen(f"matmul:{dtype}:{fields}"), direct + ".padded", fields)
            for fields in ("m=333,n=555,k=777", "m=1,n=8191,k=8191", "m=8191,n=9,k=8191", "m=8191,n=8191,k=11",
                           "m=4096,n=4096,k=4096", great + ",bias=1"):
                self.assertRegex(self.chosen(f"matmul:{dtype}:{fields}"), "cublas(lt)?[.]half(-reduced)?$", fields)
        for dtype, setting, name in (
                ("bf16", "cuda.matmul.allow_bf16_reduced_precision_reduction=false", ".half.padded"),
                ("f16", "cuda.matmul.allow_fp16_reduced_precision_reduction_split_k=false", ".half-whole.padded"),
                ("f16", "cuda.matmul.allow_fp16_accumulation=true", ".f16-sums.padded"),
                ("bf16", "determinism=run-to-run", ".half-reduced.padded"),
                ("bf16", "workspace.limit=64m", ".half-reduced"), ("bf16", "matmul.library=cublas", None)):
            self.assertEqual(self.chosen(f"matmul:{dtype}:{great}", setting), LT + name if name else BLAS + ".half-reduced",
                             setting)

    def test_explains_which_operands_are_copied(self):
        def up(size, to):
            return -(-size // to) * to
        m, n, k = 3333, 5555, 7777
        copies = {"A": up(2 * m * up(k, 8), 256), "B": up(2 * up(k, 8) * up(n, 8), 256), "out": up(2 * m * up(n, 8), 256)}
        great = f"matmul:bf16:m={m},n={n},k={k}"
        for problem, names, size in (
                (great, "A, B and out", sum(copies.values())),
                (great.replace("n=5555", "n=5552"), "A and B", copies["A"] + up(2 * up(k, 8) * 5552, 256)),
                (great.replace("k=7777", "k=7776"), "B and out", up(2 * 7776 * up(n, 8), 256) + copies["out"]),
                (great + ",out=f32", "A, B and out", copies["A"] + copies["B"] + up(4 * m * up(n, 8), 256)),
                ("matmul:bf16:m=512,n=384,k=256,align=2;64;8", "A and out", 2 * 512 * (256 + 384)),
                ("matmul:f16:m=512,n=384,k=256,batch=3,sa=131073;256;1,sb=0;384;1", "A", 3 * 2 * 512 * 256),
                ("matmul:f16:m=512,n=384,k=256,batch=3,sb=0;385;1", "B", 2 * 384 * 256)):
            for kind in (".half", ".half-reduced", ".half-whole"):
                rows = self.taken(problem, LT + kind + ".padded")
                row, plain = rows[LT + kind + ".padded"], rows[LT + kind]
                self.assertEqual(row["note"], f"aligned copies of {names} take {size} bytes of workspace", problem)
                self.assertEqual(row["workspace"], plain["workspace"] + size, problem)
        row = self.rows(great + ",act=gelu")[LT + ".half.padded"]  # sums of f32 are in workspace anyway
        size = up(4 * m * up(n, 8), 256)
        self.assertEqual(row["note"], f"sums of f32 go to {size} bytes of workspace, and a kernel of Tenon's does what "
                         f"follows; aligned copies of A and B take {copies['A'] + up(2 * up(k, 8) * up(n, 8), 256)} bytes "
                         "of workspace")
        why = self.refused(self.rows("matmul:bf16:m=512,n=384,k=256"), LT + ".half.padded")
        self.assertEqual((why["code"], why["needed"], why["found"]), ("alignment", 8, 16))
        why = self.refused(self.rows(great + ",bias=1"), LT + ".half.padded")  # which the library's epilogue reads
        self.assertEqual((why["code"], why["what"]), ("shape", "sizes"))
        why = self.refused(self.rows("matmul:bf16:m=20001,n=20001,k=20001"), LT + ".half.padded")
        self.assertEqual((why["code"], why["needed"]), ("memory", 2 * up(2 * 20001 * 20008, 256) + up(2 * 20008 * 20008, 256)))

    def test_misaligned_products_are_predicted_slower(self):
        """As those are of either library, whatever else is asked for."""
        for library in (LT, BLAS):
            us = [self.rows(f"matmul:bf16:m=4096,n=4096,k=4096,align={align};64;64")[library + ".half"]["predicted_us"]
                  for align in (2, 4, 8, 16)]
            self.assertEqual(us, sorted(us, reverse=True))
            self.assertGreater(us[0], 4 * us[3])
            wide = [self.rows(f"matmul:f32:m=4096,n=4096,k=4096,align={align};64;64")[library]["predicted_us"]
                    for align in (4, 16)]
            self.assertEqual(wide[0], wide[1])

    def test_a_bias_follows_complex_sums(self):
        """In out, so without more workspace; the bias may have any strides and alignment."""
        for dtype, size in (("c64", 8), ("c128", 16)):
            problem = f"matmul:{dtype}:m=4096,n=4096,k=64"
            plain = self.rows(problem)[LT]
            for more in ("", ",sbias=1;4096", ",sbias=1;0,beta=0.5", ",batch=3,sbias=4096;0;1",
                         f",align=64;64;64;{size}", ",sc=1;4096"):
                row = self.taken(f"{problem},bias=1{more}", LT)[LT]
                self.assertEqual(row["workspace"], plain["workspace"], more)
            row = self.taken(problem + ",bias=1", LT)[LT]
            self.assertAlmostEqual(row["predicted_us"], plain["predicted_us"] + 4 + 2 * size * 4096**2 / 3.5e6, delta=0.2)
            self.assertEqual(self.chosen(problem + ",bias=1"), LT)
            why = self.refused(self.rows(problem + ",bias=1"), BLAS)
            self.assertEqual((why["code"], why["what"]), ("feature", "bias"))

    def test_complex_batches_have_no_negative_strides(self):
        """cuBLAS declines them when it is called, and computes those of real numbers."""
        sizes = "m=5,n=7,k=3,batch=3,sa=-15;3;1"
        why = self.refused(self.rows(f"matmul:c64:{sizes}"), BLAS)
        self.assertEqual((why["code"], why["what"]), ("stride", "batch.stride"))
        self.assertNotEqual(self.rows(f"matmul:f32:{sizes}")[BLAS]["verdict"], "refused")

    def test_a_batch_without_one_stride_is_several(self):
        """Heads that lie between the rows of a sequence: cuBLASLt is told one stride, cuBLAS once for each sequence."""
        rows = self.rows("matmul:f32:m=8,n=8,k=16,batch=5x3,sa=384;16;48;1")
        why = self.refused(rows, LT)
        self.assertEqual((why["code"], why["what"]), ("stride", "batch.stride"))
        self.assertNotEqual(rows[BLAS]["verdict"], "refused")
        self.assertIn("it is 5 calls, one after another", rows[BLAS]["note"])
        self.assertIsNone(self.rows("matmul:f32:m=8,n=8,k=16,batch=5x3")[BLAS]["note"])
        rows = self.rows("matmul:i8:m=8,n=8,k=16,tb=1,batch=5x3,sa=384;16;48;1")
        self.assertEqual(self.refused(rows, BLAS + ".int8")["what"], "batch.stride")

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

    def test_what_is_empty_is_not_planned(self):
        """The library refuses matrices without rows; of those nothing is computed."""
        stub = os.path.join(script.build.folder, "tests", "cuda", "stub")
        env = script.environment(LD_LIBRARY_PATH=stub, CUDA_VISIBLE_DEVICES=None)
        for problem in ("f8_e4m3fn:m=0,n=16,k=32,tb=1,out=bf16", "f8_e4m3fn:m=16,n=0,k=32,tb=1,out=bf16",
                        "c64:m=0,n=16,k=32", "c64:m=0,n=16,k=32,bias=1", "c128:m=4,n=0,k=32,batch=3",
                        "bf16:m=0,n=16,k=32,bias=1",
                        "f8_e4m3fn:m=0,n=16,k=32,tb=1,out=bf16,bias=1", "i8:m=0,n=16,k=32,tb=1",
                        "f32:m=8,n=8,k=8,batch=0"):
            done = script.run(script.build.tenon, "--set", "admission=never", "check", f"matmul:{problem}@cuda:0",
                              "--all-kernels", env=env)
            self.assertEqual(done.returncode, 0, problem + done.stdout + done.stderr)
            self.assertIn("cuda.matmul.cublaslt", done.stdout)

    def test_it_has_nothing_for_the_product(self):
        for value in ("15", "7", "none"):
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

    def test_cublas_refuses(self):
        for value, text in (("15", "cuBLAS has nothing for this product"), ("3", "cuBLAS has no memory for it"),
                            ("13", "cuBLAS's result is 13")):
            done = self.check(STUB_BLAS=value)
            self.assertIn(text, done.stdout + done.stderr)
        done = self.check(STUB_BLAS_START="1")
        self.assertIn("cuBLAS does not start", done.stdout + done.stderr)

    def test_before_it_took_many_at_once(self):
        """cuBLAS 12.0 to 12.4, whose files lack that function, compute one after another."""
        cuda, early = (os.path.join(script.build.folder, "tests", "cuda", name) for name in ("stub", "stub_early"))
        libraries, name = self.place("libraries"), BLAS + ".grouped-half"
        os.mkdir(libraries)
        for file in ("libcuda.so.1", "libnvidia-ml.so.1", "libcublasLt.so.13"):
            os.symlink(os.path.join(cuda, file), os.path.join(libraries, file))
        # Under the name of a later one: two majors are not mixed, and a later one may be where the loader looks.
        os.symlink(os.path.join(early, "libcublas.so.12"), os.path.join(libraries, "libcublas.so.13"))

        def rows(folder, version):
            env = script.environment(LD_LIBRARY_PATH=folder, CUDA_VISIBLE_DEVICES=None, STUB_BLAS_VERSION=version)
            done = script.run(script.build.tenon, "--set", "admission=never", "explain",
                              "matmul:bf16:m=64,n=384,k=256,grouped=1@cuda:0", "--json", env=env)
            return {row["kernel"]: row for row in json.loads(done.stdout)["candidates"]}
        for minor in range(5):
            version = 120000 + 100 * minor + 3
            found = rows(libraries, str(version))
            why = found[name]["why"]
            self.assertEqual((found[name]["verdict"], why["code"], why["needed"], why["found"]),
                             ("refused", "version", 120500, version))
            self.assertNotEqual(found[BLAS + ".half"]["verdict"], "refused")
        self.assertEqual(rows(cuda, "120500")[name]["verdict"], "chosen")

    def test_both_are_listed(self):
        stub = os.path.join(script.build.folder, "tests", "cuda", "stub")
        env = script.environment(LD_LIBRARY_PATH=stub, CUDA_VISIBLE_DEVICES=None)
        said = json.loads(script.run(script.build.tenon, "libraries", "--try", "--json", env=env).stdout)
        rows = {row["name"]: row for row in said["libraries"]}
        self.assertEqual((rows["cublas"]["available"], rows["cublas"]["version"]), ("yes", 130002))
        self.assertEqual((rows["cublaslt"]["available"], rows["cublaslt"]["version"]), ("yes", 130000))


if __name__ == "__main__":
    script.main()
