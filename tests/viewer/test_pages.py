"""What the pages of a run and a dataset say, asked for over the wire."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from orchard_core import ConfigError, DatasetWriter, Outcome
from orchard_core.datasets.credit.head import CreditHead
from orchard_core.datasets.credit.writer import CreditWriter
from orchard_core.datasets.rows import rollout_rows
from orchard_core.viewer.search.writing import bring_up_to_date
from orchard_core.viewer.sources.shelf import Shelf
from orchard_core.viewer.vocabulary import Vocabulary

from .conftest import Opens
from .making import (
    ARTIFACT,
    Recorder,
    answer,
    failed_rollout,
    finish,
    listed,
    make_credit,
    make_rollout,
    tool,
    with_artifact,
    worked,
    write_run,
)


@pytest.fixture
async def run(tmp_path: Path) -> Path:
    rollouts = [
        make_rollout("totals-1"),
        make_rollout("totals-1", 1, score=0.0),
        failed_rollout("files-1"),
        make_rollout("files-2", score=0.25, outcome=Outcome.TIMED_OUT),
    ]
    return await write_run(tmp_path / "run", rollouts, planned=2)


async def test_home_names_everything_that_is_open(viewer: Opens, run: Path) -> None:
    async with viewer(run) as client:
        page = await client.page("/")
        assert "react · model · bench" in page
        assert "4 of 6" in page
        assert str(run) in page


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", ["totals-1#0", "totals-1#1", "files-1#0", "files-2#0"]),
        ("?score=passed", ["totals-1#0"]),
        ("?score=none", ["files-1#0"]),
        ("?outcome=timed_out", ["files-2#0"]),
        ("?whose=infrastructure", ["files-1#0"]),
        ("?task=totals-1", ["totals-1#0", "totals-1#1"]),
        ("?tag=tables&score=failed", ["totals-1#1", "files-2#0"]),
        ("?sort=-score", ["files-1#0", "totals-1#0", "files-2#0", "totals-1#1"]),
        ("?sort=task", ["files-1#0", "files-2#0", "totals-1#0", "totals-1#1"]),
        ("?q=files", ["files-1#0", "files-2#0"]),
        ("?q=sandboxlost", ["files-1#0"]),
        ("?q=totals-1-1", ["totals-1#1"]),
        ("?page=99", ["totals-1#0", "totals-1#1", "files-1#0", "files-2#0"]),
        ("?sort=nonsense&page=-1&unknown=x", ["totals-1#0", "totals-1#1", "files-1#0", "files-2#0"]),
    ],
)
async def test_a_list_is_filtered_sorted_and_searched(
    viewer: Opens, run: Path, query: str, found: list[str]
) -> None:
    async with viewer(run) as client:
        assert listed(await client.page(f"/1/{query}")) == found


async def test_a_list_that_nothing_fits_says_so(viewer: Opens, run: Path) -> None:
    async with viewer(run) as client:
        assert "Nothing fits" in await client.page("/1/?q=zebra")


async def test_a_filter_counts_what_it_would_leave(viewer: Opens, run: Path) -> None:
    async with viewer(run) as client:
        page = await client.page("/1/?task=totals-1")
        assert re.search(r"<span>passed</span> <small>1</small>", page)
        assert re.search(r"<span>files-1</span> <small>1</small>", page)  # its own others stay to be chosen


async def test_long_lists_have_pages(viewer: Opens, tmp_path: Path) -> None:
    trajectory = worked(1, side=False)
    rollouts = [make_rollout(f"t-{n:03}", trajectory=trajectory) for n in range(205)]
    run = await write_run(tmp_path / "long", rollouts)
    async with viewer(run) as client:
        first, last = await client.page("/1/"), await client.page("/1/?page=3")
        assert len(listed(first)) == 100
        assert listed(last) == [f"t-{n:03}#0" for n in range(200, 205)]
        assert 'rel="next" href="?page=2"' in first


async def test_a_run_that_goes_on_is_followed(viewer: Opens, run: Path) -> None:
    async with viewer(run) as client:
        assert json.loads(await client.page("/progress?source=1"))["finished"] == 4
        await finish(run, make_rollout("open-0", id="open-0"))
        assert json.loads(await client.page("/progress?source=1")) == {"finished": 5, "planned": 6, "read": 0}
        assert "open-0#0" in listed(await client.page("/1/"))


async def test_a_page_tells_every_turn_with_its_calls_and_observations(viewer: Opens, run: Path) -> None:
    async with viewer(run) as client:
        page = await client.page("/1/totals-1-0")
        for turn in range(7):
            assert f'id="turn-{turn}"' in page
        assert "ls -la /workspace &amp;&amp; cat report.txt" in page
        assert "&#34;command&#34;" in page  # the exact text beside it
        assert "Where does the total come from?" in page
        assert page.index("line 5 of what the command said") < page.index('id="turn-2"')
        assert "a side call is never trained" in page
        assert "sampled tokens are trained" in page
        assert "1 passed" in page


async def test_neighbours_are_those_of_the_list_one_came_from(viewer: Opens, run: Path) -> None:
    async with viewer(run) as client:
        page = await client.page("/1/totals-1-1?score=failed")
        assert '<link rel="next" href="/1/files-2-0?score=failed">' in page
        assert 'rel="prev"' not in page
        assert '<link rel="up" href="/1/?score=failed">' in page


async def test_tokens_come_with_probabilities_and_reasons(viewer: Opens, run: Path) -> None:
    async with viewer(run) as client:
        side, main = [json.loads(await client.page(f"/1/totals-1-0/tokens/{turn}")) for turn in (0, 1)]
        assert set(side["why"]) == {"side"}
        assert set(main["why"]) == {""}
        assert len(main["ids"]) == len(main["p"]) > 5
        assert all(0 <= p <= 1 for p in main["p"])
        assert (await client.ask("/1/totals-1-0/tokens/99")).status == 404


async def test_tokens_are_spelled_by_the_tokenizer_that_the_user_names(
    viewer: Opens, run: Path, tmp_path: Path
) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    words = {"end\u202e": 2, "[UNK]": 0}
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="[UNK]"))
    made.save(str(tmp_path / "tokenizer.json"))
    async with viewer(run, vocabulary=Vocabulary.open(tmp_path)) as client:
        told = json.loads(await client.page("/1/totals-1-0/tokens/1"))
        assert told["ids"][-1] == 2
        assert told["text"][-1] == "end⟨U+202E⟩"
        assert told["text"][0] == ""


def test_a_file_that_is_no_tokenizer_is_told(tmp_path: Path) -> None:
    pytest.importorskip("tokenizers")
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(ConfigError, match="is no tokenizer"):
        Vocabulary.open(tmp_path)
    with pytest.raises(ConfigError, match="is no tokenizer"):
        Vocabulary.open(tmp_path / "nothing.json")


async def test_a_long_text_is_cut_and_given_whole_a_stretch_at_a_time(viewer: Opens, tmp_path: Path) -> None:
    whole = "".join(f"row {n}\n" for n in range(60_000))
    recorder = Recorder()
    base = recorder.call([{"role": "user", "content": "go"}], answer("on", "cat all"))
    recorder.call([tool(whole)], answer("done"), base=base)
    run = await write_run(tmp_path / "run", [make_rollout(trajectory=recorder.trajectory())])
    async with viewer(run) as client:
        page = await client.page("/1/totals-1-0")
        assert len(page) < 60_000
        assert f"Show all {len(whole):,} characters" in page
        assert "row 59999" in page
        (address,) = re.findall(r'class="more" href="([^"]+)"', page)
        text, start = "", "0"
        while True:
            piece = await client.ask(f"{address}?from={start}")
            assert piece.headers["content-type"] == "text/plain; charset=utf-8"
            text, start = text + piece.text, piece.headers["orchard-next"]
            if piece.headers["orchard-left"] == "0":
                break
        assert text == whole


async def test_the_raw_record_is_the_record(viewer: Opens, run: Path) -> None:
    async with viewer(run) as client:
        raw = await client.ask("/1/totals-1-0/raw.json")
        assert raw.headers["content-disposition"].startswith("attachment")
        assert json.loads(raw.body) == json.loads(make_rollout("totals-1").model_dump_json())


async def test_an_artifact_is_saved_and_a_link_in_its_place_is_not_followed(
    viewer: Opens, tmp_path: Path
) -> None:
    root = tmp_path / "run"
    await write_run(root, [])
    rollout = with_artifact(root, make_rollout())
    from orchard_core.rollout.store.entry import Planned
    from orchard_core.rollout.store.run import read_config
    from orchard_core.rollout.store.writer import RunWriter

    async with await RunWriter.open(root, read_config(root), resume=True) as writer:
        await writer.plan([Planned(id=rollout.id, task="totals-1", attempt=0, seed=0)])
        await writer.finish(rollout)
    async with viewer(root) as client:
        got = await client.ask("/1/totals-1-0/artifact/0")
        assert got.body == ARTIFACT
        assert got.headers["content-type"] == "application/octet-stream"
        assert got.headers["content-disposition"].startswith("attachment")
        (blob,) = (path for path in (root / "blobs").rglob("*") if path.is_file())
        blob.unlink()
        blob.symlink_to("/etc/passwd")
        assert (await client.ask("/1/totals-1-0/artifact/0")).status == 404


async def test_credit_is_drawn_with_its_rises_and_tells_what_is_trained(viewer: Opens, run: Path) -> None:
    with CreditWriter.open(run / "credit" / "branch", CreditHead(estimator="branch")) as writer:
        writer.add(make_credit("totals-1-1"))
    async with viewer(run) as client:
        page = await client.page("/1/totals-1-1")
        assert '<svg class="curve"' in page
        assert 'class="rise"' in page
        assert 'class="band"' in page
        assert 'href="#turn-3"' in page  # step 2 of the conversation is call 3: call 0 is beside it
        assert '<span class="mask on">trained</span>' in page
        assert '<span class="mask off">not trained</span>' in page
        assert listed(await client.page("/1/?credit=branch")) == ["totals-1#1"]
        with CreditWriter.open(run / "credit" / "branch", CreditHead(estimator="branch")) as writer:
            writer.add(make_credit("totals-1-0"))
        assert len(listed(await client.page("/1/?credit=branch"))) == 2
        assert "What is said of a turn" not in await client.page("/1/totals-1-1")
        with CreditWriter.open(run / "credit" / "other", CreditHead(estimator="branch")) as writer:
            writer.add(make_credit("totals-1-1"))
        assert "whether it is trained, is by branch." in await client.page("/1/totals-1-1")


async def test_a_damaged_record_is_told_on_its_page_and_hurts_no_other(viewer: Opens, run: Path) -> None:
    shard = run / "shards" / "00000.jsonl.zst"
    data = bytearray(shard.read_bytes())
    data[200] ^= 0xFF
    shard.write_bytes(data)
    async with viewer(run) as client:
        bad = await client.ask("/1/totals-1-0")
        assert bad.status == 500
        assert "checksum" in bad.text
        assert (await client.ask("/1/totals-1-1")).status == 200
        assert len(listed(await client.page("/1/"))) == 4


async def test_credit_that_cannot_be_read_is_told_and_hurts_no_other(viewer: Opens, run: Path) -> None:
    with CreditWriter.open(run / "credit" / "branch", CreditHead(estimator="branch")) as writer:
        writer.add(make_credit("totals-1-1"))
    (run / "credit" / "judge").mkdir()
    (run / "credit" / "judge" / "credit.json").write_text("{")
    async with viewer(run) as client:
        assert "branch, judge (cannot be read)" in await client.page("/")
        page = await client.page("/1/totals-1-1")
        assert "credit/judge/credit.json" in page
        assert '<span class="mask on">trained</span>' in page


async def test_a_conversation_with_many_turns_has_pages_and_deep_links(viewer: Opens, tmp_path: Path) -> None:
    run = await write_run(tmp_path / "run", [make_rollout(trajectory=worked(450, side=False))])
    async with viewer(run) as client:
        page = await client.page("/1/totals-1-0")
        assert 'id="turn-199"' in page
        assert 'id="turn-200"' not in page
        assert 'id="turn-421"' in await client.page("/1/totals-1-0?turn=421")
        assert 'id="turn-449"' in await client.page("/1/totals-1-0?from=400")


async def test_a_difference_between_two_shows_at_its_turn(viewer: Opens, tmp_path: Path) -> None:
    one, other = worked(4, side=False), worked(6, side=False)
    rollouts = [make_rollout("t", 0, trajectory=one), make_rollout("t", 1, trajectory=other)]
    run = await write_run(tmp_path / "run", rollouts)
    async with viewer(run) as client:
        page = await client.page("/compare?a=/1/t-0&b=/1/t-1")
        assert re.findall(r'class="pair( same|)" id="turn-(\d)"', page) == [
            (" same", "0"), (" same", "1"), (" same", "2"), ("", "3"), ("", "4"), ("", "5"),
        ]  # fmt: skip
        assert page.count("has ended") == 2


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    root = tmp_path / "dataset"
    with DatasetWriter(root) as writer:
        for attempt, split in enumerate(("train", "train", "test")):
            rollout = make_rollout("totals-1", attempt, trajectory=worked(5))
            for row in rollout_rows(rollout):
                values = tuple(turn / 5 for turn in range(row.turns + 1))
                mask = tuple(int(at > 5 and m) for at, m in enumerate(row.mask))
                changed = {
                    "split": split,
                    "source": "good" if attempt else "spare",
                    "credit": "judge",
                    "values": values,
                    "mask": mask,
                }
                writer.write(row.model_copy(update=changed))
        writer.finish()
    return root


async def test_a_datasets_row_is_read_like_a_rollout(viewer: Opens, dataset: Path) -> None:
    async with viewer(dataset) as client:
        assert len(listed(await client.page("/1/"))) == 3
        assert len(listed(await client.page("/1/?split=test"))) == 1
        assert len(listed(await client.page("/1/?mixed=good"))) == 2
        page = await client.page("/1/1")
        assert "ls -la /workspace" in page
        assert '<svg class="curve"' in page
        assert page.count('<span class="mask on">') == 3
        assert page.count('<span class="mask off">') == 2
        assert "good" in page
        tokens = json.loads(await client.page("/1/0/tokens/0"))
        assert set(tokens["why"]) == {"turn left out"}
        assert json.loads((await client.ask("/1/2/raw.json")).body)["split"] == "test"


async def test_a_row_and_its_rollout_can_stand_side_by_side(viewer: Opens, run: Path, dataset: Path) -> None:
    async with viewer(run, dataset) as client:
        page = await client.page("/compare?a=/1/totals-1-0&b=/2/0")
        assert "the same" in page
        ours, theirs = (f"{place.name} {place.parent.name}/{place.name}" for place in (run, dataset))
        assert re.findall(r"· #0 · (.+?)</small>", page) == [ours, theirs]
        pick = await client.page("/task?id=totals-1")
        assert pick.count(f"<td>{theirs}</td>") == 3


async def test_where_all_lie_in_one_run_nothing_says_so(viewer: Opens, run: Path) -> None:
    async with viewer(run) as client:
        assert ">From<" not in await client.page("/task?id=totals-1")


async def test_words_of_messages_are_found_and_lead_to_their_turn(
    viewer: Opens, run: Path, dataset: Path, tmp_path: Path
) -> None:
    for source in Shelf.open([run, dataset]).sources:
        bring_up_to_date(source, tmp_path / "cache")
    async with viewer(run, dataset, index=True) as client:
        page = await client.page("/1/?q=%22ended+one+row+early%22")
        assert len(listed(page)) == 4
        assert 'href="/1/totals-1-0?q=%22ended+one+row+early%22#turn-6"' in page
        assert len(listed(await client.page("/2/?q=mended"))) == 3
        assert "first in <a" in await client.page("/1/totals-1-0?q=mended")
