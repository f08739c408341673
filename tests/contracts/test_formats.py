"""The built-in dataset formats keep the contract."""

from __future__ import annotations

import pytest

from orchard_core import DatasetFormat, load_format
from orchard_core.testing import FormatSuite


class TestHfDirectory(FormatSuite):
    """A directory with a file a split."""

    @pytest.fixture
    def dataset_format(self) -> DatasetFormat:
        return load_format("hf")


class TestHfLines(TestHfDirectory):
    """JSON lines."""

    file_name = "rows.jsonl"


class TestHfPacked(TestHfDirectory):
    """The same packed by zstd."""

    file_name = "rows.jsonl.zst"


class TestHfGzip(TestHfDirectory):
    """The same packed by gzip."""

    file_name = "rows.jsonl.gz"


class TestHfParquet(TestHfDirectory):
    """Parquet."""

    file_name = "rows.parquet"


class TestHfMasked(TestHfDirectory):
    """Masks in columns of their own."""

    file_name = "rows.jsonl"

    @pytest.fixture
    def dataset_format(self) -> DatasetFormat:
        return load_format("hf:masked")


class TestSweDirectory(FormatSuite):
    """Laid out as the published part."""

    @pytest.fixture
    def dataset_format(self) -> DatasetFormat:
        return load_format("orchard-swe")


class TestSweLines(TestSweDirectory):
    """JSON lines."""

    file_name = "rows.jsonl"


class TestGuiDirectory(FormatSuite):
    """Laid out as the published part."""

    @pytest.fixture
    def dataset_format(self) -> DatasetFormat:
        return load_format("orchard-gui")


class TestGuiLines(TestGuiDirectory):
    """JSON lines."""

    file_name = "rows.jsonl"


class TestAtifDirectory(FormatSuite):
    """A file a rollout."""

    @pytest.fixture
    def dataset_format(self) -> DatasetFormat:
        return load_format("atif")


class TestAtifLines(TestAtifDirectory):
    """A line a rollout."""

    file_name = "rows.jsonl"


class TestMiniswe(FormatSuite):
    """A file a row."""

    @pytest.fixture
    def dataset_format(self) -> DatasetFormat:
        return load_format("miniswe")


class TestOpenHands(FormatSuite):
    """Only read: the format's own example."""

    @pytest.fixture
    def dataset_format(self) -> DatasetFormat:
        return load_format("openhands")
