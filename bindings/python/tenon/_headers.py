"""Reads the structs and functions of the public C headers, so that no Python file repeats them.

The package uses this where it runs in the source tree; wheels carry the result instead (build_backend.py). Tests of the
ABI use it too. It is no C parser: it reads headers that are formatted as ours are, and raises ValueError for anything
else.
"""

from __future__ import annotations

import os
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    Fields = list[tuple[str, str]]
    Function = tuple[str, list[str]]

# The letter of a type in the tables; struct members that are neither a number, a pointer nor text keep their C name.
LETTERS = {"void": "v", "char": "c", "unsigned char": "B", "int32_t": "i", "uint32_t": "I", "int64_t": "l",
           "uint64_t": "L", "size_t": "z", "uintptr_t": "z", "float": "f", "double": "d"}


def read_text(folder: str) -> str:
    """All headers below `folder`, without comments and with continued lines joined."""
    texts = []
    for parent, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            if name.endswith(".h"):
                with open(os.path.join(parent, name), encoding="utf-8") as file:
                    texts.append(file.read())
    return re.sub(r"/\*.*?\*/", " ", "\n".join(texts), flags=re.S).replace("\\\n", " ")


class Headers:
    """What a text of headers declares.

    structs: name -> [(field, C type)], in order; an array's type ends with its sizes, "char[88]".
    functions: name -> (C type of the result, [C types of the parameters]) of every function marked TN_API.
    types: name -> C type of every typedef of a number.
    numbers: name -> value of constants that are written as a decimal number.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.types: dict[str, str] = {name: kind for kind, name in
                                      re.findall(r"^typedef (u?int\d+_t) (tn_\w+);$", text, re.M)}
        self.numbers = {name: int(value) for name, value in
                        re.findall(r"(?:^#define|^ +|\{) *(TN_\w+) (?:= )? *(\d+)\b", text, re.M)}
        self.structs = {name: self._fields(body) for name, body in
                        re.findall(r"^typedef struct (tn_\w+) \{$(.*?)^\} \1;$", text, re.M | re.S)}
        found = re.findall(r"^TN_API ([^;()#]*?)\b(tn_\w+)\(([^;]*)\);", text, re.M)
        self.functions: dict[str, Function] = {
            name: (_tidy(result), [_type_of(one) for one in _split(parameters)]) for result, name, parameters in found}

    def _fields(self, body: str) -> Fields:
        body = re.sub(r"^#.*$", "", body, flags=re.M)
        body = re.sub(r"\b(TN_\w+_LIST)\((TN_\w+)\)", lambda use: self._expand(*use.groups()), body)
        return [field for one in map(_tidy, body.split(";")) if one for field in self._declared(one)]

    def _expand(self, rows: str, row: str) -> str:
        """ROWS(ROW), where ROWS(X) is X(FIELD, ...) X(FIELD, ...) ... and ROW makes a field of its first argument."""
        made = re.search(rf"^#define {row}\((\w+),[^)]*\) (.*)$", self.text, re.M)
        listed = re.search(rf"^#define {rows}\(X\)(.*)$", self.text, re.M)
        if not made or not listed:
            raise ValueError(f"{rows}({row}): no such macros")
        parameter, text = made.groups()
        return " ".join(re.sub(rf"\b{parameter}\b", name, text) for name in re.findall(r"\bX\((\w+),", listed.group(1)))

    def _declared(self, declaration: str) -> Fields:
        """The fields of one declaration: `TYPE NAME, NAME[SIZE]` or a pointer to a function."""
        pointer = re.fullmatch(r"(.*)\(\*(\w+)\)\((.*)\)", declaration)
        if pointer:
            result, name, parameters = pointer.groups()
            return [(name, f"{result}(*)({', '.join(map(_type_of, _split(parameters))) or 'void'})")]
        plain = re.fullmatch(r"((?:\w+ )+)([^()]+)", declaration)
        if not plain:
            raise ValueError(f"not a declaration of fields: {declaration}")
        return [self._declarator(plain.group(1), one) for one in plain.group(2).split(",")]

    def _declarator(self, kind: str, text: str) -> tuple[str, str]:
        parts = re.fullmatch(r" *((?:\* ?(?:const )?)*)(\w+)((?:\[[^]]+\])*)", text)
        if not parts:
            raise ValueError(f"not the name of a field: {text}")
        stars, name, sizes = parts.groups()
        numbers = [self._number(size) for size in re.findall(r"[^][]+", sizes)]
        return name, _tidy(kind + stars) + "".join(f"[{number}]" for number in numbers)

    def _number(self, text: str) -> int:
        """The value of a number, a constant, or a quotient of such."""
        above, _, below = map(str.strip, text.partition("/"))
        if below:
            return self._number(above) // self._number(below)
        if not above.isdigit() and above not in self.numbers:
            raise ValueError(f"not a number: {text}")
        return int(above) if above.isdigit() else self.numbers[above]

    def letter(self, kind: str) -> str:
        """The letter of a C type and an array's sizes; the type itself where it has no letter."""
        base, bracket, sizes = kind.partition("[")
        if "*" in base:
            return ("s" if base == "const char *" else "p") + bracket + sizes
        base = base.replace("const ", "")
        base = self.types.get(base, base)
        return LETTERS.get(base, base) + bracket + sizes

    def tables(self) -> tuple[dict[str, Fields], dict[str, str]]:
        """Structs and functions with the letters of their types: of a function the result's, then the parameters'."""
        structs = {name: [(field, self.letter(kind)) for field, kind in fields]
                   for name, fields in self.structs.items()}
        functions = {name: " ".join(map(self.letter, (result, *parameters)))
                     for name, (result, parameters) in self.functions.items()}
        return structs, functions


def _tidy(text: str) -> str:
    return " ".join(text.split())


def _split(parameters: str) -> list[str]:
    """At the commas that are not inside of parentheses."""
    parts = re.findall(r"(?:[^,()]|\([^()]*\))+", parameters)
    return [] if parameters.strip() == "void" else [_tidy(part) for part in parts]


def _type_of(parameter: str) -> str:
    """Without the parameter's name."""
    if "(*" in parameter:
        return re.sub(r"\(\*\w*\)", "(*)", parameter, count=1)
    named = re.fullmatch(r"(.*[ *])\w+((?:\[\w*\])?)", parameter)
    if not named:
        raise ValueError(f"not a parameter with a name: {parameter}")
    return _tidy(named.group(1)) + (" *" if named.group(2) else "")


def read(folder: str) -> Headers:
    """The headers below a folder."""
    return Headers(read_text(folder))
