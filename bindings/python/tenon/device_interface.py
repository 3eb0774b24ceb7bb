"""Any platform of Tenon's as a device of PyTorch's compiler.

`register("acme", "privateuseone")` is all that Inductor needs to generate code for the devices of an
out-of-tree module: the interface, the op overrides and the code generators. The interface answers from Tenon;
its Worker answers from a snapshot, and so works in processes that were forked to compile.

Where the interface's numbers are concerned, -1 is no device everywhere, and changes nothing.

>>> import torch
>>> from tenon import device_interface
>>> cpu = device_interface.interface("cpu")
>>> cpu.device_count(), cpu.exchange_device(-1), cpu.is_dtype_supported(torch.float32)
(1, 0, True)
>>> cpu.Worker.get_device_properties(0).name == cpu.get_device_properties(0).name      # from a snapshot
True
"""

# pyright: reportIncompatibleMethodOverride=false
# PyTorch declares static methods, and calls them on the class, where these know their platform.

from __future__ import annotations

import contextlib
import os
import threading
import types
from ctypes import byref, c_int32
from typing import Any

import torch
from torch._dynamo.device_interface import (
    DeviceInterface,
    get_registered_device_interfaces,
    register_interface_for_device,
)
from torch._inductor.codegen.common import (
    DeviceOpOverrides,
    register_backend_for_device,
    register_device_op_overrides,
)

from . import _abi, _devices, _dtypes, _given, errors, platforms
from ._handles import call, take
from ._library import lib, text

# The names that Inductor's heuristics read, by Tenon's.
NAMES = {
    "multi_processor_count": "multi_processor_count",
    "max_threads_per_multi_processor": "max_threads_per_multi_processor",
    "max_threads_per_block": "max_threads_per_block",
    "warp_size": "warp_size",
    "registers_per_multi_processor": "regs_per_multiprocessor",
    "memory_bytes": "total_memory",
    "l2_cache_bytes": "L2_cache_size",
}


SPARE = "privateuseone"  # PyTorch's type for devices that it does not know, until it is renamed

_types: dict[str, set[str]] = {}  # what a torch.device of a platform may have as its type


def _learn_types(platform: str, *registered: str) -> None:
    _types.setdefault(platform, set()).update(platforms.platform(platform).device_types(), registered)


def _types_of(platform: str) -> set[str]:
    known = _types[platform]
    return known | {torch._C._get_privateuse1_backend_name()} if SPARE in known else known


def index_of(device: Any, platform: str) -> int | None:
    """The number in a torch.device, a text or a number; None where there is none. Devices of other types than the
    platform's are refused."""
    return _devices.index_among(lambda: sorted(_types_of(platform)), device, platform)


def properties_of(raw: _abi.DeviceProperties) -> types.SimpleNamespace:
    """What is known, under Inductor's names. What is not known is not there, but for the number of multiprocessors,
    which counts as 1, and the numbers of the capability, which are None."""
    ours = _devices.Properties(raw)
    found = {theirs: getattr(ours, mine) for mine, theirs in NAMES.items()
             if getattr(ours, mine) is not None}
    found.setdefault("multi_processor_count", 1)
    return types.SimpleNamespace(name=ours.name, uuid=ours.uuid, gcnArchName=ours.architecture, major=ours.major,
                                 minor=ours.minor, **found)


class Event(_devices.Event):
    """An event as the benchmarker makes it; on the current device of its platform."""

    platform = ""

    def __init__(self, enable_timing: bool = False, blocking: bool = False,
                 interprocess: bool = False) -> None:
        number = lib.tn_device_current(_platform(self.platform))
        super().__init__(enable_timing, blocking, interprocess, on=f"{self.platform}:{number}")


class Stream(_devices.Stream):
    """A stream as PyTorch's are made: on a device, the current one when it is left out, and with a priority, of which
    those below 0 are high. Tenon's words for it are taken, too."""

    platform = ""

    def __init__(self, device: Any = None, priority: int | str = 0) -> None:
        number = index_of(device, self.platform)
        if number is None:
            number = lib.tn_device_current(_platform(self.platform))
        if not isinstance(priority, str):
            urgency = _given.number("priority", priority, *_given.INT32)
            priority = "default" if urgency == 0 else "high" if urgency < 0 else "low"
        super().__init__(f"{self.platform}:{number}", priority=priority)


def _platform(name: str) -> int:
    """A name that nobody knows is told with the nearest."""
    return take(lib.tn_platform_get, _given.text("platform", name))


class Worker:
    """What is known of devices where no driver may be touched."""

    platform = ""

    @classmethod
    def set_device(cls, device: int) -> None:
        """Recorded only."""
        cls._snapshot()
        number = _given.number("device", device, *_given.INT32)
        call(lib.tn_worker_set_device, cls.platform.encode(), number)

    @classmethod
    def current_device(cls) -> int:
        """As recorded, or current when the snapshot was taken."""
        cls._snapshot()
        out = c_int32()
        call(lib.tn_worker_current_device, cls.platform.encode(), byref(out))
        return out.value

    @classmethod
    def get_device_properties(cls, device: Any = None) -> types.SimpleNamespace:
        """Of a device, or of the worker's current one."""
        cls._snapshot()
        index, out = index_of(device, cls.platform), _abi.DeviceProperties()
        call(lib.tn_worker_properties, cls.platform.encode(), -1 if index is None else index, byref(out))
        return properties_of(out)

    @classmethod
    def _snapshot(cls) -> None:
        """Takes one unless there is one: a forked process has its parent's."""
        out, err = c_int32(), _abi.Error()
        if lib.tn_worker_device_count(cls.platform.encode(), byref(out), byref(err)):
            call(lib.tn_worker_snapshot_take)


_current = threading.local()  # the streams that were made current, which whoever asks for the current one may get


class TenonInterface(DeviceInterface):
    """What Dynamo and Inductor ask a device for; `interface` makes one for a platform."""

    platform = ""

    @classmethod
    def _handle(cls) -> int:
        return _platform(cls.platform)

    @classmethod
    def _device(cls, device: Any = None) -> _devices.Device:
        index = index_of(device, cls.platform)
        index = cls.current_device() if index is None else index
        return _devices.Device(take(lib.tn_platform_device_get, cls._handle(), index))

    @classmethod
    def device(cls, device: Any) -> Any:  # type: ignore[override]
        """A scope in which the device is current."""
        return cls._device(device)

    @classmethod
    def current_device(cls) -> int:
        """This thread's."""
        return int(lib.tn_device_current(cls._handle()))

    @classmethod
    def set_device(cls, device: Any) -> None:
        """For this thread."""
        index = index_of(device, cls.platform)
        call(lib.tn_device_set, cls._handle(), -1 if index is None else index)

    @classmethod
    def maybe_exchange_device(cls, device: int) -> int:
        """The previous one; the new one is initialised at its first use."""
        out = c_int32()
        number = _given.number("device", device, *_given.INT32)
        call(lib.tn_device_maybe_exchange, cls._handle(), number, byref(out))
        return out.value

    @classmethod
    def exchange_device(cls, device: int) -> int:
        """The previous one; the new one is initialised."""
        out = c_int32()
        number = _given.number("device", device, *_given.INT32)
        call(lib.tn_device_exchange, cls._handle(), number, byref(out))
        return out.value

    @classmethod
    def device_count(cls) -> int:
        """Never fails."""
        return max(int(lib.tn_platform_device_count(cls._handle())), 0)

    @classmethod
    def is_available(cls) -> bool:
        """Whether it has a device that runs; initialises nothing."""
        return bool(lib.tn_platform_is_available(cls._handle()))

    @classmethod
    def current_stream(cls, device: Any = None) -> _devices.Stream:  # type: ignore[override]
        """This thread's current stream of a device."""
        made: type[_devices.Stream] = cls.Stream  # type: ignore[assignment]
        return made._lent(lib.tn_stream_current(cls._device(device).address))

    @staticmethod
    def stream(stream: _devices.Stream | None) -> Any:  # type: ignore[override]
        """A scope in which the stream is current; None changes nothing."""
        return contextlib.nullcontext() if stream is None else stream

    @classmethod
    def set_stream(cls, stream: _devices.Stream | None) -> None:  # type: ignore[override]
        """Makes the stream current on this thread, and its device; None changes nothing."""
        if stream is None:
            return
        on = _given.instance("stream", stream, _devices.Stream).device
        if on.platform != cls.platform:
            raise errors.invalid(f"stream needs one of {cls.platform}, found one of {on.id}")
        call(lib.tn_device_set, cls._handle(), on.index)
        call(lib.tn_stream_set, stream.address)
        vars(_current)[on.id] = stream

    @classmethod
    def _set_stream_by_id(cls, stream_id: int, device_index: int, device_type: Any = None) -> None:  # type: ignore[override]
        """The same of a stream by its `stream_id`. The type, by whatever name, is this interface's."""
        number = _given.number("stream_id", stream_id, *_given.UINT64)
        cls.set_stream(_devices.Stream._by_id(cls._device(device_index), number))

    @classmethod
    def get_raw_stream(cls, device_idx: int) -> int:
        """The vendor's handle of the current stream; 0 for the default one."""
        return int(lib.tn_stream_raw_current(cls._device(device_idx).address))

    @classmethod
    def synchronize(cls, device: Any = None) -> None:
        """Waits for everything queued on it."""
        cls._device(device).synchronize()

    @classmethod
    def get_compute_capability(cls, device: Any = None) -> Any:
        """90 for 9.0; the architecture's name where the platform has no numbers."""
        found = cls._device(device).properties
        if found.capability is None:
            return found.architecture
        return 10 * found.capability[0] + found.capability[1]

    @classmethod
    def is_bf16_supported(cls, including_emulation: bool = False) -> bool:
        """Whether it computes with bf16, or by way of f32."""
        return bool(lib.tn_device_supports_bf16(cls._device().address, including_emulation))

    @classmethod
    def is_dtype_supported(cls, dtype: torch.dtype, including_emulation: bool = False) -> bool:
        """Whether it computes with a dtype."""
        if dtype == torch.bfloat16:
            return cls.is_bf16_supported(including_emulation)
        try:
            number = _dtypes.NUMBER[_dtypes.word_of(dtype)]
        except errors.InvalidArgumentError:
            return False
        try:
            call(lib.tn_device_verify_dtype, cls._device().address, number)
        except errors.UnsupportedError:
            return not cls._device().properties.dtypes  # unknown is no refusal
        return True

    @classmethod
    def memory_allocated(cls, device: Any = None) -> int:
        """Bytes that this process holds; 0 when that is unknown."""
        return cls._device(device).memory().in_use or 0

    @classmethod
    def is_triton_capable(cls, device: Any = None) -> bool:
        """Whether kernels in Triton could run on it."""
        return bool(lib.tn_device_is_triton_capable(cls._device(device).address))


_interfaces: dict[str, type[TenonInterface]] = {}


def interface(platform: str) -> type[TenonInterface]:
    """The interface of a platform, by its name; made once, as what Inductor writes asks for it in every call."""
    if isinstance(platform, str) and platform in _interfaces:
        return _interfaces[platform]
    _platform(platform)  # an error names the argument
    _learn_types(platform)
    own = {"platform": platform, "__module__": __name__}
    made = type(f"{platform.title()}Interface", (TenonInterface,), {
        **own, "Event": type("Event", (Event,), dict(own)), "Stream": type("Stream", (Stream,), dict(own)),
        "Worker": type("Worker", (Worker,), dict(own))})
    return _interfaces.setdefault(platform, made)


class OpOverrides(DeviceOpOverrides):
    """Texts in the programs that Inductor writes, for devices of a platform."""

    def __init__(self, platform: str) -> None:
        self.interface = f"__import__('tenon.device_interface').device_interface.interface({platform!r})"

    def import_get_raw_stream_as(self, name: str) -> str:
        return f"{name} = {self.interface}.get_raw_stream"

    def set_device(self, device_idx: int) -> str:
        return f"{self.interface}.set_device({device_idx})"

    def synchronize(self) -> str:
        return f"{self.interface}.synchronize()"

    def device_guard(self, device_idx: int) -> str:
        return f"{self.interface}.device({device_idx})"


def _seed(seed: int) -> None:
    """With a seed of PyTorch's, which may be negative."""
    _devices.seed_everything(seed & (1 << 64) - 1 if -(1 << 63) <= seed < 0 else seed)


def device_module(made: type[TenonInterface], device_type: str) -> types.ModuleType:
    """What torch.<device_type> has to be: PyTorch asks it for devices before there is a tensor."""
    module = types.ModuleType(f"torch.{device_type}", f"Devices of {made.platform}, by Tenon.")
    for name in ("is_available", "current_device", "set_device", "device_count", "device", "synchronize",
                 "current_stream", "set_stream", "stream", "get_device_properties", "memory_allocated", "Event",
                 "Stream"):
        setattr(module, name, getattr(made, name))
    maker = os.getpid()

    def _is_in_bad_fork() -> bool:
        """Whether this process was forked from the one that found the devices, and cannot use them."""
        return os.getpid() != maker and made.device_count() > 0 and not made.is_available()

    vars(module).update(is_initialized=made.is_available, _is_in_bad_fork=_is_in_bad_fork,
                        manual_seed_all=_seed)
    return module


def _check_free(platform: str, device_type: str, there: Any, scheduling: Any) -> None:
    """Whether the type may become the platform's, of what is registered for it."""
    owner = getattr(there, "platform", None)
    if owner is not None and owner != platform:
        raise errors.AlreadyExistsError(f'device_type "{device_type}" is that of {owner} already', "already-exists",
                                        "device_interface")
    if there is not None and owner is None and scheduling is None:
        raise errors.AlreadyExistsError(
            f'device_type "{device_type}" is PyTorch\'s own, with code generators of its own; give another type, or a '
            "scheduling to take their place", "already-exists", "device_interface")


def register(platform: str, device_type: str | None = None, scheduling: Any = None,
             wrapper: Any = None) -> type[TenonInterface]:
    """Makes the platform's devices known to Dynamo and Inductor as `device_type`, the platform's own word
    when it is left out. Without a scheduling of one's own, kernels are written in Triton; types that PyTorch has an
    interface for itself need one, and a type that another platform has is refused."""
    made = interface(platform)
    if device_type is None:
        device_type = text(lib.tn_platform_device_type(_platform(platform)))
    _given.text("device_type", device_type)
    # PyTorch's own are entered at the first look, and would take this one's place.
    _check_free(platform, device_type, dict(get_registered_device_interfaces()).get(device_type), scheduling)
    _learn_types(platform, device_type)
    if scheduling is None:
        from torch._inductor.codegen.triton import TritonScheduling as scheduling
    if wrapper is None:
        from torch._inductor.codegen.wrapper import PythonWrapperCodegen as wrapper
    if not hasattr(torch, device_type):
        torch._register_device_module(  # type: ignore[no-untyped-call]
            device_type, device_module(made, device_type))
    register_backend_for_device(device_type, scheduling, wrapper)
    register_device_op_overrides(device_type, OpOverrides(platform))
    register_interface_for_device(device_type, made)
    return made
