"""The filters of single rows: what each is, its settings, and the order in which they speak."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from orchard_core.types.base import Record
from orchard_core.types.rollout import Outcome

FAILED = frozenset({
    Outcome.HARNESS_FAILED, Outcome.MODEL_FAILED, Outcome.SANDBOX_FAILED, Outcome.TASK_INVALID,
    Outcome.CANCELLED,
})  # fmt: skip
"""Outcomes by no doing of the policy. A truncated, timed-out or unverified rollout is none of them."""

FORMAT_ERRORS = (
    # react
    "Your answer called no tool.*",
    "The call is not of a function.*",
    "The call is not closed by *",
    "The text of <tool_call> is not JSON:*",
    "A call is an object {*",
    "There is no tool '*'.*The tools are:*",
    "The arguments of * are not JSON:*",
    "The arguments of * must be a JSON object.*",
    "The arguments of * do not fit:*",
    # mini-swe-agent
    "Tool call error:*<error>*",
    "Format error:*<error>*",
    "Your previous response reached the output token limit*",
    # OpenHands
    "Error validating tool '*",
    "Tool '*' not found. Available:*",
)
"""What harnesses tell a model whose answer they could not act on, as globs."""


class Drop(StrEnum):
    """Why a row is not in the mix. A row is counted once, under the first of these that holds for it."""

    BAD_ROW = "bad_row"
    """It cannot be read, and `on_bad_row` is `skip`."""
    NOT_SELECTED = "where"
    """It does not meet its source's `where`."""
    FAILED = "failed"
    """Its rollout failed by no doing of the policy."""
    UNSCORED = "unscored"
    """It has no score."""
    OVER_LONG = "over_long"
    """It has more tokens than `max_tokens`."""
    UNDEFINED_TOOLS = "undefined_tools"
    """An answer calls a tool that the row's own tool list does not define."""
    UNPARSABLE = "unparsable"
    """An answer's call has arguments that are no JSON object, or the harness could not act on an answer that
    is trained."""
    LEAKS = "leaks"
    """Its task stands in a benchmark that is to stay unseen."""
    UNCREDITED = "uncredited"
    """Its source names a credit, and there is none for its rollout."""
    UNTRAINED = "untrained"
    """None of its messages is trained on."""
    EXACT_DUPLICATES = "exact_duplicates"
    """An earlier row has the same messages and tools."""
    NEAR_DUPLICATES = "near_duplicates"
    """An earlier row is nearly the same."""
    NOT_DRAWN = "not_drawn"
    """Nothing is wrong with it: the shares, or `total`, left it over."""


class NearDuplicates(Record):
    """Rows of one task, under one harness, whose answers do nearly the same."""

    threshold: float = Field(default=0.9, gt=0, le=1)
    """Resemblance of their actions (Jaccard, estimated) from which the later row is dropped."""


class MixFilters(Record):
    """Filters, in the order in which they speak. Those published are on."""

    failed: bool = True
    """Drop rollouts that failed by no doing of the policy: the harness, model, sandbox or task failed, or
    they were cancelled. An unknown outcome is none of these."""
    unscored: bool = False
    """Drop rows without a score."""
    max_tokens: Annotated[int, Field(ge=1)] | None = 65_536
    """Drop rows with more tokens; none: any length."""
    undefined_tools: bool = True
    """Drop rows with a call to a tool that their own tool list does not define."""
    unparsable: bool = True
    """Drop rows with a call whose arguments are not the text of a JSON object (no text at all counts as an
    empty one), or with a trained answer that the harness said it could not act on (see `format_errors`)."""
    format_errors: tuple[str, ...] = FORMAT_ERRORS
    """Such words, as globs of the first 500 characters of a message (blanks around it aside) that replies to
    an answer; part of `unparsable`. Empty: only the calls' arguments are looked at."""
    untrained: bool = True
    """Drop rows none of whose messages is trained on."""
    exact_duplicates: bool = True
    """Drop rows whose messages and tools stand in an earlier row."""
    near_duplicates: NearDuplicates | None = None
    """Drop rows nearly equal to an earlier one; none: keep them."""
