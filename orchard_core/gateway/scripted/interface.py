"""How a harness wants commands and the final answer, read off a request.

There are four ways: native tool calls, tagged calls (`<tool_call>` with JSON, the tools listed between
<tools> and </tools>), fenced shell blocks, and no shell at all.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from orchard_core.gateway.scripted.conversation import Conversation, OfferedTool
from orchard_core.gateway.scripted.reply import Reply, ReplyCall

SENTINEL = "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
"""What mini-swe-agent's prompt says a last command must print."""

_COMMAND = ("command", "cmd", "commands", "bash_command", "script", "code", "input")
_ANY_COMMAND = frozenset(_COMMAND) - {"input"}
"""Names that say shell even where the tool's own name does not."""
_SHELL = ("bash", "shell", "terminal", "shell_command", "exec_command", "execute_bash", "run_shell_command",
          "run_command", "execute_command", "exec", "run", "local_shell", "sh")  # fmt: skip
_NO_SHELL = len(_SHELL) + 2
_SHELL_WORDS = frozenset(
    {"bash", "shell", "terminal", "sh", "cmd", "command", "exec", "execute", "run", "console"}
)
_OTHER_LANGUAGES = frozenset({"python", "ipython", "javascript", "js", "sql", "node", "browser", "jupyter"})
_FINISH = ("submit", "finish", "done", "complete", "terminate", "attempt_completion")
_FINISH_WORDS = frozenset({"task", "answer", "final", "result", "solution", "work", "the", "my"})
_ANSWER = (
    "answer",
    "final_answer",
    "result",
    "message",
    "summary",
    "output",
    "text",
    "response",
    "submission",
)
_GOOD = ("success", "succeeded", "complete", "completed", "done", "true", "yes", "low")
_FENCE = re.compile(r"^`{3,}((?:[\w-]*bash[\w-]*)|shell|sh)\s*$", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Interface:
    """What the harness behind one request understands."""

    native: bool
    """Calls travel in `tool_calls`; otherwise in the text."""
    shell: OfferedTool | None
    """The tool that runs a shell command."""
    finish: OfferedTool | None
    """The tool that ends the episode."""
    fence: str
    """Info string of fenced shell blocks; empty: they are not asked for."""
    sentinel: bool
    """A command that prints the sentinel ends the episode."""

    @classmethod
    def of(cls, conversation: Conversation) -> Interface:
        """Read it off the tools and the prompt."""
        native = bool(conversation.body.get("tools"))
        tools = conversation.native_tools if native else conversation.written_tools
        fence = None if native else _FENCE.search(conversation.prompt)
        return cls(
            native=native,
            shell=_shell(tools),
            finish=_finish(tools),
            fence=fence[1] if fence else "",
            sentinel=SENTINEL in conversation.prompt,
        )

    @cached_property
    def acts(self) -> bool:
        """Commands can be run at all; a side call, such as for a title, has no way to."""
        return bool(self.shell or self.fence)

    def run(self, thought: str, command: str, call_id: str) -> Reply:
        """An answer that runs a command."""
        if self.fence:
            return Reply(text=_joined(thought, _fenced(self.fence, command)))
        if self.shell is None:
            return Reply(text=_joined(thought, command))
        return self.call(thought, self.shell.name, _shell_arguments(self.shell, command, thought), call_id)

    def finished(self, thought: str, answer: str, call_id: str) -> Reply:
        """An answer that ends the episode."""
        if self.finish is not None:
            return self.call(thought, self.finish.name, _finish_arguments(self.finish, answer), call_id)
        if self.sentinel and self.acts:
            said = f" && printf '%s\\n' {shlex.quote(answer)}" if answer else ""
            return self.run(thought, f"echo {SENTINEL}{said}", call_id)
        return Reply(text=answer or thought or "Done.")

    def call(self, thought: str, name: str, arguments: Mapping[str, Any] | str, call_id: str) -> Reply:
        """An answer that calls a tool by name; `arguments` as text need not be JSON."""
        if self.native:
            return Reply(text=thought, calls=(ReplyCall(name=name, arguments=arguments, id=call_id),))
        text = arguments if isinstance(arguments, str) else json.dumps(arguments)
        call = f'<tool_call>\n{{"name": {json.dumps(name)}, "arguments": {text}}}\n</tool_call>'
        return Reply(text=_joined(thought, call))

    def unfenced(self) -> Interface:
        """The same, without fenced blocks: every call is written out."""
        return replace(self, fence="") if self.shell else self


def _shell(tools: Sequence[OfferedTool]) -> OfferedTool | None:
    best = min(tools, key=_shell_rank, default=None)
    return best if best and _shell_rank(best) < _NO_SHELL else None


def _shell_rank(tool: OfferedTool) -> int:
    """Lower is better: known names in their order, then names that say shell, then the argument alone."""
    name = tool.name.lower()
    words = frozenset(re.split(r"[^a-z0-9]+", name))
    parameter = _command_parameter(tool)
    if parameter is None or words & _OTHER_LANGUAGES:
        return _NO_SHELL
    if name in _SHELL:
        return _SHELL.index(name)
    if words & _SHELL_WORDS:
        return len(_SHELL)
    alone = tool.required == (parameter,) and parameter in _ANY_COMMAND
    return len(_SHELL) + 1 if alone else _NO_SHELL


def _command_parameter(tool: OfferedTool) -> str | None:
    for name in _COMMAND:
        kind = tool.properties.get(name, {"type": None}).get("type", "string")
        if kind in ("string", "array"):
            return name
    return None


def _shell_arguments(tool: OfferedTool, command: str, thought: str) -> dict[str, Any]:
    name = _command_parameter(tool) or "command"
    array = tool.properties.get(name, {}).get("type") == "array"
    given: dict[str, Any] = {name: ["bash", "-lc", command] if array else command}
    return {**given, **_fillers(tool, given, thought or "Run a command")}


def _finish(tools: Iterable[OfferedTool]) -> OfferedTool | None:
    offered = {tool.name.lower(): tool for tool in tools}
    for name in _FINISH:
        if name in offered:
            return offered[name]
    for name, tool in offered.items():
        words = set(re.split(r"[^a-z0-9]+", name))
        if words & set(_FINISH) and words <= set(_FINISH) | _FINISH_WORDS:
            return tool
    return offered.get("final_answer") or offered.get("answer")


def _finish_arguments(tool: OfferedTool, answer: str) -> dict[str, Any]:
    named = next((name for name in _ANSWER if name in tool.properties), None)
    if named is None and len(tool.required) == 1 and _kind(tool, tool.required[0]) == "string":
        named = tool.required[0]
    usable = (
        named is not None
        and "enum" not in tool.properties.get(named, {})
        and (answer or named in tool.required)
    )
    given = {named: answer or "Done."} if usable and named else {}
    return {**given, **_fillers(tool, given, answer or "Done.")}


def _fillers(tool: OfferedTool, given: Mapping[str, Any], text: str) -> dict[str, Any]:
    """Values for arguments that are required and mean nothing to a script."""
    return {name: _filler(tool, name, text) for name in tool.required if name not in given}


def _filler(tool: OfferedTool, name: str, text: str) -> object:
    options = tool.properties.get(name, {}).get("enum")
    if isinstance(options, list) and options:
        return next((option for option in options if str(option).lower() in _GOOD), options[0])
    empty: dict[str, object] = {
        "boolean": True,
        "integer": 0,
        "number": 0,
        "array": [],
        "object": {},
        "null": None,
    }
    return empty.get(_kind(tool, name), text)


def _kind(tool: OfferedTool, name: str) -> str:
    kind = tool.properties.get(name, {}).get("type", "string")
    return kind if isinstance(kind, str) else "string"


def _fenced(language: str, command: str) -> str:
    longest = max((len(run) for run in re.findall(r"^`{3,}", command, re.MULTILINE)), default=2)
    ticks = "`" * max(3, longest + 1)
    return f"{ticks}{language}\n{command.rstrip()}\n{ticks}"


def _joined(thought: str, call: str) -> str:
    return f"{thought}\n\n{call}" if thought else call
