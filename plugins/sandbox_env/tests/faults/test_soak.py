"""Two hours' worth of mixed traffic, compressed into ten minutes, with faults."""

from __future__ import annotations

import asyncio
import random

import pytest

from ..service.conftest import isolation as isolation
from .soak import FULL_LIVES, Rest, Told, soak, verdict


@pytest.mark.nightly
@pytest.mark.timeout(3600)
def test_a_service_under_mixed_traffic_and_faults_neither_grows_nor_loses_anything(isolation: None) -> None:
    told = asyncio.run(soak(10.0, 12, 0))
    assert not verdict(told)
    assert min(told.counts[what] for what in ("agents killed", "forks", "terminals", "callers that left")) > 0


@pytest.mark.parametrize(
    ("kb", "descriptors", "told"),
    [(0.0, 0.0, []), (5.0, 0.0, ["rss_mb"]), (0.0, 0.1, ["descriptors"])],
    ids=["nothing", "memory", "descriptors"],
)
def test_what_grows_is_told_from_what_goes_up_and_down(
    kb: float, descriptors: float, told: list[str]
) -> None:
    chance = random.Random(0)
    rests = [
        Rest(
            at_s=0.0,
            lives=lives,
            rss_mb=90.0 + lives * kb / 1024 + chance.gauss(0.0, 0.7),
            descriptors=20 + round(lives * descriptors + chance.gauss(0.0, 1.5)),
            threads=14 + chance.randrange(3),
            children=0,
            files=869,
        )
        for lives in range(12, FULL_LIVES + 1, 12)
    ]
    assert [line.split()[0] for line in verdict(Told(rests=rests))] == told
