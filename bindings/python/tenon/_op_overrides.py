"""Texts in the programs that Inductor writes, in Python and in C++, for devices of a platform."""

from __future__ import annotations

from typing import Any

from torch._inductor.codegen.common import DeviceOpOverrides, get_device_op_overrides

# C++ for devices without a header of their own in PyTorch: the type's guards, of c10, under names that a generated program
# makes objects of. A stream is the vendor's handle, of the current stream of the device.
HEADER = """
        #include <c10/core/DeviceGuard.h>
        #include <c10/core/StreamGuard.h>
        #include <c10/core/impl/VirtualGuardImpl.h>
        #ifndef TENON_DEVICE_GUARDS
        #define TENON_DEVICE_GUARDS
        class TenonDeviceGuard {
        public:
            explicit TenonDeviceGuard(int64_t index)
                : guard_(c10::Device(DEVICE_TYPE, static_cast<c10::DeviceIndex>(index))) {}
            void set_index(int64_t index) {
                guard_.reset_device(c10::Device(DEVICE_TYPE, static_cast<c10::DeviceIndex>(index)));
            }
        private:
            c10::DeviceGuard guard_;
        };
        inline c10::Stream tenon_stream_from_external(void* stream, int64_t index) {
            return c10::Stream(c10::Stream::UNSAFE,
                               c10::Device(DEVICE_TYPE, static_cast<c10::DeviceIndex>(index)),
                               reinterpret_cast<c10::StreamId>(stream));
        }
        class TenonStreamGuard {
        public:
            explicit TenonStreamGuard(c10::Stream stream) : guard_(stream) {}
            TenonStreamGuard(void* stream, int64_t index)
                : guard_(tenon_stream_from_external(stream, index)) {}
        private:
            c10::StreamGuard guard_;
        };
        inline AOTITorchError tenon_current_stream(int32_t index, void** out) {
            const c10::Device device(DEVICE_TYPE, static_cast<c10::DeviceIndex>(index));
            const c10::Stream stream = c10::impl::VirtualGuardImpl(DEVICE_TYPE).getStream(device);
            *out = reinterpret_cast<void*>(stream.id());
            return AOTI_TORCH_SUCCESS;
        }
        #endif
"""

ATEN_TYPES = {name.lower(): f"at::k{name}" for name in ("CPU", "CUDA", "MPS", "XPU", "MTIA", "HPU")}

INTERFACE = "__import__('torch._dynamo.device_interface', fromlist=['_']).get_interface_for_device({!r})"


class OpOverrides(DeviceOpOverrides):
    """The texts for a type of devices: in Python those of its interface, in C++ PyTorch's own, of the types that it has,
    else those of c10's guards."""

    def __init__(self, platform: str, device_type: str = "", interface: str = "") -> None:
        self.device_type = device_type or platform
        self.interface = interface or (
            f"__import__('tenon.device_interface').device_interface.interface({platform!r})")
        known = get_device_op_overrides(self.device_type) if self.device_type in ("cuda", "xpu", "mps") else None
        self._known = None if isinstance(known, OpOverrides) else known

    def import_get_raw_stream_as(self, name: str) -> str:
        """The vendor's handle of the current stream."""
        return f"{name} = {self.interface}.get_raw_stream"

    def set_device(self, device_idx: Any) -> str:
        """For this thread."""
        return f"{self.interface}.set_device({device_idx})"

    def synchronize(self) -> str:
        """Waits for the device."""
        return f"{self.interface}.synchronize()"

    def device_guard(self, device_idx: Any) -> str:
        """A scope in which the device is current."""
        return f"{self.interface}.device({device_idx})"

    def current_device_idx_expr(self) -> str:
        """The number of the current device."""
        return f"{self.interface}.current_device()"

    def current_stream(self) -> str:
        """The stream that is current."""
        return f"{self.interface}.current_stream()"

    def aten_device_type(self) -> str:
        """ "at::kPrivateUse1"."""
        return ATEN_TYPES.get(self.device_type, "at::kPrivateUse1")

    def _of_pytorch(self, name: str, else_text: str) -> str:
        return str(getattr(self._known, name)()) if self._known is not None else else_text

    def cpp_device_guard(self) -> str:
        """The class of a guard of the current device."""
        return self._of_pytorch("cpp_device_guard", "TenonDeviceGuard")

    def cpp_aoti_device_guard(self) -> str:
        """The same in programs that are compiled ahead of time."""
        return self._of_pytorch("cpp_aoti_device_guard", "TenonDeviceGuard")

    def cpp_stream_guard(self) -> str:
        """The class of a guard of the current stream."""
        return self._of_pytorch("cpp_stream_guard", "TenonStreamGuard")

    def cpp_aoti_stream_guard(self) -> str:
        """The same in programs that are compiled ahead of time."""
        return self._of_pytorch("cpp_aoti_stream_guard", "TenonStreamGuard")

    def cpp_getStreamFromExternal(self) -> str:
        """A function that makes a stream of a vendor's handle and a device's number."""
        return self._of_pytorch("cpp_getStreamFromExternal", "tenon_stream_from_external")

    def kernel_header(self) -> str:
        """What a generated program includes."""
        return self._of_pytorch("kernel_header", HEADER.replace("DEVICE_TYPE", self.aten_device_type()))

    def kernel_driver(self) -> str:
        """Helpers that load and launch kernels: programs for such a device call compiled functions instead."""
        return self._of_pytorch("kernel_driver", "")

    def cpp_stream_type(self) -> str:
        """The type of a vendor's stream."""
        return self._of_pytorch("cpp_stream_type", "void*")

    def aoti_get_stream(self) -> str:
        """A function that gives the current stream of a device."""
        return self._of_pytorch("aoti_get_stream", "tenon_current_stream")

    def cpp_kernel_type(self) -> str:
        """The type of a loaded kernel."""
        return self._of_pytorch("cpp_kernel_type", "void*")

    def cpp_device_ptr(self) -> str:
        """The type of an address on the device."""
        return self._of_pytorch("cpp_device_ptr", "void*")

    def tma_descriptor_helpers(self) -> str:
        """Helpers for NVIDIA's copy engine; none elsewhere."""
        return self._of_pytorch("tma_descriptor_helpers", "")

    def cpp_scratch(self, idx: int, workspace: Any, prefix: str | None = None) -> tuple[list[str], str] | None:
        """The definition and the name of scratch memory of a kernel; None without."""
        if self._known is not None:
            return self._known.cpp_scratch(idx, workspace, prefix)
        if workspace.size <= 0:
            return None
        name = f"{prefix}_scratch_{idx}" if prefix else f"scratch_{idx}"
        return [
            f"int64_t {name}_size[] = {{static_cast<int64_t>({workspace.size}) * grid_0 * grid_1 * grid_2}};",
            f"int64_t {name}_stride[] = {{1}};",
            f"AtenTensorHandle {name}_handle;",
            (f"AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_empty_strided(1, {name}_size, {name}_stride, "
             f"{workspace.generate_dtype_str()}, aoti_torch_device_type_privateuse1(), device_idx_, &{name}_handle));"),
            f"RAIIAtenTensorHandle {name}_tensor({name}_handle);",
            f"void* {name} = {name}_tensor.data_ptr();",
        ], name
