from typing import Any

import pytest

from tercet.checks import whole


@pytest.mark.parametrize("value", [0, -1, True, 2.5, "3", None])
def test_a_number_that_is_not_whole_and_positive_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match="window must be a whole number, 1 or more"):
        whole("window", value)
