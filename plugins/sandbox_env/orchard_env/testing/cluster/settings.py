"""How the stand-in behaves."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Latencies are those of a healthy managed cluster; tests make them short."""

    answer_s: float = 0.0
    """Every call is answered so much later."""
    schedule_s: float = 0.05
    """From creation until a pod is bound to a node."""
    start_s: float = 0.8
    """From there until it runs and is ready."""
    stop_s: float = 0.3
    """From deletion until it is gone, at most its grace."""
    bookmark_s: float = 60.0
    """Between two bookmarks of a quiet watch."""
    history: int = 20_000
    """Changes a watch can begin behind; older ones are compacted away."""
    pods: int = 0
    """Pods that stand from the beginning."""
    labels: dict[str, str] = field(default_factory=lambda: {"orchard.dev/managed-by": "orchard-env"})
    """Of those."""


@dataclass(slots=True, kw_only=True)
class Fault:
    """Something that goes wrong for the next `count` calls that fit."""

    kind: str = "refuse"
    """`refuse`: an error in place of an answer; `lose`: done, but the connection breaks before the answer;
    `hang`: no answer at all."""
    method: str = ""
    """HTTP method; empty: any."""
    path: str = ""
    """What the path, with its query, contains; empty: anything."""
    watch: bool | None = None
    """Only watches, or only what is none; None: both."""
    status: int = 503
    """Of a refusal."""
    retry_after: float | None = None
    """Its Retry-After, seconds."""
    message: str = "the stand-in was told to refuse"
    """Its words."""
    count: int = 1
    """How many calls are left."""

    def fits(self, method: str, path: str, watch: bool) -> bool:
        """It is this call's turn."""
        return (
            self.count > 0
            and self.method in {"", method}
            and self.path in path
            and self.watch in {None, watch}
        )
