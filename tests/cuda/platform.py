"""The module cuda against the stub driver, as the command shows it: the conformance suite on every kind of
driver that the stub can be, visible devices, and the verdict on drivers that do not serve."""

import ctypes.util
import json
import os
import sys

# In place of this folder, whose platform.py is not Python's.
sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
import script

UUID = "{}-{}1a1a2a3-a4a5-a6a7-a8a9-aaabacadaeaf"
TWO = "needs 2 devices, has 1"
# On a machine that has a real management library, something else stands in its place.
NAMES = ["libcuda.so.1"] + ["libnvidia-ml.so.1"] * bool(ctypes.util.find_library("nvidia-ml"))
# What helps against a driver that shows nothing is another thing where this machine has its device files.
NO_DEVICE = "nvidia-smi" if os.access("/dev/nvidiactl", os.R_OK) else "modprobe nvidia"
LOSE = "needs a command that makes the device fail: --lose COMMAND"


class Cuda(script.Case):
    def environment(self, nvml=True, **changes):
        stub = os.path.join(script.build.folder, "tests", "cuda", "stub")
        if not nvml:  # a folder with the driver's library alone, or beside one that is none
            alone = self.place("alone")
            if not os.path.isdir(alone):
                os.mkdir(alone)
                for name in NAMES:
                    os.symlink(os.path.join(stub, "libcuda.so.1"), os.path.join(alone, name))
            stub = alone
        # What the stub would run computes nothing: without code, random numbers come from the host.
        changes = {"CUDA_VISIBLE_DEVICES": None, "CUDA_DEVICE_ORDER": None, "STUB_MODULES": "0",
                   **changes}
        return script.environment(LD_LIBRARY_PATH=stub, **changes)

    def conform(self, *options, unavailable=(), nvml=True, **changes):
        text = self.run_well(
            script.build.tenon, "conformance", "--platform", "cuda", "--json", "--patience",
            script.PATIENCE, *options, env=self.environment(nvml, **changes))
        platform, = json.loads(text)["platforms"]
        self.assertEqual(platform["failed"] + platform["expected_failures"], 0)
        self.assertEqual(platform["unsupported"], 0)
        for row in platform["results"]:
            if row["outcome"] == "unavailable":
                self.assertIn(row["text"], unavailable, row["case"])
        self.assertGreaterEqual(platform["passed"], 120)
        return platform

    def devices(self, nvml=True, **changes):
        text = self.run_well(script.build.tenon, "devices", "--json",
                             env=self.environment(nvml, **changes))
        return [row for row in json.loads(text)["devices"] if row["platform"] == "cuda"]

    def refusal(self, remedy, nvml=True, **changes):
        """What the module says of itself, and its status. What helps is the remedy, and no part of the message."""
        done = script.run(script.build.tenon, "modules", "--json",
                          env=self.environment(nvml, **changes))
        row, = [m for m in json.loads(done.stdout)["modules"] if m["name"] == "cuda"]
        self.assertEqual(row["stage"], "negotiated")
        self.assertIn(remedy, row["remedy"])
        self.assertNotIn(row["remedy"], row["message"])
        self.assertNotIn(remedy, row["message"])
        return row["status"], row["message"]


class Conformance(Cuda):
    def test_all_of_it(self):
        """Two devices that reach each other, and one of them can be lost: nothing is unavailable."""
        lose = self.place("lose")
        platform = self.conform("--lose", f"touch '{lose}'", STUB_LOSE=lose)
        self.assertEqual(platform["unavailable"], 0)

    def test_without_the_management_library(self):
        self.conform(nvml=False, unavailable=(LOSE,))

    def test_without_pools(self):
        self.conform(STUB_POOLS="0", unavailable=(LOSE,))

    def test_without_peers(self):
        self.conform(STUB_PEERS="0", unavailable=(LOSE,))

    def test_one_device(self):
        self.conform(STUB_DEVICES="1", unavailable=(LOSE, TWO))


class Warm(Cuda):
    def test_kernels_are_compiled_ahead_of_their_first_use(self):
        """The stub loads what is made and runs nothing of it, so nothing is tested here."""
        if script.build.sanitizers:
            self.skipTest("NVIDIA's compiler is not made for sanitizers")
        environment = self.environment(STUB_MODULES="1", TENON_ADMISSION="never",
                                       TENON_CACHE=self.place("cache"))
        rows = json.loads(self.run_well(script.build.tenon, "libraries", "--try", "--json",
                                        env=environment))["libraries"]
        if "nvrtc" not in [row["name"] for row in rows if row["available"] == "yes" and row["path"]]:
            self.skipTest("NVIDIA's compiler is not here")
        problems = script.write_text(self.place("problems"), "norm:f64:kind=rms,shape=10x77@cuda:0\n")
        said = self.run_well(script.build.tenon, "warm", problems, env=environment)
        self.assertIn("prepared  cuda.norm.own", said)
        said = self.run_well(script.build.tenon, "cache", "list", env=environment)
        self.assertRegex(said, r"cubin +1 entr")
        done = script.run(script.build.tenon, "warm", problems,
                          env={**environment, "STUB_MODULES": "0", "STUB_VERSION": "11020"})
        self.assertRegex(" ".join(done.stdout.split()),
                         r"the code is NVRTC 1\d\.\d+'s, and the driver serves CUDA 11\.2: install a "
                         "newer driver, or NVRTC for CUDA 11")


class Visible(Cuda):
    def seen(self, value, expected, **changes):
        """By UUID, with the management library and without it: both must agree."""
        kind = changes.pop("kind", "GPU")
        for nvml in (True, False):
            found = self.devices(nvml, STUB_DEVICES="4", CUDA_VISIBLE_DEVICES=value, **changes)
            self.assertEqual([row["uuid"] for row in found],
                             [UUID.format(kind, n) for n in expected], f"{value} nvml={nvml}")

    def test_numbers_and_uuids(self):
        self.seen(None, [0, 1, 2, 3])
        self.seen("2,0", [2, 0])
        self.seen("3,7,1", [3])
        self.seen(UUID.format("GPU", 2) + ",0", [2, 0])
        self.seen("GPU-31a1", [3])
        self.seen("", [])
        self.seen("-1", [])
        self.seen("1,1", [])

    def test_devices_that_differ(self):
        self.seen(None, [3, 0, 1, 2], STUB_MIXED="1")
        self.seen("1,0", [0, 3], STUB_MIXED="1")
        self.seen("1,0", [1, 0], STUB_MIXED="1", CUDA_DEVICE_ORDER="PCI_BUS_ID")

    def test_mig(self):
        self.seen(None, [0, 1, 2, 3], kind="MIG", STUB_MIG="1")
        self.seen(UUID.format("MIG", 2), [2], kind="MIG", STUB_MIG="1")

    def numbers(self, nvml=True, **changes):
        return [row["numbers"].get("physical_index") for row in self.devices(nvml, STUB_DEVICES="4", **changes)]

    def test_numbers_of_the_machine(self):
        """By the bus, as the management library and the system number devices, in whatever order they come."""
        for nvml in (True, False):
            self.assertEqual(self.numbers(nvml), [0, 1, 2, 3])
            self.assertEqual(self.numbers(nvml, STUB_MIXED="1"), [3, 0, 1, 2])
        self.assertEqual(self.numbers(STUB_MIXED="1", CUDA_VISIBLE_DEVICES="2,0"), [1, 3])
        self.assertEqual(self.numbers(STUB_MIG="1", CUDA_VISIBLE_DEVICES=UUID.format("MIG", 2)), [2])
        # The driver alone does not say how many it hides.
        self.assertEqual(self.numbers(nvml=False, CUDA_VISIBLE_DEVICES="2,0"), [None, None])

    def test_hidden(self):
        text = self.run_well(script.build.tenon, "devices", "--explain",
                             env=self.environment(CUDA_VISIBLE_DEVICES=""))
        self.assertIn("CUDA_VISIBLE_DEVICES", text)

    def test_looking_starts_no_driver(self):
        log = self.place("log")
        self.assertEqual(len(self.devices(STUB_LOG=log)), 2)
        self.assertFalse(os.path.exists(log))
        self.assertEqual(len(self.devices(nvml=False, STUB_LOG=log)), 2)
        self.assertNotIn("Retain", script.read_text(log))


class Verdicts(Cuda):
    def test_no_driver(self):
        done = script.run(script.build.tenon, "modules", "--json",
                          env=script.environment(LD_LIBRARY_PATH=self.place("nothing")))
        row, = [m for m in json.loads(done.stdout)["modules"] if m["name"] == "cuda"]
        if row["status"] == "ok":
            self.skipTest("this machine has NVIDIA's driver")
        self.assertIn("libcuda.so.1", row["message"])
        self.assertIn("driver", row["remedy"])

    def test_too_old(self):
        status, message = self.refusal("install a newer ", STUB_VERSION="10020")
        self.assertEqual(status, "incompatible")
        self.assertIn("serves CUDA 10.2, and Tenon needs 11.2", message)

    def test_no_device(self):
        status, message = self.refusal(NO_DEVICE, nvml=False, STUB_DEVICES="0")
        self.assertEqual(status, "unavailable")
        self.assertIn("the driver shows no NVIDIA GPU", message)

    def test_it_does_not_start(self):
        status, message = self.refusal(NO_DEVICE, nvml=False, STUB_INIT="999")
        self.assertEqual(status, "unavailable")
        self.assertIn("does not say why", message)

    def test_no_such_device(self):
        for value in ("9", ""):
            status, message = self.refusal("unset CUDA_VISIBLE_DEVICES", CUDA_VISIBLE_DEVICES=value)
            self.assertEqual(status, "unavailable")
            self.assertIn(f'CUDA_VISIBLE_DEVICES is "{value}"', message)

    def test_versions_that_differ(self):
        for nvml, changes in ((True, {"STUB_NVML": "18"}), (False, {"STUB_INIT": "803"})):
            status, message = self.refusal(" anew", nvml, **changes)
            self.assertEqual(status, "incompatible")
            self.assertIn("different versions", message)

    def test_no_permission(self):
        status, message = self.refusal("ls -l /dev/nvidiactl", STUB_NVML="4")
        self.assertEqual(status, "not-permitted")
        self.assertIn("this user may not", message)

    def test_a_management_library_that_does_not_serve(self):
        """As on a Jetson: the driver is asked instead."""
        self.assertEqual(len(self.devices(STUB_NVML="3")), 2)

    def test_the_toolkits_stub(self):
        status, message = self.refusal("folder", nvml=False, STUB_INIT="34")
        self.assertEqual(status, "incompatible")
        self.assertIn("toolkit's stub", message)

    def test_a_compatibility_package(self):
        status, message = self.refusal("off LD_LIBRARY_PATH", nvml=False, STUB_INIT="804")
        self.assertEqual(status, "incompatible")
        self.assertIn("does not serve this device", message)

    def test_devices_that_are_not_ready(self):
        status, message = self.refusal("start nvidia-fabricmanager", nvml=False, STUB_INIT="802")
        self.assertEqual(status, "unavailable")
        self.assertIn("not ready", message)


if __name__ == "__main__":
    script.main()
