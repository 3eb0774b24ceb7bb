"""PyTorch's guard of the spare type, for a platform with several devices.

A guard in Python knows only one device: PyTorch's base class for it has no methods for devices to override. This guard is
in C++. PyTorch's tools compile it when a platform with several devices is registered, once per version of PyTorch, in
PyTorch's folder for extensions.
"""

from __future__ import annotations

import ctypes
import importlib
import logging
import os
import pathlib
from typing import Any

import torch

from ._library import lib

SOURCE = r"""
#include <c10/core/impl/DeviceGuardImplInterface.h>

namespace {

const c10::DeviceType kType = c10::DeviceType::PrivateUse1;
const void* platform;
int32_t (*count_devices)(const void*);
int32_t (*current_device)(const void*);
int32_t (*exchange_device)(const void*, int32_t, int32_t*, void*);

struct Guard final : c10::impl::DeviceGuardImplInterface {
    c10::DeviceType type() const override { return kType; }
    c10::Device exchangeDevice(c10::Device device) const override
    {
        int32_t before = -1;
        TORCH_CHECK(exchange_device(platform, device.index(), &before, nullptr) == 0, "no device ", device);
        return c10::Device(kType, static_cast<c10::DeviceIndex>(before));
    }
    c10::Device getDevice() const override
    {
        return c10::Device(kType, static_cast<c10::DeviceIndex>(current_device(platform)));
    }
    void setDevice(c10::Device device) const override { (void)exchangeDevice(device); }
    void uncheckedSetDevice(c10::Device device) const noexcept override
    {
        int32_t before = -1;
        (void)exchange_device(platform, device.index(), &before, nullptr);
    }
    c10::Stream getStream(c10::Device device) const override
    {
        return c10::Stream(c10::Stream::DEFAULT, device.has_index() ? device : getDevice());
    }
    c10::Stream exchangeStream(c10::Stream stream) const override { return getStream(stream.device()); }
    c10::DeviceIndex deviceCount() const noexcept override
    {
        return static_cast<c10::DeviceIndex>(count_devices(platform));
    }
    void record(void**, const c10::Stream&, const c10::DeviceIndex, const c10::EventFlag) const override {}
    void block(void*, const c10::Stream&) const override {}
    bool queryEvent(void*) const override { return true; }
};

} // namespace

extern "C" __attribute__((visibility("default"))) void tenon_guard_register(void* of, void* count, void* current,
                                                                            void* exchange)
{
    static const Guard guard;
    platform = of;
    count_devices = reinterpret_cast<decltype(count_devices)>(count);
    current_device = reinterpret_cast<decltype(current_device)>(current);
    exchange_device = reinterpret_cast<decltype(exchange_device)>(exchange);
    c10::impl::device_guard_impl_registry[static_cast<size_t>(kType)].store(&guard);
}
"""

_kept: list[Any] = []  # the compiled guard, which PyTorch has a pointer to


def _import_tools() -> Any:
    """PyTorch's tools for extensions, without their warning about a CUDA that nothing here needs."""
    logger = logging.getLogger("torch.utils.cpp_extension")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        return importlib.import_module("torch.utils.cpp_extension")
    finally:
        logger.setLevel(before)


def _compile() -> str:
    """The path of the compiled guard."""
    tools = _import_tools()
    name = f"tenon_guard_{torch.__version__.replace('.', '_').replace('+', '_')}"
    folder = pathlib.Path(os.environ.get("TORCH_EXTENSIONS_DIR") or tools.get_default_build_root(), name)
    folder.mkdir(parents=True, exist_ok=True)
    source = folder / "guard.cpp"
    if not source.exists() or source.read_text(encoding="utf-8") != SOURCE:
        source.write_text(SOURCE, encoding="utf-8")
    tools.load(name, [str(source)], build_directory=str(folder), is_python_module=False)
    return str(folder / (name + tools.LIB_EXT))


def register(address: int) -> None:
    """Makes the guard of the platform at this address PyTorch's. RuntimeError or OSError without a compiler."""
    made = ctypes.CDLL(_compile())
    pointers = [ctypes.cast(function, ctypes.c_void_p)
                for function in (lib.tn_platform_device_count, lib.tn_device_current, lib.tn_device_maybe_exchange)]
    made.tenon_guard_register(ctypes.c_void_p(address), *pointers)
    _kept.append(made)
