"""The model `scripted`: answers from a list, a callable or a file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from orchard_core.errors import ConfigError, ModelError, ModelRejected
from orchard_core.gateway.contract import SessionContext
from orchard_core.gateway.scripted.config import ScriptedConfig
from orchard_core.gateway.scripted.conversation import Conversation
from orchard_core.gateway.scripted.reply import Reply
from orchard_core.gateway.scripted.upstream import FreeModel, ScriptedUpstream
from orchard_core.types.model import UpstreamMode

Entry = Reply | str | ModelError
"""An answer, a text to say, or an error to raise."""

Replies = Sequence[Entry] | Callable[[Conversation], Entry]
"""The answer to call i of a session stands at place i; or a callable gives it."""


class ScriptedModel(FreeModel):
    """Answers from a script.

    With a list, call i of every session gets entry i, however often it is repeated; one call more is
    refused with ModelRejected.
    """

    def __init__(
        self, replies: Replies, *, name: str = "scripted", mode: UpstreamMode = UpstreamMode.TEXT
    ) -> None:
        super().__init__(name)
        self._replies = replies
        self._mode = mode

    def upstream(self, context: SessionContext) -> ScriptedUpstream:
        """The same script for every session."""
        return self._upstream(self._replies)

    def _upstream(self, replies: Replies) -> ScriptedUpstream:
        def script(conversation: Conversation) -> Reply:
            entry = replies(conversation) if callable(replies) else _at(replies, conversation.index)
            if isinstance(entry, ModelError):
                raise entry
            return Reply(text=entry) if isinstance(entry, str) else entry

        return ScriptedUpstream(model=self.name, script=script, mode=self._mode)


def _at(replies: Sequence[Entry], index: int) -> Entry:
    if index < len(replies):
        return replies[index]
    raise ModelRejected(
        f"the script has {len(replies)} replies, and call {index + 1} of the session came",
        status=400,
        hint="add a reply, or end the script with a call of the harness's submit tool",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line(Reply):
    task: str | None = None


class _FileModel(ScriptedModel):
    """A script in which a line may belong to one task."""

    def __init__(self, lines: tuple[_Line, ...]) -> None:
        ids = any(line.completion_tokens is not None for line in lines)
        super().__init__((), mode=UpstreamMode.CHAT if ids else UpstreamMode.TEXT)
        self._lines = lines

    def upstream(self, context: SessionContext) -> ScriptedUpstream:
        task = context.task.id if context.task else None
        return self._upstream([line for line in self._lines if line.task in (None, task)])


def from_file(config: ScriptedConfig) -> ScriptedModel:
    """The script that stands in a file. Raises ConfigError naming the line that is wrong."""
    return _FileModel(tuple(_read(config.path)))


def _read(path: Path) -> list[_Line]:
    adapter = TypeAdapter(_Line)
    found: list[_Line] = []
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"cannot read the script {path}: {error}", hint="give a JSONL file, as in scripted:replies.jsonl"
        ) from error
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            found.append(adapter.validate_json(line))
        except ValidationError as error:
            problem = error.errors()[0]
            where = ".".join(str(part) for part in problem["loc"]) or "line"
            raise ConfigError(
                f"{path}:{number}: {where}: {problem['msg']}",
                hint='one reply a line, such as {"text": "Hello", "calls": []}',
            ) from error
    return found
