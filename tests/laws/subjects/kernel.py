from tercet.policies.kernel import KernelUCB
from tests.laws.policies import Subject

SUBJECTS = {
    "KernelUCB": Subject(KernelUCB, KernelUCB.load),
    "KernelUCB on a short window": Subject(
        lambda: KernelUCB(window=60, penalty=0.1, width=0.1), KernelUCB.load
    ),
}
