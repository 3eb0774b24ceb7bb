"""`tenon explain --mask-image`: pictures of masks, decoded and compared with the rule of windows; and `attention-video:`
problems as text and JSON.

    python3 tests/cli/mask_image.py BUILD --write     writes the pictures of the pages anew
"""

import itertools
import json
import os
import re
import shutil
import sys
import tempfile
import xml.etree.ElementTree
import zlib

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import script

PAGE = "attention-video.md"
COLORS = [(0xf4, 0xf4, 0xf0), (0x2b, 0x6c, 0xb0), (0xd6, 0x9e, 0x2e)]  # not seen, seen, text


def explain(*options):
    return script.run(script.build.tenon, "explain", *options, env=script.environment())


def window_of(at, count, size):
    """The tiles along an axis that a tile sees."""
    half = size // 2
    centre = max(half, min(at, count - 1 - half))
    return [n for n in range(count) if abs(n - centre) <= half]


def wanted(canvas, tile, window, text):
    """0, 1 or 2 for each pair of blocks."""
    counts = [-(-c // t) for c, t in zip(canvas, tile)]
    tiles = list(itertools.product(*map(range, counts)))
    blocks = len(tiles) + -(-text // (tile[0] * tile[1] * tile[2]))
    rows = [[2] * blocks for _ in range(blocks)]
    for n, at in enumerate(tiles):
        seen = set(itertools.product(*map(window_of, at, counts, window)))
        rows[n][:len(tiles)] = [int(other in seen) for other in tiles]
    return rows


def cells_of_png(content):
    """The colors of a PNG's pixels, of a palette of two bits."""
    assert content[:8] == b"\x89PNG\r\n\x1a\n"
    chunks, at = {}, 8
    while at < len(content):
        size, name = int.from_bytes(content[at:at + 4], "big"), content[at + 4:at + 8]
        body = content[at + 8:at + 8 + size]
        assert zlib.crc32(name + body) == int.from_bytes(content[at + 8 + size:at + 12 + size], "big")
        chunks[name] = body
        at += 12 + size
    width, height = (int.from_bytes(chunks[b"IHDR"][n:n + 4], "big") for n in (0, 4))
    assert chunks[b"IHDR"][8:] == bytes([2, 3, 0, 0, 0]) and chunks[b"IEND"] == b"" and list(chunks)[-1] == b"IEND"
    palette = [tuple(chunks[b"PLTE"][n:n + 3]) for n in range(0, len(chunks[b"PLTE"]), 3)]
    rows, line = zlib.decompress(chunks[b"IDAT"]), 1 + -(-width // 4)
    assert len(rows) == line * height and not any(rows[::line])
    return [[palette[rows[y * line + 1 + x // 4] >> 2 * (3 - x % 4) & 3] for x in range(width)] for y in range(height)]


def cells_of_svg(content):
    """The colors of an SVG's cells."""
    picture = xml.etree.ElementTree.fromstring(content)
    space = "{http://www.w3.org/2000/svg}"
    _, _, width, height = map(int, picture.get("viewBox").split())
    ground = picture.find(f"{space}rect")
    rows = [[ground.get("fill")] * width for _ in range(height)]
    for path in picture.iter(f"{space}path"):
        runs = re.findall(r"M(\d+) (\d+)h(\d+)v1h-(\d+)z", path.get("d"))
        assert "".join("M%s %sh%sv1h-%sz" % run for run in runs) == path.get("d")
        for x, y, size, back in runs:
            assert size == back
            for n in range(int(x), int(x) + int(size)):
                assert rows[int(y)][n] == ground.get("fill")
                rows[int(y)][n] = path.get("fill")
    return [[tuple(bytes.fromhex(color[1:])) for color in row] for row in rows]


class Case(script.Case):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="tenon-")
        self.addCleanup(shutil.rmtree, self.folder)

    def draw(self, problem, name, *options):
        path = os.path.join(self.folder, name)
        done = explain(problem, "--mask-image", path, *options)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        with open(path, "rb") as file:
            return file.read()

    def refuse(self, words, *options):
        done = explain(*options)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn(words, done.stderr)


class Pictures(Case):
    def test_show_the_windows(self):
        for canvas, tile, windows, text in (((4, 6, 8), (2, 2, 2), [(1, 3, 2)], 0), ((3, 5, 7), (2, 2, 3), [(1, 1, 1), (9, 1, 3)], 30),
                                            ((30, 48, 80), (6, 8, 8), [(3, 3, 3)], 256)):
            problem = ("attention-video:f32:kind=sliding-tile,canvas={},tile={},window={},h={},d=8,text={}".format(
                "x".join(map(str, canvas)), "x".join(map(str, tile)),
                ";".join("x".join(map(str, window)) for window in windows), len(windows), text))
            for head, window in enumerate(windows):
                colors = [[COLORS[cell] for cell in row] for row in wanted(canvas, tile, window, text)]
                self.assertEqual(cells_of_svg(self.draw(problem, "mask.svg", "--head", str(head))), colors)
                found = cells_of_png(self.draw(problem, "mask.png", "--head", str(head)))
                size = len(found) // len(colors)
                self.assertEqual((len(found), len(found[0])), (size * len(colors),) * 2)
                self.assertEqual([row[::size] for row in found[::size]], colors)

    def test_of_problems_have_as_many_blocks(self):
        """And are the same each time; heads differ."""
        problem = "attention-sparse:f32:h=2,lq=320,lk=640,d=8,bq=32,entries=100"
        first = self.draw(problem, "a.svg")
        cells = cells_of_svg(first)
        self.assertEqual((len(cells), len(cells[0])), (10, 20))
        self.assertEqual(sum(row.count(COLORS[1]) for row in cells), 50)
        self.assertEqual(self.draw(problem, "b.svg", "--head", "0"), first)
        self.assertNotEqual(self.draw(problem, "b.svg", "--head=1"), first)
        self.assertEqual(sum(row.count(COLORS[1]) for row in cells_of_svg(self.draw(
            "attention-sparse:f32:h=1,l=64,d=8,bq=16,slots=64", "c.svg"))), 8)

    def test_what_is_refused(self):
        video = "attention-video:f32:canvas=4x4x4,window=1x1x1,h=2,d=8"
        path = os.path.join(self.folder, "mask.svg")
        for words, options in (
                ("a name that ends with .png or .svg", [video, "--mask-image", path + "z"]),
                ("--head: expected a head from 0 to 1, got", [video, "--mask-image", path, "--head", "2"]),
                ("--head: expected a head from 0 to 1, got", [video, "--mask-image", path, "--head", "x"]),
                ("got kind=sparse, whose tiles depend on q and k",
                 ["attention-video:f32:kind=sparse,canvas=4x4x4,keep=1,h=2,d=8", "--mask-image", path]),
                ("expected a problem of attention-sparse or attention-video",
                 ["matmul:f32:m=4,n=4,k=4", "--mask-image", path]),
                ("canvas: expected three sizes such as 30x48x80", ["attention-video:f32:canvas=4x4,window=1x1x1,h=2,d=8"]),
                ("window: expected three sizes", ["attention-video:f32:canvas=4x4x4,window=1x1;2,h=2,d=8"]),
                ("windows: expected one window, or 2 windows", ["attention-video:f32:canvas=4x4x4,h=2,d=8"]),
                ("kind: expected sliding-tile or sparse", ["attention-video:f32:kind=x,canvas=4x4x4,h=2,d=8"]),
                ('no field "windows"; there are: kind, canvas', ["attention-video:f32:canvas=4x4x4,windows=1x1x1"]),
                ("the dtype f32, f64, f16 or bf16", ["attention-video:i8:canvas=4x4x4,window=1x1x1,h=2,d=8"]),
                ("h: expected a number above 0", ["attention-video:f32:canvas=4x4x4,window=1x1x1,d=8"]),
                ("text: expected a number", ["attention-video:f32:text=x,h=1,d=8"]),
                ("expected attention-video:DTYPE:FIELD=VALUE", ["attention-video:f32"])):
            self.refuse(words, *options)
        self.assertFalse(os.path.exists(path))
        self.refuse(os.path.join(self.folder, "none"), video, "--mask-image", os.path.join(self.folder, "none", "x.png"))


class Problems(Case):
    def test_json_has_the_parts(self):
        for kind, tiles, keep in (("sliding-tile,window=3x3x3", 300, None), ("sparse,sparsity=0.9,tile=4x4x4,gate=1", 1920, 192)):
            done = explain(f"attention-video:bf16:kind={kind},canvas=30x48x80,h=24,d=128,layout=blhd", "--json")
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            document = json.loads(done.stdout)
            self.assertEqual((document["tiles"], document["keep"], document["command"]), (tiles, keep, "explain"))
            parts = [part for part in document["parts"] if part["stage"] == "attention"]
            self.assertEqual(len(parts), 1)
            self.assertIn("attention-sparse:bf16:", parts[0]["problem"])
            self.assertIn(f"slots={document['slots']}", parts[0]["problem"])
            for part in document["parts"]:
                chosen = json.loads(explain(part["problem"], "--json").stdout)["chosen"]
                self.assertEqual(chosen, part["kernel"])

    def test_text_has_the_parts(self):
        text = explain("attention-video:f32:kind=sparse,canvas=5x6x7,h=2,d=8,keep=3").stdout
        self.assertRegex(text, r"\ntiles +8\nblocks +8\nslots +512\nkeep +3\ndensity +0\.375\nworkspace +\d+ bytes\n")
        self.assertRegex(text, r"\nmeans +cpu\.reduce\.\w+\n +reduce:f32:kind=mean,")
        self.assertRegex(text, r"\nattention +cpu\.attention-sparse\.\w+\n")


def pictures():
    """File -> command of each picture of the page: a comment `picture NAME: COMMAND` before it."""
    page = script.read_text(script.source("docs", PAGE))
    return {name: command.split() for name, command in re.findall(r"<!-- picture (\S+): tenon explain (.*) -->", page)}


class Pages(Case):
    def test_pictures_are_what_the_command_draws(self):
        self.assertGreaterEqual(len(pictures()), 3)
        for name, options in pictures().items():
            self.assertIn(f"({name})", script.read_text(script.source("docs", PAGE)))
            self.assertEqual(self.draw(options[0], "picture.svg", *options[1:]).decode(),
                             script.read_text(script.source("docs", name)))


if __name__ == "__main__":
    if "--write" in sys.argv:
        sys.argv.remove("--write")
        script.build.read(sys.argv[1])
        for name, options in pictures().items():
            done = explain(options[0], "--mask-image", script.source("docs", name), *options[1:])
            print(name, done.stderr or "written")
    else:
        script.main()
