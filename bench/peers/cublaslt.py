"""cublasLtMatmul called directly: the heuristics' first answer, with as much memory as Tenon lends it."""

import ctypes

import torch

WORKSPACE = 32 << 20
TRANSA, TRANSB, SCALE_A, SCALE_B, MAX_WORKSPACE, OP_T = 3, 4, 17, 18, 1, 1
SUM_F32, SUM_TF32, SUM_I32 = 68, 77, 72
TYPES = {torch.float32: 0, torch.float16: 2, torch.int8: 3, torch.int32: 10, torch.bfloat16: 14,
         torch.float8_e4m3fn: 28}


class Found(ctypes.Structure):
    """cublasLtMatmulHeuristicResult_t"""
    _fields_ = [("algo", ctypes.c_uint64 * 8), ("workspace", ctypes.c_size_t),
                ("state", ctypes.c_int), ("waves", ctypes.c_float), ("reserved", ctypes.c_int * 4)]


class Direct:
    """out = A B, of dense tensors: A [m, k], B [k, n] or, transposed, [n, k]; scales of one number each."""

    def __init__(self, path, raw):
        self.native = ctypes.CDLL(path)
        self.raw, self.handle = ctypes.c_void_p(raw), ctypes.c_void_p()
        self.workspace = torch.empty(WORKSPACE, dtype=torch.uint8, device="cuda")
        self.do("cublasLtCreate", ctypes.byref(self.handle))

    def do(self, name, *arguments):
        code = getattr(self.native, name)(*arguments)
        if code:
            raise SystemExit(f"bench: {name}: status {code}")

    def make(self, name, *arguments):
        made = ctypes.c_void_p()
        self.do(name, ctypes.byref(made), *arguments)
        return made

    def set(self, name, to, attribute, value):
        self.do(name, to, attribute, ctypes.byref(value), ctypes.c_size_t(ctypes.sizeof(value)))

    def layout(self, of):
        """By columns, so that a matrix by rows is its transpose."""
        rows, columns = of.shape
        return self.make("cublasLtMatrixLayoutCreate", TYPES[of.dtype], ctypes.c_uint64(columns),
                         ctypes.c_uint64(rows), ctypes.c_int64(columns))

    def description(self, a, transposed, tf32, scales):
        whole = a.dtype == torch.int8
        desc = self.make("cublasLtMatmulDescCreate", SUM_I32 if whole else SUM_TF32 if tf32 else SUM_F32,
                         TYPES[torch.int32 if whole else torch.float32])
        if transposed:
            self.set("cublasLtMatmulDescSetAttribute", desc, TRANSA, ctypes.c_int32(OP_T))
        for attribute, scale in zip((SCALE_B, SCALE_A), scales):
            self.set("cublasLtMatmulDescSetAttribute", desc, attribute,
                     ctypes.c_void_p(scale.data_ptr()))
        return desc

    def answer(self, desc, layouts):
        preference, found, count = self.make("cublasLtMatmulPreferenceCreate"), Found(), ctypes.c_int()
        self.set("cublasLtMatmulPreferenceSetAttribute", preference, MAX_WORKSPACE,
                 ctypes.c_uint64(WORKSPACE))
        self.do("cublasLtMatmulAlgoGetHeuristic", self.handle, desc, *layouts, layouts[-1], preference,
                1, ctypes.byref(found), ctypes.byref(count))
        if count.value == 0 or found.state:
            raise SystemExit("bench: cuBLASLt has nothing for it")
        return found

    def product(self, a, b, out, transposed=False, tf32=False, scales=()):
        """A call that queues it."""
        desc = self.description(a, transposed, tf32, scales)
        layouts = [self.layout(it) for it in (b, a, out)]
        found = self.answer(desc, layouts)
        number = ctypes.c_int32 if a.dtype == torch.int8 else ctypes.c_float
        one, none = number(1), number(0)
        to = ctypes.c_void_p(out.data_ptr())
        arguments = (self.handle, desc, ctypes.byref(one), ctypes.c_void_p(b.data_ptr()), layouts[0],
                     ctypes.c_void_p(a.data_ptr()), layouts[1], ctypes.byref(none), to, layouts[2], to,
                     layouts[2], ctypes.byref(found), ctypes.c_void_p(self.workspace.data_ptr()),
                     ctypes.c_size_t(WORKSPACE), self.raw)
        return lambda: self.do("cublasLtMatmul", *arguments)
