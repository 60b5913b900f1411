"""C3 on disk: settings, phi and references in one safetensors file."""

from collections.abc import Mapping
from dataclasses import fields
from os import PathLike
from typing import Any

from tercet import checkpoint, checks
from tercet.checks import Array
from tercet.embedding.apart import Apart
from tercet.embedding.grove import Grove
from tercet.embedding.inference import Perceptron, Phi
from tercet.embedding.options import LeaveOneOut, Training
from tercet.embedding.residual import Residual
from tercet.policies import early
from tercet.policies.c3 import C3
from tercet.policies.reliability import Reliability
from tercet.policies.surprises import Surprises
from tercet.policies.views import View
from tercet.policies.watch import COLUMNS, Watch
from tercet.reference.exact import Engine, ReferenceSet
from tercet.reference.forgetting import from_spec, to_spec
from tercet.reference.leaves import Leaves

KIND = "tercet.C3"
NUMBERS = ("weight", "bandwidth", "sharpness", "counts", "pull")
WAYS = {way.__name__: way for way in (LeaveOneOut, Training)}
UNSAVED = ("phi", "engine")  # a phi of one's own is code, and the engine belongs to the machine


def write(policy: C3, path: str | PathLike[str]) -> None:
    """Write a policy."""
    state = policy.state
    arrays: dict[str, Array] = {}
    views = []
    for number, view in enumerate(state.views):
        phi = references = None
        if isinstance(view.embed, Perceptron | Residual | Apart | Grove):
            weights, phi = view.embed.to_arrays()
            arrays |= {f"{number}.phi.{name}": array for name, array in weights.items()}
        if view.references is not None:
            rows, references = view.references.to_arrays()
            arrays |= {f"{number}.references.{name}": array for name, array in rows.items()}
        numbers = {name: getattr(view, name) for name in NUMBERS}
        curve = None if view.curve is None else vars(view.curve)
        views.append(numbers | {"phi": phi, "references": references, "curve": curve})
    spec = {
        "settings": _settings(policy),
        "own phi": policy.phi is not None,
        "views": views,
        "forgetting": to_spec(state.forgetting),
        "widths": state.widths,
        "timed": state.timed,
        "logged": state.logged,
        "learned": state.learned,
        "early": state.early is not None,
        "surprises": None,
        "watch": None if state.watch is None else state.watch.seen,
        "reliability": None if state.reliability is None else vars(state.reliability),
    }
    if state.surprises is not None:
        weights, phi = state.surprises.embed.to_arrays()
        rows, references = state.surprises.references.to_arrays()
        arrays |= {f"surprises.phi.{name}": array for name, array in weights.items()}
        arrays |= {f"surprises.references.{name}": array for name, array in rows.items()}
        numbers = {name: getattr(state.surprises, name) for name in ("rate", "counts")}
        spec["surprises"] = numbers | {"phi": phi, "references": references}
    if state.early is not None:
        columns = {name: getattr(state.early, name) for name in COLUMNS}
        arrays |= {f"early.{name}": column for name, column in columns.items() if column is not None}
    if state.watch is not None:
        arrays |= {f"watch.{name}": column for name, column in state.watch.to_arrays().items()}
    checkpoint.write(path, KIND, arrays, spec)


def read(path: str | PathLike[str], *, phi: Any, engine: Engine) -> C3:
    """Read a policy."""
    arrays, spec = checkpoint.read(path, KIND)
    if bool(spec.get("own phi")) != (phi is not None):
        wrong = (
            "with a phi of your own: give that phi to load"
            if phi is None
            else "with its own phi: give load none"
        )
        raise checkpoint.CheckpointError(f"{path} was saved {wrong}")
    try:
        policy = C3(**_read_settings(spec["settings"]), phi=phi, engine=engine)
        state = policy.state
        state.views = _views(spec["views"], arrays, state.views, engine)
        state.forgetting = from_spec(spec["forgetting"])
        state.widths = None if spec["widths"] is None else (int(spec["widths"][0]), int(spec["widths"][1]))
        state.timed = spec["timed"]
        state.logged, state.learned = (
            checks.whole(name, spec[name], least=0) for name in ("logged", "learned")
        )
        if spec["early"]:
            state.early = early.restored(_part(arrays, "early."), state)
        if spec["surprises"] is not None:
            state.surprises = _surprises(spec["surprises"], _part(arrays, "surprises."), engine)
        state.watch = _watch(spec["watch"], _part(arrays, "watch."), state.widths)
        if spec["reliability"] is not None:
            state.reliability = _reliability(spec["reliability"])
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise checkpoint.CheckpointError(f"{path} can not be loaded as a C3 policy: {error}") from error
    return policy


def _settings(policy: C3) -> dict[str, Any]:
    names = [f.name for f in fields(policy) if f.init and f.name not in UNSAVED]
    settings = {name: getattr(policy, name) for name in names}
    training = {"way": type(policy.training).__name__} | vars(policy.training)
    rule = policy.forgetting if policy.forgetting == "auto" else to_spec(policy.forgetting)
    return settings | {"training": training, "forgetting": rule}


def _read_settings(saved: Mapping[str, Any]) -> dict[str, Any]:
    prior = None if saved["prior"] is None else tuple(saved["prior"])
    rule = saved["forgetting"] if saved["forgetting"] == "auto" else from_spec(saved["forgetting"])
    options = dict(saved["training"])
    training = WAYS[options.pop("way")](**options)
    return dict(saved) | {"prior": prior, "forgetting": rule, "training": training}


def _views(
    saved: list[Mapping[str, Any]], arrays: Mapping[str, Array], own: list[View], engine: Engine
) -> list[View]:
    views = [_view(view, _part(arrays, f"{number}."), own, engine) for number, view in enumerate(saved)]
    sizes = {0 if view.references is None else len(view.references) for view in views}
    if len(sizes) > 1:
        raise ValueError(f"all views must remember the same outcomes; they have {sorted(sizes)}")
    return views


def _view(saved: Mapping[str, Any], arrays: Mapping[str, Array], own: list[View], engine: Engine) -> View:
    """A view as saved; its phi, if it was not ours, is that of the policy's own view."""
    phi = saved["phi"]
    embed = own[0].embed if phi is None else _phi(phi, _part(arrays, "phi."))
    return View(
        embed=embed,
        weight=checks.positive("weight", saved["weight"]),
        bandwidth=checks.positive("bandwidth", saved["bandwidth"]),
        sharpness=checks.positive("sharpness", saved["sharpness"]),
        counts=_counts(saved["counts"]),
        pull=None if saved["pull"] is None else checks.positive("pull", saved["pull"]),
        curve=None if saved["curve"] is None else _reliability(saved["curve"]),
        references=_memory(saved["references"], _part(arrays, "references."), embed, engine),
    )


def _memory(
    saved: Mapping[str, Any] | None, arrays: Mapping[str, Array], embed: Phi, engine: Engine
) -> ReferenceSet | Leaves | None:
    if saved is None:
        return None
    if not isinstance(embed, Grove):
        return ReferenceSet.from_arrays(arrays, saved, engine=engine)
    memory = Leaves.from_arrays(arrays, saved)
    if (memory.dim, memory.leaves) != (embed.trees, embed.leaves):
        raise ValueError(
            f"outcomes must lie in the {embed.leaves} leaves of {embed.trees} trees; "
            f"got {memory.leaves} of {memory.dim}"
        )
    return memory


def _phi(saved: Mapping[str, Any], arrays: Mapping[str, Array]) -> Perceptron | Residual | Apart | Grove:
    if saved["kind"] == "grove":
        return Grove.from_arrays(arrays, saved)
    kinds: dict[str, Any] = {"perceptron": Perceptron, "residual": Residual}
    phi = kinds[saved["kind"]].from_arrays(arrays, saved)
    return Apart.from_arrays(phi, arrays) if saved.get("apart") else phi


def _surprises(saved: Mapping[str, Any], arrays: Mapping[str, Array], engine: Engine) -> Surprises:
    references = ReferenceSet.from_arrays(_part(arrays, "references."), saved["references"], engine=engine)
    embed = Perceptron.from_arrays(_part(arrays, "phi."), saved["phi"])
    if references.half_life is None:
        raise ValueError("surprises must fade: they have no half-life")
    if references.dim != embed.dim:
        raise ValueError(f"surprises must have {embed.dim} coordinates each; they have {references.dim}")
    return Surprises(
        embed=embed,
        rate=checks.positive("rate", saved["rate"]),
        counts=checks.positive("counts", saved["counts"]),
        references=references,
    )


def _watch(seen: Any, arrays: Mapping[str, Array], widths: tuple[int, int] | None) -> Watch | None:
    if seen is None:
        return None
    return Watch.from_arrays(arrays, seen=checks.whole("watched outcomes", seen, least=0), widths=widths)


def _reliability(saved: Mapping[str, Any]) -> Reliability:
    first, both, second = checks.vector("precision", saved["precision"], length=3).tolist()
    if min(first, second, first * second - both**2) <= 0:
        raise ValueError(f"the precision of a curve must be positive definite; got {saved['precision']}")
    return Reliability(
        offset=checks.number("offset", saved["offset"]),
        slope=checks.positive("slope", saved["slope"]),
        precision=(first, both, second),
    )


def _counts(saved: Any) -> tuple[float, float]:
    ones, zeros = checks.vector("counts", saved, length=2)
    if min(ones, zeros) < 0:
        raise ValueError(f"counts must be two numbers of at least 0; got {saved}")
    return float(ones), float(zeros)


def _part(arrays: Mapping[str, Array], prefix: str) -> dict[str, Array]:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
