from tercet.policies.gp import ForgetfulGP
from tests.laws.policies import Subject

SUBJECTS = {
    "ForgetfulGP": Subject(lambda: ForgetfulGP(limit=80, train_every=5), ForgetfulGP.load, draws=300),
}
