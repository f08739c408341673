"""Two hours' worth of mixed traffic, compressed into ten minutes, with faults."""

from __future__ import annotations

import asyncio

import pytest

from ..service.conftest import isolation as isolation
from .soak import soak, verdict

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(900)]


def test_a_service_under_mixed_traffic_and_faults_neither_grows_nor_loses_anything(isolation: None) -> None:
    told = asyncio.run(soak(10.0, 12, 0))
    assert not verdict(told)
    assert min(told.counts[what] for what in ("agents killed", "forks", "terminals", "callers that left")) > 0
