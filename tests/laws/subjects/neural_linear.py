from tercet.policies.neural_linear import NeuralLinear
from tests.laws.policies import Subject

# Its propensities are themselves good to the accuracy of 1,000 draws: fewer decisions than that test them.
SUBJECTS = {
    "NeuralLinear": Subject(lambda: NeuralLinear(refit=20), NeuralLinear.load, draws=400),
    "sliding NeuralLinear": Subject(lambda: NeuralLinear(refit=20, window=100), NeuralLinear.load, draws=400),
    "disjoint NeuralLinear": Subject(
        lambda: NeuralLinear(refit=20, features="disjoint"), NeuralLinear.load, one_hot=True
    ),
}
