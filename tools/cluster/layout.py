"""Where everything of the test cluster lies, and the addresses it takes."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

VERSION = "v1.20.2"
"""The newest Kubernetes whose whole source Debian 12 carries."""
PARTS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet")
NODE = "orchard-node"
NODE_IP = "10.79.0.1"
POD_NET = "10.79.4.0/22"
SERVICE_NET = "10.79.128.0/17"
SERVICE_IP = "10.79.128.1"
API_PORT = 17443
API = f"https://127.0.0.1:{API_PORT}"
ETCD = "http://127.0.0.1:17379"
ETCD_PEER = "http://127.0.0.1:17380"
NODE_BRIDGE, POD_BRIDGE = "orchard-api", "orchard-cni0"
CGROUP = "orchard-cluster"
PAUSE = "docker.io/orchard/pause:1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Directories below one root."""

    root: Path
    """`ORCHARD_CLUSTER_DIR`, or a directory of the user's cache."""

    @classmethod
    def find(cls) -> Layout:
        """The one of this user."""
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        return cls(root=Path(os.environ.get("ORCHARD_CLUSTER_DIR") or cache / "orchard-cluster"))

    @property
    def programs(self) -> Path:
        """The built server programs; they stay."""
        return self.root / "bin"

    @property
    def run(self) -> Path:
        """Everything of the running cluster; `down` removes it."""
        return self.root / "run"

    @property
    def certificates(self) -> Path:
        """Keys, certificates and kubeconfigs."""
        return self.run / "pki"

    @property
    def logs(self) -> Path:
        """One log and one pid file for each program."""
        return self.run / "log"

    @property
    def socket(self) -> Path:
        """Where containerd listens."""
        return self.run / "containerd.sock"

    @property
    def kubeconfig(self) -> Path:
        """The administrator's."""
        return self.certificates / "admin.conf"

    @property
    def built(self) -> bool:
        """All programs are there."""
        return all((self.programs / part).exists() for part in PARTS)
