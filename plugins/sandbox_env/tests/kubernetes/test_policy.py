"""The namespace's NetworkPolicy, its rules carried out by nftables between network namespaces.

Not every CNI enforces policies, the one of a test cluster least of all. Here the very object that is sent to
the server decides what passes a router between pods that are network namespaces.
"""

from __future__ import annotations

import ipaddress
import json
import os
import secrets
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from orchard_env.kubernetes import labels
from orchard_env.kubernetes.config import KubernetesConfig
from orchard_env.kubernetes.network import policy_manifest

CONFIG = KubernetesConfig(driver_namespaces=("trainers",), driver_cidrs=("10.213.7.0/24", "fd00:213:7::/64"))
OTHER_PORT = 8080
PORTS = (CONFIG.agent_port, OTHER_PORT)
SANDBOX = {labels.MANAGED_BY: labels.MANAGER}
DRIVER = {labels.ROLE: "driver"}

_SERVE = """
import socket, sys, threading
udp = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
udp.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0); udp.bind(("::", 53))
def echo():
    while True:
        said, who = udp.recvfrom(99); udp.sendto(b"here", who)
def serve(port):
    server = socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True)
    while True:
        taken, _ = server.accept(); taken.sendall(b"here"); taken.close()
for port in map(int, sys.argv[1:]):
    threading.Thread(target=serve, args=(port,), daemon=True).start()
print("ready", flush=True); echo()
"""
_REACH = """
import json, socket, sys
def tcp(address, port):
    with socket.create_connection((address, port), 5) as there:
        return there.recv(9) == b"here"
def udp(address):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as there:
        there.settimeout(5); there.connect((address, 53)); there.send(b"secret.example")
        return there.recv(9) == b"here"
def reached(address, port):
    try:
        return udp(address) if port == 53 else tcp(address, port)
    except OSError:
        return False
print(json.dumps([reached(*one) for one in json.loads(sys.argv[1])]))
"""


@dataclass
class Pod:
    """A network namespace with an address of either kind."""

    name: str
    address: str
    labels: Mapping[str, str] = field(default_factory=dict)
    namespace: str = "sandboxes"
    address6: str = ""
    serves: bool = True

    def __post_init__(self) -> None:
        self.address6 = self.address6 or f"fd00:213:{self.address.split('.')[2]}::2"

    def at(self, version: int) -> str:
        """The address of that kind."""
        return self.address if version == 4 else self.address6


PODS = {
    pod.name: pod
    for pod in (
        Pod("sandbox", "10.213.1.2", SANDBOX),
        Pod("neighbour", "10.213.2.2", SANDBOX),
        Pod("driver", "10.213.3.2", DRIVER),
        Pod("orchestrator", "10.213.4.2", {labels.ROLE: "orchestrator"}),
        Pod("stranger", "10.213.5.2", {"app": "web"}),
        Pod("trainer", "10.213.6.2", DRIVER, namespace="trainers"),
        Pod("laptop", "10.213.7.2", namespace=""),
        Pod("impostor", "10.213.8.2", DRIVER, namespace="somewhere"),
        Pod("guest", "10.213.9.2", SANDBOX, serves=False),
        Pod("metadata", "169.254.169.254", namespace="", address6="fd00:ec2::254"),
        Pod("internet", "1.2.3.4", namespace="", address6="2606:4700::1234"),
    )
}


def selected(selector: Mapping[str, Any] | None, given: Mapping[str, str]) -> bool:
    """As Kubernetes reads a label selector."""
    wanted = (selector or {}).get("matchLabels") or {}
    terms = (selector or {}).get("matchExpressions") or ()
    assert all(term["operator"] == "In" for term in terms)
    return all(given.get(key) == value for key, value in wanted.items()) and all(
        given.get(term["key"]) in term["values"] for term in terms
    )


def let_in(source: Mapping[str, Any], pod: Pod, version: int) -> bool:
    """Whether a peer of an ingress rule means this pod."""
    if "ipBlock" in source:
        return ipaddress.ip_address(pod.at(version)) in ipaddress.ip_network(source["ipBlock"]["cidr"])
    if "namespaceSelector" in source:
        names = {"kubernetes.io/metadata.name": pod.namespace}
        here = selected(source["namespaceSelector"], names)
    else:
        here = pod.namespace == "sandboxes"
    return here and selected(source.get("podSelector"), pod.labels)


def rules(policy: Mapping[str, Any]) -> str:
    """What a CNI makes of a policy. A refusal is said, so that no case waits for silence."""
    spec = policy["spec"]
    assert not spec["egress"]
    assert {*spec["policyTypes"]} == {"Ingress", "Egress"}
    lines = ["ct state established,related accept", "icmpv6 type nd-neighbor-solicit accept"]
    here = [pod for pod in PODS.values() if pod.namespace == "sandboxes"]
    chosen = [pod for pod in here if selected(spec["podSelector"], pod.labels)]
    for version, ip in ((4, "ip"), (6, "ip6")):
        for pod in chosen:
            lines += _refused(f"{ip} saddr {pod.at(version)}")
        for pod in chosen:
            lines += _let_in(spec["ingress"], pod, version, ip)
            lines += _refused(f"{ip} daddr {pod.at(version)}")
    head = ["table inet orchard {", "chain forward {", "type filter hook forward priority 0; policy accept;"]
    return "\n".join([*head, *lines, "}", "}", ""])


def _refused(what: str) -> list[str]:
    return [f"{what} meta l4proto tcp reject with tcp reset", f"{what} reject"]


def _let_in(ingress: list[Any], pod: Pod, version: int, ip: str) -> list[str]:
    return [
        f"{ip} daddr {pod.at(version)} {ip} saddr {source.at(version)} tcp dport {port['port']} accept"
        for rule in ingress
        for source in PODS.values()
        if any(let_in(peer, source, version) for peer in rule["from"])
        for port in rule["ports"]
    ]


class Network:
    """Namespaces around a router."""

    def __init__(self) -> None:
        self._mark = secrets.token_hex(3)
        self._servers: list[subprocess.Popen[str]] = []

    def name(self, pod: str) -> str:
        return f"o{self._mark}-{pod[:6]}"

    def run(self, *words: str, text: str | None = None) -> str:
        return subprocess.run(words, input=text, capture_output=True, text=True, check=True).stdout

    def build(self) -> None:
        router = self.name("router")
        self.run("ip", "netns", "add", router)
        # Routers say few refusals a second; here each is waited for.
        settings = "cd /proc/sys/net/ipv4; echo 1 > ip_forward; echo 0 > icmp_ratelimit; cd ../ipv6; "
        settings += "echo 1 > conf/all/forwarding; echo 0 > icmp/ratelimit"
        self.run("ip", "netns", "exec", router, "sh", "-c", settings)
        self.run("ip", "netns", "exec", router, "nft", "-f", "-", text=rules(policy_manifest(CONFIG)))
        for pod in PODS.values():
            self._join(pod, router)

    def _join(self, pod: Pod, router: str) -> None:
        here = self.name(pod.name)
        self.run("ip", "netns", "add", here)
        for line in (
            f"-n {router} link add {here} type veth peer name eth0 netns {here}",
            f"-n {router} link set {here} up",
            f"-n {router} addr add 10.214.0.1/32 dev {here}",
            f"-n {router} route add {pod.address}/32 dev {here}",
            f"-n {here} link set lo up",
            f"-n {here} addr add {pod.address}/32 dev eth0",
            f"-n {here} link set eth0 up",
            f"-n {here} route add 10.214.0.1/32 dev eth0",
            f"-n {here} route add default via 10.214.0.1",
            f"-n {router} addr add fd00:214::1/128 dev {here} nodad",
            f"-n {router} -6 route add {pod.address6}/128 dev {here}",
            f"-n {here} addr add {pod.address6}/128 dev eth0 nodad",
            f"-n {here} -6 route add fd00:214::1/128 dev eth0",
            f"-n {here} -6 route add default via fd00:214::1",
        ):
            self.run("ip", *line.split())
        if not pod.serves:
            return
        words = ["ip", "netns", "exec", here, sys.executable, "-S", "-c", _SERVE, *map(str, PORTS)]
        server = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        self._servers.append(server)
        assert server.stdout is not None
        assert server.stdout.readline() == "ready\n"

    def reached(self, source: str, version: int) -> set[tuple[str, int]]:
        """Every pod and port that one pod gets an answer from, UDP 53 included."""
        asked = [(pod, port) for pod in PODS.values() if pod.name != source for port in (*PORTS, 53)]
        targets = json.dumps([(pod.at(version), port) for pod, port in asked])
        words = ["ip", "netns", "exec", self.name(source), sys.executable, "-S", "-c", _REACH, targets]
        answers = json.loads(self.run(*words))
        return {(pod.name, port) for (pod, port), yes in zip(asked, answers, strict=True) if yes}

    def remove(self) -> None:
        for server in self._servers:
            server.kill()
            server.wait()
        for name in ("router", *PODS):
            subprocess.run(["ip", "netns", "del", self.name(name)], capture_output=True, check=False)


@pytest.fixture(scope="module")
def network() -> Iterator[Network]:
    """Built once. Skipped where this user may make no network namespaces: the policy is then untested."""
    if os.geteuid() != 0 or not shutil.which("ip") or not shutil.which("nft"):
        pytest.skip("needs root, ip (iproute2) and nft (nftables) to make networks of its own")
    network = Network()
    try:
        network.build()
        yield network
    finally:
        network.remove()


VERSIONS = pytest.mark.parametrize("version", [4, 6])


@VERSIONS
@pytest.mark.parametrize("source", ["sandbox", "neighbour"])
def test_a_sandbox_reaches_nobody(network: Network, source: str, version: int) -> None:
    """Not its neighbour, its driver, the metadata address, a name server, the internet."""
    assert network.reached(source, version) == set()


@VERSIONS
@pytest.mark.parametrize("source", ["driver", "orchestrator", "trainer", "laptop"])
def test_drivers_reach_the_agents_port_alone(network: Network, source: str, version: int) -> None:
    reached = {one for one in network.reached(source, version) if one[0] in {"sandbox", "neighbour"}}
    assert reached == {("sandbox", CONFIG.agent_port), ("neighbour", CONFIG.agent_port)}


@VERSIONS
@pytest.mark.parametrize("source", ["stranger", "impostor", "metadata"])
def test_nobody_else_reaches_a_sandbox(network: Network, source: str, version: int) -> None:
    """A label alone is no pass: it must be on a pod of a namespace that the operator named."""
    reached = network.reached(source, version)
    assert not {one for one in reached if one[0] in {"sandbox", "neighbour"}}
    assert ("driver", OTHER_PORT) in reached, "what is no sandbox is none of this policy's business"
