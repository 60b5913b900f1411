"""Several networks at once: reproducible on any number of cores, honest about held-out rows, interruptible."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tercet import iwkr, threads
from tercet.checks import Array, Matrix
from tercet.embedding import committee, leave_one_out
from tercet.embedding.committee import Pupil, learn, teach
from tercet.embedding.leave_one_out import Course
from tercet.embedding.network import linear
from tercet.embedding.options import LeaveOneOut
from tercet.embedding.residual import Residual
from tercet.embedding.rivals import Implied, implied
from tercet.embedding.samples import Samples
from tercet.types import Feedback, Ids

N = 60
HELD = np.arange(0, N, 4)
PLANS = [(0, HELD), (3, HELD), (3, HELD + 1)]
PATIENCE = 60  # seconds until a test that waits for another thread gives up


def separable(n: int = N, seed: int = 0) -> Feedback:
    """Two arms; arm 1 pays where the first feature of the context is positive, arm 0 elsewhere."""
    rng = np.random.default_rng(seed)
    contexts, arm = rng.normal(size=(n, 2)), rng.integers(2, size=n)
    return Feedback(
        contexts=contexts, arms=np.eye(2)[arm], rewards=(arm == (contexts[:, 0] > 0)).astype(float)
    )


def options(**changes: Any) -> LeaveOneOut:
    return LeaveOneOut(**{"epochs": 1, "steps": 20, "width": 128, "batch": 32, "partitions": 1, **changes})


def learned(history: Feedback, plans: list[tuple[int, Ids]], seed: int = 0, **changes: Any) -> list[Residual]:
    rng = np.random.default_rng(seed)
    return [phi for phi, _ in learn(history, plans, rng, dim=3, options=options(**changes), progress=False)]


def taught(
    pupils: list[Pupil], history: Feedback, seed: int = 0, *, followed: bool = False, **changes: Any
) -> None:
    rng = np.random.default_rng(seed)
    teach(pupils, history, rng, options=options(**changes), followed=followed, progress=False)


class Bent(nn.Module):
    """A small phi that is not ours."""

    def __init__(self, seed: int = 0, dropout: float = 0.0) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        self.layers = nn.Sequential(
            linear(4, 8, generator), nn.Tanh(), nn.Dropout(dropout), linear(8, 2, generator)
        )

    def forward(self, contexts: Tensor, arms: Tensor) -> Tensor:
        return self.layers(torch.cat([contexts, arms], dim=1))


class Broken(Bent):
    def forward(self, contexts: Tensor, arms: Tensor) -> Tensor:
        return super().forward(contexts, arms) * torch.nan


def pupil(history: Feedback, phi: nn.Module, held: Ids = HELD) -> Pupil:
    return Pupil(phi=phi, contexts=history.contexts, arms=history.arms, held=held)


def state(phi: nn.Module) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in phi.state_dict().items()}


def assert_state(phi: nn.Module, expected: dict[str, Tensor]) -> None:
    for name, value in phi.state_dict().items():
        assert torch.equal(value, expected[name]), name


def same(a: Residual, b: Residual) -> bool:
    left, right = a.to_arrays()[0], b.to_arrays()[0]
    return left.keys() == right.keys() and all(np.array_equal(left[name], right[name]) for name in left)


def watch(monkeypatch: pytest.MonkeyPatch, run: Callable[..., None]) -> None:
    """Have trainings go through `run`, which is given the true one first."""
    true = Course.run

    def watched(self: Course, learned: Any, held: Any, **callbacks: Any) -> None:
        run(lambda **changes: true(self, learned, held, **callbacks | changes), self, **callbacks)

    monkeypatch.setattr(Course, "run", watched)


def wait(until: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not until():
        if time.monotonic() > deadline:
            raise TimeoutError("nothing happened")
        time.sleep(0.001)


def press_ctrl_c(monkeypatch: pytest.MonkeyPatch, when: threading.Event) -> None:
    """Interrupt whoever waits for the first result, at this event."""
    true, pressed = Future.result, threading.Event()

    def result(self: Any, timeout: float | None = None) -> Any:
        if not pressed.is_set():
            assert when.wait(PATIENCE)
            pressed.set()
            raise KeyboardInterrupt
        return true(self, timeout)

    monkeypatch.setattr(Future, "result", result)


def test_each_plan_has_its_network_for_the_historys_features() -> None:
    history = separable()
    networks = learned(history, PLANS)
    assert [len(phi.context.columns) for phi in networks] == [0, 6, 6]
    for phi in networks:
        assert (phi.context_dim, phi.arm_dim, phi.dim) == (2, 2, 3)
        assert np.isfinite(phi(history.contexts, history.arms)).all()
    assert not same(networks[1], networks[2])


def test_networks_of_one_plan_have_starts_and_draws_of_their_own() -> None:
    assert not same(*learned(separable(), [(0, np.arange(N))] * 2))  # nothing to learn from: these are starts
    history, phis = separable(), [Bent(), Bent()]  # these start alike
    taught([pupil(history, phi) for phi in phis], history)
    assert not torch.equal(*(phi.layers[0].weight for phi in phis))


def test_what_is_learned_predicts_the_rows_held_out() -> None:
    history, held = separable(300), np.arange(100)
    (phi,) = learned(history, [(4, held)], batch=128, steps=150)
    points = phi(history.contexts, history.arms)
    kappa, inner = iwkr.rbf(points[:100], points[100:], 1.0), iwkr.rbf(points[100:], points[100:], 1.0)
    found = iwkr.iwkr(kappa, 1 / iwkr.densities(inner), history.rewards[100:])
    # 100 guesses are right 50 times, with a deviation of 5.
    assert ((found > 0.5) == (history.rewards[:100] == 1)).sum() > 85


def test_what_is_implied_is_learned_unless_its_source_is_held_out() -> None:
    history, rng = separable(), np.random.default_rng(0)
    more = implied(history, rng)
    assert more is not None

    def phi(implied: Implied | None) -> Residual:
        found = learn(
            history, [(0, HELD)], np.random.default_rng(0), dim=3, options=options(), implied=implied,
            progress=False,
        )  # fmt: skip
        return found[0][0]

    def turned(sources: Ids) -> Implied:
        flipped = np.where(np.isin(more.sources, sources), 1 - more.rewards, more.rewards)
        return replace(more, rewards=flipped)

    others = np.setdiff1d(np.arange(N), HELD)
    assert same(phi(more), phi(turned(HELD)))
    assert not same(phi(more), phi(turned(others)))
    assert not same(phi(more), phi(None))


def test_equal_seeds_give_equal_networks_on_any_number_of_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {}
    for cores in (1, 3):
        monkeypatch.setattr(threads, "cores", lambda cores=cores: cores)
        found[cores] = learned(separable(), PLANS)
    for one, three in zip(found[1], found[3], strict=True):
        assert same(one, three)
    assert not same(found[1][0], learned(separable(), PLANS[:1], seed=1)[0])


def test_as_many_networks_train_at_once_as_there_are_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "cores", lambda: 3)
    together = threading.Barrier(3, timeout=PATIENCE)
    watch(monkeypatch, lambda run, course, **callbacks: (together.wait(), run()))
    history = separable()
    taught([pupil(history, Bent(seed)) for seed in range(3)], history)


@pytest.mark.parametrize("ours", [True, False])
def test_torchs_global_random_state_is_left_alone(ours: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(committee, "MANY", 1)  # so that columns are left out
    history = separable()
    torch.manual_seed(0)
    before = torch.get_rng_state()
    if ours:
        learned(history, PLANS[:2])
    else:
        taught([pupil(history, Bent(dropout=0.5))], history)
    assert torch.equal(torch.get_rng_state(), before)


def test_the_dropout_of_any_module_is_seeded_by_the_rng() -> None:
    history, phis = separable(), [Bent(dropout=0.5), Bent(dropout=0.5)]
    for number, phi in enumerate(phis):
        torch.manual_seed(number)
        taught([pupil(history, phi)], history)
    assert_state(phis[0], state(phis[1]))


def test_torchs_number_of_threads_is_left_alone() -> None:
    before = torch.get_num_threads()
    seen: list[int] = []
    try:
        torch.set_num_threads(3)
        learned(separable(), PLANS[:2])
        # A new thread starts with the number of the process.
        other = threading.Thread(target=lambda: seen.append(torch.get_num_threads()))
        other.start()
        other.join()
        assert [torch.get_num_threads(), *seen] == [3, 3]
    finally:
        torch.set_num_threads(before)


def final_weights(contexts: Matrix, arms: Matrix, rewards: Array) -> Tensor:
    history, phi = Feedback(contexts=contexts, arms=arms, rewards=rewards), Bent()
    taught([pupil(history, phi)], history)
    return phi.layers[0].weight.detach()


def test_rows_held_out_only_choose_among_the_states(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leave_one_out, "CHECKS", 1)  # one look, after the last step: nothing to choose
    history = separable()
    columns = {name: getattr(history, name).copy() for name in ("contexts", "arms", "rewards")}
    plain = final_weights(**columns)
    for column in columns.values():
        column[HELD] = np.random.default_rng(1).random(column[HELD].shape)
    assert torch.equal(final_weights(**columns), plain)
    columns["rewards"][HELD[0] + 1] = 0.5
    assert not torch.equal(final_weights(**columns), plain)


def test_rewards_held_out_do_not_change_what_our_networks_learn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leave_one_out, "CHECKS", 1)
    history = separable()
    rewards = history.rewards.copy()
    rewards[HELD] = 1 - rewards[HELD]
    other = Feedback(contexts=history.contexts, arms=history.arms, rewards=rewards)
    assert same(*(learned(rows, [(3, HELD)])[0] for rows in (history, other)))


def test_rows_held_out_choose_among_the_states(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Array] = []
    true = Course._check

    def watched(self: Course, learned: Any, held: Any, mean: float) -> None:
        asked.append(held.contexts.numpy())
        true(self, learned, held, mean)

    monkeypatch.setattr(Course, "_check", watched)
    history = separable()
    taught([pupil(history, Bent())], history)
    assert len(asked) == leave_one_out.CHECKS
    np.testing.assert_array_equal(asked[0], history.contexts[HELD].astype(np.float32))


def test_ctrl_c_before_any_check_goes_on_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "cores", lambda: 2)
    begun = threading.Event()

    def run(true: Callable[..., None], course: Course, go_on: Callable[[], bool], **_: Any) -> None:
        def stopped() -> bool:
            begun.set()
            wait(lambda: not go_on())
            return go_on()

        true(go_on=stopped)

    watch(monkeypatch, run)
    press_ctrl_c(monkeypatch, begun)
    history = separable()
    phis = [Bent(seed) for seed in range(3)]  # the third has not begun
    with pytest.raises(KeyboardInterrupt):
        taught([pupil(history, phi) for phi in phis], history)
    for seed, phi in enumerate(phis):
        assert_state(phi, state(Bent(seed)))


@pytest.mark.parametrize(
    ("checked", "followed"), [({0, 1}, False), ({0}, False), ({1}, False), ({0, 1}, True)]
)
def test_ctrl_c_keeps_the_best_states_where_all_networks_have_one_and_none_are_to_follow(
    monkeypatch: pytest.MonkeyPatch, checked: set[int], followed: bool
) -> None:
    monkeypatch.setattr(threads, "cores", lambda: 2)
    history, phis, ready = separable(), [Bent(0), Bent(1)], threading.Event()
    kept: dict[int, dict[str, Tensor]] = {}

    def run(true: Callable[..., None], course: Course, go_on: Callable[[], bool], **_: Any) -> None:
        number = next(i for i, phi in enumerate(phis) if phi is course.phi)

        def pause(loss: float) -> None:
            kept[number] = state(course.phi)
            if kept.keys() == checked:
                ready.set()
            wait(lambda: not go_on())

        def held_back() -> bool:
            wait(lambda: number in checked or not go_on())
            return go_on()

        true(go_on=held_back, advance=pause)

    watch(monkeypatch, run)
    press_ctrl_c(monkeypatch, ready)
    pupils = [pupil(history, phi) for phi in phis]
    if checked == {0, 1} and not followed:
        with pytest.warns(UserWarning, match="training was interrupted; each phi is kept at its best so far"):
            taught(pupils, history)
    else:
        with pytest.raises(KeyboardInterrupt):
            taught(pupils, history, followed=followed)
    assert kept.keys() == checked
    for number in checked:
        assert_state(phis[number], kept[number])
        assert not phis[number].training


@pytest.mark.parametrize("place", [0, 1])
def test_an_error_in_one_training_surfaces(place: int) -> None:
    history = separable()
    phis: list[nn.Module] = [Bent(), Bent()]
    phis[place] = Broken()
    before = torch.get_num_threads()
    with pytest.raises(ValueError, match="phi returned infinite or missing values"):
        taught([pupil(history, phi) for phi in phis], history)
    assert torch.get_num_threads() == before


def test_an_error_ends_the_other_trainings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "cores", lambda: 2)
    ended = threading.Event()

    def run(true: Callable[..., None], course: Course, go_on: Callable[[], bool], **_: Any) -> None:
        if isinstance(course.phi, Broken):
            true()
        wait(lambda: not go_on())
        ended.set()

    watch(monkeypatch, run)
    history = separable()
    with pytest.raises(ValueError, match="phi returned infinite or missing values"):
        taught([pupil(history, Broken()), pupil(history, Bent())], history)
    assert ended.is_set()


@pytest.mark.parametrize("n", [1, 2, 3])
def test_tiny_histories_do_no_harm(n: int) -> None:
    history = separable(n)
    for held in (np.arange(n), np.arange(n // 2), np.arange(0)):
        for phi in learned(history, [(0, held), (3, held)]):
            assert np.isfinite(phi(separable().contexts, separable().arms)).all()


def test_histories_without_contexts_can_be_learned() -> None:
    history = separable()
    bare = Feedback(contexts=np.empty((N, 0)), arms=history.arms, rewards=history.rewards)
    (phi,) = learned(bare, [(3, HELD)])
    assert phi.candidates(np.empty(0), np.eye(2)).shape == (2, 3)


def test_time_intervals_are_those_of_the_history(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Samples] = []
    monkeypatch.setattr(Course, "run", lambda self, learned, held, **_: seen.extend([learned, held]))
    history, times = separable(), np.random.default_rng(1).permutation(N).astype(float)
    dated = Feedback(contexts=times[:, None], arms=history.arms, rewards=history.rewards, times=times)
    taught([pupil(dated, Bent())], dated, partitions=3)
    assert sorted(len(rows) for rows in seen) == [len(HELD), N - len(HELD)]
    for rows in seen:
        np.testing.assert_array_equal(rows.interval, rows.contexts[:, 0] // (N / 3))
    with pytest.raises(ValueError, match="3 time intervals need a history with times"):
        taught([pupil(history, Bent())], history, partitions=3)
