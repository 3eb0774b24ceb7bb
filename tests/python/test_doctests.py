"""The examples in the docstrings, all of them run: every public name of the package has one, and so has every
module that people import by its name."""
import doctest
import importlib
import operator
import pkgutil

import pytest
import tenon

NEEDS = {"tenon.device_interface": ("torch",), "tenon.integrations.torch": ("torch",), "tenon.integrations.torch_fft": ("torch",),
         "tenon.integrations.scipy_fft": ("scipy",),
         "tenon.integrations.transformers": ("torch", "transformers"), "tenon.integrations.diffusers": ("torch", "diffusers"),
         **dict.fromkeys(("tenon.integrations._einsum_gradient", "tenon.integrations._mask_gradient", "tenon.integrations._sharding",
                          "tenon.integrations._shared", "tenon.integrations._sparse_gradient",
                          "tenon._torch_device", "tenon._op_overrides", "tenon._torch_guard", "tenon._wrappers"), ("torch",))}
MODULES = ["tenon"] + [m.name for m in pkgutil.walk_packages(tenon.__path__, "tenon.")]
WITH_EXAMPLES = ["tenon", *(f"tenon.{name}" for name in (
    "backends", "backends.cpu", "backends.cuda", "backends.cudnn", "device_interface", "errors", "integrations.diffusers",
    "fft", "integrations.torch", "integrations.torch_fft", "integrations.scipy_fft", "integrations.transformers", "lock",
    "operators", "platforms", "platforms.attention", "platforms.interface", "settings"))]
PUBLIC = [name for name in tenon.__all__ if name not in tenon._MODULES and callable(getattr(tenon, name))]
PUBLIC += [f"fft.{name}" for name in tenon.fft.__all__]


def load(name):
    """The module, where the packages are here that it needs."""
    for need in NEEDS.get(name, ()):
        pytest.importorskip(need, reason=f"{name} needs {need}, which is not here")
    return importlib.import_module(name)


def examples(value, name, globs):
    """The docstrings of a value, and of what it has, that have examples."""
    found = doctest.DocTestFinder(exclude_empty=True).find(value, name, globs=dict(globs))
    return [one for one in found if one.examples]


def outcome(tests):
    """What went wrong, as text."""
    told = []
    for test in tests:
        doctest.DocTestRunner().run(test, out=told.append)
    return "".join(told)


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    module = load(name)
    found = examples(module, name, vars(module))
    assert found or name not in WITH_EXAMPLES, f"{name} has no example in any docstring"
    failed = outcome(found)
    assert not failed, failed


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_has_an_example(name):
    """Operators are made by a decorator, and are not found as their module's own."""
    value = operator.attrgetter(name)(tenon)
    found = examples(value, name, {})
    assert ">>> " in (value.__doc__ or ""), f"tenon.{name} has no example in its docstring"
    failed = outcome(found)
    assert found and not failed, failed


def test_examples_that_are_wrong_are_told():
    def wrong():
        """
        >>> 1 + 1
        3
        """

    assert "Got:\n    2" in outcome(examples(wrong, "wrong", {}))


@pytest.mark.parametrize("name", MODULES)
def test_everything_public_is_described(name):
    module = load(name)
    assert module.__doc__
    if name == "tenon._abi":
        return  # the headers describe them
    for key, value in vars(module).items():
        if not key.startswith("_") and callable(value) and getattr(value, "__module__", "") == name:
            assert value.__doc__, f"{name}.{key}"
