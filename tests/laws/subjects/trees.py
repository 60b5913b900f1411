from tercet.policies.trees import Boosting, BootstrapBoosting
from tests.laws.policies import Subject


def boosting(**options: object) -> Subject:
    return Subject(lambda: Boosting(trees=20, leaves=8, refit=30, **options), Boosting.load)


SUBJECTS = {
    "Boosting": boosting(),
    "Boosting with counters": boosting(half_life=20.0),
    "Boosting on a window": boosting(window=80),
    "BootstrapBoosting": Subject(
        lambda: BootstrapBoosting(models=4, trees=20, leaves=8, refit=30), BootstrapBoosting.load
    ),
}
