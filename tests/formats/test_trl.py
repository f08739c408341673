"""What is exported loads with `datasets`, and TRL's own functions take it as what it is meant to be."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from orchard_core import (
    AnswerSpan,
    DatasetRow,
    DatasetWriter,
    FormatUnsupported,
    RecordedTokens,
    load_format,
)
from orchard_core.testing.suites.format_rows import masked_row, plain_rows, row, talk

from .environments import python_with, run
from .talks import PICTURE, Fields

datasets = pytest.importorskip("datasets")

TRL = """
import json, sys
import datasets
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast
from trl.data_utils import _tokenize, is_conversational, maybe_apply_chat_template

datasets.disable_progress_bars()
words = Tokenizer(models.WordLevel({"[UNK]": 0, "I": 1, "look": 2, "done": 3}, unk_token="[UNK]"))
words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, unk_token="[UNK]")
tokenizer.chat_template = (
    "{% for tool in tools or [] %} T:{{ tool.function.name }} {% endfor %}"
    "{% for m in messages %}{% if m.role == 'assistant' %} A: {% generation %} {{ m.content }} "
    "{% for c in m.tool_calls or [] %} {{ c.function.name }} {{ c.function.arguments | tojson }} {% endfor %}"
    "{% endgeneration %}{% else %} {{ m.role }}: {{ m.content }} {% endif %}{% endfor %}"
)
kind, path = ("parquet" if sys.argv[1].endswith(".parquet") else "json"), sys.argv[1]
told = []
for example in datasets.load_dataset(kind, data_files=path, split="train", cache_dir=sys.argv[2]):
    tools = example.get("tools")
    tools = json.loads(tools) if isinstance(tools, str) else tools
    keys = {k: example[k] for k in ("messages", "prompt", "completion") if k in example}
    text = maybe_apply_chat_template(keys, tokenizer, tools=tools)
    whole = example["messages"] if "messages" in example else example["prompt"] + example["completion"]
    ids = _tokenize(tokenizer, whole, tools=tools, return_assistant_tokens_mask=True)
    told.append({"conversational": is_conversational(example), "text": text, "columns": sorted(example),
                 "trained": sum(ids["assistant_masks"]), "labels": example.get("labels")})
print(json.dumps(told))
"""


@pytest.fixture(scope="session")
def trl() -> Path:
    """The site-packages of TRL alone: the rest is that of this interpreter."""
    pytest.importorskip("transformers")
    python = python_with("trl", f"{sys.version_info.major}.{sys.version_info.minor}")
    return next((python.parents[1] / "lib").glob("python*/site-packages"))


def told(
    trl: Path, path: Path, given: list[DatasetRow], name: str, **options: object
) -> list[dict[str, Any]]:
    """What TRL makes of rows written to a file."""
    load_format(name, **options).write(given, path)
    said: list[dict[str, Any]] = json.loads(
        run(Path(sys.executable), TRL, str(path), str(path.parent / "cache"), path=trl)
    )
    return said


@pytest.mark.slow
@pytest.mark.parametrize("file", ["rows.jsonl", "rows.jsonl.gz", "rows.jsonl.zst", "rows.parquet"])
def test_trl_takes_whole_conversations(trl: Path, tmp_path: Path, file: str) -> None:
    given = [*plain_rows(), row(9, talk(arguments="{not json"))]
    said = told(trl, tmp_path / file, given, "hf")
    assert [example["conversational"] for example in said] == [True] * len(given)
    assert all(example["trained"] > 0 for example in said)
    assert "T:bash" in said[0]["text"]["text"]
    assert "T:bash" not in said[2]["text"]["text"], "a row without tools shows none"
    assert "answer 0: done" in said[0]["text"]["text"]


@pytest.mark.slow
def test_call_arguments_are_objects_for_templates_that_need_them(trl: Path, tmp_path: Path) -> None:
    as_text = told(trl, tmp_path / "text.jsonl", plain_rows(), "hf")
    as_object = told(trl, tmp_path / "object.jsonl", plain_rows(), "hf", arguments="object")
    assert 'bash "{\\"command\\": \\"ls\\"}"' in as_text[0]["text"]["text"]
    assert 'bash {"command": "ls"}' in as_object[0]["text"]["text"]


@pytest.mark.slow
@pytest.mark.parametrize("file", ["rows.jsonl", "rows.parquet"])
def test_trl_trains_the_completion_of_each_trained_turn_alone(trl: Path, tmp_path: Path, file: str) -> None:
    said = told(trl, tmp_path / file, [masked_row(), row(1, talk())], "hf:turns")
    completions = [example["text"]["completion"].split() for example in said]
    assert completions[0] == ["A:", "two"]
    assert completions[2] == ["A:", "done"]
    assert len(said) == 1 + 2
    assert said[0]["text"]["prompt"].split()[:4] == ["T:bash", "user:", "hello", "A:"]


def test_a_mask_of_whole_conversations_is_never_lost_in_silence(tmp_path: Path) -> None:
    with pytest.raises(FormatUnsupported, match="trains 1 of its 2 answers"):
        load_format("hf").write([masked_row()], tmp_path / "rows.jsonl")
    assert list(tmp_path.iterdir()) == []
    assert load_format("hf", drop_masks=True).write([masked_row()], tmp_path / "rows.jsonl") == 1


@pytest.mark.slow
@pytest.mark.parametrize("file", ["rows.jsonl", "rows.parquet"])
def test_token_ids_and_labels_are_what_was_sampled(trl: Path, tmp_path: Path, file: str) -> None:
    tokens = RecordedTokens(
        token_ids=(1, 2, 3, 4, 5, 6, 7),
        mask=(0, 0, 1, 1, 0, 1, 1),
        logprobs=(0.0, 0.0, -0.5, -1.5, 0.0, -0.25, -2.0),
        answers=(AnswerSpan(message=2, start=2, stop=4), AnswerSpan(message=4, start=5, stop=7)),
    )
    whole = row(0, talk(), tokens=tokens)
    later = whole.model_copy(update={"id": "later", "mask": (0, 0, 0, 0, 1)})
    said = told(trl, tmp_path / file, [whole, later], "hf:tokens")
    assert [example["labels"] for example in said] == [
        [-100, -100, 3, 4, -100, 6, 7],
        [-100, -100, -100, -100, -100, 6, 7],
    ]
    with pytest.raises(FormatUnsupported, match="has no token ids"):
        load_format("hf:tokens").write([row(1, talk())], tmp_path / "none.jsonl")


def loaded(path: Path, cache: Path, kind: str = "") -> Any:
    datasets.disable_progress_bars()
    if kind:
        return datasets.load_dataset(kind, data_files=str(path), split="train", cache_dir=str(cache))
    return datasets.load_dataset(str(path), cache_dir=str(cache))


@pytest.mark.parametrize("files", ["jsonl", "parquet"])
def test_a_directory_loads_by_its_splits(tmp_path: Path, files: str) -> None:
    given = [
        item.model_copy(update={"split": split})
        for item, split in zip(plain_rows(), ["train", "test"] * 3, strict=False)
    ]
    load_format("hf", files=files).write(given, tmp_path / "out")
    found = loaded(tmp_path / "out", tmp_path / "cache")
    assert {name: len(part) for name, part in found.items()} == {"train": 3, "test": 3}
    assert found["train"][0]["messages"] == json.loads(given[0].messages)
    again = [item.split for item in load_format("hf").read(tmp_path / "out")]
    assert again == ["test"] * 3 + ["train"] * 3


@pytest.mark.parametrize("kind", ["dataset", "hf:masked", "orchard-swe"])
def test_a_directory_of_the_same_name_made_anew_is_loaded_anew(tmp_path: Path, kind: str) -> None:
    for place, count in (("monday", 2), ("tuesday", 3)):
        given = [item.model_copy(update={"split": "train"}) for item in plain_rows()[:count]]
        out = tmp_path / place / "out"
        if kind == "dataset":
            with DatasetWriter(out) as writer:
                for item in given:
                    writer.write(item)
                writer.finish()
        else:
            load_format(kind).write(given, out)
        assert len(loaded(out, tmp_path / "cache")["train"]) == count


def test_the_published_swe_columns_load_exactly(tmp_path: Path) -> None:
    load_format("orchard-swe").write(plain_rows(), tmp_path / "out")
    found = loaded(tmp_path / "out", tmp_path / "cache")["train"]
    text = datasets.Value("string")
    call = {"id": text, "type": text, "function": {"name": text, "arguments": text}}
    message = {"role": text, "content": text, "tool_call_id": text, "tool_calls": datasets.List(call)}
    assert dict(found.features) == {"tools": text, "messages": datasets.List(message), "metadata": text}
    assert json.loads(found[0]["metadata"])["verify_status"] == "passed"


def test_the_published_gui_columns_load_exactly(tmp_path: Path) -> None:
    said: list[Fields] = [
        {"role": "user", "content": [{"type": "text", "text": "what is it?"}, PICTURE]},
        {"role": "assistant", "content": "a dot"},
    ]
    load_format("orchard-gui").write([row(0, said, tools="[]")], tmp_path / "out")
    found = loaded(tmp_path / "out", tmp_path / "cache")["train"]
    text = datasets.Value("string")
    assert dict(found.features) == {
        "messages": datasets.List({"role": text, "content": text}),
        "images": datasets.List(datasets.Image()),
        "reward": datasets.Value("float64"),
        "status": text,
        "metadata": text,
    }
    bare = found.cast_column("images", datasets.List(datasets.Image(decode=False)))[0]
    assert bare["images"][0]["bytes"].startswith(b"\x89PNG")
    assert bare["messages"][0]["content"] == "what is it?<image>"


def test_what_datasets_writes_is_read(tmp_path: Path) -> None:
    given = plain_rows()
    load_format("hf", arguments="object", tools="list").write(given, tmp_path / "rows.jsonl")
    found = loaded(tmp_path / "rows.jsonl", tmp_path / "cache", "json")
    found.to_parquet(str(tmp_path / "again.parquet"))
    found.to_json(str(tmp_path / "again.jsonl"))
    for name in ("again.parquet", "again.jsonl"):
        back = list(load_format("hf").read(tmp_path / name))
        assert [json.loads(item.tools) for item in back] == [json.loads(item.tools) for item in given]
        assert [
            json.loads(call["function"]["arguments"])
            for item in back
            for message in json.loads(item.messages)
            for call in message.get("tool_calls", ())
        ] == [{"command": "ls"}] * 5
