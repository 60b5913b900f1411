"""The laws of every scenario: worlds are reproducible, and nobody who plays in one can change it."""

import pickle
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tercet.environments.anchors import Anchors
from tercet.environments.base import Environment, Revealed, Revealing, Scenario
from tercet.environments.classification import Classification
from tercet.environments.drift import KINDS, Drift
from tercet.environments.separate import Separate
from tercet.environments.simulated import ShopYear
from tercet.types import Feedback, Round

SCENARIOS = {
    "shop": ShopYear(visits=100),
    "anchors": Anchors(logged=6, played=4, samples=25),
    **{kind: Drift(kind=kind, logged=300, steps=200, interval=50) for kind in KINDS},
    "separate": Separate(logged=300, steps=200),
    "separate, biased log": Separate(logged=300, steps=200, usual=3),
    "separate, moving": Separate(logged=130, steps=200, arriving=30, interval=50),
    **{
        f"{data} rows, {streaming=}": Classification(
            data=data, protocol="scripts", logging=logging, streaming=streaming
        )
        for data, logging, streaming in (("covertype", "label-aware", False), ("letter", "uniform", True))
    },
}


@pytest.fixture(params=SCENARIOS)
def scenario(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scenario:
    rng = np.random.default_rng(0)
    monkeypatch.setenv("TERCET_DATA", str(tmp_path))
    for name in ("covertype", "letter"):
        np.savez(tmp_path / f"{name}.npz", X=rng.normal(size=(400, 3)), y=rng.integers(1, 4, size=400))
    return SCENARIOS[request.param]


def world(scenario: Scenario, seed: int = 1) -> Environment:
    return scenario.draw(np.random.default_rng(seed))


def history(environment: Environment, seed: int = 2) -> Feedback:
    return environment.history(np.random.default_rng(seed))


def rounds(environment: Environment, seed: int = 3) -> list[Round]:
    return list(environment.rounds(np.random.default_rng(seed)))


def alike(one: Any, two: Any) -> bool:
    if isinstance(one, Feedback | Round):
        return all(alike(getattr(one, f.name), getattr(two, f.name)) for f in fields(one))
    return np.array_equal(one, two) if isinstance(one, np.ndarray) else bool(one == two)


def test_a_scenario_draws_environments(scenario: Scenario) -> None:
    assert isinstance(scenario, Scenario)
    environment = world(scenario)
    assert isinstance(environment, Environment)
    assert isinstance(environment, Revealing) == isinstance(scenario, Classification)


def test_equal_rngs_give_equal_worlds_histories_and_rounds(scenario: Scenario) -> None:
    one, two = world(scenario), world(scenario)
    assert alike(history(one), history(two))
    assert all(alike(*pair) for pair in zip(rounds(one), rounds(two), strict=True))


def test_other_rngs_give_other_worlds(scenario: Scenario) -> None:
    assert not world(scenario).one_log
    assert not alike(history(world(scenario, 1)), history(world(scenario, 2)))


def test_a_scenario_is_a_value_that_other_processes_can_draw_from(scenario: Scenario) -> None:
    sent = pickle.loads(pickle.dumps(scenario))
    assert sent == scenario
    assert hash(sent) == hash(scenario)
    assert repr(sent) == repr(scenario)
    assert eval(repr(scenario)) == scenario
    assert alike(history(world(sent)), history(world(scenario)))


def test_rounds_do_not_depend_on_what_happens_between_them(scenario: Scenario) -> None:
    environment = world(scenario)
    untouched = rounds(environment)
    for round_, before in zip(environment.rounds(np.random.default_rng(3)), untouched, strict=True):
        assert alike(round_, before)
        history(environment, int(round_.rewards[0]))  # whoever reads, and whatever was won


def test_rounds_come_after_the_history_in_order(scenario: Scenario) -> None:
    environment = world(scenario)
    log, steps = history(environment), rounds(environment)
    assert log.times is not None
    times = np.concatenate([log.times, [round_.time for round_ in steps]])
    assert (np.diff(times) >= 0).all()
    np.testing.assert_array_equal(log.ids, np.arange(len(log)))


def test_rewards_come_at_their_means(scenario: Scenario) -> None:
    steps = rounds(world(scenario))
    rewards, means = (
        np.concatenate([getattr(round_, name) for round_ in steps]) for name in ("rewards", "means")
    )
    assert set(np.unique(rewards)) <= {0.0, 1.0}
    variance = (means * (1 - means)).sum()
    assert abs((rewards - means).sum()) <= 4 * np.sqrt(variance)  # a standard normal, of which 4 is rare


def test_an_arm_keeps_its_features_and_is_offered_once_a_round(scenario: Scenario) -> None:
    environment = world(scenario)
    log, steps = history(environment), rounds(environment)
    ids = np.concatenate([np.asarray(log.arm_ids), *(np.asarray(round_.arm_ids) for round_ in steps)])
    arms = np.concatenate([log.arms, *(round_.arms for round_ in steps)])
    assert len(np.unique(np.column_stack([ids, arms]), axis=0)) == len(np.unique(ids))
    assert all(len(set(round_.arm_ids)) == len(round_.arms) for round_ in steps if round_.arm_ids is not None)


def test_logged_outcomes_stream_exactly_where_the_world_says_so(scenario: Scenario) -> None:
    environment = world(scenario)
    assert environment.streaming == any(round_.logged is not None for round_ in rounds(environment))


def test_revealed_rewards_have_a_row_a_context_and_a_column_an_arm() -> None:
    with pytest.raises(TypeError):
        Revealed(contexts=np.zeros((3, 2)), arms=np.eye(2), rewards=np.zeros((2, 3)))
