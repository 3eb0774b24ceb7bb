"""How long a fresh process takes to list the devices: Tenon's command and its Python package beside PyTorch, ONNX Runtime,
oneDNN and ggml.

    python3 bench/peers/bench_imports.py BUILD

Each operation is a whole process, from its start to its end, with its files in the page cache. Tenon's package is that of
a wheel. A rival in Python runs in this Python. Those in C are a small program that opens the library; LD_LIBRARY_PATH may
say where. A rival that is not here is lacking. Each pair is measured twice: by the clock, and by the processor time of the
process, which can be compared on a busy machine, too.
"""

import glob
import importlib.util
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import zipfile

import pairs

ROUNDS = 11
OURS = "import tenon; [d.name for d in tenon.devices()]"
IN_PYTHON = {
    "torch": "import torch; [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]",
    "onnxruntime": "import onnxruntime; onnxruntime.get_available_providers(), onnxruntime.get_device()",
}
# The program's arguments are the libraries, of which the last has the functions: those of oneDNN, or of ggml.
PROGRAM = r"""
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>

typedef size_t (*engines_fn)(int kind);
typedef size_t (*count_fn)(void);
typedef void *(*get_fn)(size_t index);
typedef const char *(*name_fn)(void *device);
typedef void (*load_fn)(const char *folder);

int main(int count, char **files)
{
    void *library = NULL;
    for (int i = 1; i < count; i++)
        library = dlopen(files[i], RTLD_NOW | RTLD_GLOBAL);
    if (!library)
        return 1;
    engines_fn engines = (engines_fn)dlsym(library, "dnnl_engine_get_count");
    if (engines)
        return printf("%zu of cpu, %zu of gpu\n", engines(1), engines(2)) < 0;
    load_fn load = (load_fn)dlsym(library, "ggml_backend_load_all_from_path");
    count_fn devices = (count_fn)dlsym(library, "ggml_backend_dev_count");
    get_fn get = (get_fn)dlsym(library, "ggml_backend_dev_get");
    name_fn name = (name_fn)dlsym(RTLD_DEFAULT, "ggml_backend_dev_name");
    if (!load || !devices || !get || !name)
        return 1;
    load(NULL);
    for (size_t i = 0; i < devices(); i++)
        puts(name(get(i)));
    return devices() == 0;
}
"""
IN_C = {"oneDNN": (["libdnnl.so.3"], ["libdnnl.so.2"]), "ggml": (["libggml.so"], ["libggml.so.0"])}


def unpack_wheel(folder):
    """Puts the package of a wheel into the path of Pythons that are started from here."""
    backend = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bindings", "python", "build_backend.py")
    subprocess.run([sys.executable, "-B", backend, folder], env=dict(os.environ, TENON_BUILD=build), check=True,
                   stdout=subprocess.DEVNULL)
    zipfile.ZipFile(glob.glob(os.path.join(folder, "*.whl"))[0]).extractall(folder)
    subprocess.run([sys.executable, "-m", "compileall", "-q", os.path.join(folder, "tenon")], check=True)  # as pip does
    for path in glob.glob(os.path.join(folder, "tenon", "lib", "**", "*"), recursive=True):
        os.chmod(path, 0o755)  # so does it
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (folder, os.environ.get("PYTHONPATH"))))


def elapsed(*command):
    """An operation for `pairs` that takes as long as the process."""
    return lambda: subprocess.run(command, stdout=subprocess.DEVNULL, check=True) and None


def processor_time(*command):
    """An operation that returns the processor time of the process and its children."""

    def run():
        child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            raise subprocess.CalledProcessError(child.returncode, command)
        return usage.ru_utime + usage.ru_stime

    return run


def find_rivals(folder):
    """Command of each rival, or None where it is not here."""
    found = {name: [sys.executable, "-c", code] if importlib.util.find_spec(name) else None
             for name, code in IN_PYTHON.items()}
    program, compiler = os.path.join(folder, "list"), shutil.which("cc")
    if compiler:
        subprocess.run([compiler, "-x", "c", "-O2", "-", "-o", program, "-ldl"], input=PROGRAM.encode(), check=True)
    for name, choices in IN_C.items():
        commands = ([program, *files] for files in choices if compiler)
        found[name] = next((command for command in commands
                            if subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode == 0), None)
    return found


def compare(name, ours, rival_name, rival):
    """Prints two rows, in ms."""
    if rival is None:
        print(f"{name:<16} lacking: {rival_name}")
        return
    for what, operation in (("elapsed", elapsed), ("processor time", processor_time)):
        for _ in range(pairs.REPEATS):
            taken = pairs.measure(operation(*ours), operation(*rival), rounds=ROUNDS)
            spread = pairs.spread_of(taken[0], taken[2])
            if spread <= pairs.WIDEST:
                break
        ratio = statistics.median(b / a for a, b in zip(taken[0], taken[1]))
        ms = [1000 * statistics.median(side) for side in taken]
        print(f"{name:<16} {what:<16} ours {ms[0]:7.2f} ms  {rival_name:<12} {ms[1]:8.2f} ms  ratio {ratio:7.2f}  "
              f"A/A spread {100 * spread:4.1f} %  {pairs.verdict(ratio, spread, 1)}", flush=True)


def main():
    with tempfile.TemporaryDirectory() as folder:
        unpack_wheel(folder)
        for name, rival in find_rivals(folder).items():
            compare("tenon devices", [os.path.join(build, "tenon"), "devices"], name, rival)
            if name in IN_PYTHON:
                compare("import tenon", [sys.executable, "-c", OURS], name, rival)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    build = os.path.abspath(sys.argv[1])
    main()
