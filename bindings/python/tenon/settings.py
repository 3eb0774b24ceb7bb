"""Every switch by its key, with its value and where that came from.

A scope changes what it names and nothing else. It belongs to the code inside it: threads, and tasks of
asyncio, each have their own, as scopes follow `contextvars`.

>>> import tenon
>>> with tenon.settings.scope(fp32_precision="tf32"):
...     tenon.settings.get("cuda.matmul.fp32_precision")
'tf32'
>>> tenon.settings.get("cuda.matmul.fp32_precision")
'ieee'
"""

from __future__ import annotations

__all__ = ["Setting", "context", "current", "file", "freeze", "frozen", "get", "import_upstream", "info", "keys", "origin",
           "problems", "reset", "resume", "save", "scope", "set", "value"]

from contextvars import ContextVar
from ctypes import byref, c_int32, create_string_buffer

from . import _abi, _given, _log, errors
from ._handles import Made, Number, call, take
from ._library import lib, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterable, Iterator, Mapping

    Value = Any  # bool, int, str or None
    _Held = Any  # _Context, _Resumed or None
    _Mark = Any  # a Token of `_entries`, or None for what was not entered or has ended


class Setting(Made):
    """A row of the table as it stands. `readers` are the parts that another value changes something for, with the
    modules that are loaded; if there are none, `unused_because` says why.

    >>> import tenon
    >>> tenon.settings.info("cudnn.benchmark").unused_because
    'this version has no operator that reads it'
    """

    key: str
    kind: str
    value: str
    default: str
    environment: str
    allowed: str
    effect: str
    since: str
    origin: str
    view: bool
    process_only: bool
    readers: list[str]
    unused_because: str

    __slots__ = ("key", "kind", "value", "default", "environment", "allowed", "effect", "since",
                 "origin", "view", "process_only", "readers", "unused_because")
    _returned_by = "tenon.settings.info(key)"

    def __repr__(self) -> str:
        return f"<setting {self.key}={self.value}, {self.origin}>"


def _number(key: str) -> int:
    out = c_int32()
    call(lib.tn_setting_get, _given.text("key", key), byref(out))
    return out.value


def _facts(number: int) -> _abi.SettingFacts:
    """Of a number that is a setting's."""
    return _abi.SettingFacts.from_address(lib.tn_setting_info(number))


def _write(function: Any, number: int) -> str:
    room = create_string_buffer(256)
    need = function(context(), number, room, len(room))
    if need >= len(room):
        room = create_string_buffer(need + 1)
        function(context(), number, room, len(room))
    return text(room.value)


def _typed(number: int, resolved: bool) -> Value:
    kind = text(_facts(number).kind)
    if kind in ("bool", "int", "bytes"):
        read = lib.tn_setting_resolved if resolved else lib.tn_setting_value
        value = read(context(), number)
        return bool(value) if kind == "bool" else None if value < 0 else value
    return _write(lib.tn_setting_write_resolved if resolved else lib.tn_setting_write, number)


def keys() -> list[str]:
    """Every key, in the order of the table."""
    return [text(facts.key) for facts in _all_facts()]


def _all_facts() -> Iterator[_abi.SettingFacts]:
    number = 0
    while lib.tn_setting_info(number):
        yield _facts(number)
        number += 1


def get(key: str) -> Value:
    """What holds here and now: a bool, an int (None for a default that is no number) or a word.

    >>> import tenon
    >>> tenon.settings.get("cuda.flash_sdp")
    True
    """
    return _typed(_number(key), resolved=True)


def value(key: str) -> Value:
    """What the row itself says: "none" for a precision that is inherited.

    >>> import tenon
    >>> tenon.settings.value("cudnn.conv.fp32_precision"), tenon.settings.get("cudnn.conv.fp32_precision")
    ('none', 'tf32')
    """
    return _typed(_number(key), resolved=False)


def origin(key: str) -> str:
    """Where the value came from: "default", "environment: TENON_FP32_PRECISION", "scope".

    >>> import tenon
    >>> with tenon.settings.scope(fp32_precision="ieee"):
    ...     tenon.settings.origin("cuda.matmul.allow_tf32")
    'scope, through fp32_precision'
    """
    out = _abi.Origin()
    call(lib.tn_setting_origin, context(), _number(key), byref(out))
    told = text(out.text)
    return told.replace("call", "scope", 1) if told.startswith("call") else told


def info(key: str) -> Setting:
    """All there is to know of a setting.

    >>> import tenon
    >>> row = tenon.settings.info("determinism")
    >>> row.allowed, row.environment
    ('any, run-to-run, batch-invariant, cross-device', 'TENON_DETERMINISM')
    """
    number = _number(key)
    facts, row = _facts(number), Setting.__new__(Setting)
    for name in ("key", "kind", "environment", "allowed", "effect", "since"):
        setattr(row, name, text(getattr(facts, name)))
    row.default = text(facts.standard)
    row.value = _write(lib.tn_setting_write_resolved, number)
    row.origin = origin(key)
    row.view, row.process_only = bool(facts.view), bool(facts.process_only)
    row.readers = []
    use = _abi.SettingUse()
    call(lib.tn_setting_use_get, number, byref(use))
    row.unused_because = text(use.reason)
    index = 0
    while (reader := lib.tn_setting_reader(number, index)) is not None:
        if use.readers >> index & 1:
            row.readers.append(text(reader))
        index += 1
    return row


def _assignment(key: str, to: Value) -> bytes:
    if isinstance(to, bool):
        to = "true" if to else "false"
    return _given.text("key", key) + b"=" + _given.text(f"the value of {key}", str(to))


class _Changes:
    """Changes as the library takes them; the texts that they point into live as long."""

    def __init__(self, changes: Mapping[str, Value]) -> None:
        self.texts = [_assignment(key, to) for key, to in changes.items()]
        self.array = (_abi.Change * len(self.texts))()
        for one, assignment in zip(self.array, self.texts):
            call(lib.tn_setting_parse, assignment, byref(one))


_generation = 0  # of what this package set for the process


_NOTHING: Any = object()
_warned_of: dict[str, None] = {}


def _warn_of_unused(changed: Iterable[str]) -> None:
    """Logs each key that changes nothing here, once."""
    for key in changed:
        because = "" if key in _warned_of else info(key).unused_because
        if because:
            _warned_of[key] = None
            _log.logger().warning("%s: set, but changes nothing here: %s", key, because)


def set(key: str | Mapping[str, Value], to: Value = _NOTHING) -> None:  # noqa: A001
    """Sets for the whole process: one key, or every one of a mapping, or when one is refused none.

    >>> import tenon
    >>> tenon.settings.set({"determinism": "run-to-run", "tuning.enabled": False})
    >>> tenon.settings.get("determinism")
    'run-to-run'
    >>> tenon.settings.reset("determinism"), tenon.settings.reset("tuning.enabled")
    (None, None)
    """
    global _generation
    name: Any = key
    if hasattr(key, "items") != (to is _NOTHING):
        raise TypeError("set needs a key and its value, or a mapping alone")
    changes = _Changes(name if hasattr(key, "items") else {name: to})
    call(lib.tn_settings_change, changes.array, len(changes.array))
    _generation += 1
    _warn_of_unused(name if hasattr(key, "items") else (name,))


def reset(key: str | None = None) -> None:
    """Forgets what was set for the process, of one key or of all."""
    global _generation
    call(lib.tn_settings_reset, _given.text("key", key) if key is not None else None)
    _generation += 1


def save(key: str, to: Value) -> None:
    """Writes into the configuration file; nothing changes for this process."""
    call(lib.tn_settings_save, _assignment(key, to))


def file() -> str:
    """The configuration file that was read, or would have been; "" for none."""
    return text(lib.tn_settings_file())


def problems() -> list[str]:
    """What could not be taken from the environment and the file, one line each."""
    lines: list[str] = []
    while (line := lib.tn_settings_problem(len(lines))) is not None:
        lines.append(text(line))
    return lines


# Variables of PyTorch's and FastVideo's that are switches, and what each says when it is 1.
_SWITCHES = {
    "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE": ("cuda.matmul.allow_tf32", "true"),
    "TORCH_BLAS_PREFER_CUBLASLT": ("cuda.preferred_blas_library", "cublaslt"),
    "TORCH_BLAS_PREFER_HIPBLASLT": ("cuda.preferred_blas_library", "cublaslt"),
    "TORCH_CUDNN_SDPA_DEPRIORITIZED": ("cuda.sdp_priority", "flash, mem_efficient, math, cudnn, overrideable"),
    "TORCH_DISABLE_NATIVE_AOT": ("rules", "forbid:language:*"),
    "TORCH_DISABLE_NATIVE_JIT": ("rules", "forbid:language:*"),
    "TORCH_LINALG_PREFER_CUSOLVER": ("cuda.preferred_linalg_library", "cusolver"),
    "TORCH_LINALG_PREFER_HIPSOLVER": ("cuda.preferred_linalg_library", "cusolver"),
    "TORCH_ROCM_FA_PREFER_CK": ("cuda.preferred_rocm_fa_library", "ck"),
}


def _of_upstream(variable: str, given: str) -> tuple[str, str]:
    """The key and its value that a variable of upstream's stands for; ("", why) for none."""
    if not given:
        return "", "it is empty"
    if variable in _SWITCHES:
        if given == "1":
            return _SWITCHES[variable]
        return "", "0 changes nothing" if given == "0" else f"expected 0 or 1, got {given!r}"
    if variable == "FASTVIDEO_ATTENTION_BACKEND":
        out = c_int32()
        try:
            call(lib.tn_attention_backend_find, _given.text(variable, given), byref(out))
        except errors.NotFoundError as error:
            raise errors.NotFoundError(f"{variable}: {error.message}", error.status, error.where) from None
        return "attention.backend", f"require:{text(lib.tn_attention_backend_name(out.value))}"
    if variable == "TORCH_CUDNN_V8_API_LRU_CACHE_LIMIT":
        digits = given[1:] if given.startswith("-") else given
        if not digits.isdecimal() or not int(digits):
            return "", "0 is no limit there, and plans here have one" if digits.isdecimal() else (
                f"expected a whole number, got {given!r}")
        return "plan.cache_size", "0" if given.startswith("-") else str(int(given))
    return "", "Tenon has no setting for it"


def import_upstream(environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """Takes over what PyTorch's and FastVideo's variables (TORCH_..., FASTVIDEO_...) say, for the whole process, and
    gives what became of each: "key=value", or "not taken: " and why. They are never read unasked; a key that has a value
    already, be it from TENON_<KEY>, keeps it. All that can be is taken, or when one is refused none.

    >>> import_upstream({"TORCH_BLAS_PREFER_CUBLASLT": "0", "TORCH_HOME": "/tmp"})["TORCH_HOME"]
    'not taken: Tenon has no setting for it'
    """
    import os

    changes: dict[str, Value] = {}
    told = {}
    for variable, given in sorted((os.environ if environment is None else environment).items()):
        if not variable.startswith(("TORCH_", "FASTVIDEO_")):
            continue
        key, to = _of_upstream(variable, given)
        if key and origin(key) != "default" and (key != "rules" or origin(key).startswith("scope")):
            key, to = "", f"{key} has a value already, by {origin(key)}"
        elif key:
            before = value(key) if key == "rules" else ""  # which add up
            changes[key] = f"{before}, {to}" if before and to not in before.split(", ") else before or to
        told[variable] = f"{key}={to}" if key else f"not taken: {to}"
    if changes:
        set(changes)
    return told


def freeze() -> None:
    """Forbids every change for the process from now on; scopes go on. There is no way back."""
    lib.tn_settings_freeze()


def frozen() -> bool:
    """Whether `freeze` was called."""
    return bool(lib.tn_settings_frozen())


class _Context:
    """What holds inside a scope: a tn_context over what held outside, made anew when the process's
    settings are changed by this package. Calls of other threads may still use the one before, and keep it."""

    __slots__ = ("owner", "outer", "changes", "mark", "handle")

    def __init__(self, owner: scope, outer: _Held, changes: _Changes, mark: _Mark) -> None:
        self.owner, self.outer, self.changes, self.mark = owner, outer, changes, mark
        self.handle = self._derive()

    def _derive(self) -> Number:
        generation = _generation
        below = self.outer.address() if self.outer is not None else None
        array = self.changes.array
        made = Number(take(lib.tn_context_derive, below, array, len(array)), "tn_context_release")
        made.generation = generation
        return made

    def address(self) -> Number | None:
        handle = self.handle
        if handle.generation != _generation:
            self.handle = handle = self._derive()
        return handle

    def over(self, outer: _Held) -> _Context:
        """The same changes over something else."""
        return _Context(self.owner, outer, self.changes, self.mark)

    def __reduce__(self) -> tuple[Any, ...]:
        """In another process, the same changes over what that process has."""
        return _unpickle, (self.owner, self.outer.held if isinstance(self.outer, _Resumed) else self.outer)


def _unpickle(owner: scope, outer: _Context | None) -> _Context:
    return _Context(owner, outer, owner._changes, None)


class _Resumed:
    """What holds inside `resume`: what held elsewhere. What held outside is only gone back to."""

    __slots__ = ("owner", "outer", "held", "mark")

    def __init__(self, owner: resume, outer: _Held, held: _Held, mark: _Mark) -> None:
        self.owner, self.outer, self.held, self.mark = owner, outer, held, mark

    def address(self) -> Number | None:
        return None if self.held is None else self.held.address()

    def over(self, outer: _Held) -> _Resumed:
        """The same where something else held outside."""
        return _Resumed(self.owner, outer, self.held, self.mark)


_current: ContextVar[_Held] = ContextVar("tenon.settings", default=None)

# What was entered has a mark: a token of this variable, which only the context that made it takes back. A task or a copy
# of a context inherits what holds, and cannot end it.
_entries: ContextVar[None] = ContextVar("tenon.settings.entries")


def _is_entered_here(held: _Context | _Resumed) -> bool:
    """Whether this context entered it. Takes the mark back: to be asked once, where it ends."""
    try:
        if held.mark is not None:
            _entries.reset(held.mark)
    except (ValueError, RuntimeError):  # another context's, or taken back
        return False
    entered, held.mark = held.mark is not None, None
    return entered


def _leave(owner: scope | resume) -> None:
    """Ends what the owner entered last, here. What was entered since and has not ended goes on without it."""
    inner, held = [], _current.get()
    while held is not None and held.owner is not owner:
        inner.append(held)
        held = held.outer
    if held is None or not _is_entered_here(held):
        raise RuntimeError(
            f"settings.{type(owner).__name__} ends where it was not entered: in another thread, task or context")
    held = held.outer
    for each in reversed(inner):
        held = each.over(held)
    _current.set(held)


def context() -> int | None:
    """The address of the tn_context that calls from here pass; None for the process's own. It lives as long as
    this object: pass it itself, no copy of its value."""
    held = _current.get()
    return None if held is None else held.address()


_NO_CHANGES: Mapping[str, Value] = {}


class scope:  # noqa: N801 - reads as a word of the language
    """Changes for the code inside, as keywords, or as a mapping for keys with a dot. Also a decorator of functions and
    of `async def`; generators, which run among their callers' code, open one inside.

    >>> import tenon
    >>> with tenon.settings.scope(fp32_precision="ieee", determinism="run-to-run"):
    ...     tenon.settings.get("determinism")
    'run-to-run'
    >>> @tenon.settings.scope({"cuda.matmul.fp32_precision": "tf32"})
    ... def inside():
    ...     return tenon.settings.get("cuda.matmul.fp32_precision")
    >>> inside(), tenon.settings.get("cuda.matmul.fp32_precision")
    ('tf32', 'ieee')

    Values are checked when it is made. Scopes nest, and one object can be entered again and again. One that ends before
    what was entered inside it, as a generator's may, removes its own changes and no others.
    """

    def __init__(self, changes: Mapping[str, Value] = _NO_CHANGES, /, **words: Value) -> None:
        if not hasattr(changes, "items"):
            raise TypeError(f"scope: expected keywords or a mapping of keys to values, got {type(changes).__name__}")
        for key in words.keys() & changes.keys():
            raise TypeError(f"scope got two values for {key!r}")
        changes = {**changes, **words}
        for key in changes:
            facts = _facts(_number(key))
            if facts.process_only:
                raise errors.invalid(f"{key}: expected a setting that a scope can change, got one of the process; use settings.set")
        self._changes = _Changes(changes)

    def __reduce__(self) -> tuple[Any, ...]:
        """By its changes; one that is entered is not entered where it is unpickled."""
        assignments = (one.decode("utf-8", "surrogateescape").partition("=") for one in self._changes.texts)
        return type(self), ({key: to for key, _, to in assignments},)

    def __enter__(self) -> scope:
        made = _Context(self, _current.get(), self._changes, None)
        made.mark = _entries.set(None)
        _current.set(made)
        return self

    def __exit__(self, *_: Any) -> None:
        _leave(self)

    def __call__(self, function: Any) -> Any:
        import functools
        import inspect

        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise TypeError(f"scope cannot decorate the generator {function.__qualname__}; open it inside, around what "
                            "is not yielded from")
        if inspect.iscoroutinefunction(function):
            @functools.wraps(function)
            async def awaited(*arguments: Any, **named: Any) -> Any:
                with self:
                    return await function(*arguments, **named)

            return awaited

        @functools.wraps(function)
        def inside(*arguments: Any, **named: Any) -> Any:
            with self:
                return function(*arguments, **named)

        return inside


def current() -> _Context | None:
    """What holds here, to be resumed elsewhere: in another thread, or in a backward pass."""
    held = _current.get()
    found: _Context | None = held.held if isinstance(held, _Resumed) else held
    return found


class resume:  # noqa: N801 - as scope
    """A scope in which holds what `current` gave, and nothing of what held before.

    >>> import tenon
    >>> with tenon.settings.scope({"determinism": "run-to-run"}):
    ...     held = tenon.settings.current()     # for a thread that goes on with this
    >>> with tenon.settings.resume(held):
    ...     tenon.settings.get("determinism")
    'run-to-run'
    """

    def __init__(self, held: _Context | None) -> None:
        if held is not None and not isinstance(held, _Context):
            raise TypeError(f"resume: expected what current() gave, got {type(held).__name__}")
        self._held = held

    def __enter__(self) -> None:
        _current.set(_Resumed(self, _current.get(), self._held, _entries.set(None)))

    def __exit__(self, *_: Any) -> None:
        _leave(self)


def __dir__() -> list[str]:
    return __all__
