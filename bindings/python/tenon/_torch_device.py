"""PyTorch's spare type of devices, "privateuseone", for a platform of Tenon's: its name, what PyTorch asks it for, and
its tensors.

PyTorch's tensors of such a type have Tenon's memory, by way of DLPack. What has no kernel for the type runs on the host,
with copies before and after; the logger tells so once for each operator. A module with kernels of its own for PyTorch
registers them in C++ before this is asked for, and nothing here takes their place.
"""

from __future__ import annotations

from typing import Any, Callable

import torch
from torch._C._autograd import DeviceType

from . import _arrays, _log, _tensor, errors
from ._devices import synchronize
from ._library import lib
from .operators import copy

logger = _log.logger().getChild("device_interface")

SPARE = "privateuseone"  # PyTorch's type for devices that it does not know, until it is renamed

_accelerators = getattr(torch._C, "_acc", None)  # since 2.9
_kept: list[Any] = []  # what PyTorch has pointers to, and kernels


def spare_name() -> str:
    """What the spare type is called now."""
    return str(torch._C._get_privateuse1_backend_name())


def is_known(device_type: str) -> bool:
    """Whether PyTorch has a type of devices of this name."""
    try:
        torch.device(device_type)
    except RuntimeError:
        return False
    return True


def claim_name(device_type: str, platform: str) -> None:
    """Makes a name known to PyTorch: the spare type is renamed, which can be done once."""
    if is_known(device_type):
        return
    if spare_name() != SPARE:
        raise errors.AlreadyExistsError(
            f'device_type "{device_type}" is unknown to PyTorch, whose spare type has the name "{spare_name()}" already; give '
            "that one, or leave it out", "already-exists", "device_interface")
    if not device_type.isidentifier():
        raise errors.invalid(f'device_type of {platform}: expected a name of letters, digits and "_", got "{device_type}"')
    torch.utils.rename_privateuse1_backend(device_type)


def _is_linked() -> bool:
    """Whether PyTorch has a guard for the spare type, without which streams, events and the current device fail: in every
    compilation, once the type is renamed."""
    try:
        torch.Event(device=spare_name())
    except RuntimeError:
        return False
    return True


def install(device_type: str, is_available: Callable[[], bool], platform: str) -> None:
    """Gives PyTorch what it asks of the spare type: guard, hooks and kernels, unless somebody has."""
    if torch.device(device_type).type != spare_name() or _accelerators is None or _is_linked():
        return

    class Hooks(_accelerators.PrivateUse1Hooks):  # type: ignore[misc, name-defined]
        """Answers to PyTorch's questions about the type."""

        def has_primary_context(self, device_index: int) -> bool:
            """A device needs none."""
            return True

        def is_built(self) -> bool:
            """Support is here."""
            return True

        def is_available(self) -> bool:
            """Whether a device runs."""
            return is_available()

    class Guard(_accelerators.DeviceGuard):  # type: ignore[misc, name-defined]
        """PyTorch's guard of the type, which knows the first device only."""

        def type_(self) -> Any:
            """The type it guards."""
            return DeviceType.PrivateUse1

    _kept.extend((Hooks(), Guard()))
    _accelerators.register_python_privateuseone_hook(_kept[0])
    _accelerators.register_python_privateuseone_device_guard(_kept[1])
    from . import platforms

    address = platforms.platform(platform).address
    _guard_all_devices(platform, address)
    _Kernels(platform, address).register()


def _guard_all_devices(platform: str, address: int) -> None:
    """Replaces the guard, which knows only one device, if the platform has several."""
    from . import _torch_guard

    if lib.tn_platform_device_count(address) <= 1:
        return
    try:
        _torch_guard.register(address)
    except (ImportError, OSError, RuntimeError) as error:
        logger.warning("PyTorch knows only the first device of %s: its guard for several could not be compiled: %s",
                       platform, error)


def _to_host(x: Any) -> Any:
    """A copy in the host's memory, dense."""
    made = torch.empty(x.shape, dtype=x.dtype)
    if x.numel():
        whole = x if x.is_contiguous() else None
        if whole is None:  # the memory that it spans, of which it is a view
            size = 1 + sum((n - 1) * step for n, step in zip(x.shape, x.stride()))
            memory = _to_host(_as(x, (size,), (1,), x.storage_offset()))
            made.copy_(memory.as_strided(x.shape, x.stride()))
        else:
            copy(whole.detach(), made)
    return made


def _to_device(values: Any, x: Any) -> None:
    """Writes values of the host into a tensor of a device."""
    if not x.numel():
        return
    if x.is_contiguous():
        copy(values.detach().contiguous(), x.detach())
    else:
        size = 1 + sum((n - 1) * step for n, step in zip(x.shape, x.stride()))
        span = _as(x, (size,), (1,), x.storage_offset())
        memory = _to_host(span)
        memory.as_strided(x.shape, x.stride()).copy_(values)
        copy(memory, span)
    synchronize(f"{_Kernels.platform}:{x.device.index or 0}")


def _as(x: Any, size: Any, stride: Any, offset: int) -> Any:
    """Another view of the storage."""
    guards: Any = torch._C._dynamo.guards
    return guards._reinterpret_tensor(x, tuple(size), tuple(stride), offset - x.storage_offset())


def _is_ours(x: Any) -> bool:
    return isinstance(x, torch.Tensor) and x.device.type == spare_name()


class _Kernels:
    """What PyTorch needs of a type of devices: memory, copies, views; the rest runs on the host."""

    platform = ""

    def __init__(self, platform: str, address: int) -> None:
        _Kernels.platform, self.address = platform, address
        self.told: set[str] = set()

    def _current_index(self) -> int:
        """The index of this thread's current device."""
        return max(0, int(lib.tn_device_current(self.address)))

    def register(self) -> None:
        """Enters them at PyTorch's dispatcher."""
        library: Any = torch.library.Library
        kernels, rest = library("aten", "IMPL"), library("_", "IMPL")
        for name, kernel in (("empty.memory_format", self.empty), ("empty_strided", self.empty_strided),
                             ("as_strided", self.as_strided), ("view", self.view), ("_copy_from", self.copy_from),
                             ("_local_scalar_dense", lambda x: _to_host(x).item())):
            kernels.impl(name, kernel, "PrivateUse1")
        rest.fallback(self.run_on_host, "PrivateUse1")
        _kept.extend((kernels, rest))

    def empty(self, size: Any, *, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: Any = None,
              memory_format: Any = None) -> Any:
        """Dense, in Tenon's memory."""
        if memory_format not in (None, torch.contiguous_format):
            like = torch.empty(size, device="meta", memory_format=memory_format)
            return self.empty_strided(size, like.stride(), dtype=dtype, device=device)
        index = None if device is None else torch.device(device).index
        index = self._current_index() if index is None else index
        made = _tensor.empty(tuple(size), dtype or torch.get_default_dtype(), f"{self.platform}:{index}")
        raw = made._owned.raw
        _arrays.SPARE_NUMBERS[index] = raw.device_id
        raw.device_id = index  # PyTorch counts the devices of the platform alone
        return torch._C._from_dlpack(made.__dlpack__(stream=-1))

    def empty_strided(self, size: Any, stride: Any, *, dtype: Any = None, layout: Any = None, device: Any = None,
                      pin_memory: Any = None) -> Any:
        """Of any strides."""
        elements = 1 + sum((n - 1) * step for n, step in zip(size, stride)) if 0 not in size else 0
        return _as(self.empty((elements,), dtype=dtype, device=device), size, stride, 0)

    def as_strided(self, x: Any, size: Any, stride: Any, storage_offset: Any = None) -> Any:
        """A view of the same memory."""
        return _as(x, size, stride, x.storage_offset() if storage_offset is None else storage_offset)

    def view(self, x: Any, size: Any) -> Any:
        """The same in another shape."""
        like = torch.empty_strided(x.shape, x.stride(), device="meta").view(size)
        return _as(x, like.shape, like.stride(), x.storage_offset())

    def copy_from(self, source: Any, target: Any, non_blocking: bool = False) -> Any:
        """What x.copy_(y) and x.to(device) call, where either is on such a device."""
        values = _to_host(source) if _is_ours(source) else source
        values = values.to(target.dtype).expand(target.shape)
        if _is_ours(target):
            _to_device(values, target)
        else:
            target.copy_(values)
        return target

    def run_on_host(self, operator: Any, *given: Any, **named: Any) -> Any:
        """An operator that has no kernel here, by that of the host."""
        name = str(operator)
        if name not in self.told:
            self.told.add(name)
            logger.info("%s has no kernel for %s, and runs on the host", name, self.platform)
        where = next((x.device for x in torch.utils._pytree.tree_leaves((given, named)) if _is_ours(x)), None)
        where = where or torch.device(spare_name(), self._current_index())
        copies: dict[int, Any] = {}

        def to_host(x: Any) -> Any:
            if isinstance(x, torch.device):
                return torch.device("cpu") if x.type == spare_name() else x
            if not _is_ours(x):
                return x
            if id(x) not in copies:
                copies[id(x)] = _to_host(x)
            return copies[id(x)]

        mapped = torch.utils._pytree.tree_map
        result = operator(*mapped(to_host, given), **mapped(to_host, named))
        written = self._write_back(operator._schema, given, named, copies)
        if written:
            return written[0] if len(operator._schema.returns) == 1 else tuple(written[:len(operator._schema.returns)])
        return mapped(lambda x: x.to(where) if isinstance(x, torch.Tensor) else x, result)

    @staticmethod
    def _write_back(schema: Any, given: Any, named: Any, copies: dict[int, Any]) -> list[Any]:
        """What the operator wrote to, with what it wrote."""
        found = []
        for i, argument in enumerate(schema.arguments):
            value = given[i] if i < len(given) else named.get(argument.name)
            if argument.alias_info is None or not argument.alias_info.is_write:
                continue
            for x in value if isinstance(value, (list, tuple)) else [value]:
                if _is_ours(x):
                    made = copies[id(x)]
                    if made.shape != x.shape:  # an output that was to be made as large as the result
                        x.data = made.to(x.device)
                        found.append(x)
                        continue
                    _to_device(made, x)
                found.append(x)
        return found
