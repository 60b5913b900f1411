"""The studies: what we expect of C3 beyond the paper, in the order of the report."""

from tercet.paper.catalogue import Catalogue

STUDIES = Catalogue(
    name="study",
    package="tercet.studies",
    names=("sizes", "drift", "exploring", "alone", "elsewhere", "ingredients", "long"),
    title="Studies of our own",
    about="What we claim of C3 beyond the paper. Each expectation stands beside what we measured, and was "
    "written before its run unless docs/studies.md says otherwise; verdicts are computed from the measured "
    "rows by rules written in the code.",
    whose="of our own",
    said="We expected",
    source="Expected",
    deviations="What to know",
    verdicts=("reached", "not reached", "undecided", "not testable"),
)
