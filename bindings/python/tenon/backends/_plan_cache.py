"""The FFT plans that a platform's devices keep, as an object with attributes."""

from __future__ import annotations

from ctypes import byref
from typing import Any

from .. import _abi, _devices, _given, errors, settings
from .._handles import call, take
from .._library import lib

_FFT = 14  # TN_OP_FFT


class PlanCache:
    """FFT plans that are kept for one device of a platform: `cache[1]`, or without an index the current one.

    Without such a device, `max_size` is the setting, which all devices start with, and no plans are kept.
    """

    __slots__ = ("_platform", "_name", "_index")

    def __init__(self, platform: str, name: str, index: int | None = None) -> None:
        self._platform, self._name, self._index = platform, name, index

    def __getitem__(self, device: Any) -> PlanCache:
        if self._index is not None:
            raise TypeError(f"{self._name}[{self._index}] is the cache of one device and has no index")
        index = _devices.index_among(lambda: [self._platform], device, self._platform)
        count = self._count()
        if index is None or not 0 <= index < count:
            raise errors.invalid(f"{self._name}: expected 0 <= device index < {count}, but got device with index {index}")
        return PlanCache(self._platform, self._name, index)

    def _get_platform(self) -> int:
        return int(take(lib.tn_platform_get, self._platform.encode()))

    def _count(self) -> int:
        return max(int(lib.tn_platform_device_count(self._get_platform())), 0)

    def _device(self) -> int | None:
        """The device's address, or None without a device."""
        if self._count() == 0:
            return None
        platform = self._get_platform()
        index = max(int(lib.tn_device_current(platform)), 0) if self._index is None else self._index
        return take(lib.tn_platform_device_get, platform, index)

    @property
    def _key(self) -> str:
        return f"{self._platform}.{self._name}.max_size"

    def _state(self) -> Any:
        out = _abi.PlanCacheState()
        call(lib.tn_plan_cache_state_get, settings.context(), self._device(), _FFT, byref(out))
        return out

    @property
    def size(self) -> int:
        """How many plans are kept now."""
        return 0 if self._device() is None else int(self._state().size)

    @property
    def max_size(self) -> int:
        """How many are kept at most; 0 keeps none. A smaller number evicts the oldest at once."""
        return int(settings.get(self._key) or 0) if self._device() is None else int(self._state().max_size)

    @max_size.setter
    def max_size(self, value: int) -> None:
        device = self._device()
        if device is None:
            settings.set(self._key, value)
        else:
            call(lib.tn_plan_cache_limit_set, device, _FFT, _given.number("max_size", value, 0, 2**63 - 2))

    def clear(self) -> None:
        """Forgets all plans; those in use end with their last call."""
        device = self._device()
        if device is not None:
            lib.tn_plan_cache_clear(device, _FFT)
