"""Wheels: what they carry, whom they are for, and that each of those can use them. Pythons beside the running one are
those of PATH and of TN_TEST_PYTHONS, which lists files as PATH lists folders."""
import importlib
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile

import pytest
import tenon

PACKAGE = pathlib.Path(__file__).resolve().parents[2] / "bindings" / "python"
LEAST = (3, 9)


@pytest.fixture(scope="module")
def backend():
    sys.path.insert(0, str(PACKAGE))
    return importlib.import_module("build_backend")


@pytest.fixture(autouse=True)
def build(monkeypatch):
    monkeypatch.setenv("TENON_BUILD", os.path.dirname(os.environ["TENON_LIBRARY"]))
    monkeypatch.delenv("TN_NO_EXTENSION", raising=False)


def contents(path):
    """The names in a wheel and the text of its WHEEL; its tag is the one of its name."""
    wheel = zipfile.ZipFile(path)
    folder = f"tenon-{tenon.__version__}.dist-info"
    told = wheel.read(f"{folder}/WHEEL").decode()
    assert f"\nTag: {path.name[len(f'tenon-{tenon.__version__}-'):-len('.whl')]}\n" in told
    assert f"Requires-Python: >={'.'.join(map(str, LEAST))}\n" in wheel.read(f"{folder}/METADATA").decode()
    assert f"{folder}/RECORD" in wheel.namelist()
    assert not [name for name in wheel.namelist() if "__pycache__" in name]
    assert {info.date_time for info in wheel.infolist()} == {(2020, 1, 1, 0, 0, 0)}  # made anew, it is the same
    return wheel.namelist(), told


@pytest.fixture(scope="module")
def made(backend, tmp_path_factory):
    """The wheel with all that can be in it."""
    folder = tmp_path_factory.mktemp("made")
    before = os.environ.get("TENON_BUILD")
    os.environ["TENON_BUILD"] = os.path.dirname(os.environ["TENON_LIBRARY"])
    try:
        return folder / backend.build_wheel(str(folder))
    finally:
        os.environ.pop("TENON_BUILD") if before is None else os.environ.update(TENON_BUILD=before)


def platform_of(path, folder):
    """The tag that readelf's list of the needed versions gives, of all files of a wheel."""
    readelf = shutil.which("readelf") or pytest.skip("readelf is not here")
    zipfile.ZipFile(path).extractall(folder)
    files = [*folder.rglob("*.so*"), *folder.rglob("lib/tenon"), *folder.rglob("tenon-probe")]
    told = subprocess.run([readelf, "-VW", *map(str, files)], check=True, text=True, stdout=subprocess.PIPE).stdout
    newest = max(tuple(map(int, one.split("."))) for one in re.findall(r"Name: GLIBC_(\d+\.\d+)", told))
    return f"manylinux_{newest[0]}_{newest[1]}_{platform.machine()}"


def test_the_tag_is_true(made, built, tmp_path):
    assert made.name == f"tenon-{tenon.__version__}-cp39-abi3-{platform_of(made, tmp_path)}.whl"


def test_with_all(made, built):
    names, told = contents(made)
    assert {"tenon/__init__.py", "tenon/__init__.pyi", "tenon/py.typed", "tenon/_fast.abi3.so",
            "tenon/_abi_tables.py", "tenon/lib/libtenon.so.0", "tenon/lib/tenon", "tenon/__main__.py"} <= set(names)
    assert "tenon/_headers.py" not in names
    assert "Root-Is-Purelib: false" in told


@pytest.mark.parametrize("name,value", [("TN_NO_EXTENSION", "1"), ("CC", "/no/such/compiler")])
def test_without_the_extension(backend, tmp_path, monkeypatch, capsys, name, value):
    """For every Python of the system."""
    monkeypatch.setenv(name, value)
    path = tmp_path / backend.build_wheel(str(tmp_path))
    assert path.name == f"tenon-{tenon.__version__}-py3-none-{platform_of(path, tmp_path / 'files')}.whl"
    names, _ = contents(path)
    assert "tenon/lib/libtenon.so.0" in names and "tenon/_fast.abi3.so" not in names
    told = capsys.readouterr().out
    assert ("without the extension: " in told) == (name == "CC")
    version = re.search(r"manylinux_(\d+)_(\d+)_", path.name)
    assert f"with glibc {version[1]}.{version[2]} or later, any Python from 3.9 on" in told


def test_without_the_library(backend, tmp_path, monkeypatch, capsys):
    """For any system, where libtenon is installed otherwise."""
    monkeypatch.setenv("TN_NO_EXTENSION", "1")
    monkeypatch.setattr(backend, "build_folder", lambda: None)
    path = tmp_path / backend.build_wheel(str(tmp_path))
    assert path.name == f"tenon-{tenon.__version__}-py3-none-any.whl"
    assert "Root-Is-Purelib: true" in contents(path)[1]
    monkeypatch.undo()
    monkeypatch.setattr(backend, "TREE", tmp_path)
    monkeypatch.delenv("TENON_BUILD", raising=False)
    assert backend.build_folder() is None and "`make build` makes it" in capsys.readouterr().out
    monkeypatch.setenv("TENON_BUILD", str(tmp_path))
    with pytest.raises(SystemExit, match="no libtenon.so.0 in"):
        backend.build_wheel(str(tmp_path))


def test_pythons_without_the_stable_abi(backend, tmp_path, monkeypatch):
    monkeypatch.setattr(backend, "has_stable_abi", lambda: False)
    assert backend.make_extension(str(tmp_path)) is None


def test_the_source_asks_for_no_more_than_the_tag_says():
    """The tag, the limited interface that the extension is written for, the metadata and the page name one version."""
    source = (PACKAGE / "extension" / "fast.h").read_text()
    assert re.search(r"#define Py_LIMITED_API (\S+)", source)[1] == f"0x{LEAST[0]:02x}{LEAST[1]:02x}0000"
    assert f'requires-python = ">={LEAST[0]}.{LEAST[1]}"' in (PACKAGE / "pyproject.toml").read_text()
    assert f"Python {LEAST[0]}.{LEAST[1]} or later" in (PACKAGE.parents[1] / "docs" / "python.md").read_text()


def test_from_a_source_distribution(backend, tmp_path):
    """It has no headers; the wheel made from it has the same tables as one of the source tree."""
    tarfile.open(tmp_path / backend.build_sdist(str(tmp_path))).extractall(tmp_path)
    folder = tmp_path / f"tenon-{tenon.__version__}"
    done = subprocess.run([sys.executable, "-B", "build_backend.py", str(tmp_path)], cwd=folder, text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=1500,
                          env={**os.environ, "TN_NO_EXTENSION": "1"})
    assert done.returncode == 0, done.stdout
    wheel = zipfile.ZipFile(tmp_path / done.stdout.split()[-1])
    assert wheel.read("tenon/_abi_tables.py").decode() == backend.abi_tables()


def test_in_place(backend, tmp_path):
    """From a source tree, as with `pip install -e` or PYTHONPATH, the library is the one that was built there; where
    none was, it is said how to have one."""
    folder = tmp_path / "bindings" / "python"
    shutil.copytree(PACKAGE / "tenon", folder / "tenon", ignore=shutil.ignore_patterns("__pycache__", "lib", "_fast*"))
    shutil.copytree(PACKAGE.parents[1] / "include", tmp_path / "include")
    env = {name: value for name, value in os.environ.items() if name not in ("TENON_LIBRARY", "LD_LIBRARY_PATH")}
    env["PYTHONPATH"] = str(folder)

    def run():
        return subprocess.run([sys.executable, "-c", "from tenon._library import lib; print(lib.path)"], env=env,
                              text=True, check=False, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=1500)

    (tmp_path / "build").symlink_to(os.path.dirname(os.environ["TENON_LIBRARY"]))
    assert run().stdout.strip() == str(tmp_path / "build" / "libtenon.so.0")
    (tmp_path / "build").unlink()
    done = run()
    assert done.stdout.startswith("libtenon") or "set TENON_LIBRARY" in done.stderr and "make wheel" in done.stderr
    (folder / "tenon").rename(tmp_path / "tenon")
    (tmp_path / "tenon" / "_abi_tables.py").write_text(backend.abi_tables())
    (tmp_path / "tenon" / "lib").symlink_to(os.path.dirname(os.environ["TENON_LIBRARY"]))
    env["PYTHONPATH"] = str(tmp_path)
    assert run().stdout.strip() == str(tmp_path / "tenon" / "lib" / "libtenon.so.0")


USES = """
#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
static void *run(void *number) { *(int *)number += 1; return NULL; }
int main(int count, char **arguments)
{
    struct stat facts;
    pthread_t thread;
    int number = 41;
    void *found = dlsym(RTLD_DEFAULT, "exp");
    if (stat(arguments[0], &facts) != 0 || pthread_create(&thread, NULL, run, &number) != 0)
        return 1;
    pthread_join(thread, NULL);
    shm_unlink("/tenon-no-such");
    fprintf(stderr, "%d %d %.3f %.3f\\n", number, S_ISREG(facts.st_mode), exp(count) + log(count), hypot(3 * count, 4));
    return !found;
}
"""
OLD = ["-Wl,--push-state,--no-as-needed", "-lpthread", "-ldl", "-lrt", "-Wl,--pop-state"]


@pytest.fixture(scope="module")
def stubs(backend, tmp_path_factory):
    """A compiler, and a folder of libraries with the symbols of glibc 2.28."""
    compiler = shutil.which("cc")
    if not compiler or platform.system() != "Linux" or platform.libc_ver()[0] != "glibc":
        pytest.skip("needs a C compiler and glibc")
    folder = tmp_path_factory.mktemp("glibc")
    backend.glibc.write_stubs(folder, (2, 28), compiler)
    return compiler, folder


def test_programs_for_an_older_glibc(backend, stubs, tmp_path):
    """They run here, and need nothing that glibc 2.28 lacks."""
    compiler, folder = stubs
    (tmp_path / "uses.c").write_text(USES)
    versions = []
    for name, options in (("new", []), ("old", [f"-L{folder}", *OLD])):
        subprocess.run([compiler, "-D_GNU_SOURCE", str(tmp_path / "uses.c"), "-o", str(tmp_path / name), *options, "-lm"],
                       check=True)
        done = subprocess.run([str(tmp_path / name)], check=False, stderr=subprocess.PIPE, text=True)
        assert (done.returncode, done.stderr) == (0, "42 1 2.718 5.000\n")
        versions.append(backend.glibc.needed_version(backend.glibc.Elf(tmp_path / name)))
    assert versions[1] <= (2, 28) and versions[1] <= versions[0]
    if tuple(map(int, platform.libc_ver()[1].split("."))) >= (2, 34):
        assert versions[0] >= (2, 34)  # the reader sees it, and the stubs are what lowers it
        assert "pthread_create" in backend.glibc.Elf(tmp_path / "new").needed_symbols({"GLIBC_2.34"})


PROJECT = """
cmake_minimum_required(VERSION 3.21)
project(uses C)
set(PROJECT_SOURCE_DIR "{source}")
add_library(tenon_flags INTERFACE)
include("{source}/cmake/TenonGlibc.cmake")
add_executable(uses uses.c)
target_compile_definitions(uses PRIVATE _GNU_SOURCE)
target_link_libraries(uses PRIVATE tenon_flags m ${{CMAKE_DL_LIBS}})
"""


def test_programs_of_a_build_for_an_older_glibc(backend, stubs, tmp_path):
    """They start in the build folder: `make wheel` runs one there, where NVIDIA's compiler is."""
    if not shutil.which("cmake"):
        pytest.skip("needs CMake")
    (tmp_path / "uses.c").write_text(USES)
    (tmp_path / "CMakeLists.txt").write_text(PROJECT.format(source=PACKAGE.parents[1]))
    for command in (["-S", tmp_path, "-B", tmp_path / "build", "-DTENON_GLIBC=2.28"], ["--build", tmp_path / "build"]):
        subprocess.run(["cmake", *map(str, command)], check=True, stdout=subprocess.DEVNULL)
    done = subprocess.run([str(tmp_path / "build" / "uses")], check=False, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (0, "42 1 2.718 5.000\n")
    assert backend.glibc.needed_version(backend.glibc.Elf(tmp_path / "build" / "uses")) <= (2, 28)


# As the headers of glibc 2.38 and later make of a call of strtol.
REPLACED = """
#include <stdint.h>
#include <stdio.h>
#define NUMBER(type, name) type name##_(const char *text, char **end, int base) __asm__("__isoc23_" #name);
NUMBER(long, strtol)
NUMBER(unsigned long, strtoul)
NUMBER(long long, strtoll)
NUMBER(unsigned long long, strtoull)
NUMBER(intmax_t, strtoimax)
NUMBER(uintmax_t, strtoumax)
int sscanf_(const char *text, const char *format, ...) __asm__("__isoc23_sscanf");
int main(void)
{
    char *end;
    int number = 0;
    const char *text = "-9223372036854775808 rest";
    int well = strtol_(text, &end, 10) == INT64_MIN && *end == ' ' && strtoll_(text, &end, 10) == INT64_MIN &&
               strtoimax_(text, &end, 10) == INT64_MIN && strtoul_("ff", &end, 16) == 255 && *end == 0 &&
               strtoull_("18446744073709551615", NULL, 10) == UINT64_MAX && strtoumax_("0x10", NULL, 0) == 16 &&
               sscanf_("a7", "%2x", &number) == 1 && number == 0xa7;
    puts(well ? "well" : "wrong");
    return 0;
}
"""


def test_programs_compiled_with_newer_headers(backend, stubs, tmp_path):
    """Those of glibc 2.38 replace functions by others, which glibc 2.28 lacks."""
    compiler, folder = stubs
    (tmp_path / "replaced.c").write_text(REPLACED)
    subprocess.run([compiler, str(tmp_path / "replaced.c"), "-o", str(tmp_path / "replaced"), f"-L{folder}", *OLD],
                   check=True)
    done = subprocess.run([str(tmp_path / "replaced")], check=True, stdout=subprocess.PIPE, text=True)
    assert done.stdout == "well\n"
    assert backend.glibc.needed_version(backend.glibc.Elf(tmp_path / "replaced")) <= (2, 28)


def test_the_library_needs_no_newer_glibc(backend, stubs, tmp_path):
    """Its objects, linked as `make wheel` links them, use no function that glibc 2.28 lacks."""
    compiler, folder = stubs
    objects = pathlib.Path(os.environ["TENON_LIBRARY"]).parent / "src" / "libtenon_inside.a"
    if not objects.exists():
        pytest.skip("the objects of the build are not here")
    subprocess.run([compiler, "-shared", "-Wl,--whole-archive", str(objects), "-Wl,--no-whole-archive", f"-L{folder}", "-lm",
                    *OLD, "-Wl,-z,defs", "-o", str(tmp_path / "libtenon.so")], check=True)
    elf = backend.glibc.Elf(tmp_path / "libtenon.so")
    newer = {name for name in elf.needed_versions() if (backend.glibc.parse(name) or ()) > (2, 28)}
    assert elf.needed_symbols(newer) == []
    program = "import tenon; print(tenon.explain('matmul:f32:m=8,n=8,k=8@cpu').chosen.platform)"
    done = subprocess.run([sys.executable, "-c", program], check=True, text=True, stdout=subprocess.PIPE,
                          env={**os.environ, "TENON_LIBRARY": str(tmp_path / "libtenon.so")})
    assert done.stdout == "cpu\n"


@pytest.fixture(scope="module")
def cross():
    """Another processor, a compiler for it, and the command that runs its programs here or None."""
    machine = next(name for name in ("aarch64", "x86_64") if name != platform.machine())
    compiler = shutil.which(f"{machine}-linux-gnu-gcc") or pytest.skip(f"needs a compiler for {machine}")
    emulator = shutil.which(f"qemu-{machine}")
    return machine, compiler, emulator and [emulator, "-L", f"/usr/{machine}-linux-gnu"]


def test_programs_for_another_processor(backend, cross, tmp_path):
    """As `make wheel ARCH=aarch64` links them: for glibc 2.28, and with the tag of their processor."""
    machine, compiler, emulator = cross
    backend.glibc.write_stubs(tmp_path / "glibc", (2, 28), compiler)
    (tmp_path / "uses.c").write_text(USES)
    subprocess.run([compiler, "-D_GNU_SOURCE", str(tmp_path / "uses.c"), "-o", str(tmp_path / "uses"),
                    f"-L{tmp_path / 'glibc'}", *OLD, "-lm"], check=True)
    tag, words = backend.platform_tag([tmp_path / "uses"])
    found = re.fullmatch(rf"manylinux_2_(\d+)_{machine}", tag)
    assert found and int(found[1]) <= 28 and f"Linux on {machine} with glibc 2.{found[1]} or later" == words
    if emulator:
        done = subprocess.run([*emulator, str(tmp_path / "uses")], check=False, stderr=subprocess.PIPE, text=True)
        assert (done.returncode, done.stderr) == (0, "42 1 2.718 5.000\n")


def test_a_compiler_for_another_processor(backend, cross, tmp_path, monkeypatch, capsys):
    """It does not make the extension of a library for this one."""
    machine, compiler, _ = cross
    monkeypatch.setenv("CC", compiler)
    path = backend.build_wheel(str(tmp_path))
    told = capsys.readouterr().out
    assert path.startswith(f"tenon-{tenon.__version__}-py3-none-") and "without the extension: " in told
    assert "pyconfig.h" in told or (f"expected a compiler for {platform.machine()}, as the library is, got {compiler} for "
                                    f"{machine}; set CC to a compiler for {platform.machine()}") in told


def test_names_of_versions(backend):
    parse = backend.glibc.parse
    assert parse("GLIBC_2.28") == (2, 28) and parse("GLIBC_2.2.5") == (2, 2, 5) and parse("TENON_0") is None
    assert parse("GLIBC_ABI_DT_RELR") == (2, 36) and parse("GLIBC_PRIVATE") is None
    with pytest.raises(ValueError, match="expected a 64-bit little-endian ELF file"):
        backend.glibc.Elf(__file__)


def test_the_command(made, tmp_path):
    """`tenon` and `python -m tenon` are the program of the wheel; without it, both say where it was sought."""
    zipfile.ZipFile(made).extractall(tmp_path)
    entries = next(tmp_path.glob("*.dist-info/entry_points.txt")).read_text()
    assert entries == "[console_scripts]\ntenon = tenon.__main__:main\n"
    env = {name: value for name, value in os.environ.items() if name != "TENON_LIBRARY"} | {"PYTHONPATH": str(tmp_path)}
    for path in (tmp_path / "tenon" / "lib").rglob("tenon*"):
        path.chmod(0o755)  # as pip does
    script = ["-c", "from tenon.__main__ import main; main()"]

    def run(how, *arguments):
        return subprocess.run([sys.executable, *how, *arguments], env=env, text=True, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=1500)

    for how in (["-m", "tenon"], script):
        assert run(how, "version").stdout.startswith(f"tenon {tenon.__version__} ")
        assert run(how, "no-such-command").returncode == 2
    (tmp_path / "tenon" / "lib" / "tenon").unlink()
    done = run(["-m", "tenon"], "version")
    assert done.returncode == 1 and f"tried {tmp_path / 'tenon' / 'lib' / 'tenon'}; install a wheel" in done.stderr


def pythons():
    """By version, those that the wheel is for."""
    named = filter(None, os.environ.get("TN_TEST_PYTHONS", "").split(os.pathsep))
    found = {}
    for path in (sys.executable, *named, *(shutil.which(f"python3.{minor}") for minor in range(LEAST[1], 20))):
        if path:
            done = subprocess.run([path, "-c", "import sys, sysconfig; print(sys.implementation.name, sys.version_info[0],"
                                   "sys.version_info[1], sysconfig.get_config_var('Py_GIL_DISABLED') or 0)"],
                                  check=False, text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            name, *numbers = done.stdout.split() or [""]
            if name == "cpython" and numbers[2] == "0" and (version := tuple(map(int, numbers[:2]))) >= LEAST:
                found.setdefault(version, path)
    return found


PROGRAM = """
import array, sys
import tenon
from tenon import _library, operators
assert _library.lib.path.startswith(sys.path[0]), _library.lib.path
fast = operators._fast
assert fast is not None and fast.__file__.startswith(sys.path[0]), fast
given = memoryview(array.array("f", range(6))).cast("B").cast("f", (2, 3))
other = memoryview(array.array("f", range(6))).cast("B").cast("f", (3, 2))
made = memoryview(bytearray(16)).cast("f", (2, 2))
assert tenon.matmul(given, other, out=made).tolist() == [[10.0, 13.0], [28.0, 40.0]]

# What the extension asks of a Python: arrays are seen and let go.
assert fast.teach((memoryview,), None, None, None, None, None)
assert fast.matmul(None, given, other) is NotImplemented and fast.served() == 0  # a memoryview has no dtype
for wrong in (given[:1], other.tobytes()):
    assert fast.matmul(None, given, wrong) is NotImplemented
given.release(), other.release()  # fails while somebody holds them
print(sys.version_info[0], sys.version_info[1])
"""


def test_every_python_that_it_is_for(made, built, tmp_path):
    """Uses the same wheel, with its own extension, and no compiler."""
    zipfile.ZipFile(made).extractall(tmp_path / "site")
    (tmp_path / "site" / "program.py").write_text(PROGRAM)
    unwanted = ("TENON_BUILD", "TENON_LIBRARY", "PYTHONPATH")
    env = {name: value for name, value in os.environ.items() if name not in unwanted}
    for version, python in pythons().items():
        done = subprocess.run([python, "-B", str(tmp_path / "site" / "program.py")], env=env, text=True, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=1500)
        assert (done.returncode, done.stdout.split()) == (0, [*map(str, version)]), (python, done.stdout)
    print("Pythons:", *(f"{major}.{minor}" for major, minor in pythons()))
