"""`lazyarr.fft`: discrete Fourier transforms."""

from lazyarr.namespace import functions

__all__ = list(functions.FFT)

globals().update({name: functions.function_of(name) for name in functions.FFT})


def __dir__() -> list[str]:
    """What a prompt offers: the functions."""
    return sorted(__all__)
