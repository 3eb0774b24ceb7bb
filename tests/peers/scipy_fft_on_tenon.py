"""A plugin of pytest: scipy.fft with Tenon as its backend, and the functions of SciPy's implementation, which some of its
tests call directly, by the same backend. At the end it must have computed most of what the tests called."""
import functools

import pytest
import scipy.fft
from scipy.fft import _pocketfft
from tenon.integrations import scipy_fft

LEAST = 1000  # transforms by Tenon


def by_backend(name, own):
    @functools.wraps(own)
    def called(*given, **options):
        result = scipy_fft.__ua_function__(getattr(scipy.fft, name), given, options)
        return own(*given, **options) if result is NotImplemented else result

    return called


for name in scipy_fft._FORMS.keys() & vars(_pocketfft).keys():
    setattr(_pocketfft, name, by_backend(name, getattr(_pocketfft, name)))
scipy.fft.set_global_backend(scipy_fft)
scipy.fft.register_backend("scipy")  # for what Tenon's backend leaves to it


@pytest.hookimpl(tryfirst=True)  # then there are no results
def pytest_sessionfinish(session):
    if session.testscollected and scipy_fft.calls() < LEAST:
        raise SystemExit(f"Tenon computed {scipy_fft.calls()} transforms, expected {LEAST} or more")
