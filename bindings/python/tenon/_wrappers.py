"""Wrappers around kernels that Inductor writes in C++ and that run on the host, on the memory of a device which the host
can reach: PyTorch's own know this of the processor alone."""

from __future__ import annotations

from typing import Any

from torch._inductor.codegen.cpp_wrapper_cpu import CppWrapperCpu
from torch._inductor.codegen.wrapper import PythonWrapperCodegen


class HostPythonWrapper(PythonWrapperCodegen):
    """In Python."""

    @staticmethod
    def create(is_subgraph: bool, subgraph_name: Any, parent_wrapper: Any, partition_signatures: Any = None) -> Any:
        """One for a graph; PyTorch's own for a part of one."""
        if is_subgraph:
            return PythonWrapperCodegen.create(is_subgraph, subgraph_name, parent_wrapper, partition_signatures)
        return HostPythonWrapper()  # type: ignore[no-untyped-call]

    def _generate_kernel_call_helper(self, kernel_name: str, call_args: Any, *, triton: bool = True, **options: Any) -> Any:
        if triton:
            return super()._generate_kernel_call_helper(kernel_name, call_args, triton=triton, **options)
        self.writeline(self.wrap_kernel_call(kernel_name, call_args))  # type: ignore[no-untyped-call]
        return None


class HostCppWrapper(CppWrapperCpu):
    """In C++ (cpp_wrapper), for PyTorch's spare type of devices."""

    @staticmethod
    def create(is_subgraph: bool, subgraph_name: Any, parent_wrapper: Any, partition_signatures: Any = None) -> Any:
        """One for a graph."""
        return HostCppWrapper()  # type: ignore[no-untyped-call]

    @staticmethod
    def get_device_include_path_jit(device: str) -> str:
        """The processor's header, which has what such programs use."""
        return "#include <torch/csrc/inductor/cpp_wrapper/cpu.h>"

    @staticmethod
    def get_device_include_path_aot(device: str) -> str:
        """The same for programs that are compiled ahead of time."""
        return "#include <torch/csrc/inductor/aoti_include/cpu.h>"

    def codegen_device(self, device: Any) -> str:
        """A device as the arguments of PyTorch's functions in C."""
        if device.type in ("cpu", "cuda", "xpu", "mps", "mtia", "meta"):
            return str(super().codegen_device(device))  # type: ignore[no-untyped-call]
        return f"aoti_torch_device_type_privateuse1(), {device.index or 0}"
