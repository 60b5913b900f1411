from functools import partial

from tercet.policies.linear import BayesianLinear, LinTS, LinUCB
from tests.laws.policies import Subject

SUBJECTS = {
    "LinUCB": Subject(LinUCB, LinUCB.load),
    "discounted LinUCB": Subject(partial(LinUCB, discount=0.99), LinUCB.load),
    "disjoint LinUCB": Subject(partial(LinUCB, width=1.96, features="disjoint"), LinUCB.load, one_hot=True),
    "disjoint discounted LinUCB": Subject(
        partial(LinUCB, discount=0.99, features="disjoint"), LinUCB.load, one_hot=True
    ),
    "LinTS": Subject(partial(LinTS, scale=0.4), LinTS.load),
    "discounted LinTS": Subject(partial(LinTS, scale=0.4, discount=0.99), LinTS.load),
    "disjoint LinTS": Subject(partial(LinTS, features="disjoint"), LinTS.load, one_hot=True),
    "BayesianLinear": Subject(BayesianLinear, BayesianLinear.load),
    "disjoint BayesianLinear": Subject(
        partial(BayesianLinear, features="disjoint"), BayesianLinear.load, one_hot=True
    ),
}
