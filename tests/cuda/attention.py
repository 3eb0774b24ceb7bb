"""Attention by kernels of our own, without a GPU: what is decided for a described H200, and what is refused. That they
compile and are launched, and their numbers, are for kernels.c and numbers.c."""

import json
import os
import sys

# In place of this folder, whose platform.py is not Python's.
sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
import script

HOPPER, DECODE, OWN, INVARIANT, CUDNN = (
    "cuda.attention.hopper", "cuda.attention.decode", "cuda.attention.own", "cuda.attention.own.invariant",
    "cuda.attention.cudnn")
BACK, BACK_MMA, BACK_HOPPER = (f"cuda.attention-backward.{name}" for name in ("own", "mma", "hopper"))
SPARSE, SPARSE_MMA, SPARSE_HOPPER = (f"cuda.attention-sparse.{name}" for name in ("own", "mma", "hopper"))


class Decisions(script.Case):
    def explain(self, problem, *options, op="attention", device="h200"):
        done = script.run(script.build.tenon, "explain", f"{op}:{problem}@{device}", "--json", "--device-file",
                          script.source("backends", "described", "devices", f"{device}.device"), *options,
                          env=script.environment())
        return json.loads(done.stdout)

    def first(self, problem, *options, op="attention", device="h200"):
        """The candidate that would be taken."""
        row = self.explain(problem, *options, op=op, device=device)["candidates"][0]
        self.assertIn(row["verdict"], ("chosen", "admitted", "untested"), (problem, row["why"]))
        return row["kernel"]

    def why(self, problem, name=OWN, op="attention"):
        row = {row["kernel"]: row for row in self.explain(problem, op=op)["candidates"]}[name]
        self.assertEqual(row["verdict"], "refused", problem)
        return row["why"]

    def test_small_work_is_ours(self):
        """Where the call takes the time, not the computing."""
        for problem in ("bf16:b=1,h=4,l=64,d=64", "f16:b=1,h=4,l=64,d=64,mask=causal"):
            self.assertEqual(self.first(problem), OWN, problem)

    def test_decoding_is_ours(self):
        """As it was faster on an H200. Keys that grow need no new plan, however many they are: cuDNN compiles one for each
        number of keys, unless it is told lengths."""
        for fields in ("b=1,h=32,hk=8,lq=1,lk=256,d=128", "b=1,h=32,hk=8,lq=1,lk=1001,d=128",
                       "b=1,h=32,hk=8,lq=1,lk=65536,d=128", "b=3,h=32,hk=8,lq=1,lk=4096,d=128",
                       "b=1,h=32,hk=8,lq=16,lk=8192,d=128", "b=8,h=32,hk=8,lq=4,lk=8192,d=128,mask=causal-br"):
            for device in ("h200", "a100"):
                self.assertEqual(self.first(f"bf16:{fields}", device=device), DECODE, fields)
            self.assertEqual(self.first(f"bf16:{fields},used=1"), CUDNN + ".single" if "lq=1," in fields else DECODE, fields)
            self.assertEqual(self.first(f"bf16:{fields},used=1", "--set", "determinism=run-to-run"), DECODE, fields)

    def test_rows_without_common_keys_are_for_hopper(self):
        """16 queries of each head: a tile of the kernel for Hopper reads keys as fast, and needs no second launch."""
        self.assertEqual(self.first("bf16:b=8,h=16,lq=16,lk=4096,d=128"), HOPPER)

    def test_predicted_times_of_few_queries_are_near_measured_ones(self):
        """Microseconds on an H200, from docs/kernels/decode-attention.md."""
        for fields, name, measured in (
                ("b=8,h=32,hk=8,lq=1,lk=8192,d=128", DECODE, 75.2), ("b=1,h=64,hk=8,lq=1,lk=131072,d=128", DECODE, 138.2),
                ("b=1,h=32,hk=8,lq=1,lk=4096,d=128", DECODE, 13.1), ("b=8,h=32,hk=8,lq=4,lk=8192,d=128", DECODE, 79.7),
                ("b=1,h=32,hk=8,lq=1,lk=1000,d=128", DECODE, 11.0), ("b=1,h=4,l=64,d=64", DECODE, 8.2),
                ("b=8,h=16,lq=16,lk=4096,d=128", DECODE, 83.3), ("b=1,h=32,hk=8,lq=16,lk=8192,d=128", DECODE, 32.8),
                ("b=1,h=32,hk=8,lq=64,lk=8192,d=128", DECODE, 80.2), ("b=1,h=32,hk=8,lq=64,lk=8192,d=128", CUDNN, 98.3),
                ("b=1,h=32,hk=8,lq=64,lk=8192,d=128", HOPPER, 93.9), ("b=8,h=32,hk=8,lq=1,lk=8192,d=128", HOPPER, 191),
                ("b=1,h=32,hk=8,lq=1,lk=4096,d=128", HOPPER, 51.5), ("b=1,h=32,hk=8,lq=1,lk=1000,d=128", HOPPER, 18.0)):
            said = self.explain(f"bf16:{fields}")["candidates"]
            predicted = {row["kernel"]: row["predicted_us"] for row in said}[name]
            self.assertLess(abs(predicted / measured - 1), 0.13, (fields, name, predicted))

    def test_refusals_by_decoding(self):
        for fields, code, what, needed, found in (
                ("bf16:b=1,h=4,lq=1,lk=512,d=264", "shape", "head size", 256, 264),
                ("bf16:b=1,h=4,lq=1,lk=512,d=60", "shape", "head size", 8, 60),
                ("f16:b=1,h=4,lq=1,lk=512,d=64,align=16;16;8;16", "alignment", "v", 16, 8),
                ("bf16:b=2,h=4,lq=1,lk=512,d=64,sk=131080;32772;64;1", "stride", "k", 8, 32772)):
            why = self.why(fields, DECODE)
            self.assertEqual((why["code"], why["what"], why["needed"], why["found"]), (code, what, needed, found), fields)
        self.assertEqual(self.why("f32:b=1,h=4,lq=1,lk=512,d=64", DECODE)["code"], "dtype")
        self.assertEqual(self.why("bf16:b=1,h=4,lq=1,lk=512,d=64,dropout=0.1", DECODE)["code"], "feature")

    def test_large_work_of_16_bits_is_not(self):
        """Short sequences are cuDNN's, long ones are by the kernel for Hopper; elsewhere all are cuDNN's."""
        short = ("f16:b=2,h=16,l=2048,d=128", "bf16:b=1,h=8,l=1024,d=64", "bf16:b=8,h=16,l=512,d=64,mask=causal",
                 "bf16:b=16,h=24,l=512,d=64")
        long = ("bf16:b=1,h=24,l=32760,d=128,mask=causal", "f16:b=1,h=16,l=16384,d=128",
                "bf16:b=4,h=16,l=4096,d=128,mask=causal", "bf16:b=2,h=8,l=8192,d=256", "bf16:b=4,h=32,l=4096,d=64")
        for problem in (*short, *long):
            self.assertEqual(self.first(problem), CUDNN if problem in short else HOPPER, problem)
            self.assertEqual(self.first(problem, device="a100"), CUDNN, problem)

    def test_refusals_by_hopper(self):
        for fields, code, what, needed, found in (
                ("bf16:b=1,h=4,l=512,d=264", "shape", "head size", 256, 264),
                ("bf16:b=1,h=4,l=512,d=60", "shape", "head size", 8, 60),
                ("f16:b=1,h=4,l=512,d=64,align=8;16;16;16", "alignment", "q", 16, 8),
                ("bf16:b=2,h=4,l=512,d=64,sk=131080;32772;64;1", "stride", "k", 8, 32772)):
            why = self.why(fields, HOPPER)
            self.assertEqual((why["code"], why["what"], why["needed"], why["found"]), (code, what, needed, found), fields)
        for fields in ("dropout=0.1", "page=16,pool=400"):
            self.assertEqual(self.why(f"bf16:b=2,h=4,lq=64,lk=512,d=64,{fields}", HOPPER)["code"], "feature")

    def test_what_cudnn_does_not_take(self):
        for problem in ("f32:b=2,h=16,l=2048,d=128", "f64:b=1,h=4,l=512,d=64",
                        "bf16:b=2,h=16,lq=64,lk=512,d=128,mask=causal-br,dropout=0.1", "bf16:b=2,h=16,l=1024,d=60",
                        "f16:b=1,h=4,l=1024,d=320"):
            self.assertEqual(self.first(problem), OWN, problem)
        for problem in ("bf16:b=2,h=16,l=1024,d=64,out=f32", "bf16:b=2,h=4,l=512,d=64,sq=262148;65537;64;2",
                        "bf16:b=2,h=16,lq=64,lk=512,d=128,page=16,pool=400,sink=1"):
            self.assertEqual(self.first(problem), DECODE, problem)

    def test_gradients_that_cudnn_does_not_take(self):
        for problem in ("f32:b=2,h=16,l=2048,d=128", "f64:b=1,h=4,l=512,d=64", "bf16:b=2,h=16,l=1024,d=60"):
            self.assertEqual(self.first(problem, op="attention-backward"), BACK, problem)
        for problem in ("bf16:b=2,h=16,l=1024,d=128,dropout=0.1", "bf16:b=2,h=16,hk=4,l=512,d=64,mask=padding",
                        "f16:b=2,h=16,l=2048,d=128,softcap=5", "bf16:b=1,h=4,l=700,d=192"):
            self.assertEqual(self.first(problem, op="attention-backward"), BACK_MMA, problem)
        for problem in ("bf16:b=2,h=16,l=1024,d=128", "bf16:b=1,h=4,l=512,d=64", "bf16:b=4,h=16,l=4096,d=64,mask=causal"):
            self.assertEqual(self.first(problem, op="attention-backward"), "cuda.attention-backward.cudnn", problem)
        for problem in ("bf16:b=2,h=16,l=2048,d=128", "bf16:b=2,h=16,l=8192,d=128,mask=causal"):
            self.assertEqual(self.first(problem, op="attention-backward"), BACK_HOPPER, problem)

    def test_predicted_gradients(self):
        """Microseconds on an H200, from docs/kernels/backward-attention.md."""
        for problem, measured in (("b=2,h=16,l=8192,d=128", 13730), ("b=2,h=16,l=8192,d=128,mask=causal", 7050),
                                  ("b=4,h=16,l=4096,d=64", 4057), ("b=4,h=16,l=4096,d=64,mask=causal", 2233),
                                  ("b=4,h=16,l=4096,d=128", 6889), ("b=4,h=16,l=4096,d=128,mask=causal", 3751)):
            rows = self.explain(f"bf16:{problem}", op="attention-backward")["candidates"]
            row = {row["kernel"]: row for row in rows}[BACK_MMA]
            self.assertLess(abs(row["predicted_us"] / measured - 1), 0.05, (problem, row["predicted_us"], measured))
        for problem, measured in (("b=2,h=16,l=8192,d=128", 5401), ("b=2,h=16,l=8192,d=128,mask=causal", 2828),
                                  ("b=4,h=16,l=4096,d=64", 1884), ("b=4,h=16,l=4096,d=64,mask=causal", 1049),
                                  ("b=4,h=16,l=4096,d=128", 2756), ("b=4,h=16,l=4096,d=128,mask=causal", 1455)):
            rows = self.explain(f"bf16:{problem}", op="attention-backward")["candidates"]
            row = {row["kernel"]: row for row in rows}[BACK_HOPPER]
            self.assertLess(abs(row["predicted_us"] / measured - 1), 0.05, (problem, row["predicted_us"], measured))

    def test_refusals_of_gradients(self):
        why = self.why("f32:b=1,h=4,l=64,d=257", BACK, op="attention-backward")
        self.assertEqual((why["code"], why["what"], why["needed"], why["found"]), ("shape", "head size", 256, 257))

    def test_gradients_on_tensor_cores(self):
        for problem in ("bf16:b=2,h=16,l=2048,d=128", "f16:b=2,h=16,hk=4,lq=100,lk=77,d=72,dv=40,mask=causal-br,layout=blhd",
                        "bf16:b=1,h=4,l=64,d=256,mask=bool,softcap=5", "bf16:b=1,h=4,l=64,d=64,mask=window:9;3,dropout=0.1"):
            rows = self.explain(problem, "--set", f"rules=require:{BACK_MMA}", op="attention-backward")["candidates"]
            self.assertEqual([row["kernel"] for row in rows if row["verdict"] != "refused"], [BACK_MMA], problem)
        for problem, code, what, needed, found in (
                ("bf16:b=1,h=4,l=64,d=264", "shape", "head size", 256, 264), ("bf16:b=1,h=4,l=64,d=60", "shape", "head size", 8, 60),
                ("bf16:b=1,h=4,l=64,d=64,dv=20", "shape", "head size", 8, 20),
                ("bf16:b=1,h=4,lq=9,lk=0,d=64", "shape", "elements", 1, 0),
                ("bf16:b=1,h=4,l=64,d=64,align=16;16;16;16;4;8;16;16;16", "alignment", "dout", 16, 8),
                ("bf16:b=2,h=4,l=512,d=64,sq=262148;65537;64;1", "stride", "q", 8, 262148),
                ("f16:b=1,h=2,l=35,d=24,scale=1e39", "feature", "exponent of scale", 127, 129)):
            why = self.why(problem, BACK_MMA, op="attention-backward")
            self.assertEqual((why["code"], why["what"], why["needed"], why["found"]), (code, what, needed, found), problem)

    def test_gradients_on_hopper(self):
        """Before the kernel for capability 8.0 where many tiles make it faster."""
        for problem in ("bf16:b=2,h=16,l=2048,d=128", "f16:b=2,h=16,hk=4,lq=1000,lk=770,d=64,dv=128,mask=causal-br,layout=blhd",
                        "bf16:b=1,h=16,l=4096,d=64,mask=window:300;0", "bf16:b=1,h=24,l=32760,d=128,mask=causal"):
            self.assertEqual(self.first(problem, "--set", "cudnn.enabled=false", op="attention-backward"), BACK_HOPPER, problem)
            self.assertNotIn(BACK_HOPPER, [row["kernel"] for row in self.explain(
                problem, op="attention-backward", device="a100")["candidates"] if row["verdict"] != "refused"])
        for setting in ("determinism=run-to-run", "determinism=batch-invariant"):
            self.assertEqual(self.first("bf16:b=2,h=16,l=2048,d=128", "--set", setting, op="attention-backward"), BACK_HOPPER)
        for problem, code, what, needed, found in (
                ("bf16:b=1,h=4,l=64,d=96", "shape", "head size", 128, 96), ("bf16:b=1,h=4,l=64,d=64,dv=40", "shape", "value size", 64, 40),
                ("f16:b=1,h=4,l=64,d=256", "shape", "head size", 128, 256), ("bf16:b=1,h=4,lq=9,lk=0,d=64", "shape", "elements", 1, 0),
                ("bf16:b=1,h=4,l=64,d=64,align=16;16;16;16;4;8;16;16;16", "alignment", "dout", 16, 8),
                ("bf16:b=2,h=4,l=512,d=64,sq=262148;65537;64;1", "stride", "q", 8, 262148)):
            why = self.why(problem, BACK_HOPPER, op="attention-backward")
            self.assertEqual((why["code"], why["what"], why["needed"], why["found"]), (code, what, needed, found), problem)
        for fields in ("mask=bool", "mask=additive", "softcap=5", "dropout=0.1"):
            self.assertEqual(self.why(f"bf16:b=2,h=4,l=512,d=64,{fields}", BACK_HOPPER, op="attention-backward")["code"], "feature")
        why = self.explain("bf16:b=2,h=16,l=8192,d=128", "--set", "workspace.limit=1000000000", op="attention-backward")["candidates"]
        self.assertEqual({row["kernel"]: row for row in why}[BACK_HOPPER]["why"]["code"], "memory")

    def test_listed_blocks(self):
        """Every problem has a row; those of 16 bits whose operands are aligned are for tensor cores. The kernel for Hopper has tiles of
        adjacent keys, so it is not for small blocks."""
        for fields in ("h=24,l=115200,d=128,bq=384,entries=194400", "h=16,l=49152,d=128,bq=64,entries=786432,sizes=1",
                       "h=16,l=61440,d=128,bq=128,entries=2211840", "b=2,h=8,hk=2,l=4000,d=64,bq=192,layout=blhd,lse=1",
                       "h=24,l=32768,d=64,bq=64,entries=600000"):
            for dtype in ("bf16", "f16"):
                self.assertEqual(self.first(f"{dtype}:{fields}", op="attention-sparse"), SPARSE_HOPPER, fields)
                self.assertEqual(self.first(f"{dtype}:{fields}", op="attention-sparse", device="a100"), SPARSE_MMA, fields)
        for fields in ("h=4,l=4096,d=64,bq=64,bk=8,entries=20000", "h=4,l=4096,d=64,bq=128,mask=causal",
                       "b=2,h=8,hk=2,lq=100,lk=4000,d=72,dv=40,bq=9,bk=1,mask=causal-br,layout=blhd,lse=1,out=f32",
                       "h=2,l=700,d=256,bq=1000,mask=window:9;3"):
            for dtype in ("bf16", "f16"):
                for device in ("h200", "a100"):
                    self.assertEqual(self.first(f"{dtype}:{fields}", op="attention-sparse", device=device), SPARSE_MMA, fields)
            for dtype in ("f32", "f64"):
                problem = f"{dtype}:{fields}".replace(",out=f32", "")
                self.assertEqual(self.first(problem, op="attention-sparse"), SPARSE, fields)
        for problem in ("bf16:h=2,l=700,d=60,bq=64", "f16:h=2,l=700,d=264,bq=64", "bf16:h=2,l=64,d=64,bq=32,sk=8192;4096;64;-1"):
            self.assertEqual(self.first(problem, op="attention-sparse"), SPARSE, problem)
        for setting in ("determinism=run-to-run", "determinism=batch-invariant"):
            self.assertEqual(self.first("bf16:h=2,l=700,d=64,bq=64", "--set", setting, op="attention-sparse"), SPARSE_HOPPER)

    def test_refusals_of_listed_blocks(self):
        for problem, name, code, what, needed, found in (
                ("bf16:h=4,l=512,d=264,bq=64", SPARSE_MMA, "shape", "head size", 256, 264),
                ("bf16:h=4,l=512,d=64,dv=20,bq=64", SPARSE_MMA, "shape", "head size", 8, 20),
                ("f16:h=4,l=512,d=64,bq=64,align=16;8;16;16;1", SPARSE_MMA, "alignment", "k", 16, 8),
                ("bf16:b=2,h=4,l=512,d=64,bq=64,sv=131080;32772;64;1", SPARSE_MMA, "stride", "v", 8, 32772),
                ("bf16:h=4,l=512,d=264,bq=64", SPARSE_HOPPER, "shape", "head size", 256, 264),
                ("f16:h=4,l=512,d=64,bq=64,align=8;16;16;16;1", SPARSE_HOPPER, "alignment", "q", 16, 8),
                ("bf16:b=2,h=4,l=512,d=64,bq=64,sv=131080;32772;64;1", SPARSE_HOPPER, "stride", "v", 8, 32772),
                ("f32:h=4,l=64,d=520,bq=64", SPARSE, "shape", "head size", 512, 520),
                ("f32:h=1,lq=1,lk=1073741825,d=1,bq=1", SPARSE, "shape", "keys", 1 << 30, (1 << 30) + 1)):
            why = self.why(problem, name, op="attention-sparse")
            self.assertEqual((why["code"], why["what"], why["needed"], why["found"]), (code, what, needed, found), problem)

    def test_what_hopper_leaves_to_other_kernels(self):
        for fields in ("mask=causal", "mask=window:100;0", "out=f32", "sizes=1,slots=512"):
            why = self.why(f"bf16:h=4,l=512,d=64,bq=64,{fields}", SPARSE_HOPPER, op="attention-sparse")
            self.assertEqual(why["code"], "feature", fields)

    def test_refusals(self):
        for problem, what, needed, found in (("f32:b=1,h=4,l=64,d=513", "head size", 512, 513),
                                             ("f32:b=1,h=4,l=64,d=8,dv=520", "head size", 512, 520),
                                             ("f64:b=1,h=4,l=64,d=300", "head size", 256, 300),
                                             ("bf16:b=1,h=1,lq=1,lk=1073741825,d=1", "keys", 1 << 30, (1 << 30) + 1)):
            for name in (OWN, INVARIANT):
                why = self.why(problem, name)
                self.assertEqual((why["code"], why["what"], why["needed"], why["found"]),
                                 ("shape", what, needed, found))
        why = self.why("f32:b=1,h=4,l=64,d=64,align=2;4;4;4")
        self.assertEqual((why["code"], why["needed"], why["found"]), ("alignment", 4, 2))

    def test_numbers_of_scores_are_of_f32(self):
        """But for f64, where they are of that."""
        for op, name in (("attention", OWN), ("attention", INVARIANT), ("attention-backward", BACK)):
            for number, exponent in (("scale=-1e39", 129), ("softcap=1e300", 996), ("softcap=1e-300", -997)):
                why = self.why(f"f32:b=1,h=4,l=64,d=64,{number}", name, op=op)
                self.assertEqual((why["code"], why["what"], why["needed"], why["found"]),
                                 ("feature", "exponent of " + number.split("=")[0], 127, exponent))
            options = ("--set", "determinism=batch-invariant") if name == INVARIANT else ()
            for numbers in ("f32:b=1,h=4,l=64,d=64,scale=-1e38,softcap=3e38",
                            "f64:b=1,h=4,l=64,d=64,scale=1e39,softcap=1e300"):
                self.assertEqual(self.first(numbers, *options, op=op), name)

    def test_in_any_batch(self):
        problem = "bf16:b=2,h=16,l=512,d=64"
        self.assertEqual(self.first(problem, "--set", "determinism=batch-invariant"), INVARIANT)
        self.assertEqual(self.first(problem, "--set", "determinism=run-to-run"), CUDNN)

    def test_names(self):
        """It goes by mem_efficient and the family, and its switch is that one's."""
        said = self.explain("f32:b=1,h=4,l=64,d=64")
        rows = {row["name"]: row for row in said["backends"]}
        self.assertEqual((rows["mem_efficient"]["kernel"], rows["TORCH_SDPA"]["kernel"]), (OWN, OWN))
        self.assertEqual((rows["FLASH_ATTN"]["kernel"], rows["FLASH_ATTN"]["verdict"]), (DECODE, "refused"))
        self.assertEqual((rows["flash"]["kernel"], rows["flash"]["verdict"]), (DECODE, "refused"))
        large = "bf16:b=1,h=24,l=32760,d=128"
        self.assertEqual(self.first(large, "--set", "cuda.flash_sdp=false"), CUDNN)
        self.assertEqual(self.first(large, "--set", "cuda.flash_sdp=false", "--set", "cuda.cudnn_sdp=false"), OWN)
        self.assertEqual(self.first("bf16:b=16,h=24,l=512,d=64", "--set", "cuda.sdp_priority=flash"), HOPPER)
        small = "bf16:b=1,h=4,l=64,d=64"
        self.assertEqual(self.first(small, "--set", "cuda.mem_efficient_sdp=false"), HOPPER)
        self.assertEqual(self.first(small, "--set", "cuda.sdp_priority=cudnn"), CUDNN)
        self.assertEqual(self.first("bf16:b=2,h=16,l=2048,d=128", "--set", "cuda.sdp_priority=mem_efficient"), OWN)
        self.assertEqual(self.first(small, "--set", "cudnn.enabled=false"), OWN)

    def test_parts_have_room(self):
        """Keys of few rows are cut, and what each part leaves lies in workspace; of many rows they are not."""
        def room(problem):
            rows = {row["kernel"]: row for row in self.explain(problem)["candidates"]}
            return rows[OWN]["workspace"]
        self.assertEqual(room("bf16:b=1,h=8,lq=1,lk=128,d=128"), 0)
        self.assertEqual(room("bf16:b=1,h=8,lq=1,lk=65536,d=128"), 8 * 64 * 130 * 4)
        self.assertEqual(room("f64:b=1,h=8,hk=4,lq=1,lk=1024,d=64"), 8 * 8 * 66 * 8)
        self.assertEqual(room("bf16:b=4,h=16,l=2048,d=128"), 0)


if __name__ == "__main__":
    script.main()
