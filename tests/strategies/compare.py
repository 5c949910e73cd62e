"""When two arrays are equal: dtype and shape exactly, integers exactly, floats up to rounding."""

import numpy as np

ULPS = 64


def assert_same(got: object, want: np.ndarray, label: object, ulps: float = ULPS) -> None:
    """Fail unless two arrays agree, NaN and infinities in their places and zeros with their signs.

    An absolute part of the tolerance is for functions near their zeros.
    """
    got = np.asarray(got)
    assert got.dtype == want.dtype, f"{label}: dtype {got.dtype}, not {want.dtype}"
    assert got.shape == want.shape, f"{label}: shape {got.shape}, not {want.shape}"
    if want.dtype.kind not in "fc":
        np.testing.assert_array_equal(got, want, err_msg=str(label))
        return
    tolerance = ulps * np.finfo(want.dtype).eps
    np.testing.assert_allclose(
        got, want, rtol=tolerance, atol=tolerance / 4, equal_nan=True, err_msg=str(label)
    )


def assert_same_zeros(got: np.ndarray, want: np.ndarray, label: object) -> None:
    """Fail unless the zeros of two float arrays have the same signs."""
    zero = (got == 0) & (want == 0)
    np.testing.assert_array_equal(
        np.signbit(got[zero]), np.signbit(want[zero]), err_msg=f"{label}: signs of zeros"
    )
