"""Which kernel computes which problem, written down and held to.

>>> import os, tempfile, tenon
>>> path = os.path.join(tempfile.mkdtemp(), "model.lock")
>>> tenon.lock.write(path, ["matmul:f32:m=8,n=8,k=8@cpu"])
>>> tenon.lock.check(path).differences
0
"""

from __future__ import annotations

__all__ = ["Report", "Row", "check", "diff", "use", "used", "write"]

from ctypes import byref, c_char_p, c_void_p, cast, create_string_buffer
from typing import Any, Iterable, Iterator, NamedTuple

from . import _abi, _given, _tables, settings
from ._handles import Handle, Made, call, take
from ._library import lib, text


class Row(NamedTuple):
    """One line of a report; `kind` is "same", "kernel", "version", "refused", "settings", "machine"..."""

    kind: str
    problem: str
    locked: str
    found: str
    text: str


class Report(Made):
    """What a lock was held against, row by row; `differences` counts those that are not "same"."""

    _returned_by = "tenon.lock.check(path) or tenon.lock.diff(first, second)"

    def _init(self, address: int) -> None:
        handle = Handle(address, "tn_lock_report_release")
        self.rows = [_row(lib.tn_lock_report_row(address, i))
                     for i in range(lib.tn_lock_report_count(address))]
        self.differences: int = lib.tn_lock_report_differences(address)
        del handle

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def _table(self) -> list[list[str]]:
        return [["problem", "", "locked", "found", ""]] + [
            [row.problem, row.kind, row.locked, row.found, row.text] for row in self.rows]

    def __str__(self) -> str:
        return _tables.plain(f"{self.differences} differences", self._table())

    def _repr_html_(self) -> str:
        return _tables.html(f"{self.differences} differences", self._table())


def _row(address: int) -> Row:
    raw = _abi.LockRow.from_address(address)
    return Row(text(lib.tn_lock_row_name(raw.kind)), text(raw.problem), text(raw.locked),
               text(raw.found), text(raw.text))


def write(path: Any, problems: Iterable[str], *, strict: bool = False) -> None:
    """Writes what would compute each problem here and now: all of them or, when one cannot be, nothing.
    Strict: a problem that the lock does not name is refused."""
    if isinstance(problems, str):
        raise TypeError("problems: expected several texts, got one str; give a list of it")
    texts = [_given.text("problems", problem) for problem in problems]
    list_ = (c_char_p * max(len(texts), 1))(*texts)
    args = _abi.LockWriteArgs(path=_given.text("path", str(path)), problems=cast(list_, c_void_p),
                              count=len(texts), flags=1 if strict else 0)
    call(lib.tn_lock_write, settings.context(), byref(args))


def use(path: Any = None) -> None:
    """From now on the process's choices are those of the lock; None: nothing is locked."""
    call(lib.tn_lock_use, None if path is None else _given.text("path", str(path)))


def used() -> str:
    """The file whose choices hold; "" for none."""
    room = create_string_buffer(4096)
    lib.tn_lock_used(room, len(room))
    return text(room.value)


def check(path: Any, on: Any = None) -> Report:
    """Holds a lock against what would be chosen now, on its own devices or on another one."""
    from ._devices import device

    where = None if on is None else device(on).address
    return Report._make(take(lib.tn_lock_check, settings.context(), _given.text("path", str(path)), where))


def diff(first: Any, second: Any) -> Report:
    """Holds two locks against one another.

    >>> import os, tempfile, tenon
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     paths = [os.path.join(folder, name) for name in ("before.lock", "after.lock")]
    ...     tenon.lock.write(paths[0], ["softmax:f32:shape=4x8@cpu"])
    ...     tenon.lock.write(paths[1], ["softmax:f32:shape=4x9@cpu"])
    ...     [row.kind for row in tenon.lock.diff(*paths)]
    ['first-only', 'second-only']
    """
    return Report._make(take(lib.tn_lock_diff, _given.text("first", str(first)), _given.text("second", str(second))))


def __dir__() -> list[str]:
    return __all__
