"""Builds the package's wheel with the standard library alone: nothing is fetched.

A wheel carries libtenon and its modules when a build of them is named by TENON_BUILD, or lies in build/ of
the source tree; it is then for this system. Without one it has the Python files alone and is for any.
The extension that makes calls faster goes in where a C compiler makes it, unless TN_NO_EXTENSION=1; the package works
without. Wheels are for every Python from 3.9 on: with the extension for CPython (cp39-abi3), without for any (py3-none).

What PEP 517 asks for: build_wheel, build_sdist, build_editable.
"""

import base64
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
    """(path in the wheel, file): the library, and its module folder beside it."""
    yield "tenon/lib/libtenon.so.0", folder / "libtenon.so.0"
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


def make_extension(folder):
    """The extension's file, or None where it cannot be made, which is told."""
    sources = sorted(map(str, (HERE / "extension").glob("*.c")))
    if not sources or not has_stable_abi() or os.environ.get("TN_NO_EXTENSION") == "1":
        return None
    compiler = os.environ.get("CC") or (sysconfig.get_config_var("CC") or "cc").split()[0]
    out = pathlib.Path(folder) / "_fast.abi3.so"
    command = [compiler, "-std=c11", "-O2", "-fPIC", "-shared", "-fvisibility=hidden",
               f"-I{sysconfig.get_path('include')}", f"-I{TREE / 'include'}", *sources, "-o",
               str(out)]
    try:
        subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    except (OSError, subprocess.CalledProcessError) as error:
        said = getattr(error, "output", None) or str(error).encode()
        print(f"without the extension: {said.decode(errors='replace').strip().splitlines()[0]}")
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
        self.add(f"{STEM}.dist-info/WHEEL", (f"Wheel-Version: 1.0\nGenerator: tenon\n"
                                            f"Root-Is-Purelib: {pure}\nTag: {self.tag}\n").encode())
        self.records.append(f"{STEM}.dist-info/RECORD,,")
        self._write(f"{STEM}.dist-info/RECORD", ("\n".join(self.records) + "\n").encode())
        self.zip.close()
        return self.name


def platform_tag():
    return sysconfig.get_platform().replace("-", "_").replace(".", "_")


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """Writes the wheel and gives its name."""
    folder = build_folder()
    with tempfile.TemporaryDirectory() as scratch:
        extension = make_extension(scratch)
        tag = "py3-none-any"
        if extension:
            tag = f"cp39-abi3-{platform_tag()}"
        elif folder:
            tag = f"py3-none-{platform_tag()}"
        wheel = Wheel(wheel_directory, tag)
        for name, content in python_files():
            wheel.add(name, content)
        if extension:
            wheel.add("tenon/_fast.abi3.so", extension.read_bytes(), 0o755)
        for name, path in library_files(folder) if folder else ():
            wheel.add(name, path.read_bytes(), 0o755)
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
