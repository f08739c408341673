"""The earlier near duplicate of a text, while texts stream by."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from orchard_core.datasets.similar.arrays import np
from orchard_core.datasets.similar.bands import BandPlan, band_plan
from orchard_core.datasets.similar.minhash import SIZE, agreeing
from orchard_core.errors import ConfigError

Key = TypeVar("Key", bound=Hashable)

NEAR = 0.8
"""Resemblance from which two texts are near duplicates, unless said otherwise."""
SCANNED = 256
"""A scope of up to so many texts is compared one by one; a larger one through bands."""
CROWD = 64
"""Texts of one band that are compared: its first ones. More would let one template cost quadratic time."""


@dataclass(slots=True)
class _Scope:
    members: list[int] = field(default_factory=list)
    bands: dict[bytes, list[int]] | None = None


class NearIndex(Generic[Key]):
    """Holds 128 bytes for each text, and about 2 KB more where a scope is large enough to need bands.

    Whether two texts are near is decided by their estimated resemblance (standard error 0.035 at 0.8), so a
    pair just at the threshold may go either way, the same way each time.
    """

    def __init__(self, threshold: float = NEAR):
        """Raises ConfigError for a threshold outside (0, 1]."""
        self.threshold = threshold
        self._plan: BandPlan = band_plan(threshold)
        self._keys: list[Key] = []
        self._signatures = np.zeros((256, SIZE), np.uint8)
        self._scopes: dict[str, _Scope] = {}

    def __len__(self) -> int:
        return len(self._keys)

    def add(self, key: Key, signature: bytes, *, scope: str = "") -> Key | None:
        """The key of the earliest near duplicate within the scope; None when there is none, and the text is
        then held for those that follow. An empty signature, of a text without words, is near nothing.

        Only texts of one scope are compared, such as rows of one task. Raises ConfigError for a signature of
        another length.
        """
        if not signature:
            return None
        found = self.find(signature, scope=scope)
        if found is None:
            self._hold(key, signature, self._scopes.setdefault(scope, _Scope()))
        return found

    def find(self, signature: bytes, *, scope: str = "") -> Key | None:
        """As `add`, holding nothing."""
        held = self._scopes.get(scope)
        if not signature or held is None:
            return None
        _check(signature)
        places = held.members if held.bands is None else self._sharing(signature, held.bands)
        if not places:
            return None
        near = agreeing(np.frombuffer(signature, np.uint8), self._signatures[places]) >= self.threshold
        first = int(near.argmax())
        return self._keys[places[first]] if near[first] else None

    def _hold(self, key: Key, signature: bytes, scope: _Scope) -> None:
        _check(signature)
        place = len(self._keys)
        if place == len(self._signatures):
            self._signatures = np.concatenate([self._signatures, np.zeros_like(self._signatures)])
        self._keys.append(key)
        self._signatures[place] = np.frombuffer(signature, np.uint8)
        scope.members.append(place)
        if scope.bands is not None:
            self._enter(scope.bands, (place,))
        elif len(scope.members) > SCANNED:
            scope.bands = {}
            self._enter(scope.bands, scope.members)

    def _enter(self, bands: dict[bytes, list[int]], places: Iterable[int]) -> None:
        for place in places:
            for band in self._plan.keys(self._signatures[place].tobytes()):
                crowd = bands.setdefault(band, [])
                if len(crowd) < CROWD:
                    crowd.append(place)

    def _sharing(self, signature: bytes, bands: dict[bytes, list[int]]) -> list[int]:
        found: set[int] = set()
        for band in self._plan.keys(signature):
            found.update(bands.get(band, ()))
        return sorted(found)


def _check(signature: bytes) -> None:
    if len(signature) != SIZE:
        raise ConfigError(
            f"a signature of {len(signature)} bytes was given; they have {SIZE}",
            hint="make signatures by `near_signature` of this release",
        )
