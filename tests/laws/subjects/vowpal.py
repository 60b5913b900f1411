from tercet.policies.vowpal import Vowpal
from tests.laws.policies import Subject

SUBJECTS = {
    "Vowpal squarecb": Subject(Vowpal, Vowpal.load),
    "Vowpal cover": Subject(lambda: Vowpal(explore="cover"), Vowpal.load),
    "Vowpal regcb": Subject(lambda: Vowpal(explore="regcb"), Vowpal.load),
}
