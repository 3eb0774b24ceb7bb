"""Any platform of Tenon's as a device of PyTorch's compiler.

`register("acme")` is all that Inductor needs to generate code for the devices of an out-of-tree module: the interface,
the op overrides and the code generators. PyTorch's spare type of devices gets the platform's name, and tensors:
`torch.empty(3, device="acme")` has Tenon's memory. The interface answers from Tenon; its Worker answers from a snapshot,
and so works in processes that were forked to compile.

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
    get_device_op_overrides,
    register_backend_for_device,
    register_device_op_overrides,
)

from . import _abi, _devices, _dtypes, _given, _torch_device, errors, platforms
from ._handles import call, take
from ._library import lib, text
from ._op_overrides import INTERFACE, OpOverrides

__all__ = ["Event", "Stream", "TenonInterface", "Worker", "device_module", "interface", "register"]

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


SPARE = _torch_device.SPARE

_types: dict[str, set[str]] = {}  # what a torch.device of a platform may have as its type


def _learn_types(platform: str, *registered: str) -> None:
    _types.setdefault(platform, set()).update(platforms.platform(platform).device_types(), registered)


def _types_of(platform: str) -> set[str]:
    known = _types[platform]
    return known | {torch._C._get_privateuse1_backend_name()} if SPARE in known else known


def torch_type(platform: str) -> str:
    """The type that PyTorch has for devices of a platform; that of the host where it has none."""
    kinds = sorted(_types_of(platform), key=lambda kind: kind in (SPARE, platform))
    return next((torch.device(kind).type for kind in kinds if _torch_device.is_known(kind)), "cpu")


def index_of(device: Any, platform: str) -> int | None:
    """The number in a torch.device, a text or a number; None where there is none. Devices of other types than the
    platform's are refused."""
    return _devices.index_among(lambda: sorted(_types_of(platform)), device, platform)


def properties_of(raw: _abi.DeviceProperties) -> types.SimpleNamespace:
    """Return the known properties under Inductor's names. Unknown ones are absent, except the number of
    multiprocessors, which is then 1, and `major` and `minor`, which are then None."""
    ours = _devices.Properties(raw)
    found = {theirs: getattr(ours, mine) for mine, theirs in NAMES.items()
             if getattr(ours, mine) is not None}
    found.setdefault("multi_processor_count", 1)
    return types.SimpleNamespace(name=ours.name, uuid=ours.uuid, gcnArchName=ours.architecture, major=ours.major,
                                 minor=ours.minor, **found)


def _number_of(device: Any, platform: str) -> int:
    """Return the index of a device; without one, that of the current device."""
    number = index_of(device, platform)
    return int(lib.tn_device_current(_platform(platform))) if number is None else number


class Event(_devices.Event, torch.Event):  # type: ignore[misc, override]
    """An event as the benchmarker makes it, and a torch.Event; on the current device of its platform."""

    platform = ""

    def __new__(cls, *_: Any, **__: Any) -> Event:
        return torch.Event.__new__(cls, device=_linked_type(cls.platform))

    def __init__(self, enable_timing: bool = False, blocking: bool = False,
                 interprocess: bool = False, *, device: Any = None) -> None:
        super().__init__(enable_timing, blocking, interprocess, on=f"{self.platform}:{_number_of(device, self.platform)}")

    @property
    def device(self) -> Any:  # type: ignore[override]
        """Where it is, as PyTorch has it."""
        return torch.device(torch_type(self.platform), lib.tn_device_index(lib.tn_event_device(self.address)))


def _linked_type(platform: str) -> str:
    """The platform's type, with what PyTorch needs for an event of it."""
    kind = torch_type(platform)
    _torch_device.install(kind, lambda: bool(lib.tn_platform_is_available(_platform(platform))), platform)
    return kind


class Stream(_devices.Stream, torch.Stream):  # type: ignore[misc, override]
    """A stream as PyTorch's are made, and a torch.Stream: on a device, the current one when it is left out, and with a
    priority, of which those below 0 are high. Tenon's words for it are taken, too."""

    platform = ""

    def __new__(cls, device: Any = None, priority: int | str = 0) -> Stream:
        number = _number_of(device, cls.platform)
        if not isinstance(priority, str):
            urgency = _given.number("priority", priority, *_given.INT32)
            priority = "default" if urgency == 0 else "high" if urgency < 0 else "low"
        return cls._over(_devices.Stream(f"{cls.platform}:{number}", priority=priority))

    def __init__(self, device: Any = None, priority: int | str = 0) -> None:
        """It is made."""

    @classmethod
    def _over(cls, theirs: _devices.Stream) -> Stream:
        """The same stream, as one of PyTorch's."""
        kind = torch._C._autograd.DeviceType.__members__[_TYPE_NAMES.get(torch_type(cls.platform), "PrivateUse1")]
        made: Stream = torch.Stream.__new__(cls, stream_id=theirs.stream_id, device_index=theirs.device.index,
                                            device_type=int(kind.value))
        made._handle, made.address = theirs._handle, theirs.address
        return made

    @classmethod
    def _lent(cls, address: int) -> Stream:
        return cls._over(_devices.Stream._lent(address))

    @property
    def device(self) -> Any:  # type: ignore[override]
        """Where it is, as PyTorch has it."""
        return torch.device(torch_type(self.platform), lib.tn_device_index(lib.tn_stream_device(self.address)))

    def record_event(self, event: _devices.Event | None = None) -> _devices.Event:  # type: ignore[override]
        """Records the event, or a new one, and gives it."""
        if event is None:
            event = interface(self.platform).Event(device=self.device.index)
        return super().record_event(event)

    def __repr__(self) -> str:
        return f"<stream of {self.platform}:{self.device.index}, raw {self.raw:#x}>"


_TYPE_NAMES = {"cpu": "CPU", "cuda": "CUDA", "mps": "MPS", "xpu": "XPU", "mtia": "MTIA"}


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
        return _devices.Device._make(take(lib.tn_platform_device_get, cls._handle(), index))

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
        on = _devices.Device._make(lib.tn_stream_device(_given.instance("stream", stream, _devices.Stream).address))
        if on.platform != cls.platform:
            raise errors.invalid(f"stream: expected one of {cls.platform}, got one of {on.id}")
        call(lib.tn_device_set, cls._handle(), on.index)
        call(lib.tn_stream_set, stream.address)
        vars(_current)[on.id] = stream

    @classmethod
    def _set_stream_by_id(cls, stream_id: int, device_index: int, device_type: Any = None) -> None:  # type: ignore[override]
        """The same of a stream by its `stream_id`. The type, by whatever name, is this interface's."""
        number = _given.number("stream_id", stream_id, *_given.UINT64)
        made: type[_devices.Stream] = cls.Stream  # type: ignore[assignment]
        cls.set_stream(made._by_id(cls._device(device_index), number))

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
    def is_gpu(cls) -> bool:
        """Whether Inductor treats it as an accelerator, with device guards. Of these it wants kernels in Triton."""
        return not platforms.platform(cls.platform).is_cpu() and cls.is_available() and cls.is_triton_capable()

    @classmethod
    def get_cache_system_info(cls) -> dict[str, object] | None:
        """What changes the code that Inductor writes: part of the key of its cache."""
        found = [_devices.Device._make(take(lib.tn_platform_device_get, cls._handle(), i)).properties
                 for i in range(cls.device_count())]
        return {"tenon": text(lib.tn_version()), "platform": cls.platform,
                "devices": [{"name": one.name, "architecture": one.architecture,
                             "multi_processor_count": one.multi_processor_count,
                             "capability": list(one.capability) if one.capability else None} for one in found]}

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

    vars(module).update(_lazy_init=lambda: None, is_initialized=made.is_available, _is_in_bad_fork=_is_in_bad_fork,
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


def _spare_of(platform: str, device_type: str | None) -> str:
    """The type that a platform is registered as. The platform's own word is for PyTorch's spare type where PyTorch does
    not know it; if that type has another name already, it is the one."""
    if device_type is not None:
        return _given.text("device_type", device_type).decode()
    own = text(lib.tn_platform_device_type(_platform(platform)))
    renamed = _torch_device.spare_name()
    return own if _torch_device.is_known(own) or renamed == SPARE else renamed


def _generators(scheduling: Any, wrapper: Any, cpp_wrapper: Any, fx_wrapper: Any) -> tuple[Any, ...]:
    """PyTorch's code generators, for those that are left out."""
    from torch._inductor.codegen.cpp_wrapper_gpu import CppWrapperGpu
    from torch._inductor.codegen.triton import TritonScheduling
    from torch._inductor.codegen.wrapper import PythonWrapperCodegen
    from torch._inductor.codegen.wrapper_fxir import WrapperFxCodegen

    from ._wrappers import HostCppWrapper, HostPythonWrapper

    own = scheduling is None or isinstance(scheduling, type) and issubclass(scheduling, TritonScheduling)
    return (scheduling or TritonScheduling, wrapper or (PythonWrapperCodegen if own else HostPythonWrapper),
            cpp_wrapper or (CppWrapperGpu if own else HostCppWrapper), fx_wrapper or WrapperFxCodegen)


def _enter_as_gpu(device_type: str, is_gpu: bool) -> None:
    """Tells Inductor, which lists such types when it is imported, of one that came later."""
    from torch._inductor import utils

    known = getattr(utils, "GPU_TYPES", [])
    if is_gpu and device_type not in known:
        known.append(device_type)
        utils.get_gpu_type.cache_clear()


def register(platform: str | type[DeviceInterface], device_type: str | None = None, scheduling: Any = None,
             wrapper: Any = None, cpp_wrapper: Any = None, fx_wrapper: Any = None) -> type[DeviceInterface]:
    """Makes the platform's devices known to Dynamo and Inductor as `device_type`, the platform's own word
    when it is left out. Without a scheduling of one's own, kernels are written in Triton; types that PyTorch has an
    interface for itself need one, and a type that another platform has is refused. A class that derives from PyTorch's
    DeviceInterface is registered as it is."""
    if isinstance(platform, type) and issubclass(platform, DeviceInterface):
        return _register_class(platform, device_type, (scheduling, wrapper, cpp_wrapper, fx_wrapper))
    made = interface(platform)
    device_type = _spare_of(platform, device_type)
    # PyTorch's own are entered at the first look, and would take this one's place.
    _check_free(platform, device_type, dict(get_registered_device_interfaces()).get(device_type), scheduling)
    _torch_device.claim_name(device_type, platform)
    _learn_types(platform, device_type)
    if not hasattr(torch, device_type):
        torch._register_device_module(  # type: ignore[no-untyped-call]
            device_type, device_module(made, device_type))
    _torch_device.install(device_type, made.is_available, platform)
    _enter(device_type, made, OpOverrides(platform, device_type), (scheduling, wrapper, cpp_wrapper, fx_wrapper))
    return made


def _enter(device_type: str, made: type[DeviceInterface], overrides: Any, generators: tuple[Any, ...]) -> None:
    """Enters the parts at PyTorch's tables."""
    register_backend_for_device(device_type, *_generators(*generators))
    get_device_op_overrides("cpu")  # PyTorch 2.11 enters its own devices' at the first look, and only in an empty table
    register_device_op_overrides(device_type, overrides)
    register_interface_for_device(device_type, made)
    _enter_as_gpu(device_type, bool(getattr(made, "is_gpu", bool)()))


def _register_class(made: type[DeviceInterface], device_type: str | None,
                    generators: tuple[Any, ...]) -> type[DeviceInterface]:
    """An interface that somebody wrote in Python, for a type that PyTorch knows."""
    if device_type is None:
        raise errors.invalid(f"device_type is needed beside a class: which type of devices is {made.__name__} for?")
    _given.text("device_type", device_type)
    _torch_device.claim_name(device_type, made.__name__)
    _enter(device_type, made, OpOverrides("", device_type, INTERFACE.format(device_type)), generators)
    return made


def __dir__() -> list[str]:
    return __all__
