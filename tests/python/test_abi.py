"""The package's types and prototypes are those of the headers."""
import ctypes
import pathlib
import re

from tenon import _abi, _devices, _dtypes, operators
from tenon._library import lib

ROOT = pathlib.Path(__file__).resolve().parents[2]
LAYOUT = (ROOT / "tests" / "abi" / "layout.c").read_text()
HEADERS = "\n".join(path.read_text() for path in sorted((ROOT / "include" / "tenon").rglob("*.h")))
CODE = re.sub(r"/\*.*?\*/", " ", HEADERS, flags=re.S)
NUMBERS = {"tn_status": "i", "int32_t": "i", "tn_setting": "i", "tn_module_stage": "i",
           "tn_platform_verdict": "i", "uint32_t": "I", "tn_dtype": "I", "int64_t": "l",
           "uint64_t": "L", "size_t": "z", "uintptr_t": "z", "double": "d", "void": "v"}


def structures():
    for value in vars(_abi).values():
        if isinstance(value, type) and issubclass(value, ctypes.Structure) and hasattr(value, "_fields_"):
            yield value


def c_name(cls):
    return "tn_" + re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()


def test_structures():
    sizes = {name: int(size) for name, size in re.findall(r"STRUCT\((\w+), (\d+)\)", LAYOUT)}
    fields = {}
    for name, field, offset, size in re.findall(r"FIELD\((\w+), (\w+), (\d+), (\d+)\)", LAYOUT):
        fields.setdefault(name, []).append((field, int(offset), int(size)))
    seen = 0
    for cls in structures():
        if c_name(cls) not in sizes:
            continue
        mine = [(name, getattr(cls, name).offset, getattr(cls, name).size) for name, _ in cls._fields_]
        assert mine == fields[c_name(cls)], cls
        assert ctypes.sizeof(cls) == sizes[c_name(cls)], cls
        seen += 1
    missing = [c_name(cls) for cls in structures() if c_name(cls) not in sizes]
    assert seen > 35 and not missing, missing


def letter(declaration):
    """Of a parameter or result, without its name."""
    words = declaration.replace("struct ", "").split()
    text = " ".join(words)
    if "*" in text:
        return "s" if re.match(r"const char \*(?!const|\*)", text) else "p"
    return NUMBERS.get(words[0] if words[0] != "const" else words[1], "p")


def declared():
    """Every exported function's letters."""
    found = {}
    for result, name, parameters in re.findall(r"TN_API ([^;()]*?)\b(tn_\w+)\(([^;]*?)\);", CODE):
        parts = [] if parameters.strip() == "void" else parameters.split(",")
        found[name] = letter(result) + "".join(map(letter, parts))
    return found


def test_prototypes():
    headers = declared()
    assert len(headers) > 200
    wrong = {name: (mine, headers.get(name)) for name, mine in _abi.PROTOTYPES.items()
             if headers.get(name) != mine}
    assert not wrong


def test_every_function_is_there():
    for name in _abi.PROTOTYPES:
        assert getattr(lib, name)


def words(prefix):
    """Of an enum's constants: TN_UNARY_GELU_TANH is gelu-tanh."""
    body = re.search(r"enum \{([^}]*\b%s_COUNT)\s*\}" % prefix, CODE).group(1)
    found = re.findall(r"%s_(\w+) = (\d+)" % prefix, body)
    return {name.lower().replace("_", "-"): int(number) for name, number in found}


def test_words_of_operators():
    assert words("TN_ACT") == {k: v for k, v in operators.ACTIVATIONS.items() if k}
    for name, mine in (("TN_UNARY", operators.UNARY), ("TN_BINARY", operators.BINARY),
                       ("TN_REDUCE", operators.REDUCTIONS), ("TN_ROTARY", operators.ROTARY)):
        assert words(name) == {word: i for i, word in enumerate(mine)}, name


def test_dtypes():
    body = re.search(r"#define TN_DTYPE_LIST\(X\)(.*?)\n\n", CODE, re.S).group(1)
    codes = {name: int(value) for name, value in re.findall(r"(TN_DTYPE_CODE_\w+) = (\d+)", CODE)}
    rows = re.findall(r'X\(\w+, "(\w+)", (\w+), (\d+)\)', body)
    assert {word: (codes[code], int(bits)) for word, code, bits in rows} == {
        word: row[:2] for word, row in _dtypes.TABLE.items()}


def test_numbers_of_devices():
    body = re.search(r"#define TN_DEVICE_NUMBER_LIST\(X\)(.*?)\n\n", CODE, re.S).group(1)
    assert re.findall(r"X\((\w+),", body) == _abi.DEVICE_NUMBERS
    assert set(_abi.DEVICE_NUMBERS) < set(_devices.Properties.__annotations__)
