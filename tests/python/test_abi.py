"""The package's types and prototypes are those of the headers."""
import ctypes
import os
import pathlib
import re
import shutil
import subprocess

import pytest
from tenon import _abi, _devices, _dtypes, _elementwise, operators
from tenon._library import lib

ROOT = pathlib.Path(__file__).resolve().parents[2]
INCLUDE = ROOT / "include"
HEADERS = "\n".join(path.read_text() for path in sorted(INCLUDE.rglob("*.h")))
CODE = re.sub(r"/\*.*?\*/", " ", HEADERS, flags=re.S)
NUMBERS = {"tn_status": "i", "int32_t": "i", "tn_setting": "i", "tn_module_stage": "i",
           "tn_platform_verdict": "i", "uint32_t": "I", "tn_dtype": "I", "int64_t": "l",
           "uint64_t": "L", "size_t": "z", "uintptr_t": "z", "double": "d", "void": "v"}


def assertions(struct):
    """C assertions that the struct's class has its layout."""
    cls = _abi.class_of(struct)
    yield f"sizeof({struct}) == {ctypes.sizeof(cls)}"
    for name, _ in cls._fields_:
        field = getattr(cls, name)
        yield f"offsetof({struct}, {name}) == {field.offset} && sizeof((({struct} *)0)->{name}) == {field.size}"


def holds_op_parameters(struct):
    """Whether it has a union, which only kernels read."""
    return any(text.startswith("tn_op_params") for _, text in _abi.structs()[struct])


def test_structures(tmp_path):
    """Every class has the size and the offsets that the C compiler gives its struct."""
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if not compiler:
        pytest.skip("no C compiler is here")
    structs = [struct for struct in _abi.structs() if not holds_op_parameters(struct)]
    assert len(structs) > 90 and {"tn_error", "tn_matmul_args", "tn_device_properties"} <= set(structs)
    names = sorted(path.relative_to(INCLUDE).as_posix() for path in INCLUDE.rglob("*.h"))
    program = tmp_path / "layout.c"
    lines = [f'#include "{name}"' for name in names] + ["#include <stddef.h>"]
    lines += [f'_Static_assert({one}, "{one}");' for struct in structs for one in assertions(struct)]
    program.write_text("\n".join([*lines, ""]))
    done = subprocess.run([compiler, "-std=c11", "-fsyntax-only", f"-I{INCLUDE}", str(program)], text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=1500)
    assert done.returncode == 0, done.stdout


def test_sizes_are_set():
    assert _abi.StreamArgs(priority=1).struct_size == ctypes.sizeof(_abi.StreamArgs)
    assert _abi.CastArgs().struct_size == 48 and _abi.CastArgs(8).struct_size == 8
    assert _abi.CastArgs is _abi.CastArgs and not hasattr(_abi, "NoSuchArgs")


def letter(declaration):
    """Of a parameter or result, without its name."""
    words = declaration.replace("struct ", "").split()
    text = " ".join(words)
    if "*" in text:
        return "s" if re.match(r"const char \*(?!const|\*)", text) else "p"
    return NUMBERS.get(words[0], words[0])


def declared():
    """Every exported function's types."""
    found = {}
    for result, name, parameters in re.findall(r"TN_API ([^;()]*?)\b(tn_\w+)\(([^;]*?)\);", CODE):
        parts = [] if parameters.strip() == "void" else parameters.split(",")
        found[name] = " ".join(map(letter, [result, *parts]))
    return found


def test_prototypes():
    headers = declared()
    assert len(headers) > 300
    assert headers == _abi.prototypes()


def test_every_function_is_there():
    for name in _abi.prototypes():
        assert getattr(lib, name)


def words(prefix):
    """Of an enum's constants: TN_UNARY_GELU_TANH is gelu-tanh."""
    body = re.search(r"enum \{([^}]*\b%s_COUNT)\s*\}" % prefix, CODE).group(1)
    found = re.findall(r"%s_(\w+) = (\d+)" % prefix, body)
    return {name.lower().replace("_", "-"): int(number) for name, number in found}


def test_words_of_operators():
    assert words("TN_ACT") == {k: v for k, v in operators.ACTIVATIONS.items() if k}
    for name, mine in (("TN_UNARY", _elementwise.UNARY), ("TN_BINARY", _elementwise.BINARY),
                       ("TN_REDUCE", _elementwise.REDUCTIONS), ("TN_ROTARY", operators.ROTARY)):
        assert words(name) == {word: i for i, word in enumerate(mine)}, name


def test_dtypes():
    body = re.search(r"#define TN_DTYPE_LIST\(X\)(.*?)\n\n", CODE, re.S).group(1)
    codes = {name: int(value) for name, value in re.findall(r"(TN_DTYPE_CODE_\w+) = (\d+)", CODE)}
    rows = re.findall(r'X\(\w+, "(\w+)", (\w+), (\d+)\)', body)
    assert {word: (codes[code], int(bits)) for word, code, bits in rows} == {
        word: row[:2] for word, row in _dtypes.TABLE.items()}


def test_numbers_of_devices():
    body = re.search(r"#define TN_DEVICE_NUMBER_LIST\(X\)(.*?)\n\n", CODE, re.S).group(1)
    assert re.findall(r"X\((\w+),", body) == _abi.device_numbers()
    assert set(_abi.device_numbers()) < set(_devices.Properties.__annotations__)
