"""What a cluster says of pods that fail, in the shapes it says it, and what is made of that."""

from __future__ import annotations

from typing import Any

import pytest
from orchard_env.kubernetes.ended import taken_back
from orchard_env.kubernetes.events import PodEvent
from orchard_env.kubernetes.failures import FailurePolicy, failure_of, gone
from orchard_env.kubernetes.pods import PodView, epoch
from orchard_env.kubernetes.resources import Manifest

from orchard_core import (
    ImagePullFailed,
    NodeLost,
    SandboxCreateFailed,
    SandboxError,
    SandboxEvicted,
    SandboxExpired,
    SandboxGone,
    SandboxOutOfMemory,
    SandboxPreempted,
    SpecRefused,
    Unschedulable,
)

MADE = "2026-11-30T10:00:00Z"
NOW = epoch(MADE) + 10


def seen(status: Manifest, *, node: str = "", deleting: bool = False) -> PodView:
    about: Manifest = {"name": "box", "uid": "u-1", "resourceVersion": "7", "creationTimestamp": MADE}
    if deleting:
        about["deletionTimestamp"] = "2026-11-30T10:00:30Z"
    containers = [{"name": "sandbox"}]
    return PodView.read(
        {"metadata": about, "spec": {"nodeName": node, "containers": containers}, "status": status}
    )


def told(reason: str, message: str = "", *, at: float = NOW - 5, source: str = "") -> PodEvent:
    return PodEvent(
        pod="box", uid="u-1", reason=reason, message=message, warning=True, first=at, last=at, source=source
    )


def waiting(reason: str, message: str = "", *, where: str = "containerStatuses") -> Manifest:
    state = {"waiting": {"reason": reason, "message": message}}
    return {"phase": "Pending", where: [{"name": "sandbox", "restartCount": 0, "state": state}]}


def failed(reason: str, message: str) -> Manifest:
    return {"phase": "Failed", "reason": reason, "message": message}


def terminated(reason: str, code: int, *, phase: str = "Failed", **more: Any) -> Manifest:
    state = {"terminated": {"reason": reason, "exitCode": code, "message": ""}}
    return {
        "phase": phase,
        "containerStatuses": [{"name": "sandbox", "restartCount": 0, "state": state}],
        **more,
    }


def condition(kind: str, reason: str, message: str = "", *, status: str = "True") -> Manifest:
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": MADE,
    }


def unscheduled(message: str = "0/3 nodes are available: 3 Insufficient cpu.") -> Manifest:
    found = condition("PodScheduled", "Unschedulable", message, status="False")
    return {"phase": "Pending", "conditions": [found]}


def disrupted(reason: str, message: str = "") -> Manifest:
    return {"phase": "Running", "conditions": [condition("DisruptionTarget", reason, message)]}


class TestHealthy:
    @pytest.mark.parametrize(
        "status",
        [
            {},
            {"phase": "Pending"},
            waiting("ContainerCreating"),
            waiting("PodInitializing"),
            {"phase": "Running", "conditions": [condition("Ready", "")]},
            {
                "phase": "Pending",
                "conditions": [condition("PodScheduled", "SchedulingGated", status="False")],
            },
            {
                "phase": "Pending",
                "initContainerStatuses": [
                    {"name": "inject", "state": {"terminated": {"exitCode": 0, "reason": "Completed"}}}
                ],
            },
        ],
    )
    def test_what_goes_well_or_has_just_begun_is_no_failure(self, status: Manifest) -> None:
        assert failure_of(seen(status), now=NOW + 10_000) is None


class TestNeverRan:
    @pytest.mark.parametrize(
        ("reason", "message"),
        [
            ("InvalidImageName", 'couldn\'t parse image reference "A B"'),
            ("ErrImageNeverPull", 'Container image "a:1" is not present with pull policy of Never'),
            (
                "ErrImagePull",
                "rpc error: code = NotFound desc = failed to pull and unpack image: a:1: not found",
            ),
            ("ErrImagePull", "pull access denied, repository does not exist or may require authorization"),
            ("ErrImagePull", "failed to authorize: unexpected status: 401 Unauthorized"),
            ("ImagePullBackOff", 'Back-off pulling image "a:1": ErrImagePull: manifest unknown'),
            ("ErrImagePull", "dial tcp 10.0.0.1:443: connect: connection refused"),
            ("ErrImagePull", "dial tcp: lookup registry.example: no such host"),
            ("ErrImagePull", "x509: certificate signed by unknown authority"),
            ("ErrImagePull", "http: server gave HTTP response to HTTPS client"),
        ],
    )
    def test_an_image_that_no_other_try_will_bring_fails_at_once(self, reason: str, message: str) -> None:
        error = failure_of(seen(waiting(reason, message)), now=NOW)
        assert type(error) is ImagePullFailed
        assert message in error.message

    @pytest.mark.parametrize(
        "words", ["dial tcp: i/o timeout", "429 Too Many Requests", "pull QPS exceeded", "503 Unavailable"]
    )
    def test_a_registry_that_is_slow_or_busy_gets_time(self, words: str) -> None:
        box = seen(waiting("ImagePullBackOff", 'Back-off pulling image "a:1"'))
        events = [told("Failed", f'Failed to pull image "a:1": {words}', at=NOW - 5)]
        policy = FailurePolicy(pull_grace_s=30)
        assert failure_of(box, events, now=NOW, policy=policy) is None
        error = failure_of(box, events, now=NOW + 30, policy=policy)
        assert type(error) is ImagePullFailed
        assert words in error.message

    def test_the_events_word_is_taken_where_the_status_has_none(self) -> None:
        events = [told("Failed", 'Failed to pull image "a:1": 403 Forbidden')]
        error = failure_of(seen(waiting("ImagePullBackOff", 'Back-off pulling image "a:1"')), events, now=NOW)
        assert type(error) is ImagePullFailed

    @pytest.mark.parametrize(
        ("reason", "message"),
        [
            ("CreateContainerConfigError", 'secret "keys" not found'),
            ("CreateContainerConfigError", "container has runAsNonRoot and image will run as root"),
            ("RunContainerError", "failed to create shim: exec: no such file or directory"),
            ("CreateContainerError", "failed to generate container: invalid capability"),
        ],
    )
    def test_a_container_that_cannot_be_as_asked_is_refused(self, reason: str, message: str) -> None:
        error = failure_of(seen(waiting(reason, message)), now=NOW)
        assert type(error) is SpecRefused
        assert message in error.message

    def test_a_container_runtime_that_is_slow_gets_time(self) -> None:
        box = seen(waiting("CreateContainerError", "context deadline exceeded"))
        assert failure_of(box, now=NOW, policy=FailurePolicy(start_grace_s=60)) is None
        assert type(failure_of(box, now=NOW + 60, policy=FailurePolicy(start_grace_s=60))) is SpecRefused

    def test_a_start_that_failed_for_good(self) -> None:
        assert type(failure_of(seen(terminated("StartError", 128)), now=NOW)) is SpecRefused

    @pytest.mark.parametrize("phase", ["Pending", "Failed"])
    def test_an_init_container_that_failed(self, phase: str) -> None:
        state = {"terminated": {"exitCode": 9, "reason": "Error", "message": "no space"}}
        status = {"phase": phase, "initContainerStatuses": [{"name": "inject", "state": state}]}
        error = failure_of(seen(status), now=NOW)
        assert type(error) is SandboxCreateFailed
        assert "inject ended with 9 (Error) no space" in error.message

    @pytest.mark.parametrize("reason", ["OutOfcpu", "OutOfpods", "UnexpectedAdmissionError", "NodeAffinity"])
    def test_a_node_that_would_not_have_it(self, reason: str) -> None:
        status = {"phase": "Failed", "reason": reason, "message": "Node didn't have enough resource"}
        assert type(failure_of(seen(status, node="n"), now=NOW)) is Unschedulable

    def test_a_volume_gets_time_to_be_mounted(self) -> None:
        box = seen(waiting("ContainerCreating"), node="n")
        events = [told("FailedMount", 'MountVolume.SetUp failed for volume "v" : timed out')]
        assert failure_of(box, events, now=NOW) is None
        error = failure_of(box, events, now=NOW + 100)
        assert type(error) is SandboxCreateFailed
        assert "timed out" in error.message

    @pytest.mark.parametrize(
        ("reason", "words"),
        [
            ("FailedCreatePodSandBox", 'no runtime for "gvisor" is configured'),
            ("FailedMount", 'MountVolume.SetUp failed for volume "v" : secret "keys" not found'),
        ],
    )
    def test_what_the_node_or_the_namespace_lacks_is_told_at_once(self, reason: str, words: str) -> None:
        error = failure_of(seen(waiting("ContainerCreating"), node="n"), [told(reason, words)], now=NOW)
        assert type(error) is SpecRefused
        assert words in error.message


class TestScheduling:
    POLICY = FailurePolicy(schedule_grace_s=30, scale_up_grace_s=600, no_scale_up_grace_s=5)

    def after(self, seconds: float, *events: PodEvent) -> SandboxError | None:
        return failure_of(seen(unscheduled()), events, now=epoch(MADE) + seconds, policy=self.POLICY)

    def test_without_a_word_from_an_autoscaler_the_plain_grace_holds(self) -> None:
        assert self.after(29) is None
        error = self.after(30)
        assert type(error) is Unschedulable
        assert "3 Insufficient cpu" in error.message

    def test_an_autoscaler_that_adds_a_node_gets_its_time_from_its_word_on(self) -> None:
        grows = told("TriggeredScaleUp", "pod triggered scale-up", at=epoch(MADE) + 20)
        assert self.after(619, grows) is None
        assert type(self.after(620, grows)) is Unschedulable

    def test_karpenter_says_so_in_its_own_way(self) -> None:
        assert (
            self.after(60, told("Nominated", "Pod should schedule on: nodeclaim/x", at=epoch(MADE))) is None
        )

    def test_an_autoscaler_that_will_not_ends_it_soon(self) -> None:
        refuses = told("NotTriggerScaleUp", "max node group size reached", source="cluster-autoscaler")
        error = self.after(6, refuses)
        assert type(error) is Unschedulable
        assert "cluster-autoscaler: max node group size reached" in error.message

    def test_its_last_word_counts(self) -> None:
        refuses = told("NotTriggerScaleUp", at=epoch(MADE) + 1)
        grows = told("TriggeredScaleUp", at=epoch(MADE) + 2)
        assert self.after(100, refuses, grows) is None
        assert self.after(100, grows, refuses) is not None

    def test_a_pod_that_is_bound_after_all_is_well(self) -> None:
        assert failure_of(seen(unscheduled(), node="n"), now=NOW + 10_000) is None


EVICTED_BY_NODE = "The node was low on resource: memory. Threshold quantity: 100Mi, available: 96Mi."


class TestRan:
    @pytest.mark.parametrize(
        ("status", "kind", "by"),
        [
            (terminated("OOMKilled", 137), SandboxOutOfMemory, "agent"),
            (
                {"phase": "Failed", "reason": "Evicted", "message": EVICTED_BY_NODE},
                SandboxEvicted,
                "infrastructure",
            ),
            (
                {
                    "phase": "Failed",
                    "reason": "Evicted",
                    "message": "Pod ephemeral local storage usage exceeds the total limit of containers 1Gi",
                },
                SandboxEvicted,
                "agent",
            ),
            (
                {
                    "phase": "Failed",
                    "reason": "Evicted",
                    "message": 'Container sandbox exceeded its local ephemeral storage limit "1Gi". ',
                },
                SandboxEvicted,
                "agent",
            ),
            (
                {
                    "phase": "Failed",
                    "reason": "Evicted",
                    "message": 'Usage of EmptyDir volume "w" exceeds the limit "1Gi". ',
                },
                SandboxEvicted,
                "agent",
            ),
            (failed("DeadlineExceeded", "Pod was active"), SandboxExpired, ""),
            (failed("NodeLost", "unresponsive"), NodeLost, "infrastructure"),
            (
                {
                    "phase": "Failed",
                    "reason": "Terminated",
                    "message": "Pod was terminated in response to imminent node shutdown.",
                },
                NodeLost,
                "infrastructure",
            ),
            (failed("Preempting", "Preempted"), SandboxPreempted, "infrastructure"),
            (
                disrupted("PreemptionByScheduler", "default-scheduler: preempting"),
                SandboxPreempted,
                "infrastructure",
            ),
            (disrupted("EvictionByEvictionAPI", "Eviction API: evicting"), SandboxEvicted, "infrastructure"),
            (disrupted("DeletionByTaintManager", "Taint manager: deleting"), NodeLost, "infrastructure"),
            (disrupted("DeletionByPodGC", "PodGC: node no longer exists"), NodeLost, "infrastructure"),
            (disrupted("TerminationByKubelet", EVICTED_BY_NODE), SandboxEvicted, "infrastructure"),
            (
                disrupted(
                    "TerminationByKubelet", "Pod was terminated in response to imminent node shutdown."
                ),
                NodeLost,
                "infrastructure",
            ),
            (terminated("ContainerStatusUnknown", 137), NodeLost, "infrastructure"),
            (terminated("Unknown", 255), SandboxGone, "infrastructure"),
            (terminated("Error", 137), SandboxGone, "infrastructure"),
            (terminated("Error", 1), SandboxGone, ""),
            (terminated("Completed", 0, phase="Succeeded"), SandboxGone, ""),
        ],
    )
    def test_each_end_has_its_error_and_whose_doing_it_was(
        self, status: Manifest, kind: type[SandboxGone], by: str
    ) -> None:
        error = failure_of(seen(status, node="n"), now=NOW)
        assert isinstance(error, SandboxGone)
        assert type(error) is kind
        assert error.by == by
        assert error.message.startswith("pod box")

    def test_a_spot_node_that_is_taken_back_preempts(self) -> None:
        box = seen(disrupted("DeletionByTaintManager", "Taint manager: deleting"), node="n")
        events = [told("TaintManagerEviction", "node has taint aws-node-termination-handler/spot-itn")]
        assert type(failure_of(box, events, now=NOW)) is SandboxPreempted

    @pytest.mark.parametrize(
        "node",
        [
            {"spec": {"taints": [{"key": "aws-node-termination-handler/spot-itn"}]}},
            {"spec": {"taints": [{"key": "cloud.google.com/impending-node-termination"}]}},
            {"metadata": {"labels": {"karpenter.sh/capacity-type": "spot"}}},
            {"metadata": {"labels": {"kubernetes.azure.com/scalesetpriority": "spot"}}},
            {"status": {"conditions": [condition("VMEventScheduled", "PreemptScheduled")]}},
        ],
    )
    def test_a_lost_node_that_was_a_spot_node_preempted(self, node: Manifest) -> None:
        lost = NodeLost("pod box: NodeLost", by="infrastructure")
        found = taken_back(lost, {"metadata": {}, **node})
        assert type(found) is SandboxPreempted
        assert lost.message in found.message

    def test_a_node_that_stays_leaves_the_error_as_it_is(self) -> None:
        node: Manifest = {"metadata": {"labels": {"karpenter.sh/capacity-type": "on-demand"}}}
        lost = NodeLost("pod box: NodeLost", by="infrastructure")
        assert taken_back(lost, node) is lost
        spot: Manifest = {"metadata": {"labels": {"karpenter.sh/capacity-type": "spot"}}}
        evicted = SandboxEvicted("pod box: Evicted", by="infrastructure")
        assert taken_back(evicted, spot) is evicted

    @pytest.mark.parametrize("status", [{"phase": "Running"}, terminated("Error", 137)])
    def test_a_pod_that_is_being_deleted_is_lost_and_events_say_why(self, status: Manifest) -> None:
        box = seen(status, node="n", deleting=True)
        error = failure_of(box, now=NOW)
        assert type(error) is SandboxGone
        assert "deleted from outside" in error.message
        events = [told("Preempted", "Preempted by other/pod on node n")]
        assert type(failure_of(box, events, now=NOW)) is SandboxPreempted

    def test_a_node_that_does_not_report_gets_time_to_come_back(self) -> None:
        box = seen({"phase": "Running"}, node="n")
        events = [told("NodeNotReady", "Node is not ready", at=NOW)]
        assert failure_of(box, events, now=NOW + 59) is None
        assert type(failure_of(box, events, now=NOW + 60)) is NodeLost
        back = seen({"phase": "Running", "conditions": [condition("Ready", "")]}, node="n")
        assert failure_of(back, events, now=NOW + 60) is None

    def test_of_a_pod_that_has_vanished_the_last_word_counts(self) -> None:
        assert type(gone("box", seen(terminated("OOMKilled", 137)))) is SandboxOutOfMemory
        unknown = gone("box", None)
        assert type(unknown) is SandboxGone
        assert "does not say why" in unknown.message


def test_events_are_read_in_the_old_form_and_the_new() -> None:
    common = {"metadata": {"creationTimestamp": MADE}, "involvedObject": {"name": "box", "uid": "u-1"}}
    words = {"reason": "FailedScheduling", "message": "no", "type": "Warning"}
    old = {"firstTimestamp": MADE, "lastTimestamp": "2026-11-30T10:00:07Z", "source": {"component": "s"}}
    new = {
        "eventTime": "2026-11-30T10:00:00.000001Z",
        "firstTimestamp": None,
        "series": {"count": 3, "lastObservedTime": "2026-11-30T10:00:07.000000Z"},
        "reportingComponent": "s",
    }
    for form in (old, new):
        event = PodEvent.read({**common, **words, **form})
        assert (event.pod, event.uid, event.warning, event.source) == ("box", "u-1", True, "s")
        assert event.first == pytest.approx(epoch(MADE), abs=0.01)
        assert event.last == epoch(MADE) + 7
