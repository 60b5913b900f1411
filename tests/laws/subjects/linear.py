from tercet.policies.linear import LinUCB
from tests.laws.policies import Subject

SUBJECTS = {
    "LinUCB": Subject(LinUCB, LinUCB.load),
    "discounted LinUCB": Subject(lambda: LinUCB(discount=0.99), LinUCB.load),
}
