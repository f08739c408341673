"""One task: a stock OpenHands agent, its tools on the sandbox, its model behind the gateway."""

# mypy: disable-error-code="import-not-found"
from __future__ import annotations

import os
import uuid
from pathlib import Path
from typing import Any

from openai import OpenAIError
from openhands.sdk import LLM, Agent, LocalConversation
from openhands.sdk.conversation.exceptions import ConversationRunError
from openhands.sdk.conversation.response_utils import get_agent_final_response
from openhands.sdk.event import ActionEvent, AgentErrorEvent, MessageEvent
from openhands.sdk.event.conversation_error import ConversationErrorEvent
from openhands.sdk.llm.exceptions import LLMContextWindowExceedError, LLMError
from openhands.sdk.tool import register_tool
from openhands.tools.preset.default import get_default_agent
from orchard_program import Task, keep_file, read_model, read_task, write_result

from inside.editor import SandboxEditorTool
from inside.terminal import SandboxTerminalTool

_RETRY = {"num_retries": 1, "retry_min_wait": 0, "retry_max_wait": 1}
_SENT = {"reasoning_effort": None, "capability_overrides": {"supports_sampling_params": True}}
"""OpenHands takes a model that it does not know for one that reasons: it would ask for much of that, and drop
the temperature. Nothing is sent but what was asked for."""


def main() -> None:
    """Run the task that the environment names, and write its result."""
    task = read_task()
    register_tool(SandboxTerminalTool.name, SandboxTerminalTool)
    register_tool(SandboxEditorTool.name, SandboxEditorTool)
    conversation = LocalConversation(
        agent=make_agent(task),
        workspace=Path.cwd(),
        persistence_dir=Path.cwd().parent / "conversations",
        conversation_id=uuid.uuid5(uuid.NAMESPACE_URL, f"{task.taskset}/{task.id}"),
        max_iteration_per_run=task.limits["turns"] or 1_000_000_000,
        visualizer=None,
    )
    failure = None
    try:
        conversation.send_message(task.instruction)
        conversation.run()
    except ConversationRunError as error:
        failure = error.original_exception
    keep_log(Path(conversation.state.persistence_dir))
    events = list(conversation.state.events)
    answers = {event.llm_response_id for event in events if isinstance(event, ActionEvent | MessageEvent)}
    malformed = sum(isinstance(event, AgentErrorEvent) for event in events)
    result = ending(conversation, events, failure)
    write_result(**result, turns=len(answers - {None}), malformed_calls=malformed)
    os._exit(0)  # its threads and clients would take their time to end


def make_agent(task: Task) -> Agent:
    """OpenHands' default agent without a browser, and with the task's tools."""
    model = read_model()
    options = {**_RETRY, **_SENT, **task.options["llm"]}
    llm = LLM(model=f"openai/{model.name}", base_url=model.base_url, api_key=model.key, **options)
    changes: dict[str, Any] = {} if task.options["condense"] else {"condenser": None}
    if task.tools:
        auth = {"strategy": "bearer", "value": model.key}
        server = {"url": model.mcp_url, "transport": "http", "auth": auth}
        changes["mcp_config"] = {"task": server}
    return Agent(**{**dict(get_default_agent(llm, cli_mode=True)), **changes})


def ending(conversation: LocalConversation, events: list[Any], failure: Exception | None) -> dict[str, Any]:
    """Why it stopped, in the contract's words."""
    if failure is not None:
        return {"stop": blame(failure), "message": f"{type(failure).__name__}: {failure}"[:2000]}
    status = conversation.state.execution_status
    if status == "finished":
        last = [event for event in events if isinstance(event, ActionEvent | MessageEvent)][-1]
        stop = "submitted" if isinstance(last, ActionEvent) else "answered"
        return {"stop": stop, "answer": get_agent_final_response(events)}
    if status == "stuck":
        return {"stop": "malformed", "message": "OpenHands found the agent stuck: it repeats itself"}
    error = [event for event in events if isinstance(event, ConversationErrorEvent)][-1]
    stop = "turn_limit" if error.code == "MaxIterationsReached" else "error"
    return {"stop": stop, "message": error.detail}


def blame(failure: Exception) -> str:
    """The gateway answers 403 to a budget used up; OpenHands cannot store half a surrogate pair."""
    if getattr(failure, "status_code", None) == 403:
        return "budget"
    if "surrogates not allowed" in str(failure):
        return "malformed"
    if isinstance(failure, LLMContextWindowExceedError):
        return "context_limit"
    return "model_error" if isinstance(failure, LLMError | OpenAIError) else "error"


def keep_log(log: Path) -> None:
    """The event log, one event a line, exactly as OpenHands wrote each."""
    keep_file("openhands/base_state.json", (log / "base_state.json").read_bytes())
    events = (path.read_bytes().replace(b"\n", b"") for path in sorted(log.glob("events/event-*.json")))
    keep_file("openhands/events.jsonl", b"".join(event + b"\n" for event in events))
