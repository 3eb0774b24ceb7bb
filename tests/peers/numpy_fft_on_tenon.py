"""A plugin of pytest: puts tenon.fft in the place of numpy.fft's functions. NumPy's take lists and scalars, too."""
import functools

import numpy
import tenon.fft


def on_arrays(function):
    @functools.wraps(function)
    def called(a, *given, **options):
        return function(a if isinstance(a, numpy.ndarray) else numpy.asarray(a), *given, **options)

    return called


for name in tenon.fft.__all__:
    replacement = getattr(tenon.fft, name)
    setattr(numpy.fft, name, replacement if name.endswith("freq") else on_arrays(replacement))
