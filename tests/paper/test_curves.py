"""Regret over time, thinned."""

import numpy as np
import pandas as pd

from tercet.paper.curves import curves


def test_a_row_has_mean_and_spread_of_the_regret_so_far() -> None:
    runs = [
        ({"policy": "C3"}, pd.DataFrame({"regret": [1.0, 0.0, 1.0, 0.0]})),
        ({"policy": "C3"}, pd.DataFrame({"regret": [1.0, 1.0, 1.0, 1.0]})),
        ({"policy": "LinUCB"}, pd.DataFrame({"regret": [0.0, 0.0, 0.0, 1.0]})),
    ]
    table = pd.DataFrame(curves(runs, points=2))
    ours = table[table["policy"] == "C3"]
    assert ours["step"].tolist() == [2, 4]
    assert ours["mean"].tolist() == [1.5, 3.0]
    assert np.allclose(ours["sd"], [np.sqrt(0.5), np.sqrt(2)])
    assert table["seeds"].tolist() == [2, 2, 1, 1]
    assert table[table["policy"] == "LinUCB"]["sd"].isna().all()


def test_no_step_comes_twice_where_steps_are_fewer_than_points() -> None:
    runs = [({"policy": "C3"}, pd.DataFrame({"regret": [1.0, 1.0]}))]
    assert [row["step"] for row in curves(runs, points=40)] == [1, 2]
