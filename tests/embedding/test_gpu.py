"""What a GPU trains is used as if a CPU had; these tests need one."""

import numpy as np
import pytest
import torch

from tercet import C3
from tercet.embedding import committee, leave_one_out
from tercet.embedding.options import LeaveOneOut
from tercet.embedding.recording import WARM, Recording
from tercet.embedding.residual_network import ResidualNetwork
from tests.laws.policies import ARMS, history

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="this machine has no GPU")


def test_networks_are_trained_on_the_gpu_and_decide_on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    used = []
    run = committee.Course.run

    def watched(course: committee.Course, *samples: object, **hooks: object) -> None:
        used.append(next(course.phi.parameters()).device.type)
        run(course, *samples, **hooks)  # type: ignore[arg-type]

    monkeypatch.setattr(committee.Course, "run", watched)
    policy, past = C3(training=LeaveOneOut(epochs=1, steps=5), progress=False), history(n=80)
    policy.fit(past, np.random.default_rng(0))
    assert used == ["cuda"] * 4
    choice = policy.choose(past.contexts[0], ARMS, np.random.default_rng(1))
    assert choice.propensities.sum() == pytest.approx(1)


def test_equal_seeds_train_equal_policies() -> None:
    past, beliefs = history(n=80), []
    for _ in range(2):
        policy = C3(training=LeaveOneOut(epochs=1, steps=20), progress=False)
        policy.fit(past, np.random.default_rng(0))
        beliefs.append(policy.beliefs(past.contexts[0], ARMS).mean)
    np.testing.assert_allclose(*beliefs, atol=1e-4)


def test_replayed_steps_are_those_that_were_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    past, embedded = history(n=80), []
    for recorded in (True, False):
        if not recorded:
            monkeypatch.setattr(leave_one_out, "Recording", lambda step, phi: step)
        policy = C3(training=LeaveOneOut(epochs=1, steps=20), progress=False)
        policy.fit(past, np.random.default_rng(0))
        embedded.append(policy.embed(past.contexts, past.arms))
    np.testing.assert_allclose(*embedded, atol=1e-2)


def test_a_replay_drops_other_values_each_time() -> None:
    phi = ResidualNetwork(
        np.ones(64), np.ones(2), width=64, blocks=1, dim=2, dropout=0.5, rng=np.random.default_rng(0)
    ).to("cuda")
    contexts, arms, result = (torch.ones(4, width, device="cuda") for width in (64, 2, 2))

    def step() -> None:
        with torch.no_grad():
            result.copy_(phi(contexts, arms))

    recording, seen = Recording(step, phi), []
    for _ in range(WARM + 4):
        recording()
        seen.append(result.cpu().numpy().copy())
    assert len({values.tobytes() for values in seen}) == len(seen)
