import copy
import signal
from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tercet import (
    C3,
    CheckpointError,
    Decay,
    Feedback,
    RandomDrop,
    ReferenceSet,
    Training,
    Window,
    coupled,
    iwkr,
)
from tercet import checkpoint as checkpoints
from tercet import posterior as posteriors
from tercet.embedding.options import LeaveOneOut
from tercet.policies.c3 import NARROWEST, THINNEST, _spread
from tercet.policies.calibration import DOUBT, PRIOR_WEIGHT
from tercet.types import Posterior
from tests.laws.policies import ARMS, contents, history

QUICK = Training(epochs=3)


def arms_only(contexts: np.ndarray, arms: np.ndarray) -> np.ndarray:
    return arms


def rows(n: int, *, seed: int = 0, **changes: Any) -> Feedback:
    rng = np.random.default_rng(seed)
    columns = {"contexts": np.zeros((n, 0)), "arms": rng.normal(size=(n, 2)), "rewards": rng.random(n)}
    return Feedback(**(columns | changes))


def several_views(*, n: int = 60, **options: Any) -> C3:
    """A policy that sees its history in five ways, hastily trained."""
    policy = C3(dim=4, training=LeaveOneOut(epochs=1, steps=5), progress=False, **options)
    policy.fit(history(n=n), np.random.default_rng(0))
    assert len(policy.state.views) == 5
    return policy


@pytest.fixture(scope="module")
def committee() -> C3:
    """Not to be changed: take a copy."""
    return several_views()


@pytest.fixture(scope="module")
def trained() -> C3:
    policy = C3(hidden=(16,), dim=4, training=QUICK, progress=False)
    policy.fit(history(n=300), np.random.default_rng(0))
    return policy


def test_the_posterior_is_the_papers(rng: np.random.Generator) -> None:
    outcomes = rows(50)
    policy = C3(phi=arms_only, bandwidth=0.8, sharpness=2.0, prior=(0.5, 0.25))
    policy.update(outcomes, rng)
    arms = rng.normal(size=(6, 2))
    posterior = policy.choose([], arms, rng).posterior
    kappa = iwkr.rbf(arms, outcomes.arms, 0.8)
    w = 1 / iwkr.densities(iwkr.rbf(outcomes.arms, outcomes.arms, 0.8))
    eta, mu = iwkr.mass(kappa), iwkr.iwkr(kappa, w, outcomes.rewards)
    assert posterior is not None
    np.testing.assert_allclose(posterior.mass, eta, rtol=2e-5)
    np.testing.assert_allclose(posterior.alpha, 2 * eta * mu + 0.5, rtol=1e-4)
    np.testing.assert_allclose(posterior.beta, 2 * eta * (1 - mu) + 0.25, rtol=1e-4)


def test_the_paper_and_the_default_are_configurations_of_one_class() -> None:
    paper = C3.paper(dim=4)
    assert type(paper) is C3
    assert (paper.sharpness, paper.prior, paper.scale, paper.dim) == (1.0, (1.0, 1.0), False, 4)
    assert paper.training == Training.paper()


def test_the_default_prior_has_the_historys_mean(rng: np.random.Generator) -> None:
    policy = C3(phi=arms_only)
    policy.fit(rows(98, rewards=np.repeat([1.0, 0.0], [24, 74])), rng)
    far = policy.choose([], [[1e6, 1e6]], rng).posterior
    assert far is not None
    counts = PRIOR_WEIGHT / DOUBT
    assert (far.alpha[0], far.beta[0], far.mass[0]) == (counts / 4, counts * 3 / 4, 0.0)


def test_an_empty_history_and_an_empty_memory_still_decide(rng: np.random.Generator) -> None:
    for policy, remember in ((C3(progress=False), True), (C3(phi=arms_only), False)):
        policy.fit(history(n=0), rng, remember=remember)
        choice = policy.choose([0.1, 0.2], ARMS, rng)
        np.testing.assert_allclose(choice.propensities, 1 / 3, atol=1e-5)
        assert len(policy) == 0


def test_fit_without_remembering_leaves_the_memory_empty(rng: np.random.Generator) -> None:
    policy = C3(phi=arms_only)
    policy.fit(rows(20), rng, remember=False)
    assert len(policy) == 0
    policy.fit(rows(20), rng)
    assert len(policy) == 20


def test_greedy_plays_the_best_mean_and_ties_share(rng: np.random.Generator) -> None:
    policy = C3(phi=arms_only, explore="greedy", floor=0.1)
    policy.update(rows(2, arms=[[0, 0], [9, 9]], rewards=[1.0, 0.0]), rng)
    np.testing.assert_allclose(policy.choose([], [[0, 0], [9, 9]], rng).propensities, [0.95, 0.05])
    np.testing.assert_allclose(
        policy.choose([], [[0, 0], [0, 0], [9, 9]], rng).propensities, [29 / 60, 29 / 60, 1 / 30]
    )


def test_without_a_prior_unseen_arms_are_uniform_and_nothing_is_nan(rng: np.random.Generator) -> None:
    policy = C3(phi=arms_only, prior=(0.0, 0.0))
    policy.update(rows(1, arms=[[0, 0]], rewards=[0.0]), rng)
    choice = policy.choose([], [[0, 0], [50, 50]], rng)
    assert choice.arm == 1
    np.testing.assert_allclose(choice.propensities, [0, 1])


@pytest.mark.parametrize(
    "rule", [RandomDrop(fraction=0.5, every=10), Window(count=15), Window(duration=12.0)]
)
def test_outcomes_in_one_batch_or_one_by_one_leave_the_same_memory(
    rule: Any, rng: np.random.Generator
) -> None:
    outcomes = rows(57, times=np.arange(57.0), ids=np.arange(57) * 7)
    batch, single = C3(phi=arms_only, forgetting=rule), C3(phi=arms_only, forgetting=rule)
    batch.update(outcomes, rng)
    for i in range(57):
        single.update(outcomes[i : i + 1], rng)
    assert batch.state.references is not None
    assert single.state.references is not None
    assert sorted(batch.state.references.ids) == sorted(single.state.references.ids)
    assert 0 < len(batch) < 57


def test_decay_forgets_by_age(rng: np.random.Generator) -> None:
    policy = C3(phi=arms_only, forgetting=Decay(half_life=2.0))
    policy.update(rows(1, arms=[[0, 0]], times=[0.0]), rng)
    mass = [policy.beliefs([], [[0, 0]], time=t).mass[0] for t in (0.0, 2.0, 4.0)]
    np.testing.assert_allclose(mass, [1, 0.5, 0.25], rtol=1e-6)
    policy.update(rows(1, times=[1000.0]), rng)
    assert len(policy) == 1


def test_a_trained_policy_comes_back_bit_for_bit(trained: C3, tmp_path: Path) -> None:
    trained.save(tmp_path / "c3")
    again = C3.load(tmp_path / "c3")
    for seed in range(30):
        context = np.random.default_rng(seed).uniform(-1, 1, size=2)
        one, two = (p.choose(context, ARMS, np.random.default_rng(seed)) for p in (trained, again))
        assert one.arm == two.arm
        np.testing.assert_array_equal(one.propensities, two.propensities)
    assert contents(tmp_path / "a", trained) == contents(tmp_path / "b", again)


@pytest.mark.parametrize(
    "rule", [None, RandomDrop(fraction=0.3, every=7), Window(count=9), Decay(half_life=0.1)]
)
def test_settings_survive_saving(rule: Any, tmp_path: Path) -> None:
    policy = C3(
        phi=arms_only,
        forgetting=rule,
        floor=0.25,
        prior=(0.1, 0.7),
        training=Training(epochs=7),
        draws="coupled",
    )
    policy.save(tmp_path / "c3")
    again = C3.load(tmp_path / "c3", phi=arms_only)
    assert (again.forgetting, again.floor, again.prior, again.training.epochs) == (rule, 0.25, (0.1, 0.7), 7)
    assert again.draws == "coupled"


def test_a_phi_of_ones_own_must_be_given_again(tmp_path: Path) -> None:
    C3(phi=arms_only).save(tmp_path / "c3")
    with pytest.raises(CheckpointError, match="give that phi to load"):
        C3.load(tmp_path / "c3")


def test_a_damaged_policy_is_refused(trained: C3, tmp_path: Path) -> None:
    from tercet import checkpoint

    trained.save(tmp_path / "c3")
    arrays, spec = checkpoint.read(tmp_path / "c3", "tercet.C3")
    short = arrays | {"0.references.density": arrays["0.references.density"][:-1]}
    bent = {name: array for name, array in arrays.items() if name != "0.phi.weights.0"}
    for broken in ((short, spec), (bent, spec), (arrays, {}), (arrays, spec | {"settings": {"dim": 3}})):
        checkpoint.write(tmp_path / "c3", "tercet.C3", *broken)
        with pytest.raises(CheckpointError, match="can not be loaded as a C3 policy"):
            C3.load(tmp_path / "c3")


BAD_UPDATES = [
    ("as before; got 1 and 2", {"contexts": np.zeros((1, 1))}),
    ("as before; got 0 and 3", {"arms": np.zeros((1, 3))}),
    ("times must come with every outcome or with none", {"times": [1.0]}),
    ("points must lie within", {"arms": [[1e38, 0.0]]}),
]


@pytest.mark.parametrize("rule", [None, RandomDrop(every=10), Window(count=3)])
@pytest.mark.parametrize(("message", "change"), BAD_UPDATES)
def test_a_bad_outcome_is_refused_and_changes_nothing(
    message: str, change: dict[str, Any], rule: Any, rng: np.random.Generator, tmp_path: Path
) -> None:
    policy = C3(phi=arms_only, forgetting=rule)
    policy.update(rows(5), rng)
    before = contents(tmp_path / "a", policy)
    with pytest.raises(ValueError, match=message):
        policy.update(rows(1, **change), rng)
    assert contents(tmp_path / "a", policy) == before


def test_a_batch_with_one_bad_outcome_is_refused_whole(rng: np.random.Generator, tmp_path: Path) -> None:
    policy = C3(phi=arms_only, forgetting=RandomDrop(every=10))
    policy.update(rows(5), rng)
    before = contents(tmp_path / "a", policy)
    arms = rng.normal(size=(25, 2))
    arms[20] = 1e38
    with pytest.raises(ValueError, match="points must lie within"):
        policy.update(rows(25, arms=arms), rng)
    assert contents(tmp_path / "a", policy) == before


def test_ctrl_c_in_an_update_comes_after_all_of_it(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    append = ReferenceSet.append

    def interrupted(self: ReferenceSet, *columns: Any) -> None:
        signal.raise_signal(signal.SIGINT)
        append(self, *columns)

    monkeypatch.setattr(ReferenceSet, "append", interrupted)
    policy = C3(phi=arms_only, forgetting=RandomDrop(fraction=0.1, every=10))
    with pytest.raises(KeyboardInterrupt):
        policy.update(rows(35), rng)
    assert policy.state.learned == 35
    assert 0 < len(policy) < 35


def test_an_emptied_memory_goes_on_counting(rng: np.random.Generator) -> None:
    rule = RandomDrop(fraction=0.97, every=3)
    batch, single, outcomes = C3(phi=arms_only, forgetting=rule), C3(phi=arms_only, forgetting=rule), rows(60)
    batch.update(outcomes, rng)
    for i in range(60):
        single.update(outcomes[i : i + 1], rng)
    assert batch.state.references is not None
    assert single.state.references is not None
    np.testing.assert_array_equal(batch.state.references.ids, single.state.references.ids)


def test_a_clock_means_nothing_to_outcomes_without_times(rng: np.random.Generator) -> None:
    policy = C3(phi=arms_only, forgetting=Decay(half_life=30.0))
    policy.update(rows(200), rng)
    newest = policy.beliefs([], [[0.0, 0.0]]).mass
    np.testing.assert_array_equal(policy.beliefs([], [[0.0, 0.0]], time=20.0).mass, newest)


def test_a_policy_can_be_copied_and_its_settings_are_fixed(trained: C3) -> None:
    twin = copy.deepcopy(trained)
    rng = np.random.default_rng(0)
    twin.update(history(n=5), rng)
    assert len(twin) == len(trained) + 5
    with pytest.raises(FrozenInstanceError):
        trained.bandwidth = 3.0  # type: ignore[misc]


def test_deciding_before_fitting_says_what_to_do(rng: np.random.Generator) -> None:
    with pytest.raises(ValueError, match="call fit"):
        C3().choose([0.0], [[1.0]], rng)


def test_questions_of_another_shape_are_refused(trained: C3, rng: np.random.Generator) -> None:
    with pytest.raises(ValueError, match="must have 2 and 3 features, as before; got 1 and 3"):
        trained.choose([0.0], ARMS, rng)
    with pytest.raises(ValueError, match="time must be finite"):
        trained.choose([0.0, 0.0], ARMS, rng, time=np.nan)


@pytest.mark.parametrize(
    ("message", "options"),
    [
        ("dim and hidden", {"dim": 0}),
        ("dim and hidden", {"hidden": (0,)}),
        ("bandwidth", {"bandwidth": -1.0}),
        ("sharpness", {"sharpness": 0.0}),
        ("prior", {"prior": (-1.0, 1.0)}),
        ("prior", {"prior": (np.nan, 1.0)}),
        ("spread", {"spread": 0.0}),
        ("floor", {"floor": 1.5}),
        ("phi must be callable", {"phi": 3}),
    ],
)
def test_senseless_settings_are_refused(message: str, options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=message):
        C3(**options)


def test_a_phi_that_returns_rubbish_is_refused(rng: np.random.Generator) -> None:
    policy = C3(phi=lambda contexts, arms: arms * np.nan)
    with pytest.raises(ValueError, match="phi's result must be finite"):
        policy.update(rows(1), rng)
    assert len(policy) == 0


def test_an_error_in_fit_leaves_the_policy_as_it_was(rng: np.random.Generator, tmp_path: Path) -> None:
    calls = []

    def moody(contexts: np.ndarray, arms: np.ndarray) -> np.ndarray:
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return arms

    policy = C3(phi=moody)
    policy.fit(rows(10), rng)
    before = contents(tmp_path / "a", policy)
    with pytest.raises(KeyboardInterrupt):
        policy.fit(rows(20), rng)
    assert contents(tmp_path / "a", policy) == before


def test_explain_names_the_outcomes_that_carry_a_score(rng: np.random.Generator) -> None:
    outcomes = rows(40, ids=np.arange(40) + 100)
    policy = C3(phi=arms_only, bandwidth=0.5)
    policy.update(outcomes, rng)
    evidence = policy.explain([], [0.2, 0.1], most=3)
    w = 1 / iwkr.densities(iwkr.rbf(outcomes.arms, outcomes.arms, 0.5))
    weights = iwkr.rbf(np.array([[0.2, 0.1]]), outcomes.arms, 0.5)[0] * w
    heaviest = np.argsort(-weights)[:3]
    np.testing.assert_array_equal(evidence.ids, heaviest + 100)
    np.testing.assert_allclose(evidence.weights, weights[heaviest] / weights.sum(), rtol=1e-6)
    np.testing.assert_allclose(evidence.rewards, outcomes.rewards[heaviest], atol=1e-7)
    rest = C3(phi=arms_only, bandwidth=0.5)
    rest.update(outcomes[np.setdiff1d(np.arange(40), heaviest)], rng)
    without = rest.explain([], [0.2, 0.1]).estimate
    np.testing.assert_allclose(evidence.without.mean, without.mean, atol=1e-5)
    np.testing.assert_allclose(evidence.without.mass, without.mass, rtol=1e-5)


def test_explain_without_evidence_says_so() -> None:
    with pytest.raises(ValueError, match="no evidence yet"):
        C3(phi=arms_only).explain([], [1.0, 0.0])


def test_any_torch_module_is_trained_as_phi(rng: np.random.Generator, tmp_path: Path) -> None:
    import torch

    class Bilinear(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Bilinear(2, 3, 4)

        def forward(self, contexts: torch.Tensor, arms: torch.Tensor) -> torch.Tensor:
            return self.layer(contexts, arms)  # type: ignore[no-any-return]

    module = Bilinear()
    before = module.layer.weight.detach().clone()
    policy = C3(phi=module, training=QUICK, progress=False)
    policy.fit(history(), rng)
    assert not torch.equal(before, module.layer.weight)
    choice = policy.choose([0.5, 0.1], ARMS, np.random.default_rng(0))
    policy.save(tmp_path / "c3")
    again = C3.load(tmp_path / "c3", phi=module)
    assert again.choose([0.5, 0.1], ARMS, np.random.default_rng(0)).arm == choice.arm


@pytest.mark.parametrize("spread", [0.1, 0.5, 1.0, 2.0])
def test_draws_are_as_wide_as_the_spread_says(
    spread: float, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[tuple[np.ndarray, np.ndarray]] = []
    draw = posteriors.draw

    def noted(alpha: np.ndarray, beta: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        drawn.append((alpha, beta))
        return draw(alpha, beta, rng)

    monkeypatch.setattr(posteriors, "draw", noted)
    policy = C3(phi=arms_only, spread=spread, sharpness=30.0)
    policy.update(rows(50), rng)
    arms = rng.normal(scale=0.5, size=(6, 2))
    choice, believed = policy.choose([], arms, rng), policy.beliefs([], arms)
    ((alpha, beta),) = drawn
    wide, usual = alpha + beta, believed.alpha + believed.beta
    np.testing.assert_allclose(alpha / wide, believed.mean, rtol=1e-9)
    assert usual.min() > 100  # so many that 1 more does not matter
    np.testing.assert_allclose(np.sqrt((usual + 1) / (wide + 1)), spread, rtol=0.02)
    assert choice.posterior is not None  # the posterior is told as it is
    np.testing.assert_array_equal(choice.posterior.alpha, believed.alpha)
    np.testing.assert_allclose(choice.propensities, posteriors.propensities(alpha, beta), atol=1e-3)


@given(
    counts=st.lists(st.floats(1e-3, 1e6), min_size=1, max_size=6),
    means=st.lists(st.sampled_from([0.2, 0.5, 0.5001, 0.9]), min_size=6, max_size=6),
    order=st.permutations(range(6)),
)
def test_the_less_is_known_of_an_arm_the_wider_are_its_draws(
    counts: list[float], means: list[float], order: list[int]
) -> None:
    known, mean = np.asarray(counts), np.asarray(means[: len(counts)])
    found = widths(known, mean)
    best = known[mean == mean.max()].max()
    assert found.min() >= NARROWEST * (1 - 1e-12)
    assert found.max() <= 1 + 1e-12
    np.testing.assert_allclose(found[known >= best], NARROWEST)
    np.testing.assert_allclose(found[known <= THINNEST * best], 1.0)
    assert (np.diff(found[np.argsort(known)]) <= 1e-12).all()
    order = [place for place in order if place < len(known)]
    np.testing.assert_allclose(widths(known[order], mean[order]), found[order])


def widths(counts: np.ndarray, mean: np.ndarray) -> np.ndarray:
    return _spread(Posterior(mean=mean, mass=counts, alpha=counts * mean, beta=counts * (1 - mean)))


def test_arms_known_equally_well_draw_at_the_narrowest(rng: np.random.Generator) -> None:
    rows = Feedback(contexts=np.zeros((40, 0)), arms=np.tile(np.eye(2), (20, 1)), rewards=rng.random(40))
    chances = []
    for spread in (None, NARROWEST):
        policy = C3(phi=arms_only, bandwidth=0.1, sharpness=1.0, prior=(1.0, 1.0), spread=spread)
        policy.fit(rows, rng)
        chances.append(policy.choose([], np.eye(2), rng).propensities)
    np.testing.assert_allclose(*chances, rtol=1e-9)


def test_an_arm_that_was_unlucky_in_a_biased_log_is_found_out() -> None:
    """A thousand plays of a fair arm, four of a better one with little luck: greedy choice stays for ever."""
    shown = np.repeat([0, 1], [1000, 4])
    rewards = np.where(shown == 0, np.arange(1004) % 2, np.arange(1004) == 1000).astype(float)
    log = Feedback(contexts=np.zeros((1004, 0)), arms=3.0 * np.eye(2)[shown], rewards=rewards)
    late = {"thompson": 0, "greedy": 0}
    for explore in ("thompson", "greedy"):
        for seed in range(3):
            rng = np.random.default_rng(seed)
            policy = C3(phi=arms_only, explore=explore, progress=False)
            policy.fit(log, rng)
            for step in range(500):
                arm = policy.choose([], 3.0 * np.eye(2), rng).arm
                late[explore] += step >= 400 and arm == 1
                reward = float(rng.random() < (0.5, 0.8)[arm])
                policy.update(Feedback.one(context=[], arm=3.0 * np.eye(2)[arm], reward=reward), rng)
    assert late["greedy"] == 0
    assert late["thompson"] > 0.9 * 300


def test_a_smaller_spread_explores_less(rng: np.random.Generator) -> None:
    chances = []
    for spread in (0.1, 0.3, 1.0):
        policy = C3(phi=arms_only, spread=spread)
        policy.update(rows(2, arms=[[0, 0], [9, 9]], rewards=[1.0, 0.0]), rng)
        chances.append(policy.choose([], [[0, 0], [9, 9]], rng).propensities[1])
    assert chances == sorted(chances)
    assert chances[0] < chances[-1] / 10


@pytest.mark.parametrize("draws", ["independent", "coupled"])
def test_several_views_come_back_bit_for_bit_and_go_on_so(draws: str, committee: C3, tmp_path: Path) -> None:
    one = copy.deepcopy(committee)
    object.__setattr__(one, "draws", draws)  # as if it had been fitted so: draws have no part in fitting
    one.save(tmp_path / "c3")
    two = C3.load(tmp_path / "c3")
    assert two.draws == draws
    rng = np.random.default_rng(5)
    for step in range(20):
        context, time = rng.uniform(-1, 1, size=2), 6.0 + step
        choices = [p.choose(context, ARMS, np.random.default_rng(step), time=time) for p in (one, two)]
        assert choices[0].arm == choices[1].arm
        np.testing.assert_array_equal(choices[0].propensities, choices[1].propensities)
        outcome = Feedback.one(
            context=context, arm=ARMS[choices[0].arm], reward=float(rng.integers(2)), time=time
        )
        for policy in (one, two):
            policy.update(outcome, rng)
    assert contents(tmp_path / "a", one) == contents(tmp_path / "b", two)
    assert len(two) == 80


def test_saving_keeps_all_that_was_learned_and_all_that_was_set(tmp_path: Path) -> None:
    policy = several_views(forgetting=Decay(half_life=3.0), spread=0.7, prior=(0.3, 0.4), bandwidth=0.8)
    policy.save(tmp_path / "c3")
    again = C3.load(tmp_path / "c3")
    assert (again.spread, again.hidden, again.bandwidth, again.sharpness) == (0.7, None, 0.8, None)
    assert (again.training, again.forgetting) == (LeaveOneOut(epochs=1, steps=5), Decay(half_life=3.0))
    for one, two in zip(policy.state.views, again.state.views, strict=True):
        for name in ("weight", "bandwidth", "sharpness", "counts", "pull"):
            assert getattr(one, name) == getattr(two, name)
    again.fit(history(n=10), np.random.default_rng(0))  # too few outcomes for more than one view
    assert len(again.state.views) == 1


def less(arrays: dict[str, Any], start: str) -> dict[str, Any]:
    return {name: array for name, array in arrays.items() if not name.startswith(start)}


def view_with(spec: dict[str, Any], number: int, **changes: Any) -> dict[str, Any]:
    views = list(spec["views"])
    views[number] = views[number] | changes
    return spec | {"views": views}


# Views 0 to 3 are residual networks, 4 the features.
DAMAGES: dict[str, Any] = {
    "a network without its arrays": lambda a, s: (less(a, "1.phi."), s),
    "a network without a layer": lambda a, s: (less(a, "2.phi.blocks.1.outer"), s),
    "a network without an encoding": lambda a, s: (less(a, "2.phi.arm.centre"), s),
    "the features without their arrays": lambda a, s: (less(a, "4.phi."), s),
    "a memory without its rewards": lambda a, s: (less(a, "3.references.reward"), s),
    "a memory without its arrays": lambda a, s: (less(a, "3.references."), s),
    "a memory that is shorter than the others": lambda a, s: (
        a
        | {
            name: array[:-1]
            for name, array in a.items()
            if name.startswith("3.references.") and not name.endswith("centre")
        },
        s,
    ),
    "a negative bandwidth": lambda a, s: (a, view_with(s, 1, bandwidth=-1.0)),
    "a sharpness of zero": lambda a, s: (a, view_with(s, 1, sharpness=0.0)),
    "a negative pull": lambda a, s: (a, view_with(s, 1, pull=-0.1)),
    "a negative weight": lambda a, s: (a, view_with(s, 1, weight=-0.2)),
    "negative counts": lambda a, s: (a, view_with(s, 1, counts=[-1.0, 2.0])),
    "a single count": lambda a, s: (a, view_with(s, 1, counts=[1.0])),
    "a network of another kind": lambda a, s: (a, view_with(s, 0, phi=s["views"][4]["phi"])),
    "features of another kind": lambda a, s: (a, view_with(s, 4, phi=s["views"][0]["phi"])),
    "a network of no kind": lambda a, s: (a, view_with(s, 0, phi={"kind": "forest"})),
    "a view without a phi": lambda a, s: (a, view_with(s, 0, phi=None)),
    "views that are no list": lambda a, s: (a, s | {"views": 3}),
    "an unknown rule": lambda a, s: (a, s | {"forgetting": {"rule": "Never"}}),
    "an unknown way to train": lambda a, s: (
        a,
        s | {"settings": s["settings"] | {"training": {"way": "Hope"}}},
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_views_are_refused(damage: str, committee: C3, tmp_path: Path) -> None:
    committee.save(tmp_path / "c3")
    checkpoints.write(
        tmp_path / "c3", "tercet.C3", *DAMAGES[damage](*checkpoints.read(tmp_path / "c3", "tercet.C3"))
    )
    with pytest.raises(CheckpointError, match="can not be loaded as a C3 policy"):
        C3.load(tmp_path / "c3")


@pytest.mark.parametrize("half_life", [None, 3.0])
def test_explain_weighs_outcomes_by_all_views(half_life: float | None) -> None:
    policy = several_views(forgetting=None if half_life is None else Decay(half_life=half_life))
    context, arm, views = np.array([0.3, -0.2]), ARMS[1], policy.state.views
    evidence = policy.explain(context, arm, most=7)
    assert policy.explain(context, arm, most=60).weights.sum() == pytest.approx(1)
    assert (np.diff(evidence.weights) <= 0).all()
    top = evidence.ids
    np.testing.assert_array_equal(evidence.rewards, history(n=60).rewards[top])
    points = [view.embed(context[None], arm[None]) for view in views]
    for found, gone in ((evidence.estimate, []), (evidence.without, top)):
        past = history(n=60)[np.setdiff1d(np.arange(60), gone)]
        mass = mean = 0.0
        for view, query in zip(views, points, strict=True):
            memory = ReferenceSet(dim=query.shape[1], bandwidth=view.bandwidth, half_life=half_life)
            memory.append(view.embed(past.contexts, past.arms), past.rewards, past.times)
            estimate = memory.estimate(query, time=5.9)  # of the newest outcome, here or gone
            mass += view.weight * estimate.mass[0]
            mean += view.weight * estimate.mean[0]
        np.testing.assert_allclose(found.mass, mass, rtol=1e-4)
        np.testing.assert_allclose(found.mean, mean, rtol=1e-3)


RULES = [
    None,
    Decay(half_life=0.1),
    Window(count=25),
    Window(duration=3.0),
    RandomDrop(fraction=0.4, every=11),
]


@pytest.mark.parametrize("rule", RULES)
def test_every_view_remembers_the_same_whether_outcomes_come_together_or_one_by_one(rule: Any) -> None:
    together = several_views(n=40, forgetting=rule)
    single = copy.deepcopy(together)
    rng, later = np.random.default_rng(0), history(seed=1, n=50)
    assert later.times is not None
    columns = {"contexts": later.contexts, "arms": later.arms, "rewards": later.rewards}
    later = Feedback(**columns, times=later.times + 4.0, ids=np.arange(50) + 40)
    together.update(later, rng)
    for i in range(50):
        single.update(later[i : i + 1], rng)
    memories = [view.references for policy in (together, single) for view in policy.state.views]
    assert memories[0] is not None
    assert len(memories[0]) == 90 if rule is None else 0 < len(memories[0]) < 90
    for memory in memories:
        assert memory is not None
        np.testing.assert_array_equal(memory.ids, memories[0].ids)
    for context in rng.uniform(-1, 1, size=(5, 2)):
        one, two = (policy.beliefs(context, ARMS, time=9.5) for policy in (together, single))
        for name in ("mean", "mass", "alpha", "beta"):
            np.testing.assert_allclose(getattr(one, name), getattr(two, name), rtol=1e-4)


def test_a_bad_outcome_changes_no_view(committee: C3, tmp_path: Path, rng: np.random.Generator) -> None:
    policy = copy.deepcopy(committee)
    before = contents(tmp_path / "a", policy)
    view = policy.state.views[-1]
    sound = view.embed
    view.embed = lambda contexts, arms: sound(contexts, arms) * np.nan
    with pytest.raises(ValueError, match="phi's result must be finite"):
        policy.update(history(n=3), rng)
    view.embed = sound
    assert contents(tmp_path / "a", policy) == before


def test_embeddings_of_all_views_lie_as_far_apart_as_the_views_say(committee: C3) -> None:
    past = history(n=12)
    points = committee.embed(past.contexts, past.arms)
    expected = np.zeros((12, 12))
    for view in committee.state.views:
        own = view.embed(past.contexts, past.arms)
        expected += view.weight / view.bandwidth**2 * iwkr.squared_distances(own, own)
    np.testing.assert_allclose(iwkr.squared_distances(points, points), expected, rtol=1e-6, atol=1e-9)


def test_the_beliefs_of_a_policy_are_those_of_its_views(committee: C3, rng: np.random.Generator) -> None:
    context = np.array([0.3, -0.2])
    beliefs = committee.choose(context, ARMS, rng, time=6.0).posterior
    assert beliefs is not None
    parts = [(view.weight, view.beliefs(view.queries(context, ARMS), 6.0)) for view in committee.state.views]
    np.testing.assert_allclose(beliefs.mean, sum(weight * part.mean for weight, part in parts))
    counts = sum(weight * (part.alpha + part.beta) for weight, part in parts)
    np.testing.assert_allclose(beliefs.alpha + beliefs.beta, counts)


# --- coupled draws ---------------------------------------------------------------------------------------


def a_good_arm_and_a_worse_one(draws: str, **options: Any) -> C3:
    """1,000 outcomes at (0, 0) with mean .10, 100 at (50, 50) with mean .05, and the paper's posterior."""
    policy = C3.paper(phi=arms_only, draws=draws, **options)
    arms = np.repeat([[0.0, 0.0], [50.0, 50.0]], [1000, 100], axis=0)
    rewards = np.repeat([1.0, 0.0, 1.0, 0.0], [100, 900, 5, 95])
    policy.update(rows(1100, arms=arms, rewards=rewards), np.random.default_rng(0))
    return policy


def chance_of_the_best(policy: C3, copies: int, *, rounds: int = 1) -> float:
    """The odds of the good arm among so many copies of the worse one, the mean of some rounds."""
    arms, rng = np.repeat([[0.0, 0.0], [50.0, 50.0]], [1, copies], axis=0), np.random.default_rng(0)
    return float(np.mean([policy.choose([], arms, rng).propensities[0] for _ in range(rounds)]))


COPIES = (1, 10, 50, 500)


def test_copies_of_a_worse_arm_outbid_the_best_by_independent_draws_alone() -> None:
    independent = a_good_arm_and_a_worse_one("independent")
    stolen = [chance_of_the_best(independent, copies) for copies in COPIES]
    np.testing.assert_allclose(stolen, [0.94, 0.57, 0.12, 0.0], atol=0.005)
    coupled = a_good_arm_and_a_worse_one("coupled")
    kept = [chance_of_the_best(coupled, copies, rounds=4) for copies in COPIES]
    # Five standard errors of 4 x 1,024 draws are .02, and a normal has other tails than a Beta's log-odds.
    np.testing.assert_allclose(kept, stolen[0], atol=0.03)


def test_copies_share_the_odds_of_one_evenly() -> None:
    policy = a_good_arm_and_a_worse_one("coupled")
    arms = np.array([[0.0, 0.0], [50.0, 50.0], [50.0, 50.0], [0.0, 0.0], [50.0, 50.0]])
    chances = policy.choose([], arms, np.random.default_rng(0)).propensities
    assert chances[0] == pytest.approx(chances[3], abs=1e-12)
    np.testing.assert_allclose(chances[[2, 4]], chances[1], atol=1e-12)


@pytest.mark.parametrize("floor", [0.0, 0.3])
def test_the_arm_is_drawn_from_the_propensities_that_are_told(floor: float, rng: np.random.Generator) -> None:
    policy, n = C3(phi=arms_only, draws="coupled", floor=floor, spread=1 / 8), 1500
    policy.update(rows(8), rng)
    arms = rng.normal(size=(4, 2))
    choices = [policy.choose([], arms, rng) for _ in range(n)]
    told = np.array([choice.propensities for choice in choices])
    played = np.eye(4)[[choice.arm for choice in choices]]
    assert (told[played == 1] > 0).all()
    # Played minus told is a martingale difference with variance p (1 - p).
    z = (played - told).sum(0) / np.sqrt((told * (1 - told)).sum(0))
    assert (np.abs(z) < 5).all()
    # ... and not only on the whole: where more is told, more is played.
    excess = (told - told.mean(0)) * (played - told)
    spread = np.sqrt(((told - told.mean(0)) ** 2 * told * (1 - told)).sum(0))
    assert (np.abs(excess.sum(0) / spread) < 5).all()


def test_coupled_draws_are_those_of_the_posterior_narrowed_by_the_spread(
    committee: C3, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy, context = copy.deepcopy(committee), np.array([0.3, -0.2])
    object.__setattr__(policy, "draws", "coupled")
    asked: list[tuple[np.ndarray, ...]] = []
    odds = coupled.propensities

    def noted(*arguments: Any) -> np.ndarray:
        asked.append(arguments)
        return odds(*arguments)

    monkeypatch.setattr(coupled, "propensities", noted)
    choice = policy.choose(context, ARMS, np.random.default_rng(0), time=6.0)
    ((alpha, beta, common, _),) = asked
    assert choice.posterior is not None
    spread = _spread(choice.posterior)
    np.testing.assert_allclose(alpha, choice.posterior.alpha / spread**2)
    np.testing.assert_allclose(beta, choice.posterior.beta / spread**2)
    expected = np.zeros((3, 3))
    for view in policy.state.views:
        points = view.queries(context, ARMS)
        expected += view.weight * iwkr.rbf(points, points, np.sqrt(2) * view.bandwidth)
    np.testing.assert_allclose(common, expected, rtol=1e-9)


def test_greedy_does_not_draw() -> None:
    one, two = (
        a_good_arm_and_a_worse_one(draws, explore="greedy").choose(
            [], [[0.0, 0.0], [0.0, 0.0], [50.0, 50.0]], np.random.default_rng(7)
        )
        for draws in ("independent", "coupled")
    )
    assert one.arm == two.arm
    np.testing.assert_array_equal(one.propensities, [0.5, 0.5, 0.0])
    np.testing.assert_array_equal(two.propensities, one.propensities)


def test_every_pair_is_embedded_once(rng: np.random.Generator) -> None:
    calls: list[int] = []

    def counted(contexts: np.ndarray, arms: np.ndarray) -> np.ndarray:
        calls.append(len(arms))
        return arms

    policy = C3(phi=counted, draws="coupled")
    policy.update(rows(5), rng)
    calls.clear()
    policy.choose([], rng.normal(size=(4, 2)), rng)
    assert calls == [4]
