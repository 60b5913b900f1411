import importlib
import inspect
import pkgutil
from pathlib import Path

import pytest

import tercet.policies
from tercet.environments.drift import Drift
from tercet.executors import Processes
from tercet.experiment import Experiment, run
from tercet.policies.base import Policy
from tercet.roster import GROUPS, Stage, roster
from tercet.tuning import Tuning
from tests.worlds import Signs


def test_every_policy_is_a_contender() -> None:
    methods = {name for name in vars(Policy) if not name.startswith("_")}
    kinds = {
        kind
        for info in pkgutil.iter_modules(tercet.policies.__path__)
        for _, kind in inspect.getmembers(
            importlib.import_module(f"tercet.policies.{info.name}"), inspect.isclass
        )
        if kind.__module__ == f"tercet.policies.{info.name}" and methods <= set(dir(kind))
    } - {Policy}
    assert kinds == {type(contender.policy) for contender in roster(one_hot=True).values()}


def test_groups_can_be_picked_and_unknown_ones_are_named() -> None:
    assert roster("c3", "simple", one_hot=False).keys() == {
        *GROUPS["c3"](Stage(one_hot=False)),
        *GROUPS["simple"](Stage(one_hot=False)),
    }
    with pytest.raises(ValueError, match=r"groups must be of simple.*; got C3"):
        roster("C3", one_hot=False)


def test_rows_can_be_the_tuned_or_the_published_ones() -> None:
    published, tuned = (roster(one_hot=True, tuned=choice) for choice in (False, True))
    assert published.keys() | tuned.keys() == roster(one_hot=True).keys()
    assert not any(contender.settings for contender in published.values())
    assert all(contender.settings for contender in tuned.values())


# How each kind of memory is cut short: two policies have nothing but a learning rate.
WAYS = {"half_life", "window", "discount", "forgetting", "limit"}
RATES = {"Vowpal": "power", "EpsilonSGD": "step"}


@pytest.mark.parametrize("one_hot", [True, False])
def test_whoever_is_tuned_may_choose_how_fast_to_forget(one_hot: bool) -> None:
    for name, contender in roster(one_hot=one_hot).items():
        if not contender.settings:
            continue
        everything = [contender.policy, *contender.settings]
        ways = {RATES.get(type(contender.policy).__name__, "")} | WAYS
        memories = {tuple(repr(getattr(policy, way, None)) for way in sorted(ways)) for policy in everything}
        assert len(memories) > 1, name
        assert len({repr(policy) for policy in everything}) == len(everything), name  # none twice
        assert repr(everything[0]) == repr(contender.policy)


def test_a_discount_a_window_and_a_decay_forget_as_fast() -> None:
    stage = Stage(one_hot=False, half_lives=(100.0,), pace=0.5)
    discount, window, time = stage.discounts[1], stage.windows[1], stage.times[1]
    assert discount**100 == pytest.approx(0.5)
    assert time == 50
    assert window is not None
    assert window / 2 == pytest.approx(discount / (1 - discount), rel=0.01)  # the mean age of the evidence


@pytest.mark.slow
@pytest.mark.parametrize("one_hot", [True, False])
def test_everybody_can_play(one_hot: bool, tmp_path: Path) -> None:
    world = Signs(logged=60, rounds_=6) if one_hot else Drift(logged=60, steps=6)
    experiment = Experiment(
        policies=roster(one_hot=one_hot, half_lives=(20.0,)),
        environments={"small": world},
        seeds=1,
        tuning=Tuning(seconds=0.2),
    )
    rows = run(experiment, tmp_path, executor=Processes(2)).rows()
    assert rows.groupby("policy").size().to_dict() == dict.fromkeys(experiment.policies, 6)
