"""The examples in the docstrings."""
import doctest
import importlib
import pkgutil

import pytest
import tenon

NEEDS_MORE = ("tenon.integrations", "tenon.device_interface")
MODULES = ["tenon"] + [m.name for m in pkgutil.walk_packages(tenon.__path__, "tenon.")
                       if not m.name.startswith(NEEDS_MORE)]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_there_are_examples():
    finder = doctest.DocTestFinder(exclude_empty=True)
    count = sum(bool(t.examples) for name in MODULES for t in finder.find(importlib.import_module(name)))
    assert count >= 8


@pytest.mark.parametrize("name", MODULES)
def test_everything_public_is_described(name):
    module = importlib.import_module(name)
    assert module.__doc__
    if name == "tenon._abi":
        return  # the headers describe them
    for key, value in vars(module).items():
        if not key.startswith("_") and callable(value) and getattr(value, "__module__", "") == name:
            assert value.__doc__, f"{name}.{key}"
