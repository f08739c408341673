"""An API server without a cluster: real HTTP, LIST by pages, WATCH, bookmarks, compaction, faults on demand.

`python -m orchard_env.testing.cluster --pods 50000` runs one as a program. It passes the same cases as a
real one (plugins/sandbox_env/tests/kubernetes/test_contract.py); nothing ever runs in its pods.
"""

from orchard_env.testing.cluster.program import FakeCluster
from orchard_env.testing.cluster.settings import Fault, Settings

__all__ = ["FakeCluster", "Fault", "Settings"]
