from . import backends as backends
from . import device_interface as device_interface
from . import errors as errors
from . import fft as fft
from . import integrations as integrations
from . import lock as lock
from . import platforms as platforms
from . import settings as settings
from . import video as video
from ._devices import Device as Device
from ._devices import Event as Event
from ._devices import Stream as Stream
from ._devices import default_device as default_device
from ._devices import describe as describe
from ._devices import device as device
from ._devices import devices as devices
from ._devices import seed_everything as seed_everything
from ._devices import synchronize as synchronize
from ._doctor import doctor as doctor
from ._doctor import libraries as libraries
from ._doctor import library as library
from ._einsum import einsum as einsum
from ._einsum import einsum_path as einsum_path
from ._explain import Decision as Decision
from ._explain import explain as explain
from ._explain import fallbacks as fallbacks
from ._explain import prepare as prepare
from ._named import *
from ._packed import Packed as Packed
from ._packed import matmul_pack as matmul_pack
from ._tensor import Tensor as Tensor
from ._tensor import empty as empty
from .errors import Error as Error
from .operators import *

__version__: str

def version() -> str: ...
