"""What Prometheus would read, read as it does."""

from __future__ import annotations

import httpx
from prometheus_client.parser import text_string_to_metric_families

Labels = frozenset[tuple[str, str]]


class Samples:
    """One scrape."""

    def __init__(self, text: str) -> None:
        self.values: dict[tuple[str, Labels], float] = {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        }

    def __call__(self, name: str, **labels: str) -> float:
        """The sum of the series of that name which have these labels."""
        wanted = labels.items()
        found = [
            value
            for (told, own), value in self.values.items()
            if told == f"orchard_env_{name}" and wanted <= own
        ]
        return sum(found)

    @property
    def names(self) -> set[str]:
        """Of every series."""
        return {name for name, _ in self.values}


def scrape(client: httpx.Client) -> Samples:
    """Everything now."""
    return Samples(client.get("/metrics").raise_for_status().text)
