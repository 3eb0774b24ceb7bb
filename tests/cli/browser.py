"""A headless Chromium, asked through the pipe of its debugging protocol; and a reader of the PNG
pictures it takes. The standard library is enough."""

import base64
import json
import os
import select
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import zlib

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


def find():
    return next((path for path in map(shutil.which, NAMES) if path), None)


class Browser:
    """One process with one page. Close it."""

    def __init__(self, program, folder, wait=600):
        self.wait = wait
        self.number = 0
        self.left = b""
        to_child, self.writer = os.pipe()
        self.reader, from_child = os.pipe()

        def join_pipes():  # it reads from 3 and writes to 4
            keep_in, keep_out = os.dup(to_child), os.dup(from_child)
            os.dup2(keep_in, 3)
            os.dup2(keep_out, 4)
            os.set_inheritable(3, True)
            os.set_inheritable(4, True)

        self.process = subprocess.Popen(
            [program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
             "--no-first-run", "--disable-background-networking", "--disable-extensions",
             "--hide-scrollbars", "--force-color-profile=srgb", f"--user-data-dir={folder}",
             "--remote-debugging-pipe", "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            close_fds=False, preexec_fn=join_pipes)
        os.close(to_child)
        os.close(from_child)
        self.session = None
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.ask("Page.enable")

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.writer)
        os.close(self.reader)

    def receive(self, end):
        """The next message; they are ended by NUL."""
        while b"\0" not in self.left:
            ready = select.select([self.reader], [], [], max(0, end - time.monotonic()))[0]
            piece = os.read(self.reader, 1 << 20) if ready else b""
            if not piece:
                raise TimeoutError("the browser does not answer")
            self.left += piece
        message, self.left = self.left.split(b"\0", 1)
        return json.loads(message)

    def ask(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.writer, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + self.wait
        while True:
            answer = self.receive(end)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]

    def show(self, path, width, height=800, scheme="light", media=""):
        """Opens a file at a width, in a colour scheme, and waits until it is there."""
        self.resize(width, height, scheme, media)
        self.ask("Page.navigate", url="file://" + path)
        end = time.monotonic() + self.wait
        while self.evaluate("document.readyState") != "complete":
            if time.monotonic() > end:
                raise TimeoutError("the page does not load")
            time.sleep(0.05)

    def resize(self, width, height=800, scheme="light", media=""):
        """Shows the page that is open at another width, in another colour scheme."""
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height,
                 deviceScaleFactor=1, mobile=False)
        self.ask("Emulation.setEmulatedMedia", media=media,
                 features=[{"name": "prefers-color-scheme", "value": scheme}])

    def evaluate(self, script):
        result = self.ask("Runtime.evaluate", expression=script, returnByValue=True)
        if "exceptionDetails" in result:
            raise RuntimeError(json.dumps(result["exceptionDetails"]))
        return result["result"].get("value")

    def picture(self, width, height):
        """The upper left corner of the page, as PNG."""
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
        taken = self.ask("Page.captureScreenshot", format="png", clip=clip,
                         captureBeyondViewport=True)
        return base64.b64decode(taken["data"])


def read_png(data):
    """(width, height, rows) of a picture with 8 bits a channel; a row is bytes of R, G, B."""
    if data[:8] != b"\x89PNG\r\n\x1a\n":
        raise ValueError("no PNG")
    at, packed, header = 8, b"", None
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + length]
        if kind == b"IHDR":
            header = struct.unpack(">IIBBBBB", body)
        elif kind == b"IDAT":
            packed += body
        at += length + 12
    width, height, bits, colour, _, _, interlaced = header
    channels = {2: 3, 6: 4}.get(colour)
    if bits != 8 or interlaced or not channels:
        raise ValueError(f"a PNG of another kind: {header}")
    return width, height, unfilter(zlib.decompress(packed), width, height, channels)


def unfilter(raw, width, height, channels):
    stride = width * channels
    rows, above, at = [], bytes(stride), 0
    for _ in range(height):
        kind, line = raw[at], bytearray(raw[at + 1:at + 1 + stride])
        at += stride + 1
        undo(kind, line, above, channels)
        above = bytes(line)
        if channels == 4:
            del line[3::4]
        rows.append(bytes(line))
    return rows


def undo(kind, line, above, channels):
    """One line's filter, as the PNG specification numbers them."""
    if kind == 2:
        line[:] = bytes((a + b) & 0xFF for a, b in zip(line, above))
        return
    for i in range(len(line)) if kind else ():
        left = line[i - channels] if i >= channels else 0
        up = above[i]
        if kind == 1:
            add = left
        elif kind == 3:
            add = (left + up) // 2
        else:
            corner = above[i - channels] if i >= channels else 0
            distances = (abs(up - corner), abs(left - corner), abs(left + up - 2 * corner))
            add = (left, up, corner)[distances.index(min(distances))]
        line[i] = (line[i] + add) & 0xFF


def main():
    """browser.py PAGE PICTURE WIDTH HEIGHT: the upper left corner of a page as PNG."""
    page, picture, width, height = os.path.abspath(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    program = find()
    if not program:
        raise SystemExit("browser.py: chromium is not here")
    with tempfile.TemporaryDirectory() as folder:
        browser = Browser(program, folder)
        try:
            browser.show(page, width)
            taken = browser.picture(width, height)
        finally:
            browser.close()
    with open(picture, "wb") as file:
        file.write(taken)


if __name__ == "__main__":
    main()
