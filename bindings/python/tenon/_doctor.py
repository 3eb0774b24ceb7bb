"""What there is on this machine, and what is missing and why, as one report."""

from __future__ import annotations

import sys
from ctypes import byref, c_size_t

from . import _abi, _devices, _given, _tables, settings
from ._handles import Handle, Made, call, take
from ._library import VERSION, lib, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def _rows_of(created: str, count: str, get: str, form: Any, release: str) -> list[Any]:
    """The rows of one of the library's lists, with the handle that keeps their texts."""
    handle = Handle(take(getattr(lib, created)), release)
    number = getattr(lib, count)(handle.address)
    rows = [form.from_address(getattr(lib, get)(handle.address, i)) for i in range(number)]
    return [handle, *rows]


def _platforms() -> list[list[str]]:
    _handle, *rows = _rows_of("tn_platform_list_create", "tn_platform_list_count",
                              "tn_platform_list_get", _abi.PlatformReport,
                              "tn_platform_list_release")
    return [["platform", "verdict", "devices", "why"]] + [
        [("* " if row.current else "  ") + text(row.name),
         text(lib.tn_platform_verdict_name(row.verdict)), str(row.devices), text(row.reason)]
        for row in rows]


def _modules() -> list[list[str]]:
    _handle, *rows = _rows_of("tn_module_list_create", "tn_module_list_count", "tn_module_list_get",
                              _abi.ModuleReport, "tn_module_list_release")
    return [["module", "stage", "status", "message"]] + [
        [text(row.name), text(lib.tn_module_stage_name(row.stage)),
         text(lib.tn_status_name(row.status)), text(row.message)] for row in rows]


def _device_rows() -> list[list[str]]:
    return [["device", "name", "memory"]] + [
        [each.id, each.name, str(each.memory().total or "unknown")] for each in _devices.devices()]


class Library(Made):
    """A vendor's library as it stands: built, available ("yes", "no", "untried"), version, path,
    enabled, reason and remedy."""

    name: str
    platform: str
    what: str
    module: str
    version_text: str
    path: str
    reason: str
    remedy: str

    _returned_by = "tenon.library(name)"

    def _init(self, address: int) -> None:
        out = _abi.LibraryState()
        call(lib.tn_library_state_get, address, settings.context(), byref(out))
        for name in ("name", "platform", "what", "module", "version_text", "path", "reason",
                     "remedy"):
            setattr(self, name, text(getattr(out, name)))
        self.built, self.enabled = bool(out.built), bool(out.enabled)
        self.available = text(lib.tn_available_name(out.available))
        self.version = None if out.version < 0 else out.version
        self.kernels = out.kernels

    def __repr__(self) -> str:
        return f"<library {self.name}: {self.available}>"


def library(name: str, *, open: bool = False) -> Library:  # noqa: A002
    """How a vendor's library stands; opened only when that is asked for.

    >>> import tenon
    >>> tenon.library("cpu").reason
    'part of Tenon'
    >>> tenon.library("opt_einsum").reason
    'part of Tenon'
    >>> tenon.library("openblas", open=True).available in ("yes", "no")        # "untried" before it is opened
    True
    """
    from . import errors

    address = take(lib.tn_library_get, _given.text("name", name))
    if open:
        err = _abi.Error()
        lib.tn_library_try(address, byref(err))  # what became of it is in its state
        if err.status == 9:
            raise errors.make(err)
    return Library._make(address)


def libraries() -> list[Library]:
    """Every library that is known by name; opens nothing.

    >>> import tenon
    >>> {"cublaslt", "mkldnn", "openblas"} <= {each.name for each in tenon.libraries()}
    True
    """
    count = c_size_t()
    call(lib.tn_library_count, byref(count))
    return [Library._make(lib.tn_library_at(i)) for i in range(count.value)]


def _libraries() -> list[list[str]]:
    return [["library", "available", "version", "why"]] + [
        [each.name, each.available, each.version_text, each.reason]
        for each in libraries() if each.built or each.path]


class Report:
    """Tables by their names; print it, or show it in a notebook."""

    def __init__(self) -> None:
        build = f"Tenon {text(lib.tn_version())} from {lib.path}, package {VERSION}"
        self.title = f"{build}, Python {sys.version.split()[0]}"
        self.tables = {"platforms": _platforms(), "devices": _device_rows(), "modules": _modules(),
                       "libraries": _libraries()}
        self.problems = settings.problems()

    @property
    def ok(self) -> bool:
        """Whether no platform is broken and every setting of the environment was taken."""
        return not self.problems and all(row[1] != "broken" for row in self.tables["platforms"])

    def __str__(self) -> str:
        parts = [self.title, *(_tables.plain("\n" + name, rows)
                               for name, rows in self.tables.items()), *self.problems]
        return "\n".join(parts)

    def _repr_html_(self) -> str:
        return "".join(_tables.html(name, rows) for name, rows in self.tables.items())

    def __repr__(self) -> str:
        return f"<doctor: {'well' if self.ok else 'see print()'}>"


def doctor() -> Report:
    """What this machine has, as `tenon doctor --quick` tells it.

    >>> import tenon
    >>> report = tenon.doctor()             # print(report) shows its tables; so does a notebook
    >>> report.ok, list(report.tables)
    (True, ['platforms', 'devices', 'modules', 'libraries'])
    """
    return Report()
