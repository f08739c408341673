"""Values that an operator may give, from the least to all."""

from __future__ import annotations

from typing import Any

MINIMAL: dict[str, Any] = {
    "networkPolicy": {"enabled": False},
    "podDisruptionBudget": {"enabled": False},
    "serviceAccount": {"create": False, "name": "given"},
    "rbac": {"create": False},
    "sandboxes": {"namespace": "", "createNamespace": False, "existingSeedSecret": "seed"},
    "auth": {"existingSecret": "keys"},
    "preStopSeconds": 0,
    "resources": {},
}
ALL: dict[str, Any] = {
    "image": {"digest": "sha256:" + "0" * 64, "pullSecrets": ["registry"]},
    "sandboxes": {
        "namespace": "",
        "spot": {"enabled": True, "nodeSelector": {"pool": "spot"}},
        "driverNamespaces": ["runs"],
        "driverCidrs": ["10.0.0.0/8"],
        "options": {"runtime_class": "gvisor", "tolerations": [{"key": "mine", "operator": "Exists"}]},
    },
    "snapshots": {"existingClaim": "saved"},
    "redis": {"mode": "bundled", "persistence": {"enabled": True, "storageClass": "fast"}},
    "config": {"service": {"ttl_s": 100, "drain_s": 60}, "team": {"quota": {"sandboxes": 50}}},
    "tls": {"existingSecret": "tls"},
    "service": {"type": "LoadBalancer", "annotations": {"example.com/internal": "true"}},
    "serviceAccount": {"annotations": {"example.com/identity": "orchard"}},
    "rbac": {"readNodes": True},
    "autoscaling": {"enabled": True},
    "metrics": {"enabled": True},
    "networkPolicy": {
        "clientCidrs": ["192.168.0.0/16"],
        "extraEgress": [{"to": [{"ipBlock": {"cidr": "192.0.2.1/32"}}]}],
    },
    "priorityClassName": "high",
    "tolerations": [{"key": "system", "operator": "Exists"}],
    "nodeSelector": {"pool": "system"},
    "podLabels": {"team": "a"},
    "podAnnotations": {"example.com/note": "b"},
    "extraEnv": [{"name": "OTEL_SERVICE_NAME", "value": "orchard"}],
    "extraVolumes": [{"name": "audit", "emptyDir": {}}],
    "extraVolumeMounts": [{"name": "audit", "mountPath": "/audit"}],
    "extraArgs": ["--audit=/audit/audit.jsonl"],
}
EXTERNAL: dict[str, Any] = {
    "replicas": 3,
    "redis": {"mode": "external", "url": "rediss://redis.example.com:6380/0", "existingSecret": "redis"},
    "tls": {"existingSecret": "tls", "clientCertificates": True},
}
MANIFESTS: dict[str, Any] = {
    "sandboxes": {"createNamespace": False, "existingSeedSecret": "orchard-agent-seed"},
    "auth": {"existingSecret": "orchard-env-keys"},
}
"""Those of `orchard env manifests`: what is secret or older than the release is not made."""
SETS: dict[str, dict[str, Any]] = {
    "defaults": {},
    "minimal": MINIMAL,
    "all": ALL,
    "external Redis": EXTERNAL,
    "manifests": MANIFESTS,
}
