from functools import partial

from tercet.policies.squarecb import SquareCB
from tests.laws.policies import Subject

SUBJECTS = {
    "SquareCB": Subject(SquareCB, SquareCB.load),
    "discounted SquareCB": Subject(partial(SquareCB, discount=0.99), SquareCB.load),
    "disjoint SquareCB": Subject(partial(SquareCB, features="disjoint"), SquareCB.load, one_hot=True),
}
