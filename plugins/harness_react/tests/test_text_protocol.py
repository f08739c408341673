"""Calls written in the text, for models without function calling."""

from __future__ import annotations

import pytest
from orchard_harness_react.protocol import Answer, Message
from orchard_harness_react.text import TextProtocol

from orchard_core import Image, StopReason, Text, ToolResult
from orchard_core.testing import FakeTool

from .conftest import Play
from .model_server import says

SUBMIT = says('Done.\n<tool_call>\n{"name": "submit", "arguments": {"answer": "7"}}\n</tool_call>')


def answer(text: str) -> Answer:
    """An answer in words."""
    message = Message.of("assistant", text)
    return Answer(message=message, fields=message.parsed(), finish="stop")


def read(text: str) -> list[tuple[str, str]]:
    """Names and arguments of the calls in a text; a problem stands for both."""
    protocol = TextProtocol([FakeTool("bash")])
    found = protocol.calls(answer(text))
    return [(call.name, call.problem or call.arguments) for call in found]


async def test_fenced_and_tagged_calls_run_in_order_and_come_back_in_one_message(play: Play) -> None:
    first = says(
        "First:\n```bash\necho a > f\n```\nthen\n"
        '<tool_call>\n{"name": "read_file", "arguments": {"path": "f"}}\n</tool_call>'
    )
    ran = await play(first, SUBMIT, protocol="text")
    assert (ran.result.stop, ran.result.answer) == (StopReason.SUBMITTED, "7")
    assert ran.server.messages[-1] == {
        "role": "user",
        "content": '<tool_result name="bash">\n(no output)\n[exit code 0]\n</tool_result>\n'
        '<tool_result name="read_file">\na\n\n</tool_result>',
    }


async def test_the_tools_stand_in_the_prompt_and_not_in_the_request(play: Play) -> None:
    ran = await play(SUBMIT, protocol="text", brings=[FakeTool("lookup")])
    assert "tools" not in ran.server.requests[0]
    prompt = ran.server.messages[0]["content"]
    for part in ('"name": "lookup"', '"name": "edit_file"', "<tool_call>", "```bash"):
        assert part in prompt


async def test_native_prompts_do_not_speak_of_tags(play: Play) -> None:
    ran = await play(says("ok"), tools=())
    assert "<tool_call>" not in ran.server.messages[0]["content"]


async def test_a_malformed_block_is_answered_and_three_end_the_run(play: Play) -> None:
    answers = [says("<tool_call>{oops}</tool_call>"), says("I am done thinking."), says("```bash\nls")]
    ran = await play(*answers, protocol="text")
    assert (ran.result.stop, ran.result.malformed_calls) == (StopReason.MALFORMED, 3)
    told = [message["content"] for message in ran.server.messages if message["role"] == "user"]
    assert "is not JSON" in told[1]
    assert "called no tool. Write <tool_call>" in told[2]
    assert "not closed by a line of ```" in ran.result.message


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("nothing here", []),
        ("```bash\nls -la\n```", [("bash", '{"command": "ls -la"}')]),
        ("```sh\na\n```\n```shell\nb\n```", [("bash", '{"command": "a"}'), ("bash", '{"command": "b"}')]),
        ("```python\nprint(1)\n```", []),
        ("````markdown\n```bash\nls\n```\n````", []),
        (
            "````bash\ncat > a.md <<E\n```\nx\n```\nE\n````",
            [("bash", '{"command": "cat > a.md <<E\\n```\\nx\\n```\\nE"}')],
        ),
        ("```bash\necho '<tool_call>'\n```", [("bash", '{"command": "echo \'<tool_call>\'"}')]),
        (
            '<tool_call>{"name": "w", "arguments": {"t": "```bash\\nls\\n```"}}</tool_call>',
            [("w", '{"t": "```bash\\nls\\n```"}')],
        ),
        (
            '<tool_call>{"name": "a"}</tool_call> and <tool_call>{"name": "b"}</tool_call>',
            [("a", "{}"), ("b", "{}")],
        ),
        ('<tool_call>{"name": "a", "arguments": "{\\"x\\": 1}"}</tool_call>', [("a", '{"x": 1}')]),
        ("<think>```bash\nrm x\n```</think>```bash\nls\n```", [("bash", '{"command": "ls"}')]),
        ("<tool_call>[1]</tool_call>", [("", 'A call is an object {"name": "...", "arguments": {...}}.')]),
        ('<tool_call>{"name": "a"', [("", "The call is not closed by </tool_call>.")]),
        ("```bash\r\nls\r\n```", [("bash", '{"command": "ls"}')]),
    ],
)
def test_calls_are_found(text: str, expected: list[tuple[str, str]]) -> None:
    assert read(text) == expected


def test_fences_are_plain_text_without_a_shell() -> None:
    assert TextProtocol([]).calls(answer("```bash\nls\n```")) == []


@pytest.mark.parametrize("piece", ["```bash\n", "```\n", "<tool_call>", "````", "`" * 5000 + "\n"])
def test_a_hostile_text_is_read_in_a_moment(piece: str) -> None:
    assert len(read(piece * (2_000_000 // len(piece)))) <= 250_000


async def test_pictures_follow_the_text(play: Play) -> None:
    shot = FakeTool("shot", lambda _: ToolResult(content=(Text(text="seen"), Image(data=b"png"))))
    call = says('<tool_call>{"name": "shot", "arguments": {}}</tool_call>')
    ran = await play(call, SUBMIT, protocol="text", brings=[shot])
    text, picture = ran.server.messages[-1]["content"]
    assert "seen\n[image/png, 3 bytes: shown below]" in text["text"]
    assert picture["image_url"]["url"] == "data:image/png;base64,cG5n"
