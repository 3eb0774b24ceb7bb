#!/usr/bin/env python3
"""Writes raw.rs and operators.rs from the C headers; the crate's build script runs it.

    generate.py [--cc COMPILER] --into FOLDER

raw.rs declares every function of the library, the structs that they use, and all constants. operators.rs has a safe
function for every operator, with a struct of its options. It needs a C compiler for the values of the constants. The
suite rust.crate compares the layout of the structs with that of the C compiler.
"""

import argparse
import glob
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TREE = os.path.dirname(os.path.dirname(HERE))
INCLUDE = os.path.join(TREE, "include")
sys.path += [os.path.join(TREE, "bindings", "python", "tenon"), os.path.join(TREE, "tests", "abi")]
import _headers
import record

NUMBERS = {"void": "c_void", "char": "c_char", "unsigned char": "u8", "int32_t": "i32", "uint32_t": "u32",
           "int64_t": "i64", "uint64_t": "u64", "size_t": "usize", "uintptr_t": "usize", "float": "f32",
           "double": "f64", "int": "i32", "uint16_t": "u16"}
KEYWORDS = {"type", "in", "ref", "where", "move", "loop", "match", "use"}
HEAD = "// Written by generate.py from the C headers.\n"
UNUSED = {"struct_size", "reserved", "workspace", "workspace_bytes"}  # fields of arguments that are no options


def rust_name(name):
    return "self_" if name == "self" else f"r#{name}" if name in KEYWORDS else name


def camel(name):
    return "".join(word.capitalize() for word in name.split("_"))


class Writer:
    """The Rust text of what the headers declare."""

    def __init__(self, headers, compiler):
        self.headers, self.compiler = headers, compiler
        # typedef RESULT NAME(PARAMETERS); and pointers to such functions in structs
        self.callbacks = {name: (result.strip(), parameters) for result, name, parameters in re.findall(
            r"^typedef ([\w ]+?[ *]+)(tn_\w+)\(([^;]*)\);$", headers.text, re.M)}
        self.opaque = set()

    def kind(self, text):
        """A C type in Rust."""
        base, bracket, sizes = text.partition("[")
        if bracket and "(*" not in text:
            inner = self.kind(base)
            for size in reversed(sizes.rstrip("]").split("][")):
                inner = f"[{inner}; {size}]"
            return inner
        pointer = re.fullmatch(r"(.*?) ?\(\*\)\((.*)\)", text)
        if pointer:
            return self.function_pointer(*pointer.groups())
        if text.endswith("*const"):
            text = text[:-len("const")].rstrip()
        if text.endswith("*"):
            return self.pointer(text[:-1].rstrip())
        return self.plain(text.replace("const ", "").replace("struct ", ""))

    def pointer(self, target):
        name = target.replace("const ", "")
        if name in self.callbacks:
            return f"Option<{name}>"
        is_const = target.startswith("const ") and "*" not in target or target.endswith("const")
        return f"*{'const' if is_const else 'mut'} {self.kind(target)}"

    def plain(self, name):
        if name in NUMBERS:
            return NUMBERS[name]
        if name not in self.headers.structs and name not in self.headers.types and name not in self.callbacks:
            self.opaque.add(name)
        return name

    def function_pointer(self, result, parameters):
        unnamed = [re.sub(r"\* ?\w+$", "*", one) for one in _headers._split(parameters)]
        return f"Option<{self.signature(result, unnamed)}>"

    def signature(self, result, parameters):
        kinds = ", ".join(self.kind(one) for one in parameters)
        return f'unsafe extern "C" fn({kinds}){self.result(result)}'

    def result(self, kind):
        return "" if kind == "void" else f" -> {self.kind(kind)}"

    def used_structs(self):
        """Those that a function reaches, in the order of their names."""
        found = set()

        def reach(text):
            for name in re.findall(r"\btn_\w+", text):
                if name in self.headers.structs and name not in found:
                    found.add(name)
                    for _, kind in self.headers.structs[name]:
                        reach(kind)
        for result, parameters in self.headers.functions.values():
            reach(" ".join([result, *parameters]))
        return sorted(found)

    def struct(self, name):
        fields = "".join(f"    pub {rust_name(field)}: {self.kind(kind)},\n"
                         for field, kind in self.headers.structs[name])
        return f"#[repr(C)]\n#[derive(Clone, Copy)]\npub struct {name} {{\n{fields}}}\n"

    def function(self, name):
        result, parameters = self.headers.functions[name]
        named = ", ".join(f"a{number}: {self.kind(kind)}" for number, kind in enumerate(parameters))
        return f"    pub fn {name}({named}){self.result(result)};\n"

    def constants(self):
        """(name, Rust type, value) of every constant, as the C compiler has them."""
        names = record.constants(self.compiler)
        kinds = ('_Generic((X), int32_t: "i32", uint32_t: "u32", int64_t: "i64", uint64_t: "u64", '
                 'long long: "i64", unsigned long long: "u64")')
        lines = [record.includes(), "#include <stdio.h>\nint main(void)\n{"]
        for name in names:
            kind = kinds.replace("X", name)
            lines.append(f'printf({kind}[0] == \'i\' ? "{name} %s %lld\\n" : "{name} %s %llu\\n", {kind}, '
                         f"(long long)({name}));")
        return [line.split() for line in record.measure(self.compiler, "\n".join([*lines, "}\n"])).splitlines()]

    def raw(self):
        structs = [self.struct(name) for name in self.used_structs()]
        functions = [self.function(name) for name in sorted(self.headers.functions)]
        callbacks = []
        for name in sorted(self.callbacks):
            if any(re.search(rf"\b{name}\b", text) for text in structs + functions):
                result, parameters = self.callbacks[name]
                kinds = map(_headers._type_of, _headers._split(parameters))
                callbacks.append(f"pub type {name} = {self.signature(result, kinds)};\n")
        parts = [HEAD, "use std::os::raw::{c_char, c_void};\n\n"]
        parts += [f"pub type {name} = {NUMBERS[kind]};\n" for name, kind in sorted(self.headers.types.items())]
        parts += callbacks
        parts += ["\n", *self.opaque_types(structs), *structs]
        dtypes = {kind for kind in re.findall(r"X\((TN_\w+), \"\w+\", TN_DTYPE_CODE", self.headers.text)}
        for name, kind, value in self.constants():
            parts.append(f"pub const {name}: {'tn_dtype' if name in dtypes else kind} = {value};\n")
        return "".join([*parts, '\nextern "C" {\n', *functions, "}\n"])

    def opaque_types(self, structs):
        used = set(self.used_structs())
        unused = {name for name in self.headers.structs if name not in used
                  and any(re.search(rf"\b{name}\b", one) for one in [*structs, *map(str, self.callbacks.values())])}
        return [f"#[repr(C)]\npub struct {name} {{\n    _opaque: [u8; 0],\n}}\n" for name in sorted(self.opaque | unused)]


def operands_of(name):
    """The inputs and outputs that a call must have, and the options that it may write to, as the comment on the struct
    of its arguments states them."""
    for header in sorted(glob.glob(os.path.join(INCLUDE, "tenon", "*.h"))):
        with open(header, encoding="utf-8") as file:
            comment = re.search(rf"/\*((?:(?!\*/).)*)\*/\ntypedef struct tn_{name}_args {{", file.read(), re.S)
        if comment:
            text = re.sub(r"[\s*]+", " ", comment.group(1))
            found = re.search(r"Required operands: ([\w, ]+); writes ([\w, ]+)(?:; may write ([\w, ]+))?\.", text)
            if found:
                return [[] if one in (None, "none") else one.split(", ") for one in found.groups()]
    raise SystemExit(f"tn_{name}_args: expected \"Required operands: ...; writes ....\" in the comment on it")


class Operator:
    """The safe function of an operator, and the struct of its options."""

    def __init__(self, writer, name):
        self.name, self.type = name, camel(name)
        self.inputs, self.outputs, self.writes = operands_of(name)
        self.fields = writer.headers.structs[f"tn_{name}_args"]
        self.options = [(field, self.option(writer, field, kind)) for field, kind in self.fields
                        if field not in {*self.inputs, *self.outputs, *UNUSED} and not self.is_count(field)]

    def is_count(self, field):
        """Whether it is the length of the array before it."""
        return field.endswith("_count") and (field[:-6], "const int32_t *") in self.fields

    def option(self, writer, field, kind):
        if kind == "const tn_tensor *":
            return "Option<&'a mut Tensor<'b>>" if field in self.writes else "Option<&'a Tensor<'a>>"
        known = {"tn_stream *": "Option<&'a Stream>", "const int32_t *": "&'a [i32]"}
        return known.get(kind) or ("raw::" if kind.startswith("tn_") else "") + writer.kind(kind)

    def value(self, field, kind):
        """What the C struct gets."""
        if field == "struct_size":
            return f"size_of::<raw::tn_{self.name}_args>()"
        if field in self.inputs + self.outputs:
            return f"{rust_name(field)}.as_raw()"
        if field in UNUSED:
            return "null_mut()" if kind.endswith("*") else "0"
        if self.is_count(field):
            return f"options.{field[:-6]}.len() as {NUMBERS[kind]}"
        return {"const tn_tensor *": f"pointer(options.{rust_name(field)}{'.as_deref()' if field in self.writes else ''})",
                "tn_stream *": f"options.{field}.map_or(null_mut(), Stream::as_raw)",
                "const int32_t *": f"array(options.{field})"}.get(kind, f"options.{rust_name(field)}")

    def text(self):
        lifetimes = "<'a, 'b>" if self.writes else "<'a>"
        elided = "<'_, '_>" if self.writes else "<'_>"
        options = "".join(f"    pub {rust_name(field)}: {kind},\n" for field, kind in self.options)
        values = "".join(f"        {rust_name(field)}: {self.value(field, kind)},\n" for field, kind in self.fields)
        tensors = [f"{rust_name(one)}: &Tensor" for one in self.inputs]
        tensors += [f"{rust_name(one)}: &mut Tensor" for one in self.outputs]
        given = ", ".join(rust_name(one) for one in self.inputs + self.outputs)
        taken = ", ".join(one.replace("&mut ", "&") for one in tensors)
        return f"""
/// Options of [`{self.name}`]: the fields of `tn_{self.name}_args` with those names.
#[derive(Default)]
pub struct {self.type}{lifetimes} {{
    /// The settings; `None`: those of the calling thread.
    pub context: Option<&'a Context>,
{options}}}

fn {self.name}_args({taken}, options: &{self.type}) -> raw::tn_{self.name}_args {{
    raw::tn_{self.name}_args {{
{values}    }}
}}

/// `tn_{self.name}`.
pub fn {self.name}({', '.join(tensors)}, options: {self.type}{elided}) -> Result<()> {{
    let args = {self.name}_args({given}, &options);
    check(|err| unsafe {{ raw::tn_{self.name}(settings(options.context), &args, err) }})
}}

/// `tn_{self.name}_explain`: by which kernel [`{self.name}`] would compute this, and why.
pub fn {self.name}_explain({', '.join(tensors)}, options: {self.type}{elided}) -> Result<Decision> {{
    let args = {self.name}_args({given}, &options);
    Decision::from_call(|out, err| unsafe {{ raw::tn_{self.name}_explain(settings(options.context), &args, out, err) }})
}}
"""


OPERATORS_HEAD = HEAD + """use crate::{check, raw, Context, Decision, Result, Stream, Tensor};
use std::mem::size_of;
use std::ptr::{null, null_mut};

fn pointer(tensor: Option<&Tensor>) -> *const raw::tn_tensor {
    tensor.map_or(null(), Tensor::as_raw)
}

fn array(values: &[i32]) -> *const i32 {
    if values.is_empty() {
        null()
    } else {
        values.as_ptr()
    }
}

fn settings(context: Option<&Context>) -> *const raw::tn_context {
    context.map_or(null(), Context::as_raw)
}
"""


def operators(writer):
    found = {name[3:-8] for name in set(writer.headers.functions) - {"tn_explain"}
             if name.endswith("_explain") and name[:-8] + "_prepare" in writer.headers.functions}
    return OPERATORS_HEAD + "".join(Operator(writer, name).text() for name in sorted(found))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cc", default=os.environ.get("CC", "cc"))
    parser.add_argument("--into", required=True)
    args = parser.parse_args()
    writer = Writer(_headers.read(os.path.join(INCLUDE, "tenon")), args.cc)
    for name, text in (("raw.rs", writer.raw()), ("operators.rs", operators(writer))):
        with open(os.path.join(args.into, name), "w", encoding="utf-8") as file:
            file.write(text)


if __name__ == "__main__":
    main()
