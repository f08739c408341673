"""The programs of a single-node cluster, started in order and ended in the other one."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from api import answers, has_account, node_ready
from certificates import make_certificates
from images import load_pause
from layout import (
    API_PORT,
    CGROUP,
    ETCD,
    ETCD_PEER,
    NODE,
    NODE_BRIDGE,
    NODE_IP,
    PAUSE,
    POD_BRIDGE,
    POD_NET,
    SERVICE_NET,
    Layout,
)
from shell import Failed, end, run, say, start, wait_for, works

_PACKAGES = ("etcd-server", "containerd", "runc", "containernetworking-plugins", "busybox-static", "iproute2")
_SYSCTLS = ("vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops",
            "kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes")  # fmt: skip
_CGROUPS = Path("/sys/fs/cgroup")


def up(layout: Layout) -> None:
    """Start all of it; nothing when it is up. Raises Failed."""
    if node_ready(layout):
        return
    if not layout.built:
        raise Failed("it is not built yet: run `build` first")
    run(
        "apt-get", "-qq", "-o", "DPkg::Lock::Timeout=600", "install", "-y", "--no-install-recommends",
        *_PACKAGES,
        env={"DEBIAN_FRONTEND": "noninteractive"},
    )  # fmt: skip
    down(layout)
    layout.logs.mkdir(parents=True)
    make_certificates(layout)
    _configure(layout)
    _bridge()
    _control_plane(layout)
    start(
        layout.logs, "node", "unshare", "--mount", "--propagation", "private", sys.executable,
        Path(__file__).parent, "node",
    )  # fmt: skip
    wait_for("the node is not ready", lambda: node_ready(layout), within_s=180)
    wait_for("the account of pods is not there", lambda: has_account(layout))
    say(f"up: export KUBECONFIG={layout.kubeconfig}")


def _control_plane(layout: Layout) -> None:
    logs, pki, programs = layout.logs, layout.certificates, layout.programs
    start(
        logs, "etcd", "etcd", "--data-dir", layout.run / "etcd", "--listen-client-urls", ETCD,
        "--advertise-client-urls", ETCD, "--listen-peer-urls", ETCD_PEER, "--unsafe-no-fsync",
    )  # fmt: skip
    flags = {
        "advertise-address": NODE_IP, "allow-privileged": "true", "authorization-mode": "Node,RBAC",
        "bind-address": "127.0.0.1", "cert-dir": layout.run / "api", "client-ca-file": pki / "ca.crt",
        "enable-admission-plugins": "NodeRestriction", "etcd-servers": ETCD,
        "kubelet-client-certificate": pki / "admin.crt", "kubelet-client-key": pki / "admin.key",
        "kubelet-preferred-address-types": "InternalIP", "secure-port": API_PORT,
        "service-account-issuer": "https://kubernetes.default.svc",
        "service-account-key-file": pki / "accounts.key",
        "service-account-signing-key-file": pki / "accounts.key", "service-cluster-ip-range": SERVICE_NET,
        "tls-cert-file": pki / "server.crt", "tls-private-key-file": pki / "server.key",
    }  # fmt: skip
    start(
        logs, "server", programs / "kube-apiserver", *(f"--{name}={value}" for name, value in flags.items())
    )
    wait_for("the API server does not answer", lambda: answers(layout))
    start(
        logs, "manager", programs / "kube-controller-manager", f"--kubeconfig={pki}/manager.conf",
        "--leader-elect=false", "--port=0", "--secure-port=17257",
        f"--service-account-private-key-file={pki}/accounts.key",
        f"--root-ca-file={pki}/ca.crt", "--use-service-account-credentials=true",
        f"--cluster-signing-cert-file={pki}/ca.crt", f"--cluster-signing-key-file={pki}/ca.key",
    )  # fmt: skip
    start(
        logs,
        "scheduler",
        programs / "kube-scheduler",
        f"--kubeconfig={pki}/scheduler.conf",
        "--leader-elect=false", "--port=0", "--secure-port=17259",
    )  # fmt: skip


def _bridge() -> None:
    if not works("ip", "link", "show", NODE_BRIDGE):
        run("ip", "link", "add", NODE_BRIDGE, "type", "bridge")
        run("ip", "address", "add", f"{NODE_IP}/24", "dev", NODE_BRIDGE)
    run("ip", "link", "set", NODE_BRIDGE, "up")


def _configure(layout: Layout) -> None:
    network = {
        "cniVersion": "0.4.0",
        "name": "orchard",
        "plugins": [
            {
                "type": "bridge", "bridge": POD_BRIDGE, "isGateway": True, "ipMasq": False,
                "ipam": {
                    "type": "host-local", "dataDir": str(layout.run / "addresses"),
                    "ranges": [[{"subnet": POD_NET}]], "routes": [{"dst": "0.0.0.0/0"}],
                },
            }
        ],
    }  # fmt: skip
    (layout.run / "cni").mkdir()
    (layout.run / "cni/10-bridge.conflist").write_text(json.dumps(network))
    kubelet = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration", "address": NODE_IP,
        "authentication": {
            "anonymous": {"enabled": False}, "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(layout.certificates / "ca.crt")},
        },
        "authorization": {"mode": "Webhook"}, "cgroupDriver": "cgroupfs", "cgroupRoot": f"/{CGROUP}",
        "enforceNodeAllocatable": ["pods"], "failSwapOn": False, "makeIPTablesUtilChains": False,
        "maxOpenFiles": 20000, "maxPods": 500, "oomScoreAdj": 0, "port": 17250, "healthzPort": 17248,
        "evictionHard": {"memory.available": "100Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
        "resolvConf": "/etc/resolv.conf", "tlsCertFile": str(layout.certificates / "kubelet.crt"),
        "tlsPrivateKeyFile": str(layout.certificates / "kubelet.key"),
    }  # fmt: skip
    (layout.run / "kubelet.yaml").write_text(json.dumps(kubelet))
    (layout.run / "containerd.toml").write_text(
        f"""version = 2
root = "{layout.run}/containerd/root"
state = "{layout.run}/containerd/state"
[grpc]
  address = "{layout.socket}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{PAUSE}"
  restrict_oom_score_adj = true
  stream_server_port = "17010"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "{layout.run}/cni"
"""
    )


def node(layout: Layout) -> None:
    """In a mount namespace of its own: what the kubelet sets for the whole machine lands in plain files."""
    if (_CGROUPS / "unified").is_mount():
        run("umount", _CGROUPS / "unified")
    private = layout.run / "sysctl"
    private.mkdir(exist_ok=True)
    for name in _SYSCTLS:
        real, own = Path("/proc/sys", name), private / name.replace("/", "-")
        own.write_text(real.read_text())
        run("mount", "--bind", own, real)
    for name in ("pods", "containers"):  # the kubelet removes logs of pods that it does not know
        own, real = layout.run / "pod-logs" / name, Path("/var/log") / name
        own.mkdir(parents=True, exist_ok=True)
        real.mkdir(exist_ok=True)
        run("mount", "--bind", own, real)
    _cgroups()
    start(layout.logs, "containerd", "containerd", "--config", layout.run / "containerd.toml")
    wait_for("containerd does not answer", lambda: works("ctr", "-a", layout.socket, "version"))
    load_pause(layout)
    os.execv(
        layout.programs / "kubelet",
        [
            "kubelet", f"--config={layout.run}/kubelet.yaml",
            f"--kubeconfig={layout.certificates}/kubelet.conf",
            f"--hostname-override={NODE}", f"--node-ip={NODE_IP}", "--container-runtime=remote",
            f"--container-runtime-endpoint=unix://{layout.socket}", f"--root-dir={layout.run}/kubelet",
            f"--cert-dir={layout.run}/kubelet-pki",
        ],
    )  # fmt: skip


def _cgroups() -> None:
    """The kubelet removes what it does not know below its root: it gets one of its own."""
    for controller in _CGROUPS.iterdir():
        own = controller / CGROUP
        if controller.is_symlink() or not controller.is_dir():
            continue
        with contextlib.suppress(OSError):
            own.mkdir(exist_ok=True)
            for name in ("cpuset.cpus", "cpuset.mems"):
                if (controller / name).exists():
                    (own / name).write_text((controller / name).read_text())


def down(layout: Layout) -> None:
    """End everything and remove its traces; fine when nothing runs."""
    logs = layout.logs
    for name in ("node", "scheduler", "manager", "server", "etcd"):
        end(logs, name)
    _end_containers(layout)
    end(logs, "containerd")
    for bridge in (NODE_BRIDGE, POD_BRIDGE):
        works("ip", "link", "delete", bridge)
    for own in _CGROUPS.glob(f"*/{CGROUP}"):
        for folder, _, _ in os.walk(own, topdown=False):
            with contextlib.suppress(OSError):
                Path(folder).rmdir()
    shutil.rmtree(layout.run, ignore_errors=True)


def kill_runtime(layout: Layout, *, shims: bool) -> None:
    """kill -9 of this cluster's containerd, and of what holds each pod's containers when `shims`. Raises
    Failed."""
    pids = [pid for pid, words in _programs() if words[0].endswith("containerd") and _ours(layout, words)]
    if not pids:
        raise Failed("containerd does not run")
    if shims:
        pids += [pid for pid, words in _programs() if "containerd-shim" in words[0] and _ours(layout, words)]
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def start_runtime(layout: Layout) -> None:
    """containerd once more, where `node` had started it. Raises Failed."""
    if works("ctr", "-a", layout.socket, "version"):
        return
    node_pid = (layout.logs / "node.pid").read_text()
    start(
        layout.logs, "containerd", "nsenter", "--target", node_pid, "--mount", "containerd", "--config",
        layout.run / "containerd.toml",
    )  # fmt: skip
    wait_for("containerd does not answer", lambda: works("ctr", "-a", layout.socket, "version"))


def _programs() -> Iterator[tuple[int, list[str]]]:
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            yield int(path.parent.name), path.read_text().split("\0")


def _ours(layout: Layout, words: Sequence[str]) -> bool:
    return str(layout.run / "containerd.toml") in words or str(layout.socket) in words


def _end_containers(layout: Layout) -> None:
    tasks = ("ctr", "-a", layout.socket, "-n", "k8s.io", "tasks")
    if not layout.socket.exists() or not works(*tasks, "ls"):
        return
    for task in run(*tasks, "ls", "-q").split():
        works(*tasks, "kill", "-s", "KILL", task)
    wait_for("containers go on", lambda: not _running(run(*tasks, "ls")), within_s=20)


def _running(listed: str) -> bool:
    return "RUNNING" in listed
