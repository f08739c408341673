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
from openhands.sdk.event import ActionEvent, AgentErrorEvent, ConversationErrorEvent, MessageEvent
from openhands.sdk.llm.exceptions import LLMContextWindowExceedError, LLMError
from openhands.sdk.tool import register_tool
from openhands.tools.file_editor import FileEditorTool
from openhands.tools.preset.default import get_default_agent
from openhands.tools.terminal import TerminalTool
from orchard_program import Sandbox, Task, read_task, write_result

from .editor import SandboxEditorExecutor
from .terminal import SandboxTerminalExecutor

_NO_LIMIT = 1_000_000_000
_RETRY = {"num_retries": 1, "retry_min_wait": 0, "retry_max_wait": 1}
_PLACE = Path.cwd().parent


def main() -> None:
    """Run the task that the environment names, and write its result."""
    task = read_task()
    register_tools(Sandbox.given(), task.workdir)
    conversation = LocalConversation(
        agent=make_agent(task),
        workspace=Path.cwd(),
        persistence_dir=_PLACE / "conversations",
        conversation_id=uuid.uuid5(uuid.NAMESPACE_URL, f"{task.taskset}/{task.id}"),
        max_iteration_per_run=task.limits["turns"] or _NO_LIMIT,
        visualizer=None,
    )
    failure = None
    try:
        conversation.send_message(task.instruction)
        conversation.run()
    except ConversationRunError as error:
        failure = error.original_exception
    keep_log(Path(conversation.state.persistence_dir), Path(os.environ["ORCHARD_ARTIFACTS"]))
    events = list(conversation.state.events)
    answers = {event.llm_response_id for event in events if isinstance(event, ActionEvent | MessageEvent)}
    malformed = sum(isinstance(event, AgentErrorEvent) for event in events)
    ended = ending(conversation, events, failure)
    write_result(**ended, turns=len(answers - {None}), malformed_calls=malformed)
    os._exit(0)  # its threads and clients would take their time to end


def register_tools(sandbox: Sandbox, work_dir: str) -> None:
    """Put executors that act on the sandbox under the stock tools' names."""

    def terminal(conv_state: Any) -> Any:
        return TerminalTool.create(conv_state, executor=SandboxTerminalExecutor(sandbox, work_dir))

    def editor(conv_state: Any) -> Any:
        (tool,) = FileEditorTool.create(conv_state)
        text = tool.description.replace(conv_state.workspace.working_dir, work_dir)
        executor = SandboxEditorExecutor(sandbox, _PLACE / "mirror", work_dir)
        return [tool.model_copy(update={"description": text, "executor": executor})]

    register_tool(TerminalTool.name, terminal)
    register_tool(FileEditorTool.name, editor)


def make_agent(task: Task) -> Agent:
    """OpenHands' default agent without a browser, and with the task's tools."""
    model, key = os.environ["ORCHARD_MODEL"], os.environ["ORCHARD_MODEL_KEY"]
    url = os.environ["ORCHARD_MODEL_BASE_URL"]
    llm = LLM(model=f"openai/{model}", base_url=url, api_key=key, **{**_RETRY, **task.options["llm"]})
    made = get_default_agent(llm, cli_mode=True)
    fields = {name: getattr(made, name) for name in type(made).model_fields}
    if not task.options["condense"]:
        fields["condenser"] = None
    if task.tools:
        auth = {"strategy": "bearer", "value": key}
        server = {"url": f"{os.environ['ORCHARD_TOOLS_URL']}/mcp", "transport": "http", "auth": auth}
        fields["mcp_config"] = {"task": server}
    return Agent(**fields)


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
    return {
        "stop": "turn_limit" if error.code == "MaxIterationsReached" else "error",
        "message": error.detail,
    }


def blame(failure: Exception) -> str:
    """The gateway says in so many words when a budget is used up."""
    if "budget_exceeded" in str(failure):
        return "budget"
    if isinstance(failure, LLMContextWindowExceedError):
        return "context_limit"
    return "model_error" if isinstance(failure, LLMError | OpenAIError) else "error"


def keep_log(log: Path, artifacts: Path) -> None:
    """The event log, one event a line, exactly as OpenHands wrote each."""
    kept = artifacts / "openhands"
    kept.mkdir()
    (kept / "base_state.json").write_bytes((log / "base_state.json").read_bytes())
    events = (path.read_bytes().replace(b"\n", b"") for path in sorted((log / "events").glob("event-*.json")))
    (kept / "events.jsonl").write_bytes(b"".join(event + b"\n" for event in events))
