"""What holds under every harness there is: limits, what hostile commands reach, and how its end is called."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import httpx
import pytest

from orchard_core import (
    Attribution,
    ConfigError,
    Limits,
    Outcome,
    Phase,
    PhaseTiming,
    Rollout,
    ThreadKind,
    ToolCall,
    build_sample_report,
)
from orchard_core.testing import FakeModel, FakeReply

from .every import EVERY, SEEN, Driven, Priced, each, theatre

pytestmark = pytest.mark.slow
MANY = tuple(f"echo {n} >> log" for n in range(30))
LOOK = f"""{{
  env; ls -a / /tmp /var/tmp /dev/shm /home /root /run "$HOME" "$HOME/.."; find / -xdev -name '*planted*'
  for folder in /proc/[0-9]*; do tr '\\0' '\\n' < $folder/cmdline; tr '\\0' '\\n' < $folder/environ; done
  find "$HOME" -type f -size -100k -exec cat {{}} +
  grep -rIs planted /tmp /var/tmp /dev/shm /home /root /run "$HOME" /workspace
}} > {SEEN} 2>/dev/null; true"""
CALL_OUT = f"""{{
  for address in 1.1.1.1/53 10.0.0.1/80 169.254.169.254/80 172.17.0.1/80; do
    timeout 5 bash -c "exec 3<>/dev/tcp/$address" && echo "reached $address"
  done
  getent hosts example.com && echo "reached a name server"
  tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' ' | grep -vx lo | sed 's/^/device /'
  awk '$4 == "0A" {{ print "listens", $2 }}' /proc/net/tcp
  for n in 1 2; do test -r /proc/$n/root/etc/shadow && echo "shadow"; done
  ls /var/run/docker.sock /run/docker.sock && echo "docker"
}} > {SEEN} 2>/dev/null; true"""


def agent_phase(rollout: Rollout) -> PhaseTiming:
    return next(timing for timing in rollout.timings if timing.phase is Phase.AGENT)


@each
@pytest.mark.parametrize(
    ("limits", "kind"),
    [(Limits(calls=2), "calls"), (Limits(tokens=1), "tokens"), (Limits(cost_usd=0.5), "cost")],
    ids=["calls", "tokens", "cost"],
)
async def test_budgets_truncate_it(driven: Driven, tmp_path: Path, limits: Limits, kind: str) -> None:
    async with theatre(driven, tmp_path) as stage:
        rollout = await stage.play(*MANY, model=Priced(), limits=limits)
    assert (rollout.outcome, rollout.attribution) == (Outcome.TRUNCATED, Attribution.AGENT), rollout.error
    assert rollout.error is not None
    assert (rollout.error.kind, kind in rollout.error.message) == ("BudgetExceeded", True), rollout.error
    answered = [call for call in rollout.trajectory.calls if call.response is not None]
    assert len(answered) == (limits.calls or 1)


@each
async def test_turns_truncate_it_or_are_refused(driven: Driven, tmp_path: Path) -> None:
    async with theatre(driven, tmp_path) as stage:
        if not stage.harness.capabilities.turn_limit:
            with pytest.raises(ConfigError) as caught:
                await stage.play(*MANY, limits=Limits(turns=3))
            assert "--max-calls" in caught.value.hint
            return
        rollout = await stage.play(*MANY, limits=Limits(turns=3))
    assert (rollout.outcome, rollout.error and rollout.error.kind) == (Outcome.TRUNCATED, "turn_limit")
    assert rollout.result is not None
    assert rollout.result.turns == 3


@each
async def test_time_ends_it_and_what_it_started(driven: Driven, tmp_path: Path) -> None:
    async with theatre(driven, tmp_path) as stage:
        rollout = await stage.play(*["sleep 4000"] * 9, limits=Limits(wall_clock_s=15))
    assert (rollout.outcome, rollout.attribution) == (Outcome.TIMED_OUT, Attribution.AGENT), rollout.error
    agent = agent_phase(rollout)
    assert 15 <= agent.duration_s < 45


@each
async def test_rollouts_side_by_side_see_nothing_of_each_other(driven: Driven, tmp_path: Path) -> None:
    def commands(name: str) -> tuple[str, ...]:
        places = '/tmp /var/tmp /dev/shm "$HOME"'
        plant = f"for folder in {places}; do echo {name}-planted > $folder/{name}-planted; done"
        return plant, f"setsid sh -c 'sleep 3000; : {name}-planted' > /dev/null 2>&1 &", "sleep 3", LOOK

    async with theatre(driven, tmp_path) as stage:
        pair = await asyncio.gather(*(stage.play(*commands(name), task=name) for name in ("alpha", "beta")))
        assert [rollout.outcome for rollout in pair] == [Outcome.COMPLETED] * 2, [one.error for one in pair]
        seen = dict(zip(("alpha", "beta"), [await stage.seen(rollout) for rollout in pair], strict=True))
        keys = {key: [name for name in seen if key in seen[name]] for key in stage.gateway.keys}
    first, second = (agent_phase(one) for one in pair)
    assert max(first.started_at, second.started_at) < min(
        one.started_at + one.duration_s for one in (first, second)
    ), "they ran at the same time"
    for name, other in (("alpha", "beta"), ("beta", "alpha")):
        assert f"{name}-planted" in seen[name]
        assert f"{other}-planted" not in seen[name]
    holders = sorted(name for names in keys.values() for name in names)
    assert holders == (sorted(seen) if driven.inside else []), "a key is seen by its own rollout at most"


@each
async def test_commands_reach_nothing_but_the_tunnel(driven: Driven, tmp_path: Path) -> None:
    async with theatre(driven, tmp_path) as stage:
        rollout = await stage.play(CALL_OUT)
        seen = await stage.seen(rollout)
    assert rollout.outcome is Outcome.COMPLETED, rollout.error
    assert len(seen.splitlines()) == driven.inside, seen
    assert all(line.startswith("listens 0100007F:") for line in seen.splitlines()), seen


@each
async def test_the_key_is_dead_afterwards_and_nowhere_in_the_record(driven: Driven, tmp_path: Path) -> None:
    async with theatre(driven, tmp_path) as stage:
        rollout = await stage.play("echo hello")
        (key,) = stage.gateway.keys
        kept = [await stage.blobs.read(artifact.sha256) for artifact in rollout.artifacts]
        address = stage.gateway.address
        async with httpx.AsyncClient(headers={"Authorization": f"Bearer {key}"}) as client:
            answer = await client.get(f"http://{address.host}:{address.port}/v1/models")
    assert answer.status_code == 401
    assert key not in rollout.model_dump_json()
    assert not [data for data in kept if key.encode() in data]


HOSTILE = {
    "kills everything it may": "kill -9 -1",
    "deletes its home": 'rm -rf "$HOME" "$HOME"/.[a-z]*',
    "rewrites its home": 'find "$HOME" -type f -exec sh -c \'echo "{{[broken" > "$1"\' _ {} \\;',
    "leaves daemons": "for n in 1 2 3 4; do (setsid sleep 3000 > /dev/null 2>&1 &); done",
    "prints without end": "yes | head -c 50000000",
    "prints bytes": "head -c 300000 /dev/urandom",
    "replaces what it runs": "rm -rf /opt/orchard; mkdir -p /opt/orchard; echo x > /opt/orchard/node; true",
    "prints escapes": "printf '\\033]0;x\\007\\033[2J\\0{{ 7*7 }}{% raw %}\\r\\n'",
}
MAY_FAIL = {"kills everything it may", "deletes its home", "rewrites its home"}


@each
@pytest.mark.parametrize("deed", HOSTILE)
async def test_a_hostile_command_harms_its_own_rollout_at_most(
    driven: Driven, tmp_path: Path, deed: str
) -> None:
    async with theatre(driven, tmp_path) as stage:
        rollout = await stage.play(HOSTILE[deed], "echo still here")
        after = await stage.play("echo next", task="two")
    assert after.outcome is Outcome.COMPLETED, after.error
    if rollout.outcome is Outcome.COMPLETED:
        return
    assert deed in MAY_FAIL, rollout.error
    assert driven.inside, "its program is out of reach"
    assert rollout.outcome is Outcome.HARNESS_FAILED, rollout.error
    assert rollout.error is not None
    assert rollout.error.kind in {"HarnessCrashed", "HarnessHomeLost"}


INSTRUCTIONS = {
    "an option": "--help",
    "a dash": "-",
    "a slash": "/tmp/results is where to write. Do it.",
    "an at": "@/etc/passwd",
    "a bang": "!echo hacked",
    "shell": "$(touch /workspace/hacked) `id` ; & | > $HOME ${HOME} $key $model 'x' \"y\" \\",
    "templates": "{{ 7*191 }} {% raw %} {{ task }} {# #} {{ config.items() }} ${{ x }} %s {0} <%= 1 %>",
    "a zero": "before\x00after",
    "a megabyte": "begin " + "word " * 200_000 + " the-last-word",
    "lone surrogate": "half \ud83d of it",
}


@each
@pytest.mark.parametrize("kind", INSTRUCTIONS)
async def test_an_instruction_is_data(driven: Driven, tmp_path: Path, kind: str) -> None:
    text = INSTRUCTIONS[kind]
    async with theatre(driven, tmp_path) as stage:
        rollout = await stage.play(f"ls > {SEEN}", instruction=text)
        seen = await stage.seen(rollout)
    assert rollout.outcome is Outcome.COMPLETED, rollout.error
    assert "hacked" not in seen
    heard = "\n".join(message.raw for message in rollout.trajectory.messages.values())
    if kind in {"an option", "a slash", "an at", "a bang"}:
        assert text in heard
    if kind == "a megabyte":
        assert "the-last-word" in heard or "/task.md" in heard
    if kind == "templates":
        assert "{{ 7*191 }}" in heard
        assert "{{ config.items() }}" in heard
    assert str(7 * 191) not in heard


@each
async def test_two_hundred_calls_in_one_answer_are_all_done(driven: Driven, tmp_path: Path) -> None:
    calls = tuple(
        ToolCall(
            id=f"call_{n}", name=driven.tool, arguments=json.dumps({driven.argument: f"echo {n} >> {SEEN}"})
        )
        for n in range(200)
    )
    model = FakeModel([FakeReply(calls=calls)], side=FakeReply(text="A title"))
    async with theatre(driven, tmp_path) as stage:
        rollout = await stage.play(model=model)
        seen = await stage.seen(rollout)
    assert rollout.outcome is Outcome.COMPLETED, rollout.error
    assert sorted(map(int, seen.split())) == list(range(200))


STEAL = r"""key=$(tr '\0' '\n' < /proc/$PPID/environ | sed -n 's/^ORCHARD_KEY=//p')
url=$(grep -o 'http://127[^"]*' "$HOME/.pi/agent/models.json")
curl -s "$url/chat/completions" -H "Authorization: Bearer $key" \
  -d '{"model": "oracle", "messages": [{"role": "user", "content": "an extra question"}]}' > /dev/null"""


async def test_calls_with_a_stolen_key_are_recorded_counted_and_no_part_of_the_conversation(
    tmp_path: Path,
) -> None:
    (pi,) = (driven for driven in EVERY if driven.name == "cli:pi")
    async with theatre(pi, tmp_path) as stage:
        rollout = await stage.play(STEAL, "true")
        bounded = await stage.play(STEAL, "true", task="two", limits=Limits(calls=2))
    report = build_sample_report(rollout.trajectory)
    (extra,) = (thread for thread in report.threads if thread.kind is not ThreadKind.MAIN)
    assert extra.calls == (1,)
    assert "an extra question" in "".join(m.raw for m in rollout.trajectory.messages.values())
    assert rollout.outcome is Outcome.COMPLETED
    assert (bounded.outcome, len(bounded.trajectory.calls)) == (Outcome.TRUNCATED, 2)
