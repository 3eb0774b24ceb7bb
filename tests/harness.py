"""Tenon from Python, as far as tests and benchmarks need it: ctypes and nothing else.

    tenon = harness.Library("build")
    tensor = tenon.tensor("f32", (2, 3))        # on cpu:0
    array = numpy.from_dlpack(tensor)           # no copy; the tensor may be released before
    again = tenon.from_dlpack(array)            # and back

A call that fails raises harness.Error. What is made is released by its `release`, at the end of a
`with`, or when Python forgets it; twice is once.
"""

import ctypes
import itertools
import os
import subprocess
import sys
from ctypes import c_char_p, c_int32, c_int64, c_size_t, c_uint32, c_uint64, c_void_p

CPU = 1  # DLPack's device type
READ_ONLY, COPIED = 1, 2

DTYPES = {
    "i8": (0, 8), "i16": (0, 16), "i32": (0, 32), "i64": (0, 64),
    "u8": (1, 8), "u16": (1, 16), "u32": (1, 32), "u64": (1, 64),
    "f16": (2, 16), "f32": (2, 32), "f64": (2, 64), "bf16": (4, 16),
    "c64": (5, 64), "c128": (5, 128), "bool": (6, 8),
    "f8_e4m3fn": (10, 8), "f8_e4m3fnuz": (11, 8), "f8_e5m2": (12, 8), "f8_e5m2fnuz": (13, 8),
}


def import_numpy():
    """NumPy, or None. A Python of one's own has not the packages of the system: where the system's
    has NumPy and this one has not, the script begins anew with that one."""
    system = "/usr/bin/python3"
    try:
        import numpy
        return numpy
    except ImportError:
        pass
    if os.path.realpath(sys.executable) != os.path.realpath(system) and os.access(system, os.X_OK) \
            and subprocess.run([system, "-c", "import numpy"], stderr=subprocess.DEVNULL,
                               check=False).returncode == 0:
        sys.stdout.flush()
        os.execv(system, [system, "-B", *sys.argv])
    return None


def dtype_number(word):
    code, bits = DTYPES[word]
    return code | bits << 8 | 1 << 16


def dtype_bytes(word):
    return DTYPES[word][1] // 8


class ErrorStruct(ctypes.Structure):
    _fields_ = [("status", c_int32), ("native_code", c_int32), ("where", ctypes.c_char * 88),
                ("message", ctypes.c_char * 416)]


class DlpackTensor(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("device_type", c_int32), ("device_id", c_int32),
                ("ndim", c_int32), ("dtype", c_uint32), ("shape", ctypes.POINTER(c_int64)),
                ("strides", ctypes.POINTER(c_int64)), ("byte_offset", c_uint64)]


class TensorStruct(DlpackTensor):
    _fields_ = [("owner", c_void_p), ("flags", c_uint64)]


class Managed(ctypes.Structure):
    """The form without a version."""


class Versioned(ctypes.Structure):
    pass


Managed._fields_ = [("tensor", DlpackTensor), ("manager", c_void_p),
                    ("deleter", ctypes.CFUNCTYPE(None, ctypes.POINTER(Managed)))]
Versioned._fields_ = [("major", c_uint32), ("minor", c_uint32), ("manager", c_void_p),
                      ("deleter", ctypes.CFUNCTYPE(None, ctypes.POINTER(Versioned))),
                      ("flags", c_uint64), ("tensor", DlpackTensor)]

assert ctypes.sizeof(ErrorStruct) == 512 and ctypes.sizeof(TensorStruct) == 64

RELEASE = ctypes.CFUNCTYPE(None, c_void_p)

# The fallible calls that are used: their parameters, but for the error, which comes last.
CALLS = {
    "tn_device_count": [ctypes.POINTER(c_size_t)],
    "tn_device_get": [c_char_p, ctypes.POINTER(c_void_p)],
    "tn_device_synchronize": [c_void_p],
    "tn_tensor_create": [c_void_p, c_uint32, ctypes.POINTER(c_int64), c_int32,
                         ctypes.POINTER(TensorStruct)],
    "tn_tensor_wrap": [c_void_p, c_void_p, c_uint32, ctypes.POINTER(c_int64),
                       ctypes.POINTER(c_int64), c_int32, RELEASE, c_void_p,
                       ctypes.POINTER(TensorStruct)],
    "tn_tensor_view": [ctypes.POINTER(TensorStruct), ctypes.POINTER(TensorStruct)],
    "tn_tensor_device": [ctypes.POINTER(TensorStruct), ctypes.POINTER(c_void_p)],
    "tn_tensor_elements": [ctypes.POINTER(TensorStruct), ctypes.POINTER(c_int64)],
    "tn_copy": [c_void_p, ctypes.POINTER(TensorStruct), ctypes.POINTER(TensorStruct)],
    "tn_random_uniform": [c_void_p, ctypes.POINTER(TensorStruct)],
    "tn_random_normal": [c_void_p, ctypes.POINTER(TensorStruct)],
    "tn_dlpack_export": [ctypes.POINTER(TensorStruct), c_int64,
                         ctypes.POINTER(ctypes.POINTER(Versioned))],
    "tn_dlpack_export_legacy": [ctypes.POINTER(TensorStruct), c_int64,
                                ctypes.POINTER(ctypes.POINTER(Managed))],
    "tn_dlpack_import": [ctypes.POINTER(Versioned), ctypes.POINTER(TensorStruct)],
    "tn_dlpack_import_legacy": [ctypes.POINTER(Managed), ctypes.POINTER(TensorStruct)],
}

# And those that cannot fail: what they give, then what they take.
ANSWERS = {
    "tn_version": (c_char_p, []),
    "tn_status_name": (c_char_p, [c_int32]),
    "tn_allocator_blocks": (c_int64, []),
    "tn_device_at": (c_void_p, [c_size_t]),
    "tn_device_id": (c_char_p, [c_void_p]),
    "tn_device_name": (c_char_p, [c_void_p]),
    "tn_tensor_is_dense": (c_int32, [ctypes.POINTER(TensorStruct)]),
    "tn_tensor_release": (None, [ctypes.POINTER(TensorStruct)]),
}


class Error(Exception):
    def __init__(self, library, err):
        self.status = library.tn_status_name(err.status).decode()
        self.where = err.where.decode()
        self.message = err.message.decode()
        super().__init__(f"{self.where}: {self.status}: {self.message}")


class Library:
    """libtenon.so of a build folder. Fallible calls are methods that raise Error."""

    def __init__(self, folder):
        self.native = ctypes.CDLL(os.path.join(folder, "libtenon.so"))
        for name, parameters in CALLS.items():
            setattr(self, name, self._fallible(name, parameters))
        for name, (gives, takes) in ANSWERS.items():
            function = getattr(self.native, name)
            function.restype, function.argtypes = gives, takes
            setattr(self, name, function)

    def _fallible(self, name, parameters):
        function = getattr(self.native, name)
        function.restype = c_int32
        function.argtypes = [*parameters, ctypes.POINTER(ErrorStruct)]

        def call(*arguments):
            err = ErrorStruct()
            if function(*arguments, ctypes.byref(err)):
                raise Error(self, err)

        return call

    def device(self, name="cpu"):
        return Device(self, name)

    def devices(self):
        count = c_size_t()
        self.tn_device_count(ctypes.byref(count))
        ids = [self.tn_device_id(self.tn_device_at(i)).decode() for i in range(count.value)]
        return [Device(self, name) for name in ids]

    def tensor(self, dtype, shape, device="cpu"):
        """Dense, with memory of its own, not initialised."""
        made = Tensor(self)
        self.tn_tensor_create(self.device(device).handle, dtype_number(dtype), numbers(shape),
                              len(shape), made.struct)
        return made

    def wrap(self, address, dtype, shape, strides=None, device="cpu", released=None):
        """Over memory at `address`; `released()` is called once, at the end of the last view."""
        made, key = Tensor(self), next(keys)
        waiting[key] = released
        try:
            self.tn_tensor_wrap(self.device(device).handle, address, dtype_number(dtype),
                                numbers(shape), None if strides is None else numbers(strides),
                                len(shape), ended, key, made.struct)
        except Error:
            del waiting[key]
            raise
        return made

    def from_dlpack(self, producer, versioned=None):
        """A tensor over what any producer gives; in one of the two forms, or the newer it has."""
        capsule = None
        if versioned is not False:
            try:
                capsule = producer.__dlpack__(max_version=(1, 1))
            except TypeError:
                if versioned:
                    raise
        if capsule is None:
            capsule = producer.__dlpack__()
        return self.from_capsule(capsule)

    def from_capsule(self, capsule):
        """Takes what is in it; the capsule is used up, also by a failure."""
        made, managed = Tensor(self), managed_of(capsule)
        if isinstance(managed, Versioned):
            capsule_rename(capsule, b"used_dltensor_versioned")
            self.tn_dlpack_import(managed, made.struct)
        else:
            capsule_rename(capsule, b"used_dltensor")
            self.tn_dlpack_import_legacy(managed, made.struct)
        return made


class Device:
    def __init__(self, library, name):
        handle = c_void_p()
        library.tn_device_get(name.encode(), ctypes.byref(handle))
        self.library, self.handle = library, handle

    @property
    def id(self):
        return self.library.tn_device_id(self.handle).decode()

    @property
    def name(self):
        return self.library.tn_device_name(self.handle).decode()

    def synchronize(self):
        self.library.tn_device_synchronize(self.handle)


class Tensor:
    """Made by the methods of a library. Other libraries take it by their from_dlpack."""

    def __init__(self, library):
        self.library, self.struct = library, TensorStruct()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.release()

    def __del__(self):
        self.release()

    def release(self):
        self.library.tn_tensor_release(self.struct)

    @property
    def shape(self):
        return tuple(self.struct.shape[i] for i in range(self.struct.ndim))

    @property
    def strides(self):
        """In elements; None when it has none, being dense."""
        strides = self.struct.strides
        return tuple(strides[i] for i in range(self.struct.ndim)) if strides else None

    @property
    def dtype(self):
        words = {dtype_number(word): word for word in DTYPES}
        return words[self.struct.dtype]

    @property
    def address(self):
        """Of the first element."""
        return (self.struct.data or 0) + self.struct.byte_offset

    @property
    def is_dense(self):
        return bool(self.library.tn_tensor_is_dense(self.struct))

    @property
    def device(self):
        handle = c_void_p()
        self.library.tn_tensor_device(self.struct, ctypes.byref(handle))
        return self.library.tn_device_id(handle).decode()

    @property
    def elements(self):
        out = c_int64()
        self.library.tn_tensor_elements(self.struct, ctypes.byref(out))
        return out.value

    @property
    def read_only(self):
        return bool(self.struct.flags & READ_ONLY)

    @read_only.setter
    def read_only(self, value):
        self.struct.flags = self.struct.flags & ~READ_ONLY | (READ_ONLY if value else 0)

    def view(self):
        made = Tensor(self.library)
        self.library.tn_tensor_view(self.struct, made.struct)
        return made

    def copy_to(self, other):
        self.library.tn_copy(None, self.struct, other.struct)

    def __dlpack_device__(self):
        return self.struct.device_type, self.struct.device_id

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        """A capsule: of the versioned form for whoever says that it knows it."""
        if dl_device not in (None, self.__dlpack_device__()) or copy:
            raise BufferError("neither copies nor moves to another device are made here")
        consumer = -1 if stream is None else stream
        try:
            if max_version and max_version[0] >= 1:
                return self._export(consumer, Versioned, self.library.tn_dlpack_export,
                                    b"dltensor_versioned")
            return self._export(consumer, Managed, self.library.tn_dlpack_export_legacy,
                                b"dltensor")
        except Error as error:
            raise BufferError(str(error)) from error

    def _export(self, consumer, form, export, name):
        managed = ctypes.POINTER(form)()
        export(self.struct, consumer, ctypes.byref(managed))
        return capsule_new(managed, name, forget)


def numbers(values):
    return (c_int64 * len(values))(*values)


# Who is to be told of the end of what was wrapped, by the number that C hands back.
keys = itertools.count(1)
waiting = {}


@RELEASE
def ended(key):
    released = waiting.pop(key)
    if released:
        released()


def _python(name, gives, *takes):
    return ctypes.PYFUNCTYPE(gives, *takes)((name, ctypes.pythonapi))


capsule_new = _python("PyCapsule_New", ctypes.py_object, c_void_p, c_char_p, c_void_p)
capsule_is = _python("PyCapsule_IsValid", ctypes.c_int, ctypes.py_object, c_char_p)
capsule_get = _python("PyCapsule_GetPointer", c_void_p, ctypes.py_object, c_char_p)
capsule_rename = _python("PyCapsule_SetName", ctypes.c_int, ctypes.py_object, c_char_p)

FORMS = ((b"dltensor_versioned", Versioned), (b"dltensor", Managed))


def managed_of(capsule):
    """What is in a capsule, whichever form it has."""
    for name, form in FORMS:
        if capsule_is(capsule, name):
            return form.from_address(capsule_get(capsule, name))
    raise ValueError("no DLPack capsule, or a used one")


# The same by address: a capsule that is being forgotten must not be held.
_dying_is = _python("PyCapsule_IsValid", ctypes.c_int, c_void_p, c_char_p)
_dying_get = _python("PyCapsule_GetPointer", c_void_p, c_void_p, c_char_p)


@ctypes.PYFUNCTYPE(None, c_void_p)
def forget(capsule):
    """Ends what no one took out of a capsule."""
    for name, form in FORMS:
        if _dying_is(capsule, name):
            managed = form.from_address(_dying_get(capsule, name))
            managed.deleter(managed)
