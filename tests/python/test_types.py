"""What checkers of types see: the options of every operator by name and type, and nothing that is not there."""
import ast
import inspect
import os
import pathlib
import subprocess
import sys

import numpy
import pytest
import tenon
from tenon import _einsum, _named, operators
from tenon._calls import MAKERS

PACKAGE = pathlib.Path(__file__).resolve().parents[2] / "bindings" / "python"
HOMES = {**dict.fromkeys(operators.__all__, "operators"), **dict.fromkeys(_named.__all__, "_named")}
OPERATORS = sorted(HOMES)

PROGRAM = '''
from typing import Any

import tenon
from tenon.platforms import AttentionBackendEnum, current_platform


def run(q: Any, device: str) -> tenon.Decision:
    with tenon.settings.scope({"determinism": "run-to-run"}), tenon.device(device):
        out = tenon.attention(q, q, q, mask="causal", scale=0.5, window=None)
    with tenon.settings.scope(fp32_precision="ieee", determinism="any"):
        tenon.attention_backward(out, q, q, q, out, q, causal=True)
        tenon.mean(tenon.maximum(tenon.gelu(q), q, out=q), (0, 1), keepdims=True, dtype="f32")
        own: tenon.Tensor = tenon.empty((2, 3))[None, ..., ::-1].T.reshape(3, -1).transpose(0, 1).permute(1, 0)
        shape: tuple[int, ...] = own.shape
        print(len(own), shape, own.ndim, own.dtype, own.numpy())
        tenon.matmul(q, out, activation="gelu", transpose_b=True, alpha=2.0, out=tenon.empty((2, 3), "bf16"))
        tenon.softmax(out, 1, log=True)
        tenon.reduce("sum", out, [0, 1], keepdims=True)
        tenon.layer_norm(out, None, q, epsilon=1e-6)
        tenon.rotary(out, q, q, size=4, kind="pairs")
        tenon.fill(out, 1.5)
        tenon.prepare("matmul:f32:m=8,n=8,k=8@cpu")
    stream: tenon.Stream = tenon.Stream("cpu", priority="high")
    stream.record_event().synchronize()
    path: str = current_platform.get_attn_backend_cls(AttentionBackendEnum.FLASH_ATTN, 64, "bf16")
    chosen = tenon.explain(tenon.attention, q, q, q, mask=path).chosen
    print(None if chosen is None else chosen.predicted_us + 1.0, tenon.version().upper())
    return tenon.explain(tenon.matmul, q, q, bias=q)
'''
WRONG = ("tenon.attention(q, q, q, scal=0.5)", "tenon.attention(q, q)", "tenon.attention(q, q, q, scale='wide')",
         "tenon.matmul(q, q, transpose_b=True, activtion='relu')", "tenon.matmul(q, q, activation=3)",
         "tenon.softmax(q, axes=1)", "tenon.softmax(q, 'last')", "tenon.permute(q)", "tenon.unary(1, q)",
         "tenon.reduce('sum', q, keepdim=True)", "tenon.rms_norm(q, eps=1e-6)", "tenon.cast(q, q, q)",
         "tenon.explain(tenon.matmul, q, q, bia=q)", "tenon.prepare(tenon.matmul, q)", "tenon.attenton(q, q, q)",
         "tenon.binary('add', q)", "tenon.attention_merge(q, q, q, q, layot='bhld')", "tenon.fill(q)",
         "tenon.settings.scope(['determinism'])", "tenon.version().uper()", "tenon.gelu(q, q)", "tenon.add(q)",
         "tenon.mean(q, keepdim=True)", "tenon.attention(q, q, q, causal='yes')", "tenon.empty(2).transpose(1)",
         "tenon.empty(2).nunpy()")


def lines_of(checker, tmp_path, *options):
    """The lines of a program, from the first wrong one, that a checker finds something wrong with."""
    program = tmp_path / "program.py"
    head = PROGRAM + "\n\ndef wrong(q: Any) -> None:\n"
    program.write_text(head + "".join(f"    {line}\n" for line in WRONG))
    done = subprocess.run([sys.executable, "-m", checker, *options, str(program)], text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=1500, cwd=tmp_path,
                          env={**os.environ, "MYPYPATH": str(PACKAGE)})
    found = [part.split(":")[1] for part in done.stdout.splitlines() if "program.py:" in part and "error:" in part]
    return {int(number) - head.count("\n") for number in found}, done.stdout


def needs(checker):
    done = subprocess.run([sys.executable, "-m", checker, "--version"], check=False, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=1500)
    if done.returncode:
        pytest.skip(f"{checker} is not here: {done.stdout.strip().splitlines()[-1:]}")


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """mypy's, which reads PyTorch for a while."""
    return str(tmp_path_factory.mktemp("cache"))


def test_mypy_sees_the_options(tmp_path, cache):
    needs("mypy")
    (tmp_path / "mypy.ini").write_text("[mypy]\n[mypy-torch.*]\nfollow_imports = skip\nignore_missing_imports = true\n")
    found, said = lines_of("mypy", tmp_path, "--strict", "--cache-dir", cache)
    assert found == set(range(1, len(WRONG) + 1)), said


def test_mypy_finds_nothing_in_the_package(cache):
    needs("mypy")
    done = subprocess.run([sys.executable, "-m", "mypy", "--config-file", "pyproject.toml", "--cache-dir", cache,
                           "tenon"], cwd=PACKAGE, text=True, check=False, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=1500)
    assert done.returncode == 0, done.stdout


def test_pyright_sees_the_options(tmp_path):
    needs("pyright")
    (tmp_path / "pyrightconfig.json").write_text(f'{{"typeCheckingMode": "strict", "extraPaths": ["{PACKAGE}"]}}')
    found, said = lines_of("pyright", tmp_path, "--pythonpath", sys.executable, "-p", str(tmp_path))
    assert found == set(range(1, len(WRONG) + 1)), said


def test_stub_and_package_have_the_same_names():
    """And each name comes from the same module."""
    stub = ast.parse((PACKAGE / "tenon" / "__init__.pyi").read_text())
    listed = {"operators": operators.__all__, "_named": _named.__all__}
    homes = {name: node.module for node in stub.body if isinstance(node, ast.ImportFrom)
             for alias in node.names for name in (listed[node.module] if alias.name == "*" else [alias.asname])}
    own = {node.name for node in stub.body if isinstance(node, ast.FunctionDef)}
    own |= {node.target.id for node in stub.body if isinstance(node, ast.AnnAssign)}
    assert own == {"version", "__version__"}
    assert set(homes) | own == {*tenon.__all__, "device_interface"}
    known = {**tenon._HOMES, **HOMES}
    assert {name: homes[name] for name in known} == known
    assert all(hasattr(tenon, name) for name in known)


def test_functions_that_are_made_are_declared():
    """A kind that the library gains has its function and, in the stub, its line."""
    stub = ast.parse((PACKAGE / "tenon" / "_named.pyi").read_text())
    declared = {node.name: ast.unparse(node.args) for node in stub.body if isinstance(node, ast.FunctionDef)}
    made = {name: inspect.signature(getattr(tenon, name)) for name in _named.__all__}
    assert declared.keys() == made.keys()
    for name, arguments in declared.items():
        assert str(made[name]).replace("'", "") == f"({arguments.replace('=', ' = ')}) -> Any"


@pytest.mark.parametrize("name", OPERATORS)
def test_operators_show_what_they_take(name):
    """Every option by name, kind, default and type: the same as what makes its call takes, and no more."""
    operator = getattr(tenon, name)
    shown = inspect.signature(operator)
    kinds = {parameter.kind for parameter in shown.parameters.values()}
    assert kinds <= {inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY}
    assert all(parameter.annotation is not parameter.empty for parameter in shown.parameters.values())
    assert operator.__doc__ and operator.__name__ == name
    assert shown.return_annotation == "Any"
    if name in ("copy", "fill"):  # which nothing explains or prepares
        return
    taken = inspect.signature(MAKERS[operator])
    assert shown.parameters == taken.parameters and MAKERS[operator].__name__ == name


def test_einsum_shows_what_it_takes():
    """Arrays by position, and the options of its call; einsum_path the same without `out`."""
    options = [parameter for parameter in inspect.signature(_einsum._einsum_call).parameters.values()
               if parameter.kind is inspect.Parameter.KEYWORD_ONLY]
    for function, own in ((tenon.einsum, options), (tenon.einsum_path, options[1:])):
        shown = inspect.signature(function)
        first, *others = shown.parameters.values()
        assert first.kind is inspect.Parameter.VAR_POSITIONAL and first.annotation == "Any"
        assert others == own
        assert function.__doc__
        assert shown.return_annotation == "Any" if function is tenon.einsum else "EinsumPath" in shown.return_annotation
    assert options[0].name == "out"


def test_what_the_extension_takes_is_an_option():
    assert operators._PLAIN <= set(inspect.signature(tenon.attention).parameters)


A = numpy.ones((1, 1, 4, 4), "f4")
def options_of(operator):
    """Those with a default, and the last parameter."""
    parameters = list(inspect.signature(operator).parameters.values())
    return [one.name for one in parameters if one is parameters[-1] or one.default is not one.empty]


MISSPELT = [(operator.__name__, option) for operator in MAKERS for option in options_of(operator)]


def test_every_operator_is_misspelt():
    assert {getattr(tenon, name) for name, _ in MISSPELT} == set(MAKERS)


@pytest.mark.parametrize("name, near", MISSPELT)
def test_misspelt_options(name, near):
    """The last letter twice."""
    wrong = near + near[-1]
    operator = getattr(tenon, name)
    parameters = inspect.signature(operator).parameters
    assert wrong not in parameters
    given = [A for one in parameters.values() if one.default is one.empty and one.name != near]
    told = rf"^{name}\(\) has no option '{wrong}'; did you mean '{near}'\? There are: .*\b{near}\b"
    for call in (operator, lambda *a, **o: tenon.explain(operator, *a, **o),
                 lambda *a, **o: tenon.prepare(operator, *a, **o)):
        with pytest.raises(TypeError, match=told):
            call(*given, **{wrong: 1})


@pytest.mark.parametrize("name", sorted({name for name, _ in MISSPELT}))
def test_missing_arguments(name):
    with pytest.raises(TypeError, match=rf"^{name}\(\) missing"):
        getattr(tenon, name)()


def test_other_type_errors_are_as_they_were():
    with pytest.raises(TypeError, match=r"^b: expected an array \(with .*, got list;"):
        tenon.matmul(A, [[1.0]], alpha=2.0)
    with pytest.raises(TypeError, match=r"softmax\(\) got multiple values for argument 'axis'"):
        tenon.softmax(A, 1, axis=1)
