"""`inspect_eval.py COMMAND`: an evaluation whose model calls the tool bash once, and is done then."""

from __future__ import annotations

import json
import sys

from inspect_ai import Task, eval  # noqa: A004 - Inspect's name
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import Score, Scorer, Target, accuracy, scorer
from inspect_ai.solver import TaskState, generate, use_tools
from inspect_ai.tool import bash
from inspect_ai.util import sandbox


@scorer(metrics=[accuracy()])
def written() -> Scorer:
    """1 when sum.txt holds the target."""

    async def score(state: TaskState, target: Target) -> Score:
        found = await sandbox().read_file("sum.txt")
        return Score(value=int(found.strip() == target.text))

    return score


def main(command: str) -> None:
    """Run it and say how it went."""
    outputs = [
        ModelOutput.for_tool_call("mockllm/model", "bash", {"command": command}),
        ModelOutput.from_content("mockllm/model", "done"),
    ]
    for output in outputs:
        output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
    task = Task(
        dataset=[
            Sample(input="sum", target="42", files={"data/numbers.txt": "1\n2\n39\n"}, setup="pwd > set.txt")
        ],
        solver=[use_tools(bash(timeout=120)), generate()],
        scorer=written(),
        sandbox=("orchard", "host"),
    )
    model = get_model("mockllm/model", custom_outputs=outputs)
    (log,) = eval(task, model=model, display="none", log_dir="logs")
    said = {"status": log.status, "error": log.error and log.error.message}
    if log.status == "success" and log.results is not None and log.samples is not None:
        said["accuracy"] = log.results.scores[0].metrics["accuracy"].value
        said["tool"] = [str(one.content) for one in log.samples[0].messages if one.role == "tool"]
    sys.stdout.write(json.dumps(said) + "\n")


main(sys.argv[1])
