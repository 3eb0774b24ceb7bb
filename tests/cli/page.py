"""tenon doctor --html: the page is sound, keeps strangers' text as text, is written whole or not at
all, and looks as it should in a browser: light and dark, wide and narrow, on screen and paper."""

import json
import os
import re
import resource
import signal
import shutil
import stat
import struct
import sys
import tempfile
import threading
import unittest
import zlib
from html.parser import HTMLParser

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import browser
import script

MACHINES = ["server", "hybrid", "small", "wide", "bare"]
VOID = {"meta", "br", "hr", "img", "input", "link", "col", "wbr"}
ODD = "<script>alert(\"1\")</script> '&amp; <b onclick=\"x\">"
FOLDER = "<i>&\"' onclick='x"
SECTIONS = ["machine", "memory", "threads", "platforms", "devices", "modules", "libraries"]


def tenon(*arguments, env=None, **options):
    return script.run(script.build.tenon, *arguments, env=env or script.environment(), **options)


def page_big():
    return os.path.join(script.build.folder, "tests", "cli", "page_big")


class Reader(HTMLParser):
    """What is wrong with a page, and what it says."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.faults, self.ids, self.tags, self.words, self.open = [], [], [], [], []
        self.styles = ""
        self.feed(text)
        self.close()
        self.faults += [f"{tag} is never closed" for tag in self.open]
        self.faults += [f"id {i} twice" for i in set(self.ids) if self.ids.count(i) > 1]

    def handle_starttag(self, tag, attrs):
        self.handle_startendtag(tag, attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        names = [name for name, _ in attrs]
        if tag in ("script", "iframe", "object", "embed", "base", "link", "img", "image", "use"):
            self.faults.append(f"a {tag}")
        for name, value in attrs:
            if name in ("src", "href", "xlink:href", "srcset", "style", "action", "data"):
                self.faults.append(f"{tag} {name}={value}")
            if name.startswith("on"):
                self.faults.append(f"{tag} runs {name}")
            if name == "id":
                self.ids.append(value)
        if len(names) != len(set(names)):
            self.faults.append(f"{tag} has an attribute twice: {names}")

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.faults.append(f"</{tag}> closes something else at {self.getpos()}")

    def handle_data(self, data):
        if self.open and self.open[-1] == "style":
            self.styles += data
            if re.search(r"@import|@font-face|url\((?!#)|expression|</", data):
                self.faults.append("the style sheet reaches out")
        else:
            self.words.append(data)

    def text(self):
        return "".join(self.words)


class TheReader(unittest.TestCase):
    """One that found nothing would let everything pass."""

    def test_finds_faults(self):
        for text, fault in (
                ("<p><b></p>", "closes something else"), ("<div>", "never closed"),
                ("<p id=a><p id=a>", "twice"), ("<script></script>", "a script"),
                ("<img src=x>", "img src=x"), ("<a href=/x></a>", "a href"),
                ("<p onclick=x></p>", "runs"), ("<p a=1 a=2></p>", "attribute twice"),
                ("<style>@import 'x'</style>", "reaches out"),
                ("<style>a{b:url(x)}</style>", "reaches out")):
            self.assertIn(fault, " ".join(Reader(text).faults), text)
        good = Reader("<!DOCTYPE html><p id=a>x &lt;<br><svg><rect/></svg></p>")
        self.assertEqual((good.faults, good.text()), ([], "x <"))

    def test_reads_every_filter_of_a_picture(self):
        """The same colours, told by each of PNG's five filters."""
        width, rows = 3, [bytes([10, 200, 30, 40, 50, 250, 70, 80, 90])] * 5
        rows[1:] = [bytes((b * k + k) & 0xFF for b in rows[0]) for k in range(2, 6)]

        def guess(kind, i, line, above):
            left = line[i - 3] if i >= 3 else 0
            corner = above[i - 3] if i >= 3 else 0
            near = min((left, above[i], corner), key=lambda v: abs(left + above[i] - corner - v))
            return (0, left, above[i], (left + above[i]) // 2, near)[kind]

        raw, above = b"", bytes(9)
        for kind, line in enumerate(rows):
            raw += bytes([kind])
            raw += bytes((b - guess(kind, i, line, above)) & 0xFF for i, b in enumerate(line))
            above = line

        def chunk(name, body):
            return struct.pack(">I", len(body)) + name + body + struct.pack(
                ">I", zlib.crc32(name + body))

        data = (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 3, 5, 8, 2, 0, 0, 0))
                + chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b""))
        self.assertEqual(browser.read_png(data), (width, 5, rows))


class Case(script.Case):
    def write(self, *arguments, code=0, **changes):
        """The real page of this machine."""
        path = self.place("page.html")
        done = tenon("doctor", "--quick", "--html", path, *arguments, env=script.environment(**changes))
        self.assertEqual((done.returncode, done.stderr), (code, ""))
        return path

    def make(self, kind):
        path = self.place(kind + ".html")
        self.run_well(page_big(), kind, path)
        return path

    def write_odd(self):
        """A page of strangers' names: a device's, and a file's that is no module."""
        folder = self.place(FOLDER)
        os.mkdir(folder)
        described = script.write_text(
            os.path.join(folder, "odd.device"),
            f"[device odd]\nplatform = cuda\nname = {ODD}\nmemory = 1 GiB\n")
        script.write_text(os.path.join(folder, "tenon-<b>.so"), "no library\n")
        return self.write("--device-file", described, code=1, TENON_MODULE_PATH=folder)


class Markup(Case):
    def check(self, path):
        text = script.read_text(path)
        page = Reader(text)
        self.assertEqual(page.faults, [], path)
        self.assertTrue(text.startswith("<!DOCTYPE html>\n<html lang=\"en\">\n"))
        self.assertTrue(text.endswith("</html>\n"))
        self.assertLessEqual(set(SECTIONS), set(page.ids))
        self.assertIn("default-src 'none'",
                      next(a["content"] for t, a in page.tags
                           if a.get("http-equiv") == "Content-Security-Policy"))
        drawings = [a for t, a in page.tags if t == "svg" and a.get("role") == "img"]
        self.assertEqual(len(drawings), 2)
        for drawing in drawings:
            for name in drawing["aria-labelledby"].split():
                self.assertIn(name, page.ids)
        return page

    def test_of_this_machine(self):
        page = self.check(self.write())
        text = page.text()
        self.assertIn("Nothing is broken.", text)
        threads = [t for t, a in page.tags if re.match("[tx]\\d", a.get("class") or "")]
        self.assertGreaterEqual(len(threads), 2)

    def test_says_what_the_document_says(self):
        document = script.run(script.build.tenon, "doctor", "--quick", "--json").stdout
        text = " ".join(Reader(script.read_text(self.write())).text().split())
        for key in ("model", "name", "reason", "what", "found", "uuid", "path", "choice"):
            for value in re.findall(rf'"{key}": "((?:[^"\\]|\\.)+)"', document):
                self.assertIn(" ".join(value.replace('\\"', '"').split()), text)

    def test_of_made_up_machines(self):
        for kind in MACHINES:
            self.check(self.make(kind))

    def test_libraries(self):
        """Those that are here in the table, the others folded; one that does not open is broken."""
        text = script.read_text(self.make("server"))
        part = text[text.index('<section id="libraries">'):text.index("</main>")]
        table, folded = part.split("</table>")
        rows = [" ".join(Reader(row).text().split()) for row in table.split("<tr>")[2:]]
        self.assertEqual(rows, [
            "acmeuntried-a rule of the settings forbids itpart of module <acme>, & not tried yet"
            "module <acme>",
            "cudnnnocudaoperatorslibcudnn.so.9 is at /opt/cuda/libcudnn.so.9, but no loaded module "
            "uses it",
            "mkl2024.2.1-Product-Build-20240722-for-Intel-64-architecture applications, GNU threads, 32-bit"
            "yescpumathematicsopened for module cpu/opt/<i>/libmkl_rt.so.2module cpu, "
            "12 kernels",
            "mkldnnnocpuoneDNNlibdnnl.so.3: no such fileinstall libdnnl3module cpu",
            "openblasnocpumatrix productsit lacks openblas_get_configinstall another version of it"
            "/opt/libopenblas.so.0module cpu"])
        self.assertEqual(re.findall(r'"badge (\w+)"', table), ["odd", "none", "good", "none", "bad"])
        self.assertIn("<summary>Not used: xnnpack</summary>", folded)
        self.assertIn("not found: libXNNPACK.so", folded)
        words = Reader(text).text()
        self.assertIn("1 thing is broken.", words)
        self.assertLess(words.index("library openblas: it lacks openblas_get_config"),
                        words.index("Current platform"))

    def test_libraries_of_this_machine(self):
        rows = json.loads(script.run(script.build.tenon, "libraries", "--json").stdout)["libraries"]
        text = script.read_text(self.write())
        part = text[text.index('<section id="libraries">'):text.index("</main>")]
        table, folded = part.split("</table>")
        here = [r["name"] for r in rows if r["built"] or r["path"] or r["available"] == "yes"]
        self.assertEqual(re.findall(r'<th scope="row"><code>([^<]+)', table), here)
        self.assertEqual(re.findall(r"<li><code>([^<]+)", folded),
                         [r["name"] for r in rows if r["name"] not in here])

    def test_kernels(self):
        """Rates as bars, the decision behind each, and what is wrong before everything else."""
        text = script.read_text(self.make("hybrid"))
        part = text[text.index('<section id="kernels">'):text.index("</main>")]
        items = [" ".join(Reader(item).text().split()) for item in part.split("<li>")[1:]]
        self.assertEqual([item.split(" The decision")[0] for item in items], [
            "cpu.matmul.fast ok selected400 GFLOP/s20.0 us, error 25% of its bound, spread 3%",
            "cpu.matmul.wrong wrong100 GFLOP/s20.0 us, error 1.23e+05% of its bound, spread 3%; "
            "out[3] is 7, not <8>"])
        self.assertEqual(re.findall(r'class="(used|all)" width="([\d.]+)%"', part),
                         [("used", "100.00"), ("all", "25.00")])
        rows = [" ".join(Reader(row.split("</tbody>")[0]).text().split())
                for row in part.split("<tr>") if row.startswith('<th scope="row">')]
        self.assertEqual(rows, [
            "cpu.matmul.fastchosen12.3 uspredictedrun-to-run",
            "cpu.matmul.wrongadmitted12.3 uspredictedrun-to-run",
            "cpu.matmul.pickyrefused12.3 uspredictedshape: k: expected 32, got 30; pad <k> to 32"
            "run-to-run",
            "cpu.norm.pickyrefused12.3 uspredictedshape: k: expected 32, got 30; pad <k> to 32"
            "run-to-run"])
        self.assertIn("No kernel is selected: no kernel <may> take it", Reader(part).text())
        words = Reader(text).text()
        self.assertIn("1 thing is broken.", words)
        self.assertLess(words.index("kernel cpu.matmul.wrong for matmul:f32:m=8,n=8,k=30@cpu:0: out[3]"),
                        words.index("Current platform"))

    def test_what_is_broken_comes_first(self):
        page = self.check(self.write_odd())
        text = page.text()
        self.assertIn("1 thing is broken.", text)
        self.assertLess(text.index("install the module again"), text.index("Current platform"))

    def test_names_stay_text(self):
        page = self.check(self.write_odd())
        self.assertIn(ODD, page.text())
        self.assertIn(self.place(FOLDER, "tenon-<b>.so"), page.text())
        titles = [a["title"] for _, a in page.tags if "title" in a]
        self.assertIn(f"described in {self.place(FOLDER, 'odd.device')}", titles)
        self.assertFalse({"script", "i"} & {tag for tag, _ in page.tags})

    def test_a_wish_that_cannot_be_met(self):
        page = self.check(self.write(code=3, TENON_PLATFORM="nobody"))
        self.assertIn("Nothing is broken, but no platform is current.", page.text())
        self.assertIn('unknown platform "nobody"', page.text())


class Writing(Case):
    def test_besides_the_report(self):
        path = self.place("page.html")
        done = tenon("doctor", "--quick", "--html", path)
        self.assertTrue(done.stdout.startswith("verdict: "))
        self.assertTrue(done.stdout.endswith(f"\npage: {path}\n"))
        done = tenon("doctor", "--quick", "--json", f"--html={path}")
        self.assertTrue(done.stdout.startswith("{") and done.stdout.endswith("}\n"))
        self.assertEqual(os.listdir(self.folder), ["page.html"])

    def test_alone_on_stdout(self):
        done = tenon("doctor", "--quick", "--html", "-")
        self.assertEqual((done.returncode, done.stderr, Reader(done.stdout).faults), (0, "", []))
        self.assertTrue(done.stdout.startswith("<!DOCTYPE html>"))
        self.assertTrue(done.stdout.endswith("</html>\n"))
        done = tenon("doctor", "--quick", "--html", "-", "--json")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("--json and --html - cannot both write to stdout", done.stderr)

    def test_takes_the_place_of_an_older_one(self):
        script.write_text(self.place("page.html"), "older")
        self.assertIn("</html>", script.read_text(self.write()))
        self.assertEqual(os.listdir(self.folder), ["page.html"])

    def fail_to_write(self, path, words, **options):
        done = tenon("doctor", "--quick", "--html", path, **options)
        self.assertEqual(done.returncode, 2)
        self.assertTrue(done.stdout.startswith("verdict: "))  # the report is printed all the same
        self.assertIn(f"{path}: {words}", done.stderr)

    def test_where_nothing_can_be_written(self):
        self.fail_to_write(self.place("none", "page.html"), "No such file or directory")
        self.fail_to_write(self.folder, "Is a directory")
        self.assertEqual(os.listdir(self.folder), [])

    def test_a_full_device(self):
        """By a link, so that a command that replaces what is there would replace the link."""
        if not os.path.exists("/dev/full"):
            self.skipTest("/dev/full is not here")
        os.symlink("/dev/full", self.place("full"))
        self.fail_to_write(self.place("full"), "No space left on device")
        self.assertTrue(os.path.islink(self.place("full")))

    def test_never_half_a_page(self):
        path = script.write_text(self.place("page.html"), "older")

        def keep_files_small():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))

        env = script.environment(TENON_CACHE="")
        self.fail_to_write(path, "File too large", preexec_fn=keep_files_small, env=env)
        self.assertEqual(script.read_text(path), "older")
        self.assertEqual(os.listdir(self.folder), ["page.html"])

    def test_into_what_is_no_file(self):
        """A pipe or a device is written to, not replaced."""
        path = self.place("pipe")
        os.mkfifo(path)
        read = []
        reader = threading.Thread(target=lambda: read.append(script.read_text(path)), daemon=True)
        reader.start()
        self.assertEqual(tenon("doctor", "--quick", "--html", path).returncode, 0)
        self.assertTrue(stat.S_ISFIFO(os.stat(path).st_mode))
        reader.join(script.HANG_SECONDS)
        self.assertTrue(read[0].endswith("</html>\n"))


# What the browser is asked. Text that is seen, with its colour and that of what lies under it.
CONTRASTS = r"""
(() => {
  const seen = [], known = new Map(), boxes = new Map();
  const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
  const read = c => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = c; canvas.fillRect(0, 0, 1, 1);
                      return [...canvas.getImageData(0, 0, 1, 1).data]; };
  const rgb = c => { if (!known.has(c)) known.set(c, read(c)); return known.get(c); };
  const rects = svg => { if (!boxes.has(svg)) boxes.set(svg, [...svg.querySelectorAll('rect')].map(
      r => [r, r.getBBox()])); return boxes.get(svg); };
  const ground = e => { for (; e; e = e.parentElement) {
      const c = rgb(getComputedStyle(e).backgroundColor); if (c[3] === 255) return c; }
    return rgb(getComputedStyle(document.documentElement).backgroundColor); };
  const under = text => { const b = text.getBBox(); let found = null;
    for (const [r, a] of rects(text.ownerSVGElement)) {
      if (a.x <= b.x + b.width / 2 && b.x + b.width / 2 <= a.x + a.width && a.y <= b.y + b.height / 2
          && b.y + b.height / 2 <= a.y + a.height && r.compareDocumentPosition(text) & 4) found = r; }
    return found; };
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const e = walk.currentNode.parentElement, words = walk.currentNode.data.trim();
    if (!words || !e.getClientRects().length || /^(title|desc|style)$/.test(e.tagName)) continue;
    if (e.closest('svg')) {
      const text = e.closest('text'), r = text && under(text);
      if (!r) { seen.push([words, [0, 0, 0, 0], [0, 0, 0, 0]]); continue; }
      const fill = getComputedStyle(r).fill;
      const c = fill.startsWith('url') ? getComputedStyle(document.querySelector('.hatch-ground')).fill
                                       : fill;
      seen.push([words, rgb(getComputedStyle(e).fill), rgb(c)]);
    } else seen.push([words, rgb(getComputedStyle(e).color), ground(e)]);
  }
  return seen;
})()
"""

# Labels of the drawing that do not fit into the box they stand in.
TOO_LONG = r"""
[...document.querySelectorAll('.topology')].filter(s => s.getClientRects().length).flatMap(s => {
  const boxes = [...s.querySelectorAll('rect')].map(r => r.getBBox());
  return [...s.querySelectorAll('text')].filter(t => t.getClientRects().length).filter(t => {
    const b = t.getBBox();
    return !boxes.some(a => a.x - 1 <= b.x && b.x + b.width <= a.x + a.width + 1 && a.y - 2 <= b.y
                            && b.y + b.height <= a.y + a.height + 2); });
}).map(t => t.textContent)
"""

# Cells of explanations that a long name or version beside them leaves no room.
CRUSHED = r"""
[...document.querySelectorAll('td[data-label=Says]')].filter(td => td.getClientRects().length).filter(td =>
  td.getBoundingClientRect().width < 0.35 * td.closest('table').getBoundingClientRect().width)
  .map(td => td.parentElement.textContent)
"""

SEEN = "[...document.querySelectorAll('.topology')].filter(s => s.getClientRects().length).length"
UNFOLD = "document.querySelectorAll('details').forEach(d => { d.was = d.open; d.open = true; })"
FOLD = "document.querySelectorAll('details').forEach(d => { d.open = d.was; })"
WIDTHS = "[document.documentElement.scrollWidth, innerWidth]"


def luminance(colour):
    parts = [c / 255 / 12.92 if c <= 10 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in colour[:3]]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


def contrast(a, b):
    light, dark = sorted((luminance(a), luminance(b)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


class InBrowser(Case):
    @classmethod
    def setUpClass(cls):
        program = browser.find()
        if not program:
            raise unittest.SkipTest("chromium is not here: nobody has looked at the page")
        cls.folder_of_browser = tempfile.mkdtemp(prefix="tenon-")
        try:
            cls.browser = browser.Browser(program, cls.folder_of_browser)
        except (OSError, TimeoutError) as error:
            shutil.rmtree(cls.folder_of_browser, ignore_errors=True)
            raise unittest.SkipTest(f"{program} does not run here: {error}")

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        shutil.rmtree(cls.folder_of_browser, ignore_errors=True)

    def each(self, paths, check, widths):
        """check(path, width, scheme) on every page, at every width; in both schemes in a full run, else in one."""
        for i, path in enumerate(paths):
            self.browser.show(path, widths[0])
            for j, width in enumerate(widths):
                for k, scheme in enumerate(("light", "dark")):
                    if script.FULL or (i + j + k) % 2 == 0:
                        self.browser.resize(width, scheme=scheme)
                        with self.subTest(page=os.path.basename(path), width=width, scheme=scheme):
                            check(path, width, scheme)

    def check_layout(self, path, *_):
        scrolled, inner = self.browser.evaluate(WIDTHS)
        self.assertLessEqual(scrolled, inner, "the page is wider than the window")
        self.assertEqual(self.browser.evaluate(SEEN), 1, "drawings to be seen")
        self.assertEqual(self.browser.evaluate(TOO_LONG), [], "labels that do not fit their boxes")
        self.assertEqual(self.browser.evaluate(CRUSHED), [], "cells without room")
        if os.path.basename(path) not in ("wide.html", "bare.html"):
            self.check_contrast()

    def check_contrast(self):
        """WCAG 2.2, 1.4.3: 4.5 to 1. Folded text is looked at too."""
        self.browser.evaluate(UNFOLD)
        seen = self.browser.evaluate(CONTRASTS)
        self.browser.evaluate(FOLD)
        self.assertGreater(len(seen), 40)
        poor = {(words[:40], tuple(a), tuple(b)) for words, a, b in seen if contrast(a, b) < 4.5}
        self.assertEqual(poor, set())

    def test_everything_fits_and_can_be_read(self):
        pages = [self.write_odd(), *map(self.make, MACHINES)]
        self.each(pages, self.check_layout, widths=(1100, 720, 360))

    def test_contrast_of_black_and_white(self):
        self.assertAlmostEqual(contrast([0, 0, 0], [255, 255, 255]), 21)

    def check_picture(self, _, width, scheme):
        height = 560
        columns, rows_read, rows = browser.read_png(self.browser.picture(width, height))
        self.assertEqual((columns, rows_read), (width, height))
        ground = rows[0][:3]
        self.assertEqual(luminance(ground) > 0.85, scheme == "light", tuple(ground))
        self.assertEqual(luminance(ground) < 0.02, scheme == "dark", tuple(ground))
        colours = {row[i:i + 3] for row in rows for i in range(0, len(row), 3)}
        self.assertGreater(len(colours), 60, "a page with letters, tiles and boxes has many")
        for row in rows:
            self.assertEqual((row[:3], row[-3:]), (ground, ground), "something touches the edge")

    def test_pictures(self):
        pages = [self.write(), self.make("hybrid")] if script.FULL else [self.make("hybrid")]
        self.each(pages, self.check_picture, widths=(800, 360))

    def test_paper(self):
        path = self.write()
        self.browser.show(path, 700, media="print")
        scrolled, inner = self.browser.evaluate(WIDTHS)
        self.assertLessEqual(scrolled, inner)
        if self.browser.evaluate("CSS.supports('selector(::details-content)')"):
            hidden = ("[...document.querySelectorAll('.evidence li')]"
                      ".filter(e => !e.checkVisibility()).length")
            self.assertEqual(self.browser.evaluate(hidden), 0, "evidence that is not printed")
        printed = self.browser.ask("Page.printToPDF", preferCSSPageSize=True)["data"]
        self.assertGreater(len(printed), 10000)

    def test_asks_nobody(self):
        """No request but for the page itself, and no complaint."""
        path = self.write_odd()
        self.browser.show(path, 800)
        self.assertEqual(
            self.browser.evaluate("performance.getEntriesByType('resource').map(e => e.name)"), [])
        self.assertEqual(self.browser.evaluate("document.scripts.length"), 0)


if __name__ == "__main__":
    script.main()
