"""The public names as type checkers see them; at run time `orchard_core.testing` finds each one lazily."""

from __future__ import annotations

from orchard_core.testing.collect import evidence_of as evidence_of
from orchard_core.testing.fakes.blobs import FakeBlobs as FakeBlobs
from orchard_core.testing.fakes.chat import chat as chat
from orchard_core.testing.fakes.feed import FakeFeed as FakeFeed
from orchard_core.testing.fakes.grading import FakeGrading as FakeGrading
from orchard_core.testing.fakes.harness import FakeHarness as FakeHarness
from orchard_core.testing.fakes.model import FakeModel as FakeModel
from orchard_core.testing.fakes.process import FakeProcess as FakeProcess
from orchard_core.testing.fakes.provider import FAKE_CAPABILITIES as FAKE_CAPABILITIES
from orchard_core.testing.fakes.provider import FakeProvider as FakeProvider
from orchard_core.testing.fakes.reply import FakeReply as FakeReply
from orchard_core.testing.fakes.reward import FakeReward as FakeReward
from orchard_core.testing.fakes.reward import file_holds as file_holds
from orchard_core.testing.fakes.sandbox import FakeSandbox as FakeSandbox
from orchard_core.testing.fakes.taskset import ANSWER_PATH as ANSWER_PATH
from orchard_core.testing.fakes.taskset import FakeTaskSet as FakeTaskSet
from orchard_core.testing.fakes.tool import FakeTool as FakeTool
from orchard_core.testing.fakes.trainer import FakeTrainer as FakeTrainer
from orchard_core.testing.fakes.upstream import FakeUpstream as FakeUpstream
from orchard_core.testing.isolation import provider_or_skip as provider_or_skip
from orchard_core.testing.isolation import skip_without_isolation as skip_without_isolation
from orchard_core.testing.suites.example_reward import ExampleRewardSuite as ExampleRewardSuite
from orchard_core.testing.suites.format import FormatSuite as FormatSuite
from orchard_core.testing.suites.harness.stage import Played as Played
from orchard_core.testing.suites.harness.stage import Stage as Stage
from orchard_core.testing.suites.harness.stage import stage as stage
from orchard_core.testing.suites.harness.stage import steps as steps
from orchard_core.testing.suites.harness.suite import HarnessSuite as HarnessSuite
from orchard_core.testing.suites.model.http_upstream import HttpUpstreamSuite as HttpUpstreamSuite
from orchard_core.testing.suites.model.model import ModelSuite as ModelSuite
from orchard_core.testing.suites.model.server import Behaviour as Behaviour
from orchard_core.testing.suites.model.server import ModelServer as ModelServer
from orchard_core.testing.suites.model.server import model_server as model_server
from orchard_core.testing.suites.model.upstream import UpstreamSuite as UpstreamSuite
from orchard_core.testing.suites.reward import RewardSuite as RewardSuite
from orchard_core.testing.suites.sandbox.suite import SandboxSuite as SandboxSuite
from orchard_core.testing.suites.taskset import TaskSetSuite as TaskSetSuite
from orchard_core.testing.suites.trainer import TrainerSuite as TrainerSuite
from orchard_core.testing.suites.workforce import WorkforceSuite as WorkforceSuite
