from tercet.policies.simple import ArmThompson, Uniform
from tests.laws.policies import Subject

SUBJECTS = {
    "ArmThompson": Subject(ArmThompson, ArmThompson.load, needs_context=False),
    "ArmThompson with decay": Subject(
        lambda: ArmThompson(half_life=20.0), ArmThompson.load, needs_context=False
    ),
    "click counter": Subject(
        lambda: ArmThompson(half_life=20.0, explore="greedy", floor=0.1),
        ArmThompson.load,
        needs_context=False,
    ),
    "Uniform": Subject(Uniform, Uniform.load, learns=False),
}
