"""The example programs of the installed tree, built and run as their README.md says. The transformer's tokens are
compared with those of a model in NumPy, which computes every sequence anew, without a cache."""

import json
import os
import random
import re
import shutil
import struct
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness
import script

numpy = harness.import_numpy()

PROMPT = [3, 1, 4, 1, 5, 9, 2]


def read_weights(path):
    """The arrays of a safetensors file, in f32, and its metadata."""
    with open(path, "rb") as file:
        data = file.read()
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + length])
    metadata = header.pop("__metadata__")
    found = {}
    for name, row in header.items():
        begin, end = row["data_offsets"]
        raw = data[8 + length + begin:8 + length + end]
        if row["dtype"] == "F32":
            values = numpy.frombuffer(raw, "<f4")
        else:  # bf16: the upper half of an f32
            values = (numpy.frombuffer(raw, "<u2").astype("uint32") << 16).view("float32")
        found[name] = values.reshape(row["shape"]).astype("float64")
    return found, metadata


def rotate(x, base):
    """Rotary embedding of [length, heads, size]."""
    length, _, size = x.shape
    angles = numpy.arange(length)[:, None, None] * base ** (-2.0 * numpy.arange(size // 2) / size)
    low, high = x[..., :size // 2], x[..., size // 2:]
    cos, sin = numpy.cos(angles), numpy.sin(angles)
    return numpy.concatenate([low * cos - high * sin, low * sin + high * cos], -1)


def normalize(x, weight):
    return x / numpy.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * weight


def softmax(x):
    e = numpy.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def attend(q, k, v):
    """Causal attention of [length, heads, size]; a key head serves several heads."""
    length, heads, size = q.shape
    k, v = (numpy.repeat(x, heads // x.shape[1], 1) for x in (k, v))
    scores = numpy.einsum("ihd,jhd->hij", q, k) / size ** 0.5
    scores[:, numpy.triu(numpy.ones((length, length), bool), 1)] = -numpy.inf
    return numpy.einsum("hij,jhd->ihd", softmax(scores), v).reshape(length, heads * size)


def probabilities(weights, metadata, tokens):
    """Of each token to be the next after `tokens`."""
    heads, base = int(metadata["heads"]), float(metadata["rope_theta"])
    x = weights["model.embed_tokens.weight"][tokens]
    layer = 0
    while f"model.layers.{layer}.input_layernorm.weight" in weights:
        def weight(name):
            return weights[f"model.layers.{layer}.{name}.weight"]
        h = normalize(x, weight("input_layernorm"))
        size = weight("self_attn.q_proj").shape[0] // heads
        q, k, v = ((h @ weight(f"self_attn.{n}_proj").T).reshape(len(tokens), -1, size) for n in "qkv")
        x = x + attend(rotate(q, base), rotate(k, base), v) @ weight("self_attn.o_proj").T
        h = normalize(x, weight("post_attention_layernorm"))
        gate = h @ weight("mlp.gate_proj").T
        x = x + (gate / (1 + numpy.exp(-gate)) * (h @ weight("mlp.up_proj").T)) @ weight("mlp.down_proj").T
        layer += 1
    last = normalize(x[-1], weights["model.norm.weight"])
    return softmax(weights.get("lm_head.weight", weights["model.embed_tokens.weight"]) @ last)


def pack(header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def row(begin, end, shape=(1,), dtype="F32"):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": [begin, end]}


# Files that are wrong, and a part of what is said about each.
DAMAGED = {
    "empty": (b"", "expected a safetensors file, got 0 bytes"),
    "short": (b"\0" * 7, "got 7 bytes"),
    "vast header": (struct.pack("<Q", 2 ** 64 - 1) + b"{}", "expected a header within the file"),
    "header too long": (struct.pack("<Q", 3) + b"{}", "expected a header within the file"),
    "no header": (pack(b""), 'byte 0 of the header: expected "{"'),
    "no end": (pack(b"{"), "expected a text in quotes"),
    "end within a text": (pack(b'{"a'), "expected the end of a text"),
    "end within an escape": (pack(b'{"__metadata__":{"a\\'), "expected the end of a text"),
    "escape in a name": (pack(b'{"\\u0041":{}}'), "no escape"),
    "text behind": (pack(b"{} x"), "expected the end of the header"),
    "data behind": (pack({}, b"1234"), "expected no data after the last tensor"),
    "no colon": (pack(b'{"a" 1}'), 'expected ":"'),
    "number": (pack(b'{"a":1}'), 'expected "{"'),
    "key": (pack({"a": {"type": "F32"}}), "dtype, shape and data_offsets, each once"),
    "key twice": (pack(b'{"a":{"shape":[1],"shape":[1]}}'), "each once"),
    "key missing": (pack({"a": {"dtype": "F32", "shape": [1]}}, b"1234"), "dtype, shape and two data_offsets"),
    "dtype": (pack({"a": row(0, 4, dtype="F33")}, b"1234"), "expected a dtype"),
    "negative size": (pack({"a": row(0, 4, [-1])}, b"1234"), "expected a number"),
    "fraction": (pack({"a": row(0, 4, [1.5])}, b"1234"), 'expected "]"'),
    "leading zero": (pack(b'{"a":{"dtype":"F32","shape":[01],"data_offsets":[0,4]}}', b"1234"), "expected a number"),
    "size of 64 bits": (pack({"a": row(0, 4, [2 ** 63])}, b"1234"), "expected a smaller number"),
    "product of 64 bits": (pack({"a": row(0, 4, [2 ** 62, 4])}, b"1234"), "offsets within the file"),
    "nine dimensions": (pack({"a": row(0, 4, [1] * 9)}, b"1234"), "expected a shorter list"),
    "backward": (pack({"a": row(4, 0)}, b"1234"), "offsets within the file"),
    "beyond the file": (pack({"a": row(4, 8)}, b"1234"), "offsets within the file"),
    "another size": (pack({"a": row(0, 4, [2])}, b"1234"), "offsets within the file that fit the shape"),
    "one offset": (pack({"a": {"dtype": "F32", "shape": [1], "data_offsets": [4]}}, b"1234"), "two data_offsets"),
    "gap": (pack({"a": row(0, 4), "b": row(8, 12)}, b"123456789012"), "got a gap or an overlap"),
    "overlap": (pack({"a": row(0, 4), "b": row(0, 4)}, b"1234"), "got a gap or an overlap"),
    "name twice": (pack(b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},'
                        b'"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}', b"12345678"),
                   "two tensors have the name a"),
    "no model": (pack({"a": row(0, 4)}, b"1234"), "expected model.embed_tokens.weight"),
    "a text": (pack({"__metadata__": {"format": "\\\"pt\\\""}, "a": row(0, 4)}, b"1234"), "pass --heads"),
}


class Examples(script.Case):
    """All tests use one installed tree."""

    @classmethod
    def setUpClass(cls):
        cls.prefix = os.path.realpath(tempfile.mkdtemp(prefix="tenon-"))
        cls.addClassCleanup(shutil.rmtree, cls.prefix, ignore_errors=True)
        libdir = os.path.join(cls.prefix, script.build.values["CMAKE_INSTALL_LIBDIR"])
        cls.env = script.environment(
            PKG_CONFIG_PATH=os.path.join(libdir, "pkgconfig"), LD_LIBRARY_PATH=libdir,
            TENON_CACHE=os.path.join(cls.prefix, "cache"))
        done = script.run(script.build.cmake, "--install", script.build.folder, "--prefix", cls.prefix)
        assert done.returncode == 0, done.stderr

    def build(self, example):
        """Builds an example in its installed folder, once. Gives the folder."""
        self.need("pkg-config")
        folder = os.path.join(self.prefix, "share", "tenon", "examples", example)
        flags = "-O1 -Wall -Wextra -Wpedantic -Wconversion -Werror" + "".join(
            " -fsanitize=" + kind for kind in script.build.sanitizers)
        self.run_well(self.need("make"), "-C", folder, "CC=" + script.build.compiler, "CFLAGS=" + flags, env=self.env)
        return folder

    def test_every_example_is_listed(self):
        folder = os.path.join(self.prefix, "share", "tenon", "examples")
        text = script.read_text(folder, "README.md")
        for name in os.listdir(folder):
            if name != "README.md":
                self.assertIn(f"]({name}", text)

    def test_the_commands_that_run_them(self):
        """Each is the one of a target of the example's Makefile, or of a script."""
        folder = os.path.join(self.prefix, "share", "tenon", "examples")
        rows = re.findall(r"(?m)^\| \[([\w-]+)\]\(.*?\) \| `(make|python3) ([\w.]+)` \|", script.read_text(folder, "README.md"))
        self.assertEqual(sorted(name for name, _, _ in rows), sorted(n for n in os.listdir(folder) if n != "README.md"))
        for name, program, what in rows:
            if program == "make":
                self.run_well(self.need("make"), "-n", "-C", os.path.join(folder, name), what, env=self.env)
            else:
                self.assertTrue(os.path.exists(os.path.join(folder, name, what)), what)

    def generate(self, folder, *arguments):
        """The new tokens with their probabilities."""
        text = self.run_well(os.path.join(folder, "transformer"), "w", "--prompt", ",".join(map(str, PROMPT)),
                             "--device", "cpu", *arguments, env=self.env, cwd=folder)
        lines = text.splitlines()
        self.assertRegex(lines[0], r"^\d+ layers, .* on cpu:0$")
        self.assertRegex(lines[1], r"^prefill: 7 tokens in [\d.]+ ms, [\d.]+ tokens per second$")
        self.assertRegex(lines[-1], r"^decode: \d+ tokens in [\d.]+ ms, [\d.]+ tokens per second$")
        return [(int(token), float(p)) for token, p in map(str.split, lines[2:-1])]

    def compare(self, folder, bound, *sizes):
        self.run_well(sys.executable, os.path.join(folder, "make_weights.py"), os.path.join(folder, "w"), *sizes)
        found = self.generate(folder, "--tokens", "12")
        self.assertEqual(len(found), 12)
        weights, metadata = read_weights(os.path.join(folder, "w"))
        tokens = list(PROMPT)
        for token, probability in found:
            expected = probabilities(weights, metadata, tokens)
            self.assertAlmostEqual(probability, expected[token], delta=bound * expected.max())
            self.assertGreaterEqual(expected[token], expected.max() * (1 - 2 * bound))
            tokens.append(token)

    def test_the_transformer_computes_what_numpy_does(self):
        if numpy is None:
            self.skipTest("numpy is not here")
        folder = self.build("transformer")
        self.compare(folder, 1e-5, "--vocabulary", "300", "--seed", "7")
        self.compare(folder, 1e-5, "--layers", "3", "--hidden", "48", "--heads", "3", "--key-heads", "1", "--inner", "40",
                     "--vocabulary", "101")
        self.compare(folder, 0.05, "--dtype", "BF16", "--vocabulary", "64", "--key-heads", "8")

    def test_the_reader_refuses_what_is_wrong(self):
        folder = self.build("transformer")
        program = os.path.join(folder, "transformer")
        for name, (data, part) in DAMAGED.items():
            with self.subTest(name):
                self.refuse(program, data, part)
        done = script.run(program, self.place("missing"), env=self.env)
        self.assertEqual((done.returncode, "missing: cannot be opened" in done.stderr), (1, True), done.stderr)
        done = script.run(program, "w", "--prompt", "1,x", env=self.env)
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr, "^usage: ")

    def refuse(self, program, data, part=""):
        with open(self.place("damaged"), "wb") as file:
            file.write(data)
        done = script.run(program, self.place("damaged"), "--device", "cpu", env=self.env)
        self.assertEqual((done.returncode, done.stdout), (1, ""), done.stderr)
        self.assertRegex(done.stderr, r"^\S*transformer: [a-z-]+: [^\n]*\n$")
        self.assertIn(part, done.stderr)

    def test_the_reader_survives_damage_of_any_byte(self):
        """A small model with one byte changed, or cut short, is computed or refused."""
        folder = self.build("transformer")
        whole = self.place("whole")
        self.run_well(sys.executable, os.path.join(folder, "make_weights.py"), whole, "--layers", "1", "--hidden", "4",
                      "--heads", "1", "--key-heads", "1", "--inner", "4", "--vocabulary", "8")
        with open(whole, "rb") as file:
            data = file.read()
        seed = int(os.environ.get("TN_TEST_SEED", "0")) or random.randrange(1 << 32)
        print("TN_TEST_SEED=%d" % seed)
        draw = random.Random(seed)
        header = 8 + struct.unpack("<Q", data[:8])[0]
        for _ in range(1000 if script.FULL else 20):
            damaged = bytearray(data)
            damaged[draw.randrange(header)] = draw.randrange(256)
            if draw.random() < 0.2:
                del damaged[draw.randrange(len(damaged)):]
            with open(self.place("damaged"), "wb") as file:
                file.write(damaged)
            done = script.run(os.path.join(folder, "transformer"), self.place("damaged"), "--device", "cpu", "--tokens",
                              "2", env=self.env)
            self.assertIn(done.returncode, (0, 1), bytes(damaged[:header]).decode("latin1") + done.stderr)


if __name__ == "__main__":
    script.main()
