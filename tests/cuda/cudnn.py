"""Attention through cuDNN, without a GPU: what is decided for devices that are described, and what is said of a
library that is too old, mixed, or refuses. The stub (stub_cudnn.c) computes a graph's operations one by one, on
the host: that shows what a graph means, and nothing of cuDNN's engines."""

import json
import os
import shutil
import sys

# In place of this folder, whose platform.py is not Python's.
sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
import script

ROW, BACK = "cuda.attention.cudnn", "cuda.attention-backward.cudnn"
SINGLE = ROW + ".single"
NOT_OURS = ("--set", "cuda.mem_efficient_sdp=false", "--set", "cuda.flash_sdp=false",  # a stub runs no kernels
            "--set", "cuda.math_sdp=false")


SMALL = [f"attention:{fields}" for fields in (
    "bf16:b=2,h=3,l=17,d=16,lse=1", "f16:b=1,h=2,lq=9,lk=13,d=24,dv=8,lse=1",
    "bf16:b=2,h=4,hk=2,l=12,d=16,layout=blhd",
    "f16:b=1,h=2,l=16,d=16,mask=causal,lse=1", "bf16:b=2,h=2,lq=5,lk=16,d=16,mask=causal-br,lse=1",
    "bf16:b=1,h=2,l=20,d=16,mask=window:5;3", "bf16:b=1,h=2,lq=8,lk=20,d=16,mask=window:5;0",
    "f16:b=1,h=2,lq=9,lk=20,d=16,mask=window-tl:-1;7,shift=5", "bf16:b=2,h=2,l=16,d=16,mask=additive,lse=1",
    "f16:b=2,h=2,l=16,d=16,mask=causal;additive,mdtype=f32", "bf16:b=1,h=2,l=16,d=16,softcap=3,scale=0.5",
    "bf16:b=2,h=4,hk=2,l=16,d=16,sink=f32,lse=1", "f16:b=6,h=2,lq=5,lk=16,d=16,sink=f32,used=1,mask=causal-br,lse=1",
    "bf16:b=6,h=2,l=16,d=16,used=1,lse=1", "bf16:b=6,h=2,lq=6,lk=16,d=16,used=1,mask=causal-br,lse=1",
    "bf16:b=6,h=2,lq=6,lk=16,d=16,used=1,mask=causal", "bf16:b=6,h=2,lq=6,lk=16,d=16,used=1,mask=window:3;0",
    "bf16:b=2,h=4,hk=1,lq=1,lk=40,d=16,mask=causal-br,lse=1", "bf16:b=5,h=4,hk=2,lq=1,lk=40,d=16,used=1",
    "bf16:b=3,h=4,hk=2,lq=1,lk=64,d=16,page=16,pool=20,lse=1",
    "f16:b=3,h=2,lq=5,lk=48,d=16,dv=8,page=8,pool=20,mask=causal-br,lse=1",
    "bf16:h=4,hk=2,varlen=9;1;17,d=16,layout=blhd,lse=1", "f16:h=2,varlen=9;1;17,d=16,dv=8,mask=causal,lse=1",
    "bf16:h=2,varlen=4;1;7,varlenk=9;8;7,d=16,layout=blhd,mask=causal-br,lse=1",
    "bf16:h=2,varlen=12;0;9,d=16,mask=window:4;2,softcap=3",
    "f16:h=2,varlen=4;5;7,varlenk=9;0;7,d=16,lse=1", "bf16:h=2,varlen=4;5;7,varlenk=9;0;7,d=16,sink=f32,lse=1",
    "bf16:b=2,h=3,lq=9,lk=20,d=16,mask=bool,lse=1",
    "f16:b=2,h=2,l=16,d=16,mask=causal;bool,lse=1", "bf16:b=3,h=2,lq=5,lk=16,d=16,mask=padding,lse=1")]
SMALL += [f"attention-backward:{fields}" for fields in (
    "bf16:b=2,h=3,l=16,d=16", "f16:b=1,h=4,hk=2,l=12,d=16,mask=causal",
    "bf16:b=1,h=2,lq=5,lk=16,d=16,mask=causal-br",
    "bf16:b=2,h=4,hk=1,lq=9,lk=13,d=24,dv=8,layout=blhd",
    "f16:b=1,h=2,l=20,d=16,mask=window:5;3", "bf16:b=2,h=2,lq=9,lk=12,d=16,mask=additive",
    "f16:b=2,h=2,l=12,d=16,mask=causal;bool")]
DROPPED = [f"attention:{fields},dropout=0.3,seed=77,offset=5" for fields in (
    "bf16:b=2,h=3,l=17,d=16,lse=1", "f16:b=1,h=2,lq=9,lk=13,d=24,dv=8,lse=1", "bf16:b=2,h=4,hk=2,l=12,d=16,mask=causal",
    "f16:b=1,h=2,l=20,d=16,mask=window-tl:5;3,lse=1", "bf16:b=2,h=2,l=16,d=16,mask=additive,lse=1",
    "f16:b=2,h=2,l=16,d=16,mask=causal;bool", "bf16:b=6,h=2,l=16,d=16,used=1,lse=1",
    "f16:h=2,varlen=4;5;7,varlenk=9;0;7,d=16,lse=1", "bf16:b=1,h=2,l=20,d=16,mask=window-tl:-1;3,shift=-9")]


class Decisions(script.Case):
    def row(self, problem, *options, device="h200", name=None):
        """The candidate of that name, by default the row of cuDNN's for so many queries."""
        name = name or (SINGLE if "lq=1," in problem else ROW)
        done = script.run(script.build.tenon, "explain", f"{problem}@{device}", "--json", "--device-file",
                          script.source("backends", "described", "devices", f"{device}.device"), *options,
                          env=script.environment())
        said = json.loads(done.stdout)
        return {row["kernel"]: row for row in said["candidates"]}[name]

    def why(self, problem, *options, device="h200", name=None):
        row = self.row(problem, *options, device=device, name=name)
        self.assertEqual(row["verdict"], "refused", problem)
        return row["why"]

    def taken(self, problem, *options, device="h200", name=None):
        row = self.row(problem, *options, device=device, name=name)
        self.assertNotEqual(row["verdict"], "refused", (problem, row.get("why")))
        self.assertEqual((row["library"], row["backend"]), ("cudnn", "cudnn"))

    def test_what_it_takes(self):
        for fields in ("b=1,h=24,l=32760,d=128,mask=causal", "b=1,h=24,l=32760,d=128", "b=2,h=4,l=77,d=64,lse=1",
                       "b=2,h=16,hk=4,lq=1,lk=4096,d=128", "b=2,h=4,lq=1,lk=64,d=64,mask=causal-br",
                       "b=2,h=4,lq=32,lk=64,d=64,mask=causal-br", "b=2,h=4,l=64,d=64,mask=window:8;8",
                       "b=1,h=4,l=64,d=256", "b=1,h=4,l=64,d=64,dv=128", "b=1,h=4,l=64,d=64,softcap=20",
                       "b=1,h=4,l=64,d=64,mask=additive", "b=1,h=4,l=64,d=64,mask=additive,mdtype=f32",
                       "b=1,h=4,l=64,d=64,mask=bool", "b=1,h=4,l=64,d=64,mask=padding",
                       "b=3,h=4,l=64,d=64,used=1", "b=3,h=8,hk=2,lq=1,lk=640,d=128,page=16,pool=200",
                       "b=2,h=4,l=64,d=64,layout=blhd,mask=causal"):
            for dtype in ("bf16", "f16"):
                self.taken(f"attention:{dtype}:{fields}")
        self.taken("attention:bf16:b=1,h=4,l=64,d=64,mask=causal", device="a100")
        self.taken("attention:bf16:h=4,varlen=64;32,d=64,layout=blhd,lse=1")
        why = self.why("attention:bf16:h=4,varlen=64;32,d=64", device="a100")
        self.assertEqual((why["code"], why["what"], why["needed"], why["found"]), ("device", "capability", 90, 80))

    def test_what_it_cannot_be_told(self):
        for problem, code, what in (
                ("attention:f32:b=1,h=4,l=64,d=64", "dtype", "f32"),
                ("attention:bf16:b=1,h=4,l=64,d=60", "shape", "head size"),
                ("attention:bf16:b=1,h=4,l=64,d=64,scale=1e300", "feature", "exponent of scale"),
                ("attention:bf16:b=1,h=4,l=64,d=64,softcap=1e300", "feature", "exponent of softcap"),
                ("attention:bf16:b=1,h=4,l=64,d=64,softcap=1e-300", "feature", "exponent of softcap"),
                ("attention:bf16:b=1,h=4,l=64,d=264", "shape", "head size"),
                ("attention:bf16:b=1,h=4,lq=64,lk=1,d=64", "shape", "keys"),
                ("attention:bf16:b=70000,h=1,l=64,d=64", "shape", "batch, heads"),
                ("attention:bf16:b=1,h=4,lq=1,lk=64,d=64,mask=causal", "shape", "queries"),
                ("attention:bf16:b=1,h=4,lq=64,lk=32,d=64,mask=causal-br", "shape", "queries"),
                ("attention:bf16:b=1,h=4,lq=32,lk=64,d=64,mask=causal-br;additive", "feature", "mask"),
                ("attention:bf16:b=1,h=4,lq=32,lk=64,d=64,mask=causal-br,dropout=0.25", "feature", "dropout"),
                ("attention:bf16:b=1,h=4,lq=1,lk=64,d=64,dropout=0.25", "feature", "dropout"),
                ("attention:bf16:b=2,h=16,l=8192,d=64,dropout=0.25", "shape", "weights"),
                ("attention:bf16:b=1,h=4,l=64,d=64,lse=1,align=16;16;16;16;4", "alignment", "lse"),
                ("attention:bf16:b=1,h=4,l=64,d=64,mask=bool,smask=17408;4352;68;1", "stride", "mask.stride"),
                ("attention:bf16:b=1,h=2,l=40000,d=64,mask=bool", "shape", "mask"),
                ("attention:bf16:b=1,h=4,l=64,d=64,sink=bf16", "dtype", "sinks"),
                ("attention:bf16:b=1,h=4,lq=1,lk=64,d=64,sink=f32", "feature", "sinks"),
                ("attention:bf16:h=4,varlen=64;32,d=64,sstart=2", "stride", "starts.stride"),
                ("attention:bf16:h=3,varlen=2x3000000,d=8,layout=blhd", "shape", "packed rows"),
                ("attention:bf16:b=3,h=4,lq=1,lk=64,d=64,page=16,pool=20,spage=1;3", "stride", "pages.stride"),
                ("attention:bf16:b=3,h=4,lq=1,lk=96,d=64,page=48,pool=20", "shape", "page"),
                ("attention:bf16:b=2,h=4,l=64,d=64,used=1,align=64;64;64;64;2", "alignment", "alignment"),
                ("attention:bf16:b=1,h=4,l=64,d=64,sq=16388;4097;64;1", "stride", "q.stride"),
                ("attention:bf16:b=1,h=4,l=64,d=64,lse=1,slse=512;128;2", "stride", "lse.stride")):
            why = self.why(problem)
            self.assertEqual((why["code"], why["what"]), (code, what), problem)

    def test_dropout_has_its_most(self):
        why = self.why("attention:bf16:b=2,h=16,l=8192,d=64,dropout=0.25")
        self.assertEqual((why["needed"], why["found"]), (2**31 - 1, 2**31))

    def test_dropout_has_its_memory(self):
        """Two bytes for each weight, which are told, and which a limit is held against."""
        fields = "bf16:b=2,h=4,l=512,d=64"
        plain, problem = f"attention:{fields}", f"attention:{fields},dropout=0.25"
        bytes = 2 * 2 * 4 * 512 * 512
        row = self.row(problem)
        self.assertEqual(row["workspace"], self.row(plain)["workspace"] + bytes)
        self.assertIn(f"to {bytes} bytes of workspace", row["note"])
        why = self.why(problem, "--set", "workspace.limit=2m")
        self.assertEqual((why["code"], why["needed"]), ("memory", row["workspace"]))

    def test_gradients_with_a_mask_have_so_many_rows(self):
        for name in (BACK, BACK + ".repeating"):
            why = self.why("attention-backward:bf16:b=257,h=257,l=128,d=64,mask=additive", name=name)
            self.assertEqual((why["what"], why["needed"], why["found"]), ("batch, heads", 65535, 66049))
            self.taken("attention-backward:bf16:b=64,h=16,l=128,d=64,mask=additive", name=name)

    def test_gradients_of_large_heads_come_in_pairs(self):
        for sizes in ("d=64,dv=256", "d=192", "d=256,dv=128", "d=160,dv=160"):
            why = self.why(f"attention-backward:bf16:b=1,h=4,l=256,{sizes}", name=BACK)
            self.assertEqual((why["code"], why["what"], why["needed"]), ("shape", "head size", 128), sizes)
        for sizes in ("d=256", "d=192,dv=128", "d=64,dv=128"):
            self.taken(f"attention-backward:bf16:b=1,h=4,l=256,{sizes}", name=BACK)

    def test_gradients_have_no_dropout(self):
        """On an H200 they came out wrong."""
        for name in (BACK, BACK + ".repeating"):
            why = self.why("attention-backward:bf16:b=2,h=4,l=512,d=64,dropout=0.25", name=name)
            self.assertEqual((why["code"], why["what"]), ("feature", "dropout"))

    def test_a_single_query_has_a_row_of_its_own(self):
        """Which promises no reproducible results: cuDNN splits the keys and adds the parts in any order."""
        for name, queries, needed in ((ROW, 1, 2), (SINGLE, 2, 1)):
            why = self.why(f"attention:f16:b=2,h=8,hk=2,lq={queries},lk=1000,d=128,lse=1", name=name)
            self.assertEqual((why["code"], why["what"], why["needed"], why["found"]),
                             ("shape", "queries", needed, queries))
        for fields in ("b=2,h=8,hk=2,lq=1,lk=1000,d=128,lse=1", "b=2,h=8,hk=2,lq=1,lk=777,d=128,layout=blhd,lse=1",
                       "b=3,h=4,lq=1,lk=512,d=64,lse=1,page=64,pool=30"):
            problem = f"attention:f16:{fields}"
            self.taken(problem)
            for setting in ("determinism=run-to-run", "cudnn.deterministic=true"):
                why = self.why(problem, "--set", setting)
                self.assertEqual((why["code"], why["what"]), ("determinism", "run-to-run"), problem)
                self.assertIn(f"does not guarantee run-to-run, which {setting} requires", why["text"])
                self.assertNotEqual(self.row(problem, "--set", setting, name="cuda.attention.own")["verdict"], "refused")
                self.taken(problem.replace("lq=1,", "lq=2,"), "--set", setting)

    def test_switches(self):
        """cudnn.enabled and cuda.cudnn_sdp take it away; cudnn.deterministic keeps it, as it chooses engines that
        give the same bits in every run."""
        problem = "attention:bf16:b=1,h=4,l=64,d=64"
        for key in ("cudnn.enabled", "cuda.cudnn_sdp"):
            why = self.why(problem, "--set", f"{key}=false")
            self.assertEqual(why["code"], "rule")
            self.assertIn(key, why["text"])
        self.taken(problem, "--set", "cudnn.deterministic=true")
        why = self.why(problem, "--set", "determinism=batch-invariant")
        self.assertEqual((why["code"], why["what"]), ("determinism", "batch-invariant"))
        self.taken(problem, "--set", "attention.backend=cudnn")

    def test_it_has_the_name_of_flash_attention(self):
        """Beside CUDA's kernel of that name, which is not for every GPU. Its switch is cuDNN's, and a choice that nobody made has the
        family's name."""
        flash = ("--set", "attention.backend=FLASH_ATTN")
        for problem, names in (("attention:bf16:b=1,h=4,l=64,d=64", [ROW]),
                               ("attention-backward:bf16:b=1,h=4,l=256,d=64", [BACK, BACK + ".repeating"])):
            for name in names:
                self.taken(problem, *flash, name=name)
                self.taken(problem, *flash, "--set", "cuda.flash_sdp=false", name=name)
                why = self.why(problem, *flash, "--set", "cuda.cudnn_sdp=false", name=name)
                self.assertEqual(why["text"].split(",")[0], "cuda.cudnn_sdp is off")
        self.taken("attention:bf16:b=1,h=4,l=64,d=64,backend=FLASH_ATTN")
        why = self.why("attention:f32:b=1,h=4,l=64,d=64", *flash)  # what it does not compute stays refused
        self.assertEqual((why["code"], why["what"]), ("dtype", "f32"))
        own = self.why("attention:bf16:b=1,h=4,l=64,d=64", *flash, name="cuda.attention.own")
        self.assertEqual(own["code"], "rule")

    def test_gradients(self):
        problem = "attention-backward:bf16:b=2,h=8,hk=4,l=256,d=128,mask=causal"
        for name in (BACK, BACK + ".repeating"):
            self.taken(problem, name=name)
            for fields, code, what in (("b=1,h=4,l=256,d=64,softcap=5", "feature", "softcap"),
                                       ("b=3,h=4,l=256,d=64,mask=padding", "stride", "mask.stride"),
                                       ("b=1,h=8,hk=4,l=256,d=64,mask=additive", "feature", "key heads"),
                                       ("b=0,h=4,l=256,d=64", "shape", "batch, heads"),
                                       ("b=1,h=4,lq=128,lk=256,d=64,mask=causal-br;additive", "feature", "mask"),
                                       ("b=1,h=4,lq=1,lk=256,d=64", "shape", "queries"),
                                       ("b=1,h=4,l=256,d=60", "shape", "head size")):
                why = self.why(f"attention-backward:bf16:{fields}", name=name)
                self.assertEqual((why["code"], why["what"]), (code, what), fields)
        why = self.why("attention-backward:bf16:b=1,h=4,l=256,d=256", device="a100", name=BACK)
        self.assertEqual((why["what"], why["needed"], why["found"]), ("head size", 128, 256))

    def test_cudnn_deterministic_chooses_among_gradients(self):
        problem = "attention-backward:bf16:b=2,h=4,l=256,d=128"
        for setting in ("cudnn.deterministic=true", "determinism=run-to-run"):
            why = self.why(problem, "--set", setting, name=BACK)
            self.assertEqual((why["code"], why["what"]), ("determinism", "run-to-run"))
            self.taken(problem, "--set", setting, name=BACK + ".repeating")


class Libraries(script.Case):
    PROBLEM = "attention:bf16:b=2,h=4,l=64,d=64,mask=causal,lse=1@cuda:0"

    def environment(self, **changes):
        folder = os.path.join(script.build.folder, "tests", "cuda")
        path = os.path.join(folder, "stub") + ":" + os.path.join(folder, "stub_compiler")
        return script.environment(**{"LD_LIBRARY_PATH": path, "CUDA_VISIBLE_DEVICES": None,
                                     "TENON_CACHE": self.place("cache"), **changes})

    def check(self, problem=PROBLEM, **changes):
        done = script.run(script.build.tenon, *NOT_OURS, "check", problem, "--all-kernels",
                          env=self.environment(**changes))
        return " ".join((done.stdout + done.stderr).split())

    def library(self, **changes):
        done = script.run(script.build.tenon, "libraries", "--try", "--json", env=self.environment(**changes))
        return {row["name"]: row for row in json.loads(done.stdout)["libraries"]}["cudnn"]

    def test_the_graphs_are_attention(self):
        """What the graphs say, operation by operation, is what the reference computes."""
        done = script.run(script.build.tenon, *NOT_OURS, "check", *(f"{p}@cuda:0" for p in SMALL), "--all-kernels",
                          "--json",
                          env=self.environment())
        rows = json.loads(done.stdout)["results"]
        wrong = [(row["problem"], row["kernel"], row["message"]) for row in rows if row["ok"] is not True]
        self.assertEqual(wrong, [])
        self.assertEqual(len({row["problem"] for row in rows}), len(SMALL))

    def test_flash_attention_computes_attention(self):
        said = self.check(self.PROBLEM.replace("@", ",backend=FLASH_ATTN@"))
        self.assertIn(ROW, said)
        self.assertNotIn("wrong", said)

    def check_rows(self, *problems, **changes):
        done = script.run(script.build.tenon, "check", *(f"{p}@cuda:0" for p in problems), "--all-kernels", "--json",
                          env=self.environment(**changes))
        return [row for row in json.loads(done.stdout)["results"] if row["kernel"] in (ROW, BACK, BACK + ".repeating")]

    def test_dropout_is_by_the_ops_own_numbers(self):
        """The stub of the driver writes what is kept, as the kernel does."""
        rows = self.check_rows(*DROPPED)
        wrong = [(row["problem"], row["kernel"], row["message"]) for row in rows if row["ok"] is not True]
        self.assertEqual(wrong, [])
        self.assertEqual(len({row["problem"] for row in rows}), len(DROPPED))

    def test_dropout_and_lengths_need_their_kernels(self):
        """Without which all else is taken, tests before it too."""
        lengths = "attention:bf16:b=6,h=2,l=16,d=16,used=1,lse=1"
        for name, value, words in (
                ("STUB_NVRTC", "1", " needs a kernel of Tenon's own, and NVIDIA's compiler, nvrtc, does not serve here"),
                ("STUB_MODULES", "0", "the kernel for ")):
            dropped, short, plain = self.check_rows(DROPPED[0], lengths, SMALL[0], **{name: value})
            for row, what in ((dropped, "dropout"), (short, "sequences without keys")):
                self.assertIsNone(row["ok"])
                self.assertIn(words, row["message"])
                self.assertIn(what, row["message"])
            self.assertIs(plain["ok"], True, plain["message"])

    def test_the_stub_can_be_found_out(self):
        """Where it computes nothing, the check tells."""
        for problem, name in ((self.PROBLEM, ROW), ("attention:f16:b=3,h=4,l=64,d=64,used=1,softcap=5@cuda:0", ROW),
                              ("attention-backward:bf16:b=2,h=4,l=128,d=64,mask=causal@cuda:0", BACK)):
            said = self.check(problem, STUB_DNN_IDLE="1")
            self.assertIn(name[:25], said)  # a table cuts long names
            self.assertIn("wrong", said)

    def test_it_is_listed(self):
        row = self.library()
        self.assertEqual((row["available"], row["version"]), ("yes", 91900))
        self.assertIn("found by the loader", row["reason"])

    def test_what_the_process_has_comes_first(self):
        """Its own, and what lies beside another part of it: a program with PyTorch has libcudnn.so.9 alone until it
        first computes with it, and cannot go on with a graph part of another version."""
        if script.build.sanitizers:
            self.skipTest("sanitizers are to be loaded first")
        stub, theirs = os.path.join(script.build.folder, "tests", "cuda", "stub"), self.place("theirs")
        os.mkdir(theirs)
        graph = shutil.copy(os.path.join(stub, "libcudnn_graph.so.9"), theirs)
        whole = shutil.copy(os.path.join(stub, "libcublas.so.13"), os.path.join(theirs, "libcudnn.so.9"))
        row = self.library(LD_PRELOAD=graph)
        self.assertEqual((row["available"], row["path"]), ("yes", graph))
        self.assertIn("already in this process", row["reason"])
        row = self.library(LD_PRELOAD=whole)
        self.assertEqual((row["available"], row["path"]), ("yes", graph))
        self.assertIn(f"beside one of its version that is already in this process: {whole}", row["reason"])
        for there, words in ((graph, "already in this process"), (whole, "beside one of its version")):
            done = script.run(script.build.tenon, "libraries", "--json", env=self.environment(LD_PRELOAD=there))
            row = {row["name"]: row for row in json.loads(done.stdout)["libraries"]}["cudnn"]
            self.assertEqual((row["available"], row["path"]), ("untried", graph))
            self.assertIn(f"not tried yet; {words}", row["reason"])

    def test_it_is_too_old(self):
        row = self.library(STUB_DNN_VERSION="8903")
        self.assertEqual(row["available"], "no")
        self.assertIn("cuDNN 8.9.3 is here, and too old: attention needs 9.0.0 or later", row["reason"])

    def test_its_parts_are_mixed(self):
        row = self.library(STUB_DNN_MIXED="1002")
        self.assertEqual(row["available"], "no")
        self.assertIn("parts of several versions of cuDNN are mixed", row["reason"])

    def test_two_majors_of_cuda(self):
        said = self.check(STUB_DNN_CUDA="99000")
        self.assertIn("this cuDNN is made for CUDA 99", said)

    def why(self, problem, name, version):
        done = script.run(script.build.tenon, "explain", f"{problem}@cuda:0", "--json",
                          env=self.environment(STUB_DNN_VERSION=version))
        rows = {row["kernel"]: row for row in json.loads(done.stdout)["candidates"]}
        return rows[name].get("why") or {"code": "none", "needed": 0, "text": ""}

    def test_versions_with_known_faults(self):
        for problem, name in (("attention:bf16:b=2,h=4,l={},d=64", ROW),
                              ("attention-backward:bf16:b=2,h=4,l={},d=64", BACK)):
            why = self.why(problem.format(128), name, "91000")
            self.assertEqual(why["code"], "known-bad", problem)
            self.assertIn("9.10.0 and 9.10.1", why["text"])
            why = self.why(problem.format(1152), name, "91400")
            self.assertEqual((why["code"], why["needed"], why["found"]), ("known-bad", 91500, 91400), problem)
            self.assertIn("1152 keys, at most 1024 are safe; 9.13 and 9.14", why["text"])
            for other in (problem.format(1024), problem.format(1152) + ",mask=causal"):
                self.assertNotEqual(self.why(other, name, "91400")["code"], "known-bad", other)

    def test_what_came_with_which_version(self):
        """Refused by the last version without it, and not by the first with it; the stub's device is of 9.0."""
        for problem, name, before, first in (
                ("attention:bf16:b=2,h=4,l=64,d=64,used=1", ROW, "90900", "91002"),
                ("attention:bf16:b=2,h=4,l=64,d=64,mask=additive", ROW, "90900", "91002"),
                ("attention:bf16:b=2,h=4,lq=1,lk=64,d=64,page=16,pool=20", SINGLE, "90900", "91002"),
                ("attention:bf16:b=2,h=4,lq=32,lk=65,d=64,mask=causal-br", ROW, "90501", "90600"),
                ("attention:bf16:b=2,h=4,l=64,d=64,mask=window:8;8", ROW, "", "90600"),
                ("attention:bf16:b=2,h=4,l=64,d=64,mask=window-tl:8;-1", ROW, "90900", "91002"),
                ("attention:bf16:b=2,h=4,l=64,d=64,sink=f32", ROW, "91200", "91500"),
                ("attention:bf16:b=2,h=4,l=64,d=64,mask=causal,dropout=0.25", ROW, "91301", "91500"),
                ("attention-backward:bf16:b=2,h=4,l=100,d=64", BACK, "91500", "91501"),
                ("attention-backward:bf16:b=2,h=4,l=192,d=64", BACK, "92500", "92600"),
                ("attention-backward:bf16:b=2,h=4,lq=256,lk=192,d=64,mask=causal", BACK, "92500", "92600"),
                ("attention-backward:bf16:b=2,h=4,l=192,d=64,mask=causal", BACK, "91500", "91501")):
            if before:
                self.assertEqual(self.why(problem, name, before)["code"], "version", (problem, before))
            self.assertNotIn(self.why(problem, name, first)["code"], ("version", "known-bad"), (problem, first))

    def test_what_it_refuses_is_said_in_its_words(self):
        for code in ("2000", "3000"):
            self.assertIn("cuDNN does not take it: the stub has no shape like this", self.check(STUB_DNN=code))
        self.assertIn("cuDNN has no engine for this attention: the stub has no shape like this",
                      self.check(STUB_DNN="none"))
        self.assertIn("does not give the same bits in every run", self.check(STUB_DNN_DIFFERS="1"))
        single = self.check(self.PROBLEM.replace("l=64,", "lq=1,lk=64,").replace("causal", "causal-br"),
                            STUB_DNN_DIFFERS="1")
        self.assertNotIn("does not give the same bits in every run", single)
        self.assertIn(SINGLE, single)
        self.assertIn("of workspace", self.check(STUB_DNN_BYTES="1000000000000"))

    def test_another_kernel_is_not_taken_in_silence(self):
        """What cuDNN declines is told in the log, and counted as what fell back."""
        problem = "attention:bf16:b=2,h=16,l=256,d=128@cuda:0"
        with open(self.place("list"), "w", encoding="utf-8") as file:
            file.write(problem + "\n")
        said = script.run(script.build.tenon, "warm", self.place("list"),
                          env=self.environment(STUB_DNN="3000", TENON_LOG="info", TENON_ADMISSION="never"))
        words = " ".join((said.stdout + said.stderr).split())
        self.assertIn(ROW + " does not support a problem: ", words)
        self.assertIn("the stub has no shape like this", words)
        self.assertIn(f"fell back: {problem} is computed by cuda.attention.hopper", words)

    def test_what_else_it_says(self):
        for name, code, text in (("STUB_DNN_START", "1001", "cuDNN does not start"),
                                 ("STUB_DNN_START", "1008", "a part of cuDNN does not load"),
                                 ("STUB_DNN_START", "3005", "the driver is too old for this cuDNN"),
                                 ("STUB_DNN", "4003", "cuDNN has no memory for it"),
                                 ("STUB_DNN_RUN", "5000", "cuDNN's result is 5000")):
            self.assertIn(text, self.check(**{name: code}), (name, code))


if __name__ == "__main__":
    script.main()
