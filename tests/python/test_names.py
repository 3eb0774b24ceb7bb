"""The names that people see: no others leak, kinds have their functions, and help() describes what is returned."""
import importlib
import pathlib
import pydoc
import types

import numpy
import pytest
import tenon
from tenon import _elementwise, _named

MODULES = ["tenon", "tenon.backends", "tenon.errors", "tenon.fft", "tenon.integrations", "tenon.lock", "tenon.operators",
           "tenon.platforms", "tenon.settings", "tenon.video",
           *(f"tenon.platforms.{name}" for name in ("attention", "cpu", "cuda", "interface", "mps", "npu", "rocm")),
           *(f"tenon.backends.{name}" for name in tenon.backends.__all__
             if isinstance(getattr(tenon.backends, name), types.ModuleType))]
FOR_OTHERS = ["device_interface", "integrations.diffusers", "integrations.scipy_fft", "integrations.torch",
              "integrations.torch_fft", "integrations.transformers"]


def home(value):
    """The package that a value was made in; numbers and texts are of none."""
    return getattr(value, "__name__" if isinstance(value, types.ModuleType) else "__module__", None)


@pytest.mark.parametrize("name", MODULES)
def test_modules_show_their_own_names(name):
    """No helper that a module imports, nor what the language puts there."""
    module = importlib.import_module(name)
    shown = [one for one in dir(module) if not one.startswith("__")]
    assert not [one for one in shown if one.startswith("_")]
    if name == "tenon":
        shown.remove("device_interface")  # which needs PyTorch, so that it is not in __all__
    others = {one: home(getattr(module, one)) for one in {*shown} - {*getattr(module, "__all__", ())}}
    assert {one: of for one, of in others.items() if of is not None and not of.startswith("tenon")} == {}
    assert "TYPE_CHECKING" not in shown and "annotations" not in shown
    assert not [one for one in others if isinstance(getattr(module, one), (tuple, dict))]  # tables are the module's own
    for one in getattr(module, "__all__", ()):
        assert one in dir(module)


@pytest.mark.parametrize("name", FOR_OTHERS)
def test_modules_for_other_packages_show_their_own_names(name):
    """As the others; not even helpers of the package itself."""
    module = pytest.importorskip("tenon." + name, reason="what it needs is not here")
    assert sorted(dir(module)) == sorted(module.__all__)
    assert {one: home(getattr(module, one)) for one in module.__all__} == dict.fromkeys(module.__all__, module.__name__)


def test_every_public_module_is_tested_here():
    """Those whose file has no underscore before its name."""
    root = pathlib.Path(tenon.__file__).parent
    found = {".".join(("tenon", *path.relative_to(root).with_suffix("").parts))
             for path in root.rglob("[!_]*.py")} | {f"tenon.{path.parent.name}" for path in root.glob("[!_]*/__init__.py")}
    assert found == {*MODULES, *(f"tenon.{name}" for name in FOR_OTHERS)} - {"tenon"}


def values(x):
    return x.tolist() if isinstance(x, numpy.ndarray) else x


@pytest.mark.parametrize("of, rows", [("unary", _elementwise.UNARY), ("binary", _elementwise.BINARY),
                                      ("reduce", _elementwise.REDUCTIONS)])
def test_every_kind_has_its_function(of, rows):
    """Which gives the same, takes the same options, and can be explained and prepared."""
    special = {"max": "maximum", "min": "minimum"} if of == "binary" else {}
    generic = getattr(tenon, of)
    for kind in rows:
        name = special.get(kind, kind.replace("-", "_"))
        function = getattr(tenon, name)
        x = numpy.array([[1.5, 2.0, 4.0], [3.0, 0.5, 6.0]], "f4")
        given = (x, x[:1] + 1) if of == "binary" else (x, 0) if of == "reduce" else (x,)
        out = numpy.empty((3,) if of == "reduce" else (2, 3), "f4")
        assert function(*given, out=out) is out and name in tenon.__all__ and name in _named.__all__
        numpy.testing.assert_array_equal(out, generic(kind, *given))
        assert tenon.explain(function, *given).problem == tenon.explain(generic, kind, *given).problem
        tenon.prepare(function, *given)
        assert f'tenon.{of}("{kind}", ...)' in pydoc.render_doc(function)
    numpy.testing.assert_array_equal(tenon.sum(x, keepdims=True), [[17]])


@pytest.mark.parametrize("cls, names", [
    (tenon.Decision, "problem status message unmet candidates chosen runs_now runs_once_tested"),
    (type(tenon.explain("matmul:f32:m=8,n=8,k=8@cpu")[0]), "kernel verdict library backend platform module rule predicted_us "
     "tuned_us workspace_bytes why note")])
def test_help_describes_a_decision(cls, names):
    """Every attribute by name and meaning."""
    told = pydoc.plain(pydoc.render_doc(cls))
    for name in names.split():
        words = cls.__slots__[name] if cls is tenon.Decision else getattr(cls, name).__doc__
        assert words and not words.startswith("Alias") and words in told, name
    decision = tenon.explain("matmul:f32:m=8,n=8,k=8@cpu")
    assert not hasattr(decision, "__dict__")
