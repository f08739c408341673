"""One certificate authority, a certificate and a kubeconfig for each part."""

from __future__ import annotations

import json
from pathlib import Path

from layout import API, NODE, NODE_IP, SERVICE_IP, Layout
from shell import run

_SUBJECTS = {
    "admin": "/O=system:masters/CN=admin",
    "manager": "/CN=system:kube-controller-manager",
    "scheduler": "/CN=system:kube-scheduler",
}
_SERVER_NAMES = (
    f"IP:127.0.0.1,IP:{NODE_IP},IP:{SERVICE_IP},DNS:localhost,DNS:kubernetes,DNS:kubernetes.default.svc"
)


def make_certificates(layout: Layout) -> None:
    """All of them anew. Raises Failed."""
    place = layout.certificates
    place.mkdir(parents=True, exist_ok=True, mode=0o700)
    run("openssl", "genrsa", "-out", place / "ca.key", "2048")
    run(
        "openssl", "req", "-x509", "-new", "-key", place / "ca.key", "-days", "365", "-subj",
        "/CN=orchard-cluster", "-out", place / "ca.crt",
    )  # fmt: skip
    run("openssl", "genrsa", "-out", place / "accounts.key", "2048")
    _certificate(place, "server", "/CN=kube-apiserver", names=_SERVER_NAMES)
    _certificate(place, "kubelet", f"/O=system:nodes/CN=system:node:{NODE}", names=f"IP:{NODE_IP},DNS:{NODE}")
    for name, subject in _SUBJECTS.items():
        _certificate(place, name, subject)
    for name in ("kubelet", *_SUBJECTS):
        _kubeconfig(place, name)


def _certificate(place: Path, name: str, subject: str, *, names: str = "") -> None:
    key, request, extra = (place / f"{name}.{kind}" for kind in ("key", "csr", "ext"))
    extra.write_text(
        "keyUsage=digitalSignature,keyEncipherment\nextendedKeyUsage=serverAuth,clientAuth\n"
        + (f"subjectAltName={names}\n" if names else "")
    )
    run("openssl", "genrsa", "-out", key, "2048")
    run("openssl", "req", "-new", "-key", key, "-subj", subject, "-out", request)
    run(
        "openssl", "x509", "-req", "-in", request, "-CA", place / "ca.crt", "-CAkey", place / "ca.key",
        "-CAcreateserial", "-days", "365", "-extfile", extra, "-out", place / f"{name}.crt",
    )  # fmt: skip


def _kubeconfig(place: Path, name: str) -> None:
    cluster = {"server": API, "certificate-authority": str(place / "ca.crt")}
    user = {"client-certificate": str(place / f"{name}.crt"), "client-key": str(place / f"{name}.key")}
    text = json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "test", "cluster": cluster}],
            "users": [{"name": name, "user": user}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": name}}],
            "current-context": "test",
        },
        indent=1,
    )
    (place / f"{name}.conf").write_text(text)
