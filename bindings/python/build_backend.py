"""Builds the package's wheel with the standard library alone: nothing is fetched.

A wheel contains libtenon, its modules and the command if TENON_BUILD names a build of them, or one is in build/ of the
source tree. It is then for this system, and its tag names the oldest glibc that has all symbols its files need. Without a
build it contains the Python files alone and is for any system. It also contains the extension that makes calls faster, if
there is a C compiler and not TN_NO_EXTENSION=1; the package works without. Wheels are for every Python from 3.9 on: with
the extension for CPython (cp39-abi3), without it for any (py3-none).

The entry points of PEP 517: build_wheel, build_sdist, build_editable.
"""

import base64
import contextlib
import glob
import hashlib
import importlib.util
import io
import os
import pathlib
import re
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import zipfile

import glibc

HERE = pathlib.Path(__file__).resolve().parent
TREE = HERE.parents[1]
PROJECT = (HERE / "pyproject.toml").read_text()


def field(name):
    return re.search(rf'^{name} = "(.*)"$', PROJECT, re.M).group(1)


VERSION = field("version")
STEM = f"tenon-{VERSION}"
METADATA = f"""Metadata-Version: 2.1
Name: tenon
Version: {VERSION}
Summary: {field("description")}
License: Apache-2.0
Requires-Python: {field("requires-python")}
"""


ENTRY_POINTS = """[console_scripts]
tenon = tenon.__main__:main
"""
OLDEST = (2, 17)  # the first glibc for aarch64; the tags of wheels name none that is older


def build_folder():
    """Where a built library is, or None."""
    named = os.environ.get("TENON_BUILD")
    folder = pathlib.Path(named) if named else TREE / "build"
    if (folder / "libtenon.so.0").exists():
        return folder
    if named:
        raise SystemExit(f"TENON_BUILD: no libtenon.so.0 in {folder}")
    print(f"without the library: there is no libtenon.so.0 in {folder}; `make build` makes it")
    return None


def library_files(folder):
    """(path in the wheel, file): the library, and beside it the command and the module folder."""
    yield "tenon/lib/libtenon.so.0", folder / "libtenon.so.0"
    if (folder / "tenon").is_file():
        yield "tenon/lib/tenon", folder / "tenon"
    for path in sorted(glob.glob(str(folder / "backends" / "tenon-*"))):
        if os.path.isfile(path) and os.access(path, os.X_OK):
            yield f"tenon/lib/backends/{os.path.basename(path)}", pathlib.Path(path)


def load_reader():
    """The module that reads C headers, without the package."""
    spec = importlib.util.spec_from_file_location("_headers", HERE / "tenon" / "_headers.py")
    reader = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(reader)
    return reader


def abi_tables():
    """The text of _abi_tables.py, which the package has where the headers are not: their structs and functions."""
    structs, functions = load_reader().read(str(TREE / "include" / "tenon")).tables()
    lines = ["# Written by build_backend.py from the C headers.", "STRUCTS = {"]
    lines += [f"    {name!r}: {fields!r}," for name, fields in sorted(structs.items())]
    lines += ["}", "PROTOTYPES = {"]
    lines += [f"    {name!r}: {letters!r}," for name, letters in sorted(functions.items())]
    return "\n".join([*lines, "}", ""])


def python_files():
    """(path in the wheel, content) of the package, with the tables of the headers instead of what reads them. A source
    distribution has those tables and no headers."""
    for path in sorted((HERE / "tenon").rglob("*")):
        if path.suffix in (".py", ".typed", ".pyi") and path.name != "_headers.py":
            yield path.relative_to(HERE).as_posix(), path.read_bytes()
    if not (HERE / "tenon" / "_abi_tables.py").exists():
        yield "tenon/_abi_tables.py", abi_tables().encode()


def has_stable_abi():
    """Whether this Python has the binary interface that the extension is for: CPython's, with its lock."""
    return sys.implementation.name == "cpython" and not sysconfig.get_config_var("Py_GIL_DISABLED")


def make_extension(folder, build=None):
    """The extension's file, or None if it cannot be made; the reason is printed. It is linked as the library of the build
    is, against an older glibc if that was. CC names the compiler; for another processor than this machine's it must be that
    of the build."""
    sources = sorted(map(str, (HERE / "extension").glob("*.c")))
    if not sources or not has_stable_abi() or os.environ.get("TN_NO_EXTENSION") == "1":
        return None
    compiler = os.environ.get("CC") or (sysconfig.get_config_var("CC") or "cc").split()[0]
    out = pathlib.Path(folder) / "_fast.abi3.so"
    command = [compiler, "-std=c11", "-O2", "-fPIC", "-shared", "-fvisibility=hidden",
               f"-I{sysconfig.get_path('include')}", f"-I{TREE / 'include'}", *sources, "-o",
               str(out), *([f"-L{build / 'glibc'}"] if build and (build / "glibc").is_dir() else ())]
    try:
        subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    except (OSError, subprocess.CalledProcessError) as error:
        lines = (getattr(error, "output", None) or str(error).encode()).decode(errors="replace").strip().splitlines()
        print(f"without the extension: {next((line for line in lines if 'error: ' in line), lines[0])}")
        return None
    with contextlib.suppress(ValueError):  # of files that are not ELF
        needed, found = (glibc.Elf(path).machine for path in (build / "libtenon.so.0", out)) if build else (None, None)
        if needed != found:
            print(f"without the extension: expected a compiler for {needed}, as the library is, got {compiler} for {found}; "
                  f"set CC to a compiler for {needed}")
            return None
    return out


class Wheel:
    """A wheel being written."""

    def __init__(self, folder, tag):
        self.name, self.tag, self.records = f"{STEM}-{tag}.whl", tag, []
        self.zip = zipfile.ZipFile(pathlib.Path(folder) / self.name, "w", zipfile.ZIP_DEFLATED)

    def _write(self, name, data, mode=0o644):
        """With one date for all: the same files make the same wheel."""
        info = zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0))
        info.external_attr = (0o100000 | mode) << 16
        info.compress_type = zipfile.ZIP_DEFLATED
        self.zip.writestr(info, data)

    def add(self, name, data, mode=0o644):
        self._write(name, data, mode)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        self.records.append(f"{name},sha256={digest},{len(data)}")

    def close(self):
        pure = "true" if self.tag.endswith("none-any") else "false"
        self.add(f"{STEM}.dist-info/METADATA", METADATA.encode())
        self.add(f"{STEM}.dist-info/entry_points.txt", ENTRY_POINTS.encode())
        self.add(f"{STEM}.dist-info/WHEEL", (f"Wheel-Version: 1.0\nGenerator: tenon\n"
                                            f"Root-Is-Purelib: {pure}\nTag: {self.tag}\n").encode())
        self.records.append(f"{STEM}.dist-info/RECORD,,")
        self._write(f"{STEM}.dist-info/RECORD", ("\n".join(self.records) + "\n").encode())
        self.zip.close()
        return self.name


def platform_tag(paths):
    """The tag of a wheel with these files, and where it runs, in words."""
    own = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    files = {}
    with contextlib.suppress(ValueError):
        files = {path: glibc.Elf(path) for path in paths}
    if not own.startswith("linux_") or not files:
        return own, own
    machine = next(iter(files.values())).machine
    own_names = {path.name for path in files}
    other = {name for elf in files.values() for name in glibc.other_libraries(elf)} - own_names
    newest = max([OLDEST, *map(glibc.needed_version, files.values())])
    words = f"Linux on {machine} with glibc {newest[0]}.{newest[1]} or later"
    if not other and not any(map(needs_other_libc, files.values())):
        return f"manylinux_{newest[0]}_{newest[1]}_{machine}", words
    return f"linux_{machine}", f"{words} and, from this machine, {', '.join(sorted(other)) or 'its C library'}"


def needs_other_libc(elf):
    """Whether it was linked against a C library that is not glibc, and so has no versions of symbols."""
    return bool(elf.libraries()) and glibc.needed_version(elf) == (0, 0)


def newest_symbols(paths):
    """Lines about the symbols for which the files need the newest glibc."""
    files = {path: glibc.Elf(path) for path in paths}
    newest = max(map(glibc.needed_version, files.values()))
    for path, elf in files.items():
        names = elf.needed_symbols({name for name in elf.needed_versions() if (glibc.parse(name) or ())[:2] == newest})
        if names:
            yield f"  {path.name} needs it for {', '.join(names)}"


def report(tag, words, paths):
    """Prints where the wheel runs, and what prevents an older glibc than the one of the build."""
    python = "CPython 3.9 or later" if tag.startswith("cp39") else "any Python from 3.9 on"
    print(f"runs on: {words}, {python}" if paths else f"runs on: any system with libtenon, {python}")
    if "manylinux" in tag and glibc.needed_version(glibc.Elf(paths[0])) > (2, 28):
        print(*newest_symbols(paths), sep="\n")
        print("  `make wheel` links against older versions of glibc's symbols")


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """Writes the wheel, prints where it runs, and returns its name."""
    folder = build_folder()
    with tempfile.TemporaryDirectory() as scratch:
        extension = make_extension(scratch, folder)
        files = [*library_files(folder)] if folder else []
        if extension:
            files.append(("tenon/_fast.abi3.so", extension))
        paths = [path for _, path in files]
        platform, words = platform_tag(paths) if paths else ("any", "any system")
        tag = f"{'cp39-abi3' if extension else 'py3-none'}-{platform}"
        wheel = Wheel(wheel_directory, tag)
        for name, content in python_files():
            wheel.add(name, content)
        for name, path in files:
            wheel.add(name, path.read_bytes(), 0o755)
        report(tag, words, paths)
        return wheel.close()


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    """A wheel that points to this folder."""
    wheel = Wheel(wheel_directory, "py3-none-any")
    wheel.add("tenon.pth", f"{HERE}\n".encode())
    return wheel.close()


def add_text(archive, name, text):
    info = tarfile.TarInfo(f"{STEM}/{name}")
    info.size = len(text.encode())
    archive.addfile(info, io.BytesIO(text.encode()))


def build_sdist(sdist_directory, config_settings=None):
    """The Python files with the tables of the headers, and this backend; no library."""
    name = f"{STEM}.tar.gz"
    with tarfile.open(pathlib.Path(sdist_directory) / name, "w:gz") as archive:
        for path in sorted(HERE.rglob("*")):
            inside = path.relative_to(HERE)
            if path.is_file() and "__pycache__" not in inside.parts:
                archive.add(path, f"{STEM}/{inside.as_posix()}")
        if not (HERE / "tenon" / "_abi_tables.py").exists():
            add_text(archive, "tenon/_abi_tables.py", abi_tables())
        add_text(archive, "PKG-INFO", METADATA)
    return name


if __name__ == "__main__":
    print(build_wheel(sys.argv[1] if len(sys.argv) > 1 else "."))
