"""Why a kernel is taken: every candidate with its verdict, before anything runs."""

from __future__ import annotations

from ctypes import byref, c_char_p
from typing import Any, Callable, Iterator, NamedTuple, overload

from . import _abi, _calls, _given, _tables, settings
from ._handles import Handle, Made, call, take
from ._library import lib, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing_extensions import ParamSpec

    P = ParamSpec("P")


class Why(NamedTuple):
    """Why a candidate is refused. As text: "dtype: a: expected bf16, got f32"."""

    code: str
    what: str
    needed: int
    found: int
    text: str

    def __str__(self) -> str:
        if self.text.startswith(self.what):
            return f"{self.code}: {self.text}"
        said = f"{self.code}: {self.what}: expected {self.needed}, got {self.found}"
        return f"{said}; {self.text}" if self.text else said


class Candidate(NamedTuple):
    """One kernel of a decision."""

    kernel: str
    verdict: str
    library: str
    backend: str
    platform: str
    module: str
    rule: str
    predicted_us: float
    tuned_us: float
    workspace_bytes: int
    why: Why | None
    note: str


def _describe(cls: Any, **fields: str) -> None:
    """Gives the fields of a named tuple the texts that help() prints."""
    for name, words in fields.items():
        getattr(cls, name).__doc__ = words


_describe(Why, code='The kind of the refusal: "dtype", "rule", "device".', what="What the refusal is about.",
          needed="The value that the kernel needs.", found="The value that was found.",
          text='A description of the problem, or a remedy; may be "".')
_describe(Candidate, kernel='The name of the kernel: "cpu.matmul.f32.avx512".',
          verdict='"chosen", "admitted" (it can run, another is preferred), "untested" (it can run once tested), '
                  '"refused" or "quarantined" (it gave wrong results on this machine).',
          library='The vendor library that it calls, or "".', backend='The attention backend, or "".',
          platform='The platform that it runs on: "cpu".', module="The module that offers it.",
          rule='The rule that orders or refuses it, or "".', predicted_us="The predicted time in microseconds.",
          tuned_us="The measured time in microseconds; 0: not measured.",
          workspace_bytes="The bytes of workspace that it needs.",
          why="A Why with the reason for which it cannot run; None if it can.",
          note="How it would compute the problem, in its own words.")


class Decision(Made):
    """All kernels for a problem, best first, with the reason for each that cannot run: what `tenon.explain` returns.

    Print it for a table; in a notebook it is one. It is also a sequence of candidates.

    >>> import tenon
    >>> decision = tenon.explain("matmul:f32:m=8,n=8,k=8@cpu")
    >>> decision.chosen == decision[0], decision.status
    (True, 'ok')
    >>> decision.chosen == (decision.runs_once_tested or decision.runs_now)
    True
    >>> bf16 = next(c for c in decision if c.kernel.startswith("cpu.matmul.bf16."))
    >>> bf16.verdict, bf16.why.code
    ('refused', 'dtype')
    """

    problem: str
    status: str
    message: str
    unmet: str
    candidates: list[Candidate]
    chosen: Candidate | None
    runs_now: Candidate | None
    runs_once_tested: Candidate | None

    __slots__ = {
        "problem": 'The problem as text, which tenon.explain accepts too: "matmul:f32:m=8,n=8,k=8@cpu".',
        "status": '"ok", or the status of the error that a call would raise.',
        "message": 'The message of that error, or "".',
        "unmet": 'A rule that prefers a kernel that is refused or not here, or "".',
        "candidates": "Every kernel, best first.",
        "chosen": "The kernel that a program should expect: runs_once_tested, otherwise runs_now; None if no kernel may run.",
        "runs_now": "The first candidate that needs no test before its first use; None without such a candidate.",
        "runs_once_tested": "The first candidate of all, if it has yet to pass its test; else None.",
    }

    _returned_by = "tenon.explain(problem)"

    def _init(self, address: int) -> None:
        handle = Handle(address, "tn_decision_release")
        message = c_char_p()
        status = lib.tn_decision_status(address, byref(message))
        self.problem = text(lib.tn_decision_problem(address))
        self.status = text(lib.tn_status_name(status))
        self.message = text(message.value) if status else ""
        self.unmet = text(lib.tn_decision_unmet(address))
        self.candidates = [_candidate(lib.tn_decision_candidate(address, i))
                           for i in range(lib.tn_decision_count(address))]
        self.chosen = _optional(lib.tn_decision_chosen(address))
        self.runs_now = _optional(lib.tn_decision_runs_now(address))
        self.runs_once_tested = _optional(lib.tn_decision_runs_once_tested(address))
        del handle

    def __iter__(self) -> Iterator[Candidate]:
        return iter(self.candidates)

    def __len__(self) -> int:
        return len(self.candidates)

    def __getitem__(self, index: int) -> Candidate:
        return self.candidates[index]

    def _rows(self) -> list[list[str]]:
        return [["kernel", "verdict", "us", "library", "why"]] + [
            [c.kernel, c.verdict, _tables.number(c.tuned_us or c.predicted_us) if not c.why else "",
             c.library, str(c.why or c.note)] for c in self.candidates]

    def _outcome(self) -> str:
        """The words of `tenon explain`, or the error of a call."""
        if not self.chosen:
            return self.message
        now = self.runs_now.kernel if self.runs_now else "nothing until a kernel is tested"
        later = f"; runs once tested: {self.runs_once_tested.kernel}" if self.runs_once_tested else ""
        return f"runs now: {now}{later}"

    def __str__(self) -> str:
        return _tables.plain(self.problem, self._rows(), self._outcome())

    def _repr_html_(self) -> str:
        return _tables.html(self.problem, self._rows(), self._outcome())

    def __repr__(self) -> str:
        return f"<decision on {self.problem}: {self._outcome() if self.chosen else self.status}>"


def _optional(address: int | None) -> Candidate | None:
    return _candidate(address) if address else None


def _candidate(address: int) -> Candidate:
    raw = _abi.Candidate.from_address(address)
    return Candidate(
        text(raw.kernel), text(lib.tn_verdict_name(raw.verdict)), text(raw.library),
        text(raw.backend), text(raw.platform), text(raw.module), text(raw.rule), raw.predicted_us,
        raw.tuned_us, raw.workspace_bytes, _why(raw.why), text(raw.note))


def _why(address: int | None) -> Why | None:
    if not address:
        return None
    raw = _abi.Refusal.from_address(address)
    return Why(text(lib.tn_refusal_name(raw.code)), text(raw.what), raw.needed, raw.found,
               text(raw.text))


def _check_alone(given: tuple[Any, ...], options: dict[str, Any]) -> None:
    if given or options:
        raise TypeError("expected a problem's text alone, got other arguments too")


def _instead(function: Any) -> str:
    """What to explain or to prepare instead of a function of the package that calls several operators."""
    home, name = getattr(function, "__module__", None) or "", getattr(function, "__name__", "")
    if home.startswith("tenon.") and name == "einsum":
        return "; tenon.einsum_path(...) returns its steps, whose problems are texts for this function"
    if home.startswith(("tenon.video", "tenon._video")) and name.endswith("_attention"):
        used = "tenon.attention" if name.startswith("vmoba") else "tenon.attention_sparse"
        return f"; it computes with {used}, which this function takes"
    return "; use tenon.matmul" if home.startswith("tenon.") and name == "matmul_pack" else ""


def _made(operator: Any, given: tuple[Any, ...], options: dict[str, Any]) -> _calls.Call:
    if operator not in _calls.MAKERS:
        raise TypeError(f"expected a problem's text or an operator such as tenon.matmul, got {operator!r}{_instead(operator)}")
    return _calls.make(_calls.MAKERS[operator], given, options)


@overload
def explain(problem: str) -> Decision: ...
@overload
def explain(problem: Callable[P, Any], *given: P.args, **options: P.kwargs) -> Decision: ...
def explain(problem: Any, *given: Any, **options: Any) -> Decision:
    """What would compute a problem, and why not the others; runs nothing. A problem is a text, or an
    operator with the arguments of a call.

    >>> import numpy, tenon
    >>> x = numpy.ones((4, 8), "float32")
    >>> tenon.explain(tenon.softmax, x).problem.startswith("softmax:f32:shape=4x8")
    True
    >>> with tenon.settings.scope({"determinism": "batch-invariant"}):
    ...     tenon.explain("matmul:f32:m=8,n=8,k=8@cpu").chosen.platform
    'cpu'
    """
    if isinstance(problem, str):
        _check_alone(given, options)
        return Decision._make(take(lib.tn_explain, settings.context(), _given.text("problem", problem)))
    made = _made(problem, given, options)
    return Decision._make(take(getattr(lib, made.name + "_explain"), settings.context(), byref(made.args)))


@overload
def prepare(problem: str) -> None: ...
@overload
def prepare(problem: Callable[P, Any], *given: P.args, **options: P.kwargs) -> None: ...
def prepare(problem: Any, *given: Any, **options: Any) -> None:
    """Makes the plan of a problem ahead: opens libraries, tests and, where wished, times kernels.

    >>> import numpy, tenon
    >>> a = numpy.ones((8, 8), "float32")
    >>> tenon.prepare(tenon.matmul, a, a, activation="gelu")           # the first such call is as fast as the next
    """
    if isinstance(problem, str):
        _check_alone(given, options)
        call(lib.tn_prepare, settings.context(), _given.text("problem", problem))
        return
    made = _made(problem, given, options)
    call(getattr(lib, made.name + "_prepare"), settings.context(), byref(made.args))


def fallbacks() -> dict[str, Any]:
    """Did anything fall back? Plans since the process began, by reason, and the `last` such problem.

    >>> import tenon
    >>> list(tenon.fallbacks())
    ['preferred', 'avoided', 'unavailable', 'quarantined', 'reference', 'last']
    >>> tenon.fallbacks()["quarantined"]            # kernels that were found to be wrong here
    0
    """
    out = _abi.Fallbacks()
    call(lib.tn_fallbacks_get, byref(out))
    names = ("preferred", "avoided", "unavailable", "quarantined", "reference")
    return {**{name: getattr(out, name) for name in names}, "last": text(out.last)}
