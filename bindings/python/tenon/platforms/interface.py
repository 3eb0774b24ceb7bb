"""Platform, its enums and DeviceCapability.

Differences from upstream, each on purpose: queries never fail for want of an implementation, but say what
is not known (None) or why (an exception with the reason); the CPU has attention; memory usage is read
without resetting anyone's statistics; an attention backend that was asked for is taken or refused, never
replaced. docs/python.md lists them all.
"""

from __future__ import annotations

__all__ = ["AttentionBackendEnum", "CpuArchEnum", "DeviceCapability", "MissingBackend", "Platform", "PlatformEnum",
           "UnspecifiedPlatform", "UnsupportedChoice", "logger", "platform", "platforms"]

import contextlib
import enum
import functools
import inspect
import sys
from ctypes import byref, c_char_p, c_int32
from typing import Any, Iterator, NamedTuple, Sequence

from .. import _abi, _devices, _dtypes, _given, _log, errors, settings
from .._handles import Made, call, take
from .._library import lib, text

logger = _log.logger()  # with the lines of the library

_FABRIC = 3  # TN_LINK_FABRIC: joined by links of their own


class AttentionBackendEnum(enum.Enum):
    """Names that attention is asked for by. Only names are stable, as upstream's numbers are not."""

    FLASH_ATTN = 1
    SLIDING_TILE_ATTN = 2
    TORCH_SDPA = 3
    SAGE_ATTN = 4
    VIDEO_SPARSE_ATTN = 5
    NO_ATTENTION = 6
    SAGE_ATTN_THREE = 7
    ATTN_QAT_INFER = 8
    ATTN_QAT_TRAIN = 9
    VIDEO_SPARSE_ATTN_H3 = 10
    BSA_ATTN = 11
    VMOBA_ATTN = 12
    SLA_ATTN = 13
    SAGE_SLA_ATTN = 14
    NABLA_ATTN = 15

    def __str__(self) -> str:
        return self.name


class PlatformEnum(enum.Enum):
    """Kinds of hardware; OOT is anyone's own."""

    UNSPECIFIED = 0
    CPU = 1
    CUDA = 2
    ROCM = 3
    TPU = 4
    MPS = 5
    XPU = 6
    NPU = 7
    OPENCL = 8
    OOT = 9


class CpuArchEnum(enum.Enum):
    """Kinds of processors."""

    UNSPECIFIED = 0
    X86 = 1
    ARM = 2
    POWERPC = 3
    S390X = 4
    RISCV = 5
    OTHER = 6


class DeviceCapability(NamedTuple):
    """What generation of hardware; compares as a pair.

    >>> DeviceCapability(9, 0) >= (8, 9), DeviceCapability(9, 0).as_version_str()
    (True, '9.0')
    """

    major: int
    minor: int

    def as_version_str(self) -> str:
        """ "9.0"."""
        return f"{self.major}.{self.minor}"

    def to_int(self) -> int:
        """90 for 9.0; a minor above 9 counts as 9, so that numbers and pairs have one order."""
        return self.major * 10 + min(self.minor, 9)


# Computed by tenon.video, each with the module that has its layers.
VIDEO_BACKENDS = {"SLIDING_TILE_ATTN": "_video_search", "VIDEO_SPARSE_ATTN": "_video", "VIDEO_SPARSE_ATTN_H3": "_video_sparse",
                  "BSA_ATTN": "_video_sparse", "VMOBA_ATTN": "_video_sparse", "NABLA_ATTN": "_video_sparse",
                  "SLA_ATTN": "_video_sla"}
QUANTIZED_BACKENDS = ("SAGE_ATTN",)  # computed by tenon.attention_quantized

_FP4 = "its kernels multiply 4-bit floats (fp4), which needs the tensor cores of Blackwell, capability 10.0 and later"
# Why no kernel of Tenon's has a name, for the message about it.
WHY_MISSING = {
    "SAGE_ATTN_THREE": f"{_FP4}; Tenon has no kernel for fp4",
    "ATTN_QAT_INFER": f"{_FP4}; Tenon has no kernel for fp4",
    "ATTN_QAT_TRAIN": "it trains with operands rounded to 4-bit floats (fp4), for ATTN_QAT_INFER; Tenon has no kernel for fp4",
    "SAGE_SLA_ATTN": "it is SLA_ATTN with queries and keys in 8 bits, and Tenon has no kernel in 8 bits for listed blocks; "
                     "SLA_ATTN computes the same without rounding",
}


class UnsupportedChoice(errors.UnsupportedError, ValueError):
    """A quantization, model or backend that the platform does not have."""


class MissingBackend(UnsupportedChoice, ImportError):
    """A backend of attention that neither Tenon nor FastVideo has here. FastVideo's code expects an ImportError."""

    def __init__(self, message: str, *given: Any) -> None:
        super().__init__(message, *given)
        self.msg = message  # as every ImportError has it


def _as_choice(error: errors.Error) -> UnsupportedChoice:
    return UnsupportedChoice(error.message, error.status, error.where, error.native_code)


def _words(list_: int | None) -> list[str]:
    """A NULL-ended list of texts."""
    found: list[str] = []
    if list_:
        entries = (c_char_p * 4096).from_address(list_)
        while (word := entries[len(found)]) is not None:
            found.append(text(word))
    return found


class Platform(Made):
    """A kind of hardware on this machine. Device ids are those that this process sees.

    >>> from tenon.platforms import AttentionBackendEnum, platform
    >>> cpu = platform("cpu")
    >>> cpu.is_cpu(), cpu.device_count(), cpu.get_device_capability()  # a processor has no such number
    (True, 1, None)
    >>> cpu.get_attn_backend_cls(AttentionBackendEnum.FLASH_ATTN, 64, "float32")
    'tenon.platforms.attention.FLASH_ATTN'

    A class that derives from it is made without arguments, has an `_enum`, and overrides what it knows better:

    >>> class Mine(Platform):
    ...     _enum, device_name, device_type = PlatformEnum.OOT, "mine", "mine"
    >>> Mine.is_out_of_tree(), Mine().device_name, Mine.device_type
    (True, 'mine', 'mine')
    """

    _enum: PlatformEnum

    def __init__(self, *given: Any) -> None:
        """The library's platform of the class's `_enum`, or none."""
        if given:
            raise TypeError(f"{type(self).__name__} takes no arguments; use tenon.platforms.platform(name)")
        self._init(_address_of(type(self)))

    def _init(self, address: int) -> None:
        self.address = address
        if not hasattr(type(self), "_enum"):
            self._enum = PlatformEnum(lib.tn_platform_kind(self.address))

    @classmethod
    def _representative(cls) -> Platform:
        """Answers for the class."""
        if cls not in _representatives:
            _representatives[cls] = cls()
        return _representatives[cls]

    name = property(lambda self: text(lib.tn_platform_name(self.address)), doc='"cuda".')
    device_name = property(lambda self: text(lib.tn_platform_device_name(self.address)),
                           doc='As FastVideo spells it: "cuda"; "CPU".')
    device_type = property(lambda self: text(lib.tn_platform_device_type(self.address)),
                           doc='The framework\'s device string; ROCm\'s is "cuda".')
    dispatch_key = property(lambda self: text(lib.tn_platform_dispatch_key(self.address)),
                            doc='"CUDA", "PrivateUse1".')
    device_control_env_var = property(
        lambda self: text(lib.tn_platform_visible_variable(self.address)),
        doc="The variable that selects devices.")
    additional_env_vars: list[str] = []

    @property
    def simple_compile_backend(self) -> str:
        """The name of a kernel language for small functions; "eager" where no module offers one."""
        return text(lib.tn_platform_simple_compile_backend(self.address, None)) or "eager"

    @property
    def supported_quantization(self) -> list[str]:
        """Names; an empty list means everything."""
        return _words(lib.tn_platform_supported_quantization(self.address))

    @property
    def ray_device_key(self) -> str:
        """Ray's word for its resource; "" where it has none."""
        return {"CUDA": "GPU", "ROCM": "GPU", "NPU": "NPU"}.get(self._enum.name, "")

    def is_cuda(self) -> bool:
        """Whether it is NVIDIA's."""
        return self._enum is PlatformEnum.CUDA

    def is_rocm(self) -> bool:
        """Whether it is AMD's."""
        return self._enum is PlatformEnum.ROCM

    def is_tpu(self) -> bool:
        """Whether it is Google's."""
        return self._enum is PlatformEnum.TPU

    def is_xpu(self) -> bool:
        """Whether it is Intel's."""
        return self._enum is PlatformEnum.XPU

    def is_npu(self) -> bool:
        """Whether it is Huawei's."""
        return self._enum is PlatformEnum.NPU

    def is_cpu(self) -> bool:
        """Whether it is the processor."""
        return self._enum is PlatformEnum.CPU

    def is_mps(self) -> bool:
        """Whether it is Apple's."""
        return self._enum is PlatformEnum.MPS

    def is_out_of_tree(self) -> bool:
        """Whether it came with a stranger's module."""
        return self._enum is PlatformEnum.OOT

    def is_cuda_alike(self) -> bool:
        """Whether it is NVIDIA's or AMD's."""
        return bool(lib.tn_platform_is_cuda_alike(self.address))

    def _device(self, device_id: int) -> _devices.Device:
        number = _given.number("device_id", device_id, *_given.INT32)
        return _devices.Device._make(take(lib.tn_platform_device_get, self.address, number))

    def device_types(self) -> list[str]:
        """What the type of a device of this platform is called, in texts and by PyTorch."""
        known = [self.name, self.device_type]
        if self.dispatch_key == "PrivateUse1":
            torch = sys.modules.get("torch")
            known += ["privateuseone", *([torch._C._get_privateuse1_backend_name()] if torch else ())]
        return list(dict.fromkeys(known))

    def _index(self, device: Any) -> int:
        """The number in what PyTorch takes for a device: a text, a torch.device, a number; this thread's current one
        where there is none. Devices of other platforms are refused."""
        number = _devices.index_among(self.device_types, device, self.name)
        return max(int(lib.tn_device_current(self.address)), 0) if number is None else number

    def device_count(self) -> int:
        """How many devices this process sees."""
        return max(int(lib.tn_platform_device_count(self.address)), 0)

    def get_device_capability(self, device_id: int = 0) -> DeviceCapability | None:
        """None where the platform has no such thing or no devices, or does not tell."""
        _given.number("device_id", device_id, *_given.INT32)
        if self.device_count() == 0:
            return None
        out = _abi.Capability()
        try:
            call(lib.tn_device_capability, self._device(device_id).address, byref(out))
        except errors.UnsupportedError:
            return None
        return DeviceCapability(out.major, out.minor)

    def has_device_capability(self, capability: tuple[int, int] | int, device_id: int = 0) -> bool:
        """At least so much; False when it is unknown. 90 is (9, 0)."""
        wanted, found = _capability(capability), self.get_device_capability(device_id)
        if found is None:
            return False
        return found.to_int() >= wanted if isinstance(wanted, int) else found >= wanted

    def is_device_capability(self, capability: tuple[int, int] | int, device_id: int = 0) -> bool:
        """Exactly so much."""
        wanted, found = _capability(capability), self.get_device_capability(device_id)
        return found is not None and (found.to_int() if isinstance(wanted, int) else found) == wanted

    def is_device_capability_family(self, capability: int, device_id: int = 0) -> bool:
        """The same major: 90 for any 9.x."""
        wanted, found = _given.number("capability", capability, *_given.INT32), self.get_device_capability(device_id)
        return found is not None and found.major == wanted // 10

    def is_full_nvlink(self, physical_device_ids: Sequence[int]) -> bool:
        """Whether every two of these, by the driver's own numbers, are joined by NVLink. False, and told to the logger,
        where that is unknown; False on other platforms than CUDA."""
        wanted = [_given.number("physical_device_ids", one, *_given.INT32) for one in physical_device_ids]
        if not self.is_cuda():
            return False
        seen = [self._device(i) for i in range(self.device_count())]
        by_number = {one.properties.physical_index if one.properties.physical_index is not None else one.index: one
                     for one in seen}
        for number in wanted:
            if number not in by_number:
                raise errors.NotFoundError(f"no device of {self.name} has the physical number {number}; there are: "
                                           f"{', '.join(map(str, sorted(by_number))) or 'none'}", "not-found", "nvlink")
        try:
            return all(_link(by_number[one], by_number[other]) == _FABRIC
                       for i, one in enumerate(wanted) for other in wanted[i + 1:])
        except errors.Error as error:
            logger.error("whether devices are joined by NVLink is unknown: %s", error.message)
            return False

    def has_unified_memory(self, device_id: int = 0) -> bool:
        """Whether a device's memory is the host's, so that nothing is gained by moving data there; False when unknown."""
        _given.number("device_id", device_id, *_given.INT32)
        if self.is_mps() or self.is_cpu() or self.device_count() == 0:
            return self.is_mps()
        return bool(self._device(device_id).properties.is_integrated)

    def get_device_name(self, device_id: int = 0) -> str:
        """ "NVIDIA H200"."""
        return str(self._device(device_id).name)

    def get_device_uuid(self, device_id: int = 0) -> str:
        """ "" when unknown."""
        return str(self._device(device_id).uuid)

    def get_device_total_memory(self, device_id: int = 0) -> int:
        """Bytes that this process could have at most. UnsupportedError with the reason when unknown."""
        memory = self._device(device_id).memory()
        if memory.total is None:
            raise errors.UnsupportedError(memory.why["total"], "unsupported", "memory")
        return memory.total

    def get_current_memory_usage(self, device: Any = None) -> float:
        """Bytes that this process holds now on a device as PyTorch takes them: "cuda:0", a torch.device, a number, or
        None for the current one. No statistic is reset; UnsupportedError when unknown."""
        memory = self._device(self._index(device)).memory()
        if memory.in_use is None:
            raise errors.UnsupportedError(memory.why["in_use"], "unsupported", "memory")
        return float(memory.in_use)

    def is_async_output_supported(self, enforce_eager: bool | None) -> bool:
        """Whether results can be fetched while later work runs."""
        out, reason = c_int32(), c_char_p()
        eager = enforce_eager is not None and _given.flag("enforce_eager", enforce_eager)
        call(lib.tn_platform_is_async_output_supported, self.address, eager, byref(out), byref(reason))
        if not out.value:
            logger.warning("no asynchronous output: %s", text(reason.value))
        return bool(out.value)

    @contextlib.contextmanager
    def inference_mode(self) -> Iterator[None]:
        """Nothing is kept for a backward pass inside, by Tenon and, where it is loaded, by PyTorch."""
        torch = sys.modules.get("torch")
        theirs = torch.inference_mode() if torch else contextlib.nullcontext()
        with settings.scope({"inference": True}), theirs:
            yield

    def seed_everything(self, seed: int | None = None) -> None:
        """Seeds Tenon, Python, and NumPy and PyTorch where they are loaded; None: nothing."""
        if seed is None:
            return
        import random

        seed = _given.number("seed", seed, *_given.UINT64)
        _devices.seed_everything(seed)
        random.seed(seed)
        if "numpy" in sys.modules:
            sys.modules["numpy"].random.seed(seed % 2**32)
        if "torch" in sys.modules:
            sys.modules["torch"].manual_seed(seed)

    def verify_model_arch(self, model_arch: str) -> None:
        """ValueError, with the list and the nearest, for a model that the platform does not support."""
        try:
            call(lib.tn_platform_verify_model_arch, self.address, _given.text("model_arch", model_arch))
        except errors.UnsupportedError as error:
            raise _as_choice(error) from None

    def verify_quantization(self, quant: str) -> None:
        """The same for a quantization."""
        try:
            call(lib.tn_platform_verify_quantization, self.address, _given.text("quant", quant))
        except errors.UnsupportedError as error:
            raise _as_choice(error) from None

    def get_cpu_architecture(self) -> CpuArchEnum:
        """Of the processor that this process runs on."""
        return CpuArchEnum(lib.tn_cpu_architecture())

    def get_device_communicator_cls(self) -> str:
        """The name of a communicator that a module offers. UnsupportedError says why there is none."""
        reason = c_char_p()
        name = text(lib.tn_platform_communicator(self.address, byref(reason)))
        if not name:
            raise errors.UnsupportedError(errors.in_python(text(reason.value)), "unsupported", "communicator")
        return name

    def get_torch_device(self) -> Any:
        """PyTorch's module for it: torch.cuda."""
        import torch

        return getattr(torch, self.device_type)

    def get_attn_backend_cls(self, selected_backend: Any, head_size: int, dtype: Any) -> str:
        """The dotted path of the class that computes a layer's attention: what was selected or, for None,
        what settings ask for, or else the fastest. What cannot be taken is an error with the reason. A backend that was
        selected and that only FastVideo computes on this platform is FastVideo's class, if FastVideo is imported."""
        if selected_backend is None and (found := self._requested_class(head_size, dtype)):
            return found
        name = str(getattr(selected_backend, "name", selected_backend)).upper()
        try:
            return self._backend_class(name, selected_backend, head_size, dtype)
        except (errors.UnsupportedError, errors.UnavailableError) as error:
            from . import _fastvideo

            if selected_backend is None or name == "NO_ATTENTION" or not _fastvideo.is_imported():
                raise
            return _fastvideo.class_for(self.name, name, head_size, dtype, error)

    def _requested_class(self, head_size: int, dtype: Any) -> str:
        """The class that attention.backend selects if its first name is a sparse or quantized backend, else "". Of several such
        names in front, the first that the platform has."""
        strength, _, names = str(settings.get("attention.backend")).rpartition(":")
        refused: errors.Error | None = None
        for name in (name.strip().upper() for name in names.split(",")):
            if name not in VIDEO_BACKENDS and name not in QUANTIZED_BACKENDS:
                return ""
            try:
                return self._backend_class(name, name, head_size, dtype)
            except (errors.UnsupportedError, errors.UnavailableError) as error:
                refused = error
                logger.info("attention: %s", error)
        if strength == "prefer" or refused is None:
            return ""
        raise refused

    def _backend_class(self, name: str, selected_backend: Any, head_size: int, dtype: Any) -> str:
        """The dotted path of Tenon's own class."""
        if name in VIDEO_BACKENDS:
            self._check_video(name, head_size, dtype)
            return f"tenon.platforms.attention.{name}"
        if name in QUANTIZED_BACKENDS and self._has_quantized(name, head_size, dtype):
            return f"tenon.platforms.attention.{name}"
        try:
            choice = self.attention_choice(selected_backend, head_size, dtype)
        except UnsupportedChoice as error:
            if name not in WHY_MISSING:
                raise
            raise UnsupportedChoice(f"{name}: {WHY_MISSING[name]} ({error.message})", "unsupported", "attention") from None
        logger.info("attention: %s (%s), by %s", text(choice.name), text(choice.kernel),
                    text(choice.origin))
        return f"tenon.platforms.attention.{text(choice.name)}"

    def _check_video(self, backend: str, head_size: int, dtype: Any) -> None:
        """Rejects a backend for video where it is not tested, or the operator that it computes with has no kernel."""
        from .._explain import explain

        if not (self.is_cpu() or self.is_cuda()):
            raise UnsupportedChoice(f"{backend}: expected cpu or cuda, got {self.name}: the layer is not tested elsewhere",
                                    "unsupported", "attention")
        size, word = _given.number("head_size", head_size, 1, _given.INT64[1]), _dtypes.word_of(dtype)
        problems = [f"attention-sparse:{word}:h=1,l=1024,d={size},bq=64,entries=16"]
        if backend == "VMOBA_ATTN":
            problems = [f"attention-merge:{word}:h=1,l=1024,d={size}", f"attention:{word}:h=1,varlen=4x256,d={size},lse=1"]
        for problem in problems:
            try:
                with settings.scope({"attention.backend": "any"}):  # which may be what selected this backend
                    found = explain(f"{problem}@{self.name}")
                reason = "" if found.chosen else found.message
            except errors.UnsupportedError as error:
                reason = error.message
            if reason:
                operator = problem.partition(":")[0].replace("-", "_")
                raise UnsupportedChoice(f"{backend} computes with tenon.{operator}: {reason}", "unsupported", "attention")
        logger.info("attention: %s (%s)", backend, found.chosen.kernel)

    def _has_quantized(self, backend: str, head_size: int, dtype: Any) -> bool:
        """Whether quantized attention has a kernel. If it has none, the library refuses the backend."""
        from .._explain import explain

        size, word = _given.number("head_size", head_size, 1, _given.INT64[1]), _dtypes.word_of(dtype)
        try:
            found = explain(f"attention-quantized:{word}:h=1,l=1024,d={size},weights=u8@{self.name}")
        except (errors.UnsupportedError, errors.InvalidArgumentError) as error:
            raise UnsupportedChoice(f"{backend} computes with tn_attention_quantized: {error.message}", "unsupported",
                                    "attention") from None
        if found.chosen is not None:
            logger.info("attention: %s (%s)", backend, found.chosen.kernel)
        return found.chosen is not None

    def attention_choice(self, selected_backend: Any, head_size: int, dtype: Any) -> _abi.AttentionChoice:
        """The same with kernel and origin, as the library gives it."""
        args = _abi.AttentionBackendArgs(
            platform=self.address, head_size=_given.number("head_size", head_size, 1, _given.INT64[1]),
            backend=_backend_number(selected_backend), dtype=_dtypes.NUMBER[_dtypes.word_of(dtype)])
        out = _abi.AttentionChoice()
        try:
            call(lib.tn_attention_backend, settings.context(), byref(args), byref(out))
        except errors.UnsupportedError as error:
            raise _as_choice(error) from None
        if text(out.name) == "NO_ATTENTION":
            raise UnsupportedChoice("NO_ATTENTION computes nothing: no class stands for it. It is for models without "
                                    "attention, and attention.backend=NO_ATTENTION makes every call of attention fail",
                                    "unsupported", "attention")
        return out

    def __repr__(self) -> str:
        return f"<platform {self.name}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Platform) and self.address == other.address

    def __hash__(self) -> int:
        return hash(self.address)

    def __reduce__(self) -> tuple[Any, ...]:
        return (platform, (self.name,)) if type(self) is Platform else (type(self), ())


_representatives: dict[type[Platform], Platform] = {}


class _Query:
    """A method or property that a class answers, too, as upstream's class methods do."""

    def __init__(self, of: Any) -> None:
        self._of = of
        functools.update_wrapper(self, of.fget if isinstance(of, property) else of)  # type: ignore[arg-type]
        self.__doc__ = of.__doc__

    def __get__(self, instance: Platform | None, owner: type[Platform]) -> Any:
        return self._of.__get__(owner._representative() if instance is None else instance, owner)


def _explained(query: Any) -> Any:
    """The method, whose errors say what a class without a platform of the library's does not override."""

    @functools.wraps(query)
    def answer(self: Platform, *given: Any, **options: Any) -> Any:
        try:
            return query(self, *given, **options)
        except errors.Error as error:
            cls = type(self)
            if cls in (Platform, UnspecifiedPlatform) or self.address != lib.tn_platform_unspecified():
                raise
            raise type(error)(f"{cls.__name__} does not override {query.__name__}, and the library has no platform for its "
                              f"_enum, {self._enum.name}", error.status, error.where) from None

    return answer


def _let_classes_answer(cls: type[Platform]) -> None:
    """Makes queries of the public methods and properties."""
    for name, value in list(vars(cls).items()):
        if not name.startswith("_") and (isinstance(value, property) or inspect.isfunction(value)):
            setattr(cls, name, _Query(_explained(value) if inspect.isfunction(value) else value))


def _address_of(cls: type[Platform]) -> int:
    """The platform that a class stands for by its `_enum`; the unspecified one for none and for a stranger's."""
    kind: PlatformEnum = getattr(cls, "_enum", PlatformEnum.UNSPECIFIED)
    if kind in (PlatformEnum.UNSPECIFIED, PlatformEnum.OOT):
        return int(lib.tn_platform_unspecified())
    return take(lib.tn_platform_get, kind.name.lower().encode())


_let_classes_answer(Platform)


class UnspecifiedPlatform(Platform):
    """Stands for none: predicates are False, words are "" but for upstream's dispatch key, no capability is known, and
    whatever can fail says what to do.

    >>> from tenon.platforms import UnspecifiedPlatform
    >>> none = UnspecifiedPlatform()
    >>> none.is_cuda_alike(), none.device_type, none.device_count(), none.dispatch_key
    (False, '', 0, 'CPU')
    >>> none.get_device_capability(), none.has_device_capability((8, 0))
    (None, False)
    """


def _capability(given: Any) -> tuple[int, ...] | int:
    """A pair, or a number of its form: 90 for (9, 0)."""
    if not isinstance(given, (tuple, list)):
        return _given.number("capability", given, *_given.INT32)
    if len(given) != 2:
        raise errors.invalid(f"capability: expected a pair, (9, 0), or a number, 90; got {given!r}")
    return tuple(_given.number("capability", part, *_given.INT32) for part in given)


def _link(one: _devices.Device, other: _devices.Device) -> int:
    """How data gets from one to the other: TN_LINK_..."""
    out = c_int32()
    call(lib.tn_device_link, one.address, other.address, byref(out))
    return out.value


def _backend_number(selected: Any) -> int:
    """Of an enum's member, a name in any case, or None."""
    if selected is None:
        return 0
    out = c_int32()
    name = _given.text("selected_backend", getattr(selected, "name", selected))
    call(lib.tn_attention_backend_find, name, byref(out))
    return out.value


def platform(name: str) -> Platform:
    """By name, whether it is here or not.

    >>> from tenon.platforms import platform
    >>> platform("rocm").device_type                # the word that PyTorch has for it
    'cuda'
    """
    return Platform._make(take(lib.tn_platform_get, _given.text("name", name)))


def platforms() -> list[Platform]:
    """Every platform that Tenon or a module knows, best first.

    >>> from tenon.platforms import platforms
    >>> [each.name for each in platforms() if each.name in ("cuda", "rocm", "cpu")]
    ['cuda', 'rocm', 'cpu']
    """
    list_ = take(lib.tn_platform_list_create)
    try:
        return [Platform._make(_abi.PlatformReport.from_address(lib.tn_platform_list_get(list_, i)).platform)
                for i in range(lib.tn_platform_list_count(list_))]
    finally:
        lib.tn_platform_list_release(list_)


_made: dict[int, Platform] = {}


def resolve_current() -> Platform:
    """The current one, the same object every time."""
    address = take(lib.tn_platform_current)
    return _made.setdefault(address, Platform._make(address))


def __dir__() -> list[str]:
    return __all__
