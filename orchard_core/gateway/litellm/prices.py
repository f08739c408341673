"""Prices from LiteLLM's own table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from orchard_core.types.model import Price

Table = Mapping[str, Mapping[str, Any]]


def price_of(table: Table, model: str, vendor: str, bare: str) -> Price | None:
    """The price of a model, per million tokens; None when the table has none.

    A model whose price rises with the prompt's length has its price for short prompts here. A table entry
    of zero says that nobody knew, and so is None.
    """
    for entry in _entries(table, model, vendor, bare):
        read, written = (
            _million(entry.get(f"cache_{name}_input_token_cost")) for name in ("read", "creation")
        )
        given, sampled = (_million(entry.get(f"{name}_cost_per_token")) for name in ("input", "output"))
        if given is None or sampled is None or given + sampled == 0:
            return None
        return Price(input=given, output=sampled, cache_read=read, cache_write=written)
    return None


def _entries(table: Table, model: str, vendor: str, bare: str) -> Iterator[Mapping[str, Any]]:
    """Under the full name, or under the bare one when the entry is that vendor's."""
    for name in (model, f"{vendor}/{bare}", bare):
        entry = table.get(name)
        if entry is not None and (name != bare or _same(entry, vendor)):
            yield entry


def _same(entry: Mapping[str, Any], vendor: str) -> bool:
    """Entries may name a part of the vendor, such as `vertex_ai-language-models`."""
    return str(entry.get("litellm_provider", "")).startswith(vendor)


def _million(each: object) -> float | None:
    if not isinstance(each, int | float) or isinstance(each, bool) or each < 0:
        return None
    return round(each * 1_000_000, 9)  # 3e-07 * 1e6 is not 0.3
