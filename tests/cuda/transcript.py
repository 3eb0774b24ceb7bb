"""The stub driver against a transcript of the real one: which driver calls each case of the conformance suite
makes, and what they give. A GPU's were recorded with

    python3 tests/cuda/transcript.py BUILD --record [DRIVER]

into tests/cuda/transcript.txt; DRIVER is its libcuda.so.1, where that is in no usual folder. The test makes the
same calls of the stub and compares.

Between the module and a driver stands a library made here, from the list of calls that the module uses: it
passes each on and notes its name and result, once. A call that says "not ready" is one that succeeds a moment
later. What depends on a compiler or the management library being there, kernels, random numbers, counting, is left
out. In the file a first line has what all cases that use the device have in common; theirs begin with "+"."""

import os
import re
import subprocess
import sys
import tempfile

sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
import script

TRANSCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "transcript.txt")
DRIVERS = ("/usr/lib/x86_64-linux-gnu/libcuda.so.1", "/usr/lib64/libcuda.so.1",
           "/usr/lib/aarch64-linux-gnu/libcuda.so.1", "/usr/local/nvidia/lib64/libcuda.so.1",
           "/usr/lib/wsl/lib/libcuda.so.1", "/usr/lib/libcuda.so.1")
LEFT_OUT = ("cuModule", "cuLaunchKernel", "cuGetError", "cuInit", "cuDriver",
            "cuDeviceGet", "cuDeviceTotalMem", "cuDevicePrimaryCtxGetState")
USED = "cuDevicePrimaryCtxRetain=0"

HEAD = """#include "driver.h"
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *find(const char *name)
{
    void *library = dlopen(getenv("RECORD_DRIVER"), RTLD_NOW | RTLD_LOCAL);
    return library ? dlsym(library, name) : NULL;
}
static cu_result note(unsigned char *seen, const char *name, cu_result code)
{
    unsigned told = code == CUDA_ERROR_NOT_READY ? CUDA_SUCCESS : code;
    char line[128];
    pthread_mutex_lock(&lock);
    if (told < 1000 && !seen[told]) {
        int file = open(getenv("RECORD_OUT"), O_WRONLY | O_CREAT | O_APPEND, 0600);
        int length = snprintf(line, sizeof line, "%s=%u\\n", name, told);
        seen[told] = 1;
        if (file < 0 || write(file, line, (size_t)length) != length)
            abort();
        close(file);
    }
    pthread_mutex_unlock(&lock);
    return code;
}
"""
CALL = """cu_result {name}({parameters})
{{
    static unsigned char seen[1000];
    static cu_result (*_Atomic real)({parameters});
    if (!real)
        real = (cu_result(*)({parameters}))find("{name}");
    return real ? note(seen, "{name}", real({names})) : CUDA_ERROR_NOT_SUPPORTED;
}}
"""


def calls():
    """The module's list: the name of each call, its parameters, and their names."""
    text = script.read_text(script.source("backends", "cuda", "platform", "driver_list.h"))
    text = text[text.index("#define CUDA_CALL_LIST"):].replace("\\\n", " ")
    for name, parameters in re.findall(r"X\(\w+, (\w+),\s*\(([^()]*)\)\)", text):
        parameters = " ".join(parameters.split())
        names = "" if parameters == "void" else ", ".join(
            re.search(r"(\w+)$", one.strip()).group(1) for one in parameters.split(","))
        yield name, parameters, names


def make_recorder(folder):
    source = script.write_text(os.path.join(folder, "record.c"), HEAD + "".join(
        CALL.format(name=name, parameters=parameters, names=names)
        for name, parameters, names in calls()))
    made = os.path.join(folder, "libcuda.so.1")
    subprocess.run([script.build.compiler, "-std=gnu11", "-shared", "-fPIC", "-o", made, source,
                    "-I", script.source("backends", "cuda", "platform"),
                    "-I", script.source("include"), "-Wl,-soname,libcuda.so.1", "-ldl",
                    "-lpthread"], check=True)
    return made


def cases():
    done = script.run(script.build.tenon, "conformance", "--list")
    names = [line.split()[0] for line in done.stdout.splitlines() if re.match(r"\s*[a-z]+\.", line)]
    return [name for name in names if not name.startswith("random.")]


def record(folder, driver, name, beside="", **changes):
    """What the case's calls gave, in the order of the alphabet."""
    out = os.path.join(folder, "out.txt")
    script.write_text(out, "")
    environment = script.environment(
        LD_LIBRARY_PATH=f"{folder}:{beside}", RECORD_DRIVER=driver, RECORD_OUT=out,
        CUDA_VISIBLE_DEVICES="0", **changes)
    script.run(script.build.tenon, "conformance", "--platform", "cuda", "--case", name, "--seed", "1",
               env=environment, timeout=120)
    return sorted(pair for pair in script.read_text(out).split() if not pair.startswith(LEFT_OUT))


def record_all(driver):
    with tempfile.TemporaryDirectory() as folder:
        make_recorder(folder)
        found = {name: record(folder, driver, name) for name in cases()}
    common = set.intersection(*(set(pairs) for pairs in found.values() if USED in pairs))
    lines = [" ".join(sorted(common))]
    for name, pairs in found.items():
        used = ["+", *(p for p in pairs if p not in common)] if USED in pairs else pairs
        lines.append(" ".join([name, *used]))
    script.write_text(TRANSCRIPT, "\n".join(lines) + "\n")
    print(f"{TRANSCRIPT}: {len(found)} cases, {sum(map(len, found.values()))} results")


def read_transcript():
    """Each case with what its calls gave."""
    common, *lines = script.read_text(TRANSCRIPT).splitlines()
    for line in lines:
        name, *pairs = line.split()
        yield name, sorted([*common.split(), *pairs[1:]] if pairs[:1] == ["+"] else pairs)


class Transcript(script.Case):
    def stub(self):
        return os.path.join(script.build.folder, "tests", "cuda", "stub")

    def of_stub(self, name):
        if not os.path.exists(self.place("libcuda.so.1")):
            make_recorder(self.folder)
        return record(self.folder, os.path.join(self.stub(), "libcuda.so.1"), name, self.stub(),
                      STUB_DEVICES="1")

    def setUp(self):
        super().setUp()
        if script.build.sanitizers:
            self.skipTest("the library between is made without sanitizers")

    def test_every_call_is_seen(self):
        self.assertGreater(len(list(calls())), 60)
        found = self.of_stub("stream.order")
        for pair in (USED, "cuStreamCreateWithPriority=0", "cuMemcpyDtoDAsync_v2=0",
                     "cuStreamSynchronize=0"):
            self.assertIn(pair, found)

    def test_the_stub_answers_as_the_driver_did(self):
        if not os.path.exists(TRANSCRIPT):
            self.skipTest("no transcript of a GPU is there yet")
        wrong = []
        for name, expected in read_transcript():
            found = self.of_stub(name)
            if found != expected:
                wrong.append(f"{name}: the driver alone {sorted(set(expected) - set(found))}, "
                             f"the stub alone {sorted(set(found) - set(expected))}")
        self.assertEqual(wrong, [])


if __name__ == "__main__":
    if "--record" in sys.argv:
        script.build.read(sys.argv[1])
        given = sys.argv[sys.argv.index("--record") + 1:]
        record_all(next(path for path in (*given, *DRIVERS) if os.path.exists(path)))
    else:
        script.main()
