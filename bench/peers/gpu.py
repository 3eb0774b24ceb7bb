"""A GPU that Tenon and PyTorch share: one stream, one memory, one clock.

Time is the device's, between two of its events; the queue is held back until all calls of a sample are in
it, so that what a call costs the processor is in neither side.
"""

import ctypes
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tests"))
import harness
from bench_torch_matmul import Candidate

try:
    import torch
except ImportError:
    torch = None

LACKING = "PyTorch with CUDA, and a GPU"
HELD_US, CYCLES_PER_US = 30, 2000  # for each call, at a clock that no device exceeds by much

WORDS = {} if torch is None else {
    torch.bfloat16: "bf16", torch.float16: "f16", torch.float32: "f32", torch.int8: "i8",
    torch.int32: "i32", torch.float8_e4m3fn: "f8_e4m3fn"}


def is_here():
    return torch is not None and torch.cuda.is_available()


class LibraryState(ctypes.Structure):
    """tn_library_state."""
    _fields_ = [("struct_size", ctypes.c_size_t),
                *((name, ctypes.c_char_p) for name in ("name", "platform", "what", "module", "verbose")),
                *((name, ctypes.c_int32) for name in ("built", "available", "enabled", "kernels")),
                ("version", ctypes.c_int64), ("version_text", ctypes.c_char * 96),
                ("path", ctypes.c_char * 512), ("reason", ctypes.c_char * 416),
                ("remedy", ctypes.c_char * 416)]


class Gpu:
    """cuda:0, on PyTorch's current stream, which is one of its own from now on."""

    def __init__(self, folder):
        torch.cuda.set_stream(torch.cuda.Stream())
        self.tenon = harness.Library(folder)
        self.device = self.tenon.device("cuda:0")
        self.stream = ctypes.c_void_p()
        self.raw = torch.cuda.current_stream().cuda_stream
        self.call("tn_stream_wrap", ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)(
            self.device.handle, self.raw, ctypes.byref(self.stream))
        self.begin, self.end = (torch.cuda.Event(enable_timing=True) for _ in range(2))

    def call(self, name, *parameters):
        return self.tenon._fallible(name, list(parameters))

    def set(self, text):
        """Changes a setting of the process: "tuning.enabled=true"."""
        self.call("tn_settings_set", ctypes.c_char_p)(text.encode())

    def tensor(self, of):
        """Tenon's over the memory of PyTorch's, which it keeps."""
        return self.tenon.wrap(of.data_ptr(), WORDS[of.dtype], of.shape, device="cuda:0",
                               released=lambda kept=of: None)

    def library(self, name):
        """The version and the file of a library that is open."""
        found, state = ctypes.c_void_p(), LibraryState(struct_size=ctypes.sizeof(LibraryState))
        self.call("tn_library_get", ctypes.c_char_p, ctypes.c_void_p)(name.encode(), ctypes.byref(found))
        self.call("tn_library_state_get", ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)(
            found, None, ctypes.byref(state))
        return state.version_text.decode(), state.path.decode()

    def kernel(self, operation, arguments):
        """The name of what tn_OPERATION takes, after making it ready."""
        decision = ctypes.c_void_p()
        self.call(f"tn_{operation}_prepare", ctypes.c_void_p, ctypes.c_void_p)(
            None, ctypes.byref(arguments))
        self.call(f"tn_{operation}_explain", ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)(
            None, ctypes.byref(arguments), ctypes.byref(decision))
        self.tenon.native.tn_decision_chosen.restype = ctypes.POINTER(Candidate)
        self.tenon.native.tn_decision_release.argtypes = [ctypes.c_void_p]
        name = self.tenon.native.tn_decision_chosen(decision).contents.kernel.decode()
        self.tenon.native.tn_decision_release(decision)
        return name

    def seconds(self, call, times):
        """Of one call, on the device."""
        torch.cuda._sleep(HELD_US * CYCLES_PER_US * (times + 1))
        self.begin.record()
        for _ in range(times):
            call()
        self.end.record()
        self.end.synchronize()
        return self.begin.elapsed_time(self.end) / 1e3 / times

    def times_for(self, call, least):
        """How many calls take at least so many seconds."""
        call()
        self.seconds(call, 2)
        return max(1, min(32, round(least / self.seconds(call, 2))))
