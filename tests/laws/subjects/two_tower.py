from tercet.policies.two_tower import TwoTower
from tests.laws.policies import Subject

SUBJECTS = {
    "TwoTower": Subject(lambda: TwoTower.small(epochs=30), TwoTower.load),
    "TwoTower that refits": Subject(
        lambda: TwoTower(context_layers=(16, 8), arm_layers=(8,), epsilon=0.1, refit=20), TwoTower.load
    ),
    "sliding TwoTower": Subject(lambda: TwoTower(epsilon=0.1, refit=20, window=100), TwoTower.load),
}
