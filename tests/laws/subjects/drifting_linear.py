from functools import partial

from tercet.policies.drifting_linear import DLinUCB, EpsilonSGD, SWLinUCB
from tests.laws.policies import Subject

SUBJECTS = {
    "SWLinUCB": Subject(partial(SWLinUCB, window=100, radius=0.5), SWLinUCB.load),
    "disjoint SWLinUCB": Subject(
        partial(SWLinUCB, window=100, radius=0.5, features="disjoint"), SWLinUCB.load, one_hot=True
    ),
    "DLinUCB": Subject(partial(DLinUCB, discount=0.99, radius=0.5), DLinUCB.load),
    "disjoint DLinUCB": Subject(
        partial(DLinUCB, discount=0.99, radius=0.5, features="disjoint"), DLinUCB.load, one_hot=True
    ),
    "EpsilonSGD": Subject(EpsilonSGD, EpsilonSGD.load),
    "disjoint EpsilonSGD": Subject(partial(EpsilonSGD, features="disjoint"), EpsilonSGD.load, one_hot=True),
}
