from tercet.policies.correlated import CorrelatedArms
from tests.laws.policies import Subject

SUBJECTS = {
    "C-TS": Subject(CorrelatedArms, CorrelatedArms.load, needs_context=False),
    "C-UCB with decay": Subject(
        lambda: CorrelatedArms(explore="ucb", half_life=50.0, bins=3),
        CorrelatedArms.load,
        needs_context=False,
    ),
}
