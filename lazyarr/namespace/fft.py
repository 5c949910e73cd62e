"""`lazyarr.fft`: discrete Fourier transforms."""

from lazyarr.namespace import functions

__all__ = list(functions.FFT)

globals().update({name: functions.function_of(name) for name in functions.FFT})
