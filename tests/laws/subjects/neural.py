from tercet.policies.neural import NeuralBandit, NeuralTS, NeuralUCB
from tests.laws.policies import Subject

SUBJECTS = {
    "NeuralUCB": Subject(lambda: NeuralUCB(hidden=20), NeuralBandit.load),
    "NeuralTS": Subject(lambda: NeuralTS(hidden=20, penalty=1.0, variance=0.1), NeuralBandit.load),
    "disjoint NeuralUCB": Subject(
        lambda: NeuralUCB(hidden=20, features="disjoint"), NeuralBandit.load, one_hot=True
    ),
    "disjoint NeuralTS": Subject(
        lambda: NeuralTS(hidden=20, penalty=1.0, variance=0.1, features="disjoint"),
        NeuralBandit.load,
        one_hot=True,
    ),
    "sliding NeuralUCB": Subject(lambda: NeuralUCB(hidden=20, window=100), NeuralBandit.load),
}
