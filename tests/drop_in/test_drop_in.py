"""lazyarr's arrays in code that does not know them: right values, and still lazy."""

import functools
import importlib.util
import json
import subprocess
import sys

import pytest

from tests.drop_in.cases import CONVERTS, GROUPS

PACKAGES = {"computed": "numpy"}


@functools.cache
def results(group: str) -> dict:
    """What the expressions of a group gave, evaluated in a child process."""
    command = [sys.executable, "-W", "ignore", "-m", "tests.drop_in.cases", group]
    out = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert out.returncode == 0, out.stderr[-3000:]
    return json.loads(out.stdout.splitlines()[-1])


@pytest.mark.parametrize("group", GROUPS)
def test_values_agree_and_stay_lazy(group):
    if importlib.util.find_spec(PACKAGES.get(group, group)) is None:
        pytest.skip(f"{group} is not installed")
    found = results(group)
    wrong = {text: r["error"] for text, r in found.items() if "error" in r}
    assert not wrong, "\n\n".join(f"{text}\n{error}" for text, error in wrong.items())
    assert {text for text, r in found.items() if not r["lazy"]} <= CONVERTS


def test_methods_that_arrays_share():
    import numpy as np

    import lazyarr as xp

    v = np.array([[1.0, 2.0], [0.0, 4.0]])
    x = xp.asarray(v)
    for name in ("all", "any", "max", "mean", "min", "prod", "std", "sum", "var"):
        for axis in (None, 0, (0, 1)):
            got = getattr(x, name)(axis, keepdims=True)
            np.testing.assert_allclose(got.compute(), getattr(v, name)(axis, keepdims=True))
    np.testing.assert_array_equal(x.clip(1, 3).compute(), v.clip(1, 3))
    for shape in ((4,), (-1,), ((2, 2),)):
        np.testing.assert_array_equal(x.reshape(*shape).compute(), v.reshape(*shape))


def test_nothing_is_written_through_out():
    import numpy as np

    import lazyarr as xp
    from lazyarr.errors import ArgumentError, ConcretizationError

    x = xp.asarray([1.0, 2.0])
    with pytest.raises(ArgumentError, match="out="):
        np.add(x, x, out=x)
    with pytest.raises(ConcretizationError, match="needs a value"):
        np.atleast_1d(xp.symbol("s", shape=(3,)))
