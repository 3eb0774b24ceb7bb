"""Every Python snippet of README.md, docs/python.md, docs/einsum.md, docs/fft.md and docs/attention-video.md, in the order of
the page and in one program, as a reader types them."""
import importlib.util
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
NAMES = {"__name__": "__main__"}


def snippets():
    for page in ("README.md", "docs/python.md", "docs/einsum.md", "docs/fft.md", "docs/attention-video.md"):
        text = (ROOT / page).read_text()
        for match in re.finditer(r"^```python *(.*?)\n(.*?)^```$", text, re.M | re.S):
            line = text[: match.start()].count("\n") + 2
            yield pytest.param(page, line, match[1], match[2], id=f"{page}:{line}")


SNIPPETS = list(snippets())


@pytest.mark.parametrize("page,line,attributes,text", SNIPPETS)
def test_snippet(page, line, attributes, text):
    for need in re.findall(r"[\w]+", attributes.partition("needs=")[2]):
        if importlib.util.find_spec(need) is None:
            pytest.skip(f"{need} is not here")
    exec(compile("\n" * (line - 1) + text, page, "exec"), NAMES)


def test_there_are_snippets():
    assert len(SNIPPETS) >= 9
