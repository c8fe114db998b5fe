"""What goes away works, and says so: a name, and a parameter's name."""

import pytest
from going import deprecated, renamed


def test_what_goes_away_works_and_warns():
    with pytest.warns(DeprecationWarning, match="renamed: b is called second now"):
        assert renamed(1, b=2) == (1, 2)
    with pytest.warns(DeprecationWarning, match=r"goes with 1\.2; use renamed"):
        assert deprecated(1) == 1
    with pytest.raises(TypeError, match="got 'second', and 'b', its former name"):
        renamed(1, b=2, second=3)
    assert renamed(1, 2) == (1, 2)
