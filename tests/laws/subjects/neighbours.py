from tercet.policies.neighbours import NeighbourUCB
from tests.laws.policies import Subject

SUBJECTS = {
    "NeighbourUCB": Subject(NeighbourUCB, NeighbourUCB.load),
    "pooled NeighbourUCB on a window": Subject(
        lambda: NeighbourUCB(pooled=True, neighbours=5, window=100), NeighbourUCB.load
    ),
}
