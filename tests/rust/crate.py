"""The Rust crate: its structs are those of C, every operator is there, and its own tests pass."""

import os
import re
import shutil
import sys

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, TESTS)
sys.path.append(os.path.join(os.path.dirname(TESTS), "bindings", "python", "tenon"))
sys.path.append(os.path.join(TESTS, "abi"))
import _headers
import record
import script


def crate(*parts):
    return script.source("bindings", "rust", *parts)


class Generated(script.Case):
    def setUp(self):
        super().setUp()
        self.run_well(sys.executable, "-B", crate("generate.py"), "--cc", script.build.compiler, "--into", self.folder)

    def test_every_function_is_there(self):
        text = script.read_text(self.place("raw.rs"))
        functions = _headers.read(script.source("include", "tenon")).functions
        self.assertEqual(sorted(re.findall(r"pub fn (\w+)", text)), sorted(functions))

    def test_the_structs_are_those_of_c(self):
        """Sizes and offsets, by both compilers."""
        rustc = self.need("rustc")
        text = script.read_text(self.place("raw.rs"))
        structs = {name: re.findall(r"pub (\S+):", body) for name, body in
                   re.findall(r"pub struct (\w+) \{\n(    pub .*?)\n\}", text, re.S)}
        self.assertGreater(len(structs), 60)
        lines = ["#[allow(dead_code, non_camel_case_types, non_upper_case_globals)]", "mod raw;",
                 "use std::mem::{size_of, MaybeUninit};", "fn main() {"]
        for name, fields in structs.items():
            lines.append(f'println!("{name} {{}}", size_of::<raw::{name}>());')
            lines.append(f"let one = MaybeUninit::<raw::{name}>::uninit(); let at = one.as_ptr();")
            for field in fields:
                lines.append(f'println!("{name}.{field.replace("r#", "").rstrip("_")} {{}}", unsafe {{ '
                             f"std::ptr::addr_of!((*at).{field}) as usize - at as usize }});")
        layout = script.write_text(self.place("layout.rs"), "\n".join([*lines, "}\n"]))
        self.run_well(rustc, "--edition", "2021", layout, "-o", self.place("layout"))
        found = self.run_well(self.place("layout")).splitlines()
        self.assertEqual(found, self.measure_c(structs))

    def measure_c(self, structs):
        headers = _headers.read(script.source("include", "tenon"))
        lines = [record.includes(), "#include <stdio.h>\nint main(void)\n{"]
        for name in structs:
            lines.append(f'printf("{name} %zu\\n", sizeof({name}));')
            lines += [f'printf("{name}.{field} %zu\\n", offsetof({name}, {field}));'
                      for field, _ in headers.structs[name]]
        return record.measure(script.build.compiler, "\n".join([*lines, "}\n"])).splitlines()


class Crate(script.Case):
    """In a copy of what it needs of the tree, because cargo writes beside the sources."""

    def setUp(self):
        super().setUp()
        cargo = self.need("cargo")
        if script.run(cargo, "--version").returncode != 0:
            self.skipTest("cargo does not work here: no toolchain is installed")
        if not script.build.is_release:
            self.skipTest("Rust programs cannot link a library with sanitizers")
        self.cargo = cargo
        for folder in ("bindings/rust", "include"):
            shutil.copytree(script.source(folder), self.place(folder), ignore=shutil.ignore_patterns("target"))
        for file in ("bindings/python/tenon/_headers.py", "tests/abi/record.py", "docs/rust.md"):
            os.makedirs(os.path.dirname(self.place(file)), exist_ok=True)
            shutil.copy(script.source(file), self.place(file))
        self.env = script.environment(
            TENON_LIB_DIR=script.build.folder, LD_LIBRARY_PATH=script.build.folder, CARGO_NET_OFFLINE="true",
            CC=script.build.compiler, CARGO_TARGET_DIR=self.place("target"), CARGO_INCREMENTAL="0",
            RUSTFLAGS="-D warnings", CARGO_TERM_COLOR="never")

    def run_cargo(self, *words):
        return self.run_well(self.cargo, *words, "--offline", env=self.env, cwd=self.place("bindings", "rust"))

    def test_its_tests_and_its_example(self):
        """`cargo test` also compiles and runs the snippets of docs/rust.md."""
        text = self.run_cargo("test")
        self.assertEqual(text.count("test result: ok"), 4, text)
        self.assertIn("lib.rs - Page", text)
        said = self.run_cargo("run", "--example", "attention")
        self.assertRegex(said, r"attention on \S+ \(.*\)\nattention:f32:\S+: \S+\n")


if __name__ == "__main__":
    script.main()
