"""What a page of one conversation is made of. Texts are as recorded: the templates escape them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from orchard_core.types.credit import RiseSegment, ValuePoint
from orchard_core.viewer.pieces import Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A piece of a message, long ones without their middle."""

    kind: Kind
    """What it is."""
    head: str
    """The text, or its beginning."""
    tail: str = ""
    """Its end, where the middle is left out."""
    size: int = 0
    """Characters of the whole."""
    ref: str = ""
    """What names the whole in an address."""
    name: str = ""
    """The tool of a call, or what a part calls itself."""
    call_id: str = ""
    """What joins a call and its result."""
    failed: bool = False
    """A result that says it is an error."""
    arguments: tuple[tuple[str, str], ...] = ()
    """Of a call whose arguments are a JSON object: each one's name and value."""
    width: int = 0
    """Pixels of a picture that can be shown."""
    height: int = 0
    """Pixels likewise."""

    @property
    def left_out(self) -> int:
        """Characters that are not here."""
        return max(0, self.size - len(self.head) - len(self.tail))


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """One message."""

    role: str
    """Who said it."""
    pieces: tuple[Shown, ...]
    """What it consists of."""
    mask: int | None = None
    """1: it is trained on, 0: it is not; None: nothing says."""
    note: str = ""
    """What is special about it."""

    @property
    def first_line(self) -> str:
        """For a fold's head."""
        return next((piece.head[:160] for piece in self.pieces if piece.head.strip()), "")


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnView:
    """One answer of the model, what came before it and what came back."""

    number: int
    """Names it: the call's number in a rollout, the answer's in a row."""
    step: int | None
    """t in the main conversation, from 0; None: it is not part of it."""
    before: tuple[Said, ...]
    """Messages that were new in its request."""
    answer: Said | None
    """None: there is none."""
    after: tuple[Said, ...]
    """What came back for it."""
    facts: tuple[tuple[str, str], ...] = ()
    """Tokens, cost, time and how it ended, by name."""
    thread: str = ""
    """Which conversation it belongs to, where it is not the main one."""
    notes: tuple[str, ...] = ()
    """How it relates to the calls before it, and what becomes of its tokens."""
    problems: tuple[str, ...] = ()
    """Retries and errors."""
    sampled: int = 0
    """Sampled tokens whose ids are known."""
    trained: int | None = None
    """Those that a sample trains; None: there are no samples."""
    value: float | None = None
    """V(s_t) before it."""
    rise: float | None = None
    """How much the value rises with it."""
    credited: bool | None = None
    """Credit assignment trains on it; None: none was done."""

    @property
    def action(self) -> str:
        """In a word or two, for an outline."""
        if self.answer is None:
            return "no answer"
        calls = [piece.name for piece in self.answer.pieces if piece.kind == "call"]
        if not calls:
            return "says"
        more = f" +{len(calls) - 1}" if len(calls) > 1 else ""
        return calls[0] + more

    @property
    def acts(self) -> bool:
        """It calls a tool."""
        return self.answer is not None and any(piece.kind == "call" for piece in self.answer.pieces)

    @property
    def gist(self) -> str:
        """What it calls a tool with, or says: the first line."""
        for piece in self.answer.pieces if self.answer is not None else ():
            if piece.kind == "call":
                text = piece.arguments[0][1] if piece.arguments else piece.head.removeprefix("{}")
                return next((line for line in text[:400].splitlines() if line.strip()), piece.name)
        said = self.answer.first_line if self.answer is not None else ""
        return said or self.action

    @property
    def failed(self) -> bool:
        """Something in it went wrong."""
        return bool(self.problems) or any(piece.failed for said in self.after for piece in said.pieces)


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """Credit of the T turns of the main conversation."""

    name: str
    """What it is called."""
    points: Sequence[ValuePoint] = ()
    """[T+1] by turn."""
    segments: Sequence[RiseSegment] = ()
    """Rises."""
    trained: Sequence[int] = ()
    """[T] 1: trained on."""
    anchors: Sequence[int] = ()
    """[T] number of each turn on the page."""
    facts: tuple[tuple[str, str], ...] = ()
    """Settings and cost."""
    error: str = ""
    """Why there is no curve."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadView:
    """One conversation among the calls of a rollout."""

    name: str
    """Such as `main` or `subagent 2`."""
    kind: str
    """What it is."""
    calls: tuple[int, ...]
    """Numbers of its calls."""
    sampled: int
    """Tokens sampled in it."""
    trained: int
    """Those that are trained."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolView:
    """A tool as the model was shown it."""

    name: str
    """Its name."""
    description: str
    """What it is said to do."""
    schema: str
    """Its parameters, as indented JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactView:
    """Something that was kept of a rollout."""

    path: str
    """Where it lay."""
    kind: str
    """A file or a tree."""
    size: int
    """Bytes."""
    number: int
    """Names it in an address."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """A conversation to read."""

    facts: tuple[tuple[str, str], ...]
    """Score, outcome and the like."""
    turns: tuple[TurnView, ...]
    """Those of this page."""
    first: int = 0
    """Place of the first of them."""
    total: int = 0
    """How many there are."""
    instruction: Shown | None = None
    """What the agent was told to do."""
    error: tuple[str, Shown] | None = None
    """What decided the outcome: class and message."""
    tools: tuple[ToolView, ...] = ()
    """What the model could call."""
    curves: tuple[Curve, ...] = ()
    """Credit, one each."""
    threads: tuple[ThreadView, ...] = ()
    """Main conversation first."""
    samples: str = ""
    """What becomes of the sampled tokens, in a sentence."""
    verdict: tuple[tuple[str, Shown], ...] = ()
    """How it ended and was judged."""
    artifacts: tuple[ArtifactView, ...] = ()
    """What was kept."""
    provenance: tuple[tuple[str, str], ...] = ()
    """Versions and hashes."""
