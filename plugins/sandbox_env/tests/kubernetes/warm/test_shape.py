"""Which specs a pool serves."""

from __future__ import annotations

from typing import Any

import pytest
from orchard_env.kubernetes.config import KubernetesConfig
from orchard_env.kubernetes.warm.config import PoolConfig
from orchard_env.kubernetes.warm.shape import pool_spec, shape_of

from orchard_core import ConfigError, FileInput, ImageRef, Network, NetworkMode, SandboxSpec

from .scenes import POOL, SMALL

CONFIG = KubernetesConfig()


@pytest.mark.parametrize(
    "changes",
    [
        {"env": {"A": "b"}},
        {"network": Network(mode=NetworkMode.OPEN)},
        {"labels": {"team": "x"}},
        {"ttl_s": 5.0},
        {"idle_ttl_s": 5.0},
        {"name": "box"},
        {"files": (FileInput(path="/f", content=b"x"),)},
    ],
)
def test_what_a_running_pod_can_be_given_makes_no_difference(changes: dict[str, Any]) -> None:
    assert shape_of(SMALL.model_copy(update=changes), CONFIG) == shape_of(
        pool_spec(PoolConfig(**POOL)), CONFIG
    )


@pytest.mark.parametrize(
    "changes",
    [
        {"image": ImageRef(kind="oci", value="busybox:1.37")},
        {"cpu": 0.2},
        {"memory_mb": 65},
        {"disk_mb": 100},
        {"user": "1000"},
        {"workdir": "/srv"},
    ],
)
def test_what_a_pod_is_made_with_makes_a_difference(changes: dict[str, Any]) -> None:
    assert shape_of(SMALL.model_copy(update=changes), CONFIG) != shape_of(SMALL, CONFIG)


@pytest.mark.parametrize(
    "changes",
    [
        {"injector": "orchard/injector:next"},
        {"runtime_class": "gvisor"},
        {"env": {"A": "b"}},
        {"labels": {"team": "x"}},
        {"node_selector": {"disk": "fast"}},
        {"pod_patch": {"spec": {"hostname": "x"}}},
        {"snapshots": {"url": "s3://bucket"}},
    ],
)
def test_pods_of_other_options_are_others(changes: dict[str, Any]) -> None:
    assert shape_of(SMALL, KubernetesConfig(**changes)) != shape_of(SMALL, CONFIG)


def test_a_task_without_an_image_is_served_by_a_pool_of_the_image_that_stands_for_it() -> None:
    config = KubernetesConfig(host_image="busybox:1.36")
    bare = SandboxSpec(cpu=0.1, memory_mb=64)
    assert shape_of(bare, config) == shape_of(SMALL, config)


def test_two_pools_of_one_name_are_refused() -> None:
    with pytest.raises(ConfigError, match="one name"):
        KubernetesConfig(pools=(PoolConfig(**POOL), PoolConfig(**POOL)))
