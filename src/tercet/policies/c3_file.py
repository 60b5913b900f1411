"""C3 on disk: settings, phi and references in one safetensors file."""

from collections.abc import Mapping
from dataclasses import fields
from os import PathLike
from typing import Any

from tercet import checkpoint
from tercet.checks import Array
from tercet.embedding.inference import Perceptron
from tercet.embedding.options import Training
from tercet.policies.c3 import C3
from tercet.reference.exact import Engine, ReferenceSet
from tercet.reference.forgetting import from_spec, to_spec

KIND = "tercet.C3"
UNSAVED = ("phi", "engine")  # a phi of one's own is code, and the engine belongs to the machine


def write(policy: C3, path: str | PathLike[str]) -> None:
    """Write a policy."""
    state = policy.state
    arrays: dict[str, Array] = {}
    phi = references = None
    if isinstance(state.embed, Perceptron):
        weights, phi = state.embed.to_arrays()
        arrays |= {f"phi.{name}": array for name, array in weights.items()}
    if state.references is not None:
        rows, references = state.references.to_arrays()
        arrays |= {f"references.{name}": array for name, array in rows.items()}
    spec = {
        "settings": _settings(policy),
        "own phi": policy.phi is not None,
        "phi": phi,
        "references": references,
        "counts": state.counts,
        "widths": state.widths,
        "timed": state.timed,
        "learned": state.learned,
    }
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
        if spec["phi"] is not None:
            state.embed = Perceptron.from_arrays(_part(arrays, "phi."), spec["phi"])
        if spec["references"] is not None:
            rows = _part(arrays, "references.")
            state.references = ReferenceSet.from_arrays(rows, spec["references"], engine=engine)
        state.counts = (float(spec["counts"][0]), float(spec["counts"][1]))
        state.widths = None if spec["widths"] is None else (int(spec["widths"][0]), int(spec["widths"][1]))
        state.timed, state.learned = spec["timed"], int(spec["learned"])
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise checkpoint.CheckpointError(f"{path} can not be loaded as a C3 policy: {error}") from error
    return policy


def _settings(policy: C3) -> dict[str, Any]:
    names = [f.name for f in fields(policy) if f.init and f.name not in UNSAVED]
    settings = {name: getattr(policy, name) for name in names}
    return settings | {"training": vars(policy.training), "forgetting": to_spec(policy.forgetting)}


def _read_settings(saved: Mapping[str, Any]) -> dict[str, Any]:
    prior = None if saved["prior"] is None else tuple(saved["prior"])
    rule, training = from_spec(saved["forgetting"]), Training(**saved["training"])
    return dict(saved) | {"prior": prior, "forgetting": rule, "training": training}


def _part(arrays: Mapping[str, Array], prefix: str) -> dict[str, Array]:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
