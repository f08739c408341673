"""From a solution script to steps, each of which runs in a shell of its own.

Variables, functions, options and directories that one command leaves to the next do not survive between
shells. So pure definitions are repeated in front of the steps that need them, and commands that pass on
anything else (the output of a command kept in a variable, a counter, a background job, `$?`) stay together.
Where that cannot be told, the whole script is one step.

Playing the steps has the effect of running the script with no argument, as long as its commands succeed: a
script under `set -e` that fails stops, while steps go on.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from orchard_core.tasks.shell import HIDDEN, Piece, Unsure, pieces
from orchard_core.types.task import SolutionStep

_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_REFERENCE = re.compile(rf"\$\{{?[#!]?({_NAME})")
_BARE_NAME = re.compile(rf"(?<![\w./-]){_NAME}")
_ASSIGNED = re.compile(rf"(?<![\w$./-])({_NAME})(?:\[[^\]\n]*\])?\+?=")
_LOOPED = re.compile(rf"\bfor\s+({_NAME})")
_DEFAULTED = re.compile(rf"\$\{{({_NAME}):?=")
_ARITHMETIC = re.compile(r"\(\(([^()]*)\)\)")
_ASSIGNMENTS = re.compile(rf"\s*(?:{_NAME}\+?=[^\s;&|<>*?]*[\s;]*)+")
_EXPORT = re.compile(rf"\s*(?:export|readonly)(?:\s+{_NAME}(?:=[^\s;&|<>*?]*)?)+\s*;?\s*")
_FUNCTION = re.compile(rf"\s*({_NAME})\s*\(\s*\)")
_SET = re.compile(r"\s*(?:set|shopt|umask|cd)(?:\s+[^\s;&|<>]+)+\s*;?\s*")
_ALL_EXPORTED = re.compile(r"\bset\s+-\w*a|\ballexport\b")
_DEFINERS = re.compile(r"\b(?:read|mapfile|readarray|let|getopts|unset|declare|typeset|printf\s+-v)\b")
_STICKY = re.compile(
    r"(?<![\w./-])(?:cd|pushd|popd|trap|exec|eval|source|exit|return|shift|wait|alias|unalias|set|shopt|ulimit"
    r"|umask|export|readonly|jobs|disown|hash|enable)(?![\w./-])|(?:^|[;&|\n{]|\b(?:then|do|else)\s)\s*\.\s"
    r"|(?<![&>|<])&(?![&>\d])"
)
_BRACES = re.compile(r"(?<!\S)[{}](?=[\s;&|]|$)")
_LAST_STATUS = re.compile(r"\$(?:[?!_](?!\w)|\{[?!_]\}|\{?PIPESTATUS\b)")
_OWN_PROCESS = re.compile(r"\$\$|\$\{?(?:BASHPID|RANDOM|SECONDS|EPOCHSECONDS|LINENO)\b")
_SUBSTITUTION = re.compile(r"\$\(|`|<\(|>\(")
_WHERE_AM_I = re.compile(
    r"\$\((?:\s|&&|\$\(|\)|\"|/|\.\.?|cd|pwd|dirname|basename|-P|-L|--|\$0|\$\{BASH_SOURCE\[0\]\}|\$\w+)*\)"
)


@dataclass(slots=True, kw_only=True)
class _Chunk:
    """A piece and what it has to do with the others."""

    piece: Piece
    """Its text."""
    defines: set[str]
    """Names it may set."""
    uses: set[str]
    """Names it may read or call."""
    state: bool
    """It does nothing but define."""
    pure: bool
    """Defining again gives the same."""
    always: bool
    """State that no name stands for: options, directory, exported variables."""
    function: str
    """The function it defines, or empty."""


def split_script(script: str) -> tuple[SolutionStep, ...]:
    """The script as steps. Comments above a command become its thought. Never raises: a script that is
    not understood is one step."""
    text = script.replace("\r\n", "\n")
    try:
        chunks = [_chunk(piece) for piece in pieces(text)]
    except Unsure:
        return _whole(text)
    if chunks and chunks[-1].piece.bare.split() in (["exit"], ["exit", "0"]):
        chunks.pop()
    if any(_ALL_EXPORTED.search(chunk.piece.bare) for chunk in chunks):
        return _whole(text)
    _expand_calls(chunks)
    _taint(chunks)
    steps = [_step(chunks, group) for group in _groups(chunks) if not _only_state(chunks, group)]
    return tuple(steps) or _whole(text)


def _whole(script: str) -> tuple[SolutionStep, ...]:
    body = script.split("\n", 1)[1] if script.startswith("#!") and "\n" in script else script
    return (SolutionStep(command=body.strip("\n")),) if body.strip() else ()


def _chunk(piece: Piece) -> _Chunk:
    bare, live = piece.bare, piece.live
    function = _FUNCTION.match(bare) if _is_one_body(bare) else None
    defines = {*_ASSIGNED.findall(bare), *_LOOPED.findall(bare), *_DEFAULTED.findall(live)}
    for inside in _ARITHMETIC.findall(live):
        defines.update(_BARE_NAME.findall(inside))
    if _DEFINERS.search(bare):
        defines.update(_BARE_NAME.findall(bare))
    uses = {*_REFERENCE.findall(live), *_BARE_NAME.findall(bare.replace(HIDDEN, " "))}
    for inside in _ARITHMETIC.findall(live):
        uses.update(_BARE_NAME.findall(inside))
    always = bool(_SET.fullmatch(bare) or _EXPORT.fullmatch(bare))
    state = always or bool(function) or bool(_ASSIGNMENTS.fullmatch(bare))
    return _Chunk(
        piece=piece,
        defines=defines,
        uses=uses,
        state=state,
        pure=state and (bool(function) or _is_pure(live)),
        always=always,
        function=function[1] if function else "",
    )


def _is_one_body(bare: str) -> bool:
    """Whether the first `{...}` or `(...)` of a function definition is also its end."""
    depth = 0
    for match in _BRACES.finditer(bare):
        depth += 1 if match[0] == "{" else -1
        if depth == 0:
            return not bare[match.end() :].strip(" \n;")
    return bare.rstrip(" \n;").endswith(HIDDEN) and not re.search(r"[;&|\n]", bare.rstrip(" \n;"))


def _is_pure(live: str) -> bool:
    rest = _WHERE_AM_I.sub("", live)
    return not (_SUBSTITUTION.search(rest) or _OWN_PROCESS.search(rest) or _LAST_STATUS.search(rest))


def _expand_calls(chunks: Sequence[_Chunk]) -> None:
    """What a function sets and reads, its callers set and read; defining it sets only its name."""
    bodies: dict[str, list[_Chunk]] = {}
    for chunk in chunks:
        if chunk.function:
            bodies.setdefault(chunk.function, []).append(chunk)
    inner = {name: [(set(c.defines), set(c.uses)) for c in found] for name, found in bodies.items()}
    for chunk in chunks:
        if chunk.function:
            chunk.defines = {chunk.function}
            continue
        todo, seen = [name for name in chunk.uses if name in inner], set[str]()
        while todo:
            name = todo.pop()
            if name in seen:
                continue
            seen.add(name)
            for defines, uses in inner[name]:
                chunk.defines |= defines
                chunk.uses |= uses
                todo += [other for other in uses if other in inner]


def _taint(chunks: Sequence[_Chunk]) -> None:
    """A definition that reads what a command set cannot be repeated either."""
    tainted: set[str] = set()
    for chunk in chunks:
        if chunk.state and chunk.uses & tainted:
            chunk.pure = False
        if not (chunk.state and chunk.pure):
            tainted |= chunk.defines


def _groups(chunks: Sequence[_Chunk]) -> list[range]:
    """Runs of chunks that must share a shell."""
    last = len(chunks) - 1
    reach = list(range(len(chunks)))
    functions = {chunk.function: chunk for chunk in chunks if chunk.function}
    for i, chunk in enumerate(chunks):
        if _is_sticky(chunk, functions):
            reach[i] = last
        elif not (chunk.state and chunk.pure):
            users = [j for j in range(i + 1, len(chunks)) if chunks[j].uses & chunk.defines]
            reach[i] = max([i, *users])
        if i and _LAST_STATUS.search(chunk.piece.live):
            reach[i - 1] = max(reach[i - 1], i)
    groups: list[range] = []
    start = 0
    while start <= last:
        end, i = reach[start], start
        while i <= end:
            end = max(end, reach[i])
            i += 1
        groups.append(range(start, end + 1))
        start = end + 1
    return groups


def _is_sticky(chunk: _Chunk, functions: dict[str, _Chunk]) -> bool:
    """What it leaves behind is not held by any name, so everything after it shares its shell."""
    if chunk.function:
        return False
    if chunk.state:
        return chunk.always and not chunk.pure
    called = [functions[name].piece for name in chunk.uses if name in functions]
    in_body = any(_STICKY.search(re.sub(r"\breturn\b", "", body.bare)) for body in called)
    return in_body or bool(_STICKY.search(chunk.piece.bare) or _OWN_PROCESS.search(chunk.piece.live))


def _only_state(chunks: Sequence[_Chunk], group: range) -> bool:
    return all(chunks[i].state and chunks[i].pure for i in group)


def _step(chunks: Sequence[_Chunk], group: range) -> SolutionStep:
    own = [chunks[i] for i in group]
    before = [chunk for chunk in chunks[: group.start] if chunk.state and chunk.pure]
    preamble = _needed(before, own)
    command = "\n".join(chunk.piece.text for chunk in [*preamble, *own])
    comments = [chunk.piece.comment for chunk in own if chunk.piece.comment]
    return SolutionStep(command=command, thought=". ".join(comments))


def _needed(before: Sequence[_Chunk], own: Iterable[_Chunk]) -> list[_Chunk]:
    """Definitions that the step reads, and what those read in turn, in their order."""
    wanted = set().union(*(chunk.uses for chunk in own))
    kept: list[_Chunk] = []
    while True:
        found = [chunk for chunk in before if chunk.always or chunk.defines & wanted]
        if len(found) == len(kept):
            return found
        kept = found
        wanted = wanted.union(*(chunk.uses for chunk in found))
