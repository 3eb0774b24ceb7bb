"""The stub driver against a transcript of the real one: which driver calls each case of the conformance suite
makes, and what they give; and likewise the cases of calls.c, "call.NAME" here, which provoke faults and what a
capture forbids. A GPU's were recorded with

    python3 tests/cuda/transcript.py BUILD --record [DRIVER]

into tests/cuda/transcript.txt; DRIVER is its libcuda.so.1, where that is in no usual folder. The test makes the
same calls of the stub and compares. A case that was written since, where there was no GPU, is listed there by a
line "awaiting NAME": the test prints these, `make gpu-test` fails as long as there is one, and recording, which
makes the file anew, leaves none. A case that is neither recorded nor listed fails the test.

Between the module and a driver stands a library made here, from the list of calls that the module uses: it
passes each on and notes its name and result, once. A call that says "not ready" is one that succeeds a moment
later. What depends on a compiler or the management library being there, kernels, random numbers, counting, is left
out. In the file a first line has what all cases that use the device have in common; theirs begin with "+"."""

import json
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
LEFT_OUT_OF_CALLS = ("cuGetError", "cuInit", "cuDriver", "cuDeviceGet")
AWAITING = "awaiting"
PREFIX = "call."
NO_DRIVER = 77
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


def program():
    return os.path.join(script.build.folder, "tests", "cuda", "test_cuda_calls")


def cases():
    """All that there is to record. Random numbers need a compiler."""
    listed = json.loads(script.run(script.build.tenon, "conformance", "--list", "--json").stdout)["cases"]
    names = [row["name"] for row in listed if not row["name"].startswith("random.")]
    return names + [PREFIX + name for name in script.run(program(), "--list").stdout.split()]


def record(folder, driver, name, beside="", **changes):
    """What the case's calls gave, in the order of the alphabet."""
    out = os.path.join(folder, "out.txt")
    script.write_text(out, "")
    environment = script.environment(
        LD_LIBRARY_PATH=f"{folder}:{beside}", RECORD_DRIVER=driver, RECORD_OUT=out,
        CUDA_VISIBLE_DEVICES="0", **changes)
    if name.startswith(PREFIX):
        done = script.run(program(), name[len(PREFIX):], env=environment)
        if done.returncode == NO_DRIVER:
            raise RuntimeError(f"{driver} shows no device")
        if done.returncode:
            print(f"{name}: not as NVIDIA's documents have it: {done.stdout.strip()}")
        left_out = LEFT_OUT_OF_CALLS
    else:
        script.run(script.build.tenon, "conformance", "--platform", "cuda", "--case", name, "--seed", "1",
                   env=environment)
        left_out = LEFT_OUT
    return sorted(pair for pair in script.read_text(out).split() if not pair.startswith(left_out))


def write_transcript(found):
    common = set.intersection(*(set(pairs) for name, pairs in found.items()
                                if USED in pairs and not name.startswith(PREFIX)))
    lines = [" ".join(sorted(common))]
    for name, pairs in found.items():
        used = ["+", *(p for p in pairs if p not in common)] if common <= set(pairs) else pairs
        lines.append(" ".join([name, *used]))
    return "\n".join(lines) + "\n"


def record_all(driver):
    with tempfile.TemporaryDirectory() as folder:
        make_recorder(folder)
        found = {name: record(folder, driver, name) for name in cases()}
    script.write_text(TRANSCRIPT, write_transcript(found))
    print(f"{TRANSCRIPT}: {len(found)} cases, {sum(map(len, found.values()))} results")


def read_transcript(text):
    """Each case with what its calls gave, and the names of those that are not recorded yet."""
    common, *lines = text.splitlines()
    recorded, awaiting = {}, []
    for line in lines:
        name, *pairs = line.split()
        if name == AWAITING:
            awaiting += pairs
        else:
            recorded[name] = sorted([*common.split(), *pairs[1:]] if pairs[:1] == ["+"] else pairs)
    return recorded, awaiting


def judge(names, recorded, awaiting):
    """What is wrong with a transcript for these cases."""
    wrong = [f"{name}: not recorded yet: run --record on a machine with a GPU, or add the line "
             f'"{AWAITING} {name}"' for name in names if name not in recorded and name not in awaiting]
    wrong += [f"{name}: there is no such case" for name in (*recorded, *awaiting) if name not in names]
    wrong += [f"{name}: {AWAITING}, and it is recorded" for name in awaiting if name in recorded]
    return wrong


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

    def test_faults_and_refusals_are_seen(self):
        """Codes that no case of the conformance suite meets."""
        for name, pair in (("trap", "cuStreamSynchronize=719"), ("illegal-address", "cuStreamSynchronize=700"),
                           ("capture.synchronize", "cuStreamSynchronize=900"),
                           ("capture.synchronize", "cuStreamEndCapture=901"),
                           ("capture.implicit", "cuMemsetD32Async=906")):
            self.assertIn(pair, self.of_stub(PREFIX + name))

    def test_every_case_is_recorded_or_awaits_it(self):
        recorded, awaiting = read_transcript(script.read_text(TRANSCRIPT))
        self.assertEqual(judge(cases(), recorded, awaiting), [])
        if awaiting:
            print(f"{AWAITING} a recording on a GPU ({len(awaiting)}): {' '.join(awaiting)}")

    def test_a_case_without_a_recording_is_noticed(self):
        text = write_transcript({"a": [USED, "cuX=0"], "b": [USED, "cuX=719"], "c": []})
        recorded, awaiting = read_transcript(text + "awaiting d\nawaiting e\n")
        self.assertEqual(recorded, {"a": [USED, "cuX=0"], "b": [USED, "cuX=719"], "c": []})
        self.assertEqual(awaiting, ["d", "e"])
        self.assertEqual(judge("abcde", recorded, awaiting), [])
        self.assertEqual(read_transcript(text)[1], [])
        wrong, = judge("abcdef", recorded, awaiting)
        self.assertRegex(wrong, '^f: not recorded yet: .*"awaiting f"$')
        self.assertEqual(judge("abcd", recorded, awaiting), ["e: there is no such case"])
        self.assertEqual(judge("abcde", recorded, [*awaiting, "c"]), ["c: awaiting, and it is recorded"])

    def test_the_stub_answers_as_the_driver_did(self):
        wrong = []
        for name, expected in read_transcript(script.read_text(TRANSCRIPT))[0].items():
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
