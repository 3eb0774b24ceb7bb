"""Devices, and the streams and events on them.

>>> import tenon
>>> with tenon.device("cpu:0") as cpu, tenon.Stream() as stream:
...     event = tenon.Event(enable_timing=True)
...     event.record(stream)
...     print(cpu.id, event.query())
cpu:0 True

The current device and stream are the calling thread's, as the vendors' are: a scope of theirs must not
span an `await`.
"""

from __future__ import annotations

import threading
from ctypes import byref, c_double, c_int32, c_size_t
from weakref import WeakValueDictionary

from . import _abi, _dtypes, _given, errors
from ._handles import Handle, Made, call, take
from ._library import lib, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Iterable

PRIORITIES = {"low": -1, "default": 0, "high": 1}


class Properties:
    """What does not change of a device. Numbers that are unknown are None, unknown texts are ""."""

    name: str
    uuid: str
    bus: str
    architecture: str
    memory_bytes: int | None
    numa_node: int | None
    physical_index: int | None
    multi_processor_count: int | None
    max_threads_per_multi_processor: int | None
    max_threads_per_block: int | None
    warp_size: int | None
    registers_per_multi_processor: int | None
    shared_memory_per_block: int | None
    shared_memory_per_multi_processor: int | None
    l2_cache_bytes: int | None
    clock_khz: int | None
    memory_bandwidth: int | None
    is_integrated: int | None
    pinned_memory: int | None
    triton_capable: int | None
    capability: tuple[int, int] | None
    major: int | None
    minor: int | None
    dtypes: list[str]

    def __init__(self, raw: _abi.DeviceProperties) -> None:
        for name in ("name", "uuid", "bus", "architecture"):
            setattr(self, name, text(getattr(raw, name)))
        for bit, name in enumerate(_abi.device_numbers()):
            setattr(self, name, getattr(raw, name) if raw.known >> bit & 1 else None)
        knows = raw.known >> _abi.CAPABILITY_BIT & 1
        self.capability = (raw.capability.major, raw.capability.minor) if knows else None
        self.major, self.minor = self.capability or (None, None)
        self.dtypes = [_dtypes.WORD[number] for number in raw.dtypes if number]

    def __repr__(self) -> str:
        fields = ", ".join(f"{key}={value!r}" for key, value in vars(self).items() if value)
        return f"<properties {fields}>"


class Memory:
    """How a device's memory stands, in bytes; None for what is not known. `why` has a line for each."""

    total: int | None
    available: int | None
    in_use: int | None

    def __init__(self, raw: _abi.DeviceMemory) -> None:
        self.why: dict[str, str] = {}
        for name in ("total", "available", "in_use"):
            fact = getattr(raw, name)
            setattr(self, name, fact.value if fact.known else None)
            self.why[name] = text(fact.origin)

    def __repr__(self) -> str:
        return f"<memory total={self.total} available={self.available} in_use={self.in_use}>"


_inside = threading.local()  # the scopes of devices and streams that this thread is in: owner and guard of each


def _scopes() -> list[tuple[Device | Stream, Any]]:
    found: list[tuple[Device | Stream, Any]] = vars(_inside).setdefault("stack", [])
    return found


def _enter(owner: Device | Stream) -> None:
    guard = owner._guard_class()
    call(getattr(lib, owner._guard + "_enter"), byref(guard), owner.address)
    _scopes().append((owner, guard))


def _leave(owner: Device | Stream) -> None:
    """Ends the scope of it that was entered last. What was entered since and has not ended, as a generator's may not
    have, goes on without it."""
    stack = _scopes()
    at = next((i for i in reversed(range(len(stack))) if stack[i][0] is owner), None)
    if at is None:
        raise RuntimeError(f"{owner!r} ends where it was not entered: it is not current on this thread")
    for each, guard in reversed(stack[at:]):
        getattr(lib, each._guard + "_leave")(byref(guard))
    inner = [each for each, _ in stack[at + 1:]]
    del stack[at:]
    for each in inner:
        _enter(each)


def default_address() -> int | None:
    """The device of the innermost scope here; None outside of all, for the current platform's current one."""
    stack = _scopes()
    if not stack:
        return None
    owner = stack[-1][0]
    return owner.address if isinstance(owner, Device) else owner.device.address


def _address_of(on: Any) -> int | None:
    return default_address() if on is None else device(on).address


class Device(Made):
    """A device; lives as long as the process. As a context manager it is current inside, on this thread.

    >>> import tenon
    >>> cpu = tenon.device("cpu")
    >>> cpu.platform, cpu.index, "f32" in cpu.properties.dtypes
    ('cpu', 0, True)
    >>> with cpu:
    ...     tenon.empty(4)
    <tensor 4 of f32 on cpu:0>
    """

    _returned_by = 'tenon.device(name), which takes "cpu" or "cuda:1"'
    _guard = "tn_device_guard"
    _guard_class: Any = _abi.DeviceGuard

    def _init(self, address: int) -> None:
        self.address = address

    id = property(lambda self: text(lib.tn_device_id(self.address)), doc='Its name here: "cuda:1".')
    name = property(lambda self: text(lib.tn_device_name(self.address)), doc='"NVIDIA H200".')
    uuid = property(lambda self: text(lib.tn_device_uuid(self.address)), doc='"" when unknown.')
    bus = property(lambda self: text(lib.tn_device_bus(self.address)), doc='"" when unknown.')
    index = property(lambda self: lib.tn_device_index(self.address), doc="Its number.")
    origin = property(lambda self: text(lib.tn_device_origin(self.address)), doc="Found or described.")
    plans_only = property(lambda self: bool(lib.tn_device_plans_only(self.address)),
                          doc="Whether it is described and nothing can run on it.")

    @property
    def platform(self) -> str:
        """The name of its platform: "cuda"."""
        return text(lib.tn_platform_name(lib.tn_device_platform(self.address)))

    @property
    def properties(self) -> Properties:
        """What does not change."""
        return Properties(_abi.DeviceProperties.from_address(
            lib.tn_device_properties_get(self.address)))

    def memory(self) -> Memory:
        """How its memory stands now; changes no statistic."""
        out = _abi.DeviceMemory()
        call(lib.tn_device_memory_get, self.address, byref(out))
        return Memory(out)

    def synchronize(self) -> None:
        """Waits for everything queued on it, by any thread."""
        call(lib.tn_device_synchronize, self.address)

    def current_stream(self) -> Stream:
        """This thread's current stream of it."""
        return Stream._lent(lib.tn_stream_current(self.address))

    def __enter__(self) -> Device:
        _enter(self)
        return self

    def __exit__(self, *_: Any) -> None:
        _leave(self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and self.address == other.address

    def __hash__(self) -> int:
        return hash(self.address)

    def __repr__(self) -> str:
        return f"<device {self.id}: {self.name}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return device, (self.id,)


def device(name: Any = "best") -> Device:
    """By name ("cuda:1"), UUID, bus address, "best", or conditions: "memory>=40g,capability>=9.0"; of a
    torch.device or an index of the current platform, too.

    >>> import tenon
    >>> tenon.device("cpu").id
    'cpu:0'
    >>> tenon.device("cpu:0") == tenon.device("cpu")
    True
    """
    if isinstance(name, Device):
        return name
    if name is None or isinstance(name, bool):
        raise TypeError(f"device: expected a name, a number or a device, got {name!r}")
    if isinstance(name, int):
        return _by_index(name)
    return Device._make(take(lib.tn_device_get, _given.text("device", str(name))))


def _by_index(index: int) -> Device:
    platform = take(lib.tn_platform_current)
    return Device._make(take(lib.tn_platform_device_get, platform,
                             _given.number("device", index, *_given.INT32)))


def index_among(types: Callable[[], Iterable[str]], given: Any, platform: str) -> int | None:
    """The number in what PyTorch takes for a device of a platform, whose devices have these types: a text, a
    torch.device, a number; None where there is none. Devices of other types are refused."""
    if isinstance(given, Device):
        given = given.id
    if given is None or not isinstance(given, str) and not isinstance(getattr(given, "type", None), str):
        return None if given is None else _given.number("device", given, *_given.INT32)
    kind, colon, index = str(given).partition(":")
    known = [*types()]
    if kind not in known:
        raise errors.invalid(f'device: expected one of {platform}, of the type {" or ".join(known)}, got "{given}"')
    if colon and not index.isdecimal():
        raise errors.invalid(f'device: expected a type and a number ("{kind}:0"), got "{given}"')
    return _given.number("device", int(index), *_given.INT32) if colon else None


def devices() -> list[Device]:
    """Every device of every platform.

    >>> import tenon
    >>> "cpu:0" in [each.id for each in tenon.devices()]
    True
    """
    count = c_size_t()
    call(lib.tn_device_count, byref(count))
    return [Device._make(lib.tn_device_at(i)) for i in range(count.value)]


def default_device() -> Device:
    """Where things are created that are not said to be elsewhere: the device of the innermost scope, else the current
    one of the current platform.

    >>> import tenon
    >>> with tenon.device("cpu"):
    ...     tenon.default_device().id
    'cpu:0'
    """
    return Device._make(default_address() or take(lib.tn_device_default))


def synchronize(on: Any = None) -> None:
    """Waits for everything queued on a device; the current one when none is named.

    >>> import numpy, tenon
    >>> a = numpy.ones((64, 64), "float32")
    >>> c = tenon.matmul(a, a)
    >>> tenon.synchronize("cpu")            # before a clock is read; a processor's calls are done already
    """
    (default_device() if on is None else device(on)).synchronize()


def seed_everything(seed: int) -> None:
    """Seeds the process's generator and every device's.

    >>> import tenon
    >>> tenon.seed_everything(42)
    >>> tenon.seed_everything(-1)
    Traceback (most recent call last):
    tenon.errors.InvalidArgumentError: seed: expected 0 to 18446744073709551615, got -1
    """
    call(lib.tn_seed_everything, _given.number("seed", seed, *_given.UINT64))


def describe(path: str) -> None:
    """Adds the devices of a description file, for planning: all of them or, when it is wrong, none.

    >>> import tempfile, tenon
    >>> with tempfile.NamedTemporaryFile("w") as file:
    ...     print("[device]", "platform = described", "memory = 64 MiB", sep=chr(10), file=file, flush=True)
    ...     tenon.describe(file.name)
    >>> tenon.device("described:0").memory().total >> 20
    64
    """
    call(lib.tn_device_file_add, _given.text("path", str(path)))


_made: WeakValueDictionary[int, Handle] = WeakValueDictionary()  # of streams, by address


class Stream:
    """Ordered work on a device. As a context manager it is current inside, on this thread.

    >>> import tenon
    >>> with tenon.Stream("cpu", priority="high") as stream:
    ...     done = stream.record_event()
    >>> stream.synchronize()
    >>> stream.priority, done.query()
    ('high', True)
    """

    _guard = "tn_stream_guard"
    _guard_class: Any = _abi.StreamGuard

    def __init__(self, on: Any = None, *, priority: str = "default") -> None:
        if not isinstance(priority, str):
            raise TypeError(f"priority: expected a str, got {type(priority).__name__}")
        if priority not in PRIORITIES:
            raise errors.invalid(f'no priority "{priority}"; there are: {", ".join(PRIORITIES)}')
        where = _address_of(on)
        args = _abi.StreamArgs(priority=PRIORITIES[priority])
        self._hold(take(lib.tn_stream_create, where, byref(args)))

    def _hold(self, address: int) -> None:
        """Releases it when this and whoever it was lent to are forgotten."""
        self._handle: Handle | None = Handle(address, "tn_stream_release")
        self.address = address
        _made[address] = self._handle

    @classmethod
    def _lent(cls, address: int) -> Stream:
        """One that somebody else has: kept alive where that is a stream of Python's, else for as long as its owner
        does."""
        stream = cls.__new__(cls)
        stream._handle, stream.address = _made.get(address), address
        return stream

    @classmethod
    def wrap(cls, on: Any, raw: int) -> Stream:
        """Over a stream that the program has from the vendor (a cudaStream_t), which stays its own."""
        number = _given.number("raw", raw, *_given.UINT64)
        stream = cls.__new__(cls)
        stream._hold(take(lib.tn_stream_wrap, device(on).address, number))
        return stream

    device = property(lambda self: Device._make(lib.tn_stream_device(self.address)), doc="Where it is.")
    raw = property(lambda self: lib.tn_stream_raw(self.address), doc="The vendor's handle, or 0.")

    @classmethod
    def _by_id(cls, on: Device, number: int) -> Stream:
        """The living stream of a device that has this `stream_id`."""
        address = number or lib.tn_stream_default(on.address)
        if number and (number not in _made or lib.tn_stream_device(address) != on.address):
            raise errors.NotFoundError(f"no stream {number} of {on.id}", "not-found", "stream")
        return cls._lent(address)

    @property
    def stream_id(self) -> int:
        """A number that no other living stream of its device has; 0 for the device's default one."""
        address = self.address
        return 0 if address == lib.tn_stream_default(lib.tn_stream_device(address)) else address

    @property
    def priority(self) -> str:
        """ "low", "default" or "high"."""
        number = lib.tn_stream_priority(self.address)
        return next(word for word, value in PRIORITIES.items() if value == number)

    def query(self) -> bool:
        """Whether everything queued has run; raises its fault."""
        done = c_int32()
        call(lib.tn_stream_query, self.address, byref(done))
        return bool(done.value)

    def synchronize(self) -> None:
        """Waits for everything queued; raises its fault."""
        call(lib.tn_stream_synchronize, self.address)

    def wait_event(self, event: Event) -> None:
        """What is queued from now on runs after the event's latest record."""
        call(lib.tn_stream_wait_event, self.address, _given.instance("event", event, Event).address)

    def wait_stream(self, other: Stream) -> None:
        """What is queued from now on runs after all that is queued on the other now."""
        call(lib.tn_stream_wait_stream, self.address, _given.instance("other", other, Stream).address)

    def record_event(self, event: Event | None = None) -> Event:
        """Records the event, or a new one, and gives it."""
        recorded: Event = Event(on=self.device) if event is None else _given.instance("event", event, Event)
        recorded.record(self)
        return recorded

    def __enter__(self) -> Stream:
        _enter(self)
        return self

    def __exit__(self, *_: Any) -> None:
        _leave(self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and self.address == other.address

    def __hash__(self) -> int:
        return hash(self.address)

    def __repr__(self) -> str:
        return f"<stream of {self.device.id}, raw {self.raw:#x}>"


def _stream_address(stream: Any) -> int | None:
    """None for the current one."""
    return None if stream is None else _given.instance("stream", stream, Stream).address


class Event:
    """A point in a stream's work.

    >>> import tenon
    >>> start, stop = (tenon.Event(enable_timing=True, on="cpu") for _ in range(2))
    >>> start.record(); stop.record()
    >>> stop.synchronize()
    >>> start.elapsed_time(stop) >= 0       # milliseconds
    True
    """

    def __init__(self, enable_timing: bool = False, blocking: bool = False,
                 interprocess: bool = False, *, on: Any = None) -> None:
        where = _address_of(on)
        args = _abi.EventArgs(enable_timing=_given.flag("enable_timing", enable_timing),
                              blocking=_given.flag("blocking", blocking),
                              interprocess=_given.flag("interprocess", interprocess))
        self._hold(take(lib.tn_event_create, where, byref(args)))

    def _hold(self, address: int) -> None:
        """Releases it when this is forgotten."""
        self._handle = Handle(address, "tn_event_release")
        self.address = address

    @classmethod
    def from_ipc_handle(cls, device: Any, handle: bytes) -> Event:
        """The event of another process on this machine, by its `ipc_handle`, on the same device. Each process sees
        what the other records."""
        if not isinstance(handle, bytes):
            raise TypeError(f"handle: expected bytes, got {type(handle).__name__}")
        raw = _abi.EventHandle()
        if len(handle) != len(raw.bytes):
            raise errors.invalid(f"handle: expected {len(raw.bytes)} bytes, as ipc_handle() gives; got {len(handle)}")
        raw.bytes[:] = handle
        event = cls.__new__(cls)
        event._hold(take(lib.tn_event_import, _address_of(device), byref(raw)))
        return event

    def ipc_handle(self) -> bytes:
        """What another process on this machine makes the event of, by `Event.from_ipc_handle`. The event must have been
        made with `interprocess`, and live until the other process has it."""
        raw = _abi.EventHandle()
        call(lib.tn_event_export, self.address, byref(raw))
        return bytes(raw.bytes)

    device = property(lambda self: Device._make(lib.tn_event_device(self.address)), doc="Where it is.")

    def record(self, stream: Stream | None = None) -> None:
        """May be repeated: the latest counts. None: the current stream of its device."""
        call(lib.tn_event_record, self.address, _stream_address(stream))

    def wait(self, stream: Stream | None = None) -> None:
        """What is queued on the stream from now on runs after the latest record."""
        call(lib.tn_event_wait, self.address, _stream_address(stream))

    def query(self) -> bool:
        """Whether the work before its latest record has run; True when there is none."""
        done = c_int32()
        call(lib.tn_event_query, self.address, byref(done))
        return bool(done.value)

    def synchronize(self) -> None:
        """Waits for the work before its latest record."""
        call(lib.tn_event_synchronize, self.address)

    def elapsed_time(self, stop: Event) -> float:
        """Milliseconds from this one to `stop`; negative the other way round."""
        out = c_double()
        call(lib.tn_event_elapsed_time, self.address, _given.instance("stop", stop, Event).address, byref(out))
        return out.value
