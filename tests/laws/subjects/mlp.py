from tercet.policies.mlp import EpsilonGreedyMLP
from tests.laws.policies import Subject

SUBJECTS = {
    "EpsilonGreedyMLP": Subject(lambda: EpsilonGreedyMLP(refit=20), EpsilonGreedyMLP.load),
    "sliding EpsilonGreedyMLP": Subject(
        lambda: EpsilonGreedyMLP(hidden=(32,), refit=20, window=80), EpsilonGreedyMLP.load
    ),
}
