"""libjitsoftmax through its C API, include/jitsoftmax/jitsoftmax.h."""

import ctypes
import pathlib
import re
from ctypes import POINTER, byref, c_char_p, c_float, c_int32, c_int64, c_void_p

DTYPES = {"f16": 0, "bf16": 1, "f32": 2, "f64": 3}


class Problem(ctypes.Structure):
    _fields_ = [("cols", c_int64), ("in_", c_int32), ("out", c_int32), ("op", c_int32), ("layout", c_int32)]


class Rows(ctypes.Structure):
    _fields_ = [("out", c_void_p), ("in_", c_void_p), ("count", c_int64), ("out_stride", c_int64),
                ("in_stride", c_int64), ("inner", c_int64), ("scale", c_float)]


class LibraryError(RuntimeError):
    pass


def find_library(root):
    """The most recently built libjitsoftmax.so below root/build*, or None."""
    # A sanitizer's runtime would have to be loaded before Python.
    found = [path for path in pathlib.Path(root).glob("build*/**/libjitsoftmax.so")
             if path.is_file() and "sanitize" not in str(path.relative_to(root))]
    return max(found, key=lambda path: path.stat().st_mtime, default=None)


def version_of(path):
    """From the name of the file that libjitsoftmax.so links to."""
    match = re.search(r"\.so\.([0-9.]+)$", pathlib.Path(path).resolve().name)
    return match.group(1) if match else None


class Library:
    """An engine. `device`: "current", "cuda:N" or "host"."""

    def __init__(self, path, device):
        self.lib = ctypes.CDLL(str(pathlib.Path(path).resolve()))
        for name, arguments in {
            "create": [c_char_p, POINTER(c_void_p)],
            "prepare": [c_void_p, POINTER(Problem), POINTER(c_void_p)],
            "launch": [c_void_p, POINTER(Rows), c_void_p],
        }.items():
            function = getattr(self.lib, f"jitsoftmax_{name}")
            function.argtypes, function.restype = arguments, ctypes.c_int
        for name in ("destroy", "kernel_destroy"):
            function = getattr(self.lib, f"jitsoftmax_{name}")
            function.argtypes, function.restype = [c_void_p], None
        self.lib.jitsoftmax_last_error.argtypes, self.lib.jitsoftmax_last_error.restype = [], c_char_p
        self.engine = c_void_p()
        self.check(self.lib.jitsoftmax_create(device.encode(), byref(self.engine)))

    def check(self, status):
        if status != 0:
            raise LibraryError(self.lib.jitsoftmax_last_error().decode())

    def prepare(self, cols, dtype):
        """A kernel for packed rows of one type."""
        problem = Problem(cols, DTYPES[dtype], DTYPES[dtype], 0, 0)
        handle = c_void_p()
        self.check(self.lib.jitsoftmax_prepare(self.engine, byref(problem), byref(handle)))
        return Kernel(self, handle)

    def close(self):
        self.lib.jitsoftmax_destroy(self.engine)
        self.engine = c_void_p()


class Kernel:
    def __init__(self, library, handle):
        self.library, self.handle = library, handle

    def launch(self, out, x, count, stream):
        """Pointers as numbers; `stream` is a cudaStream_t as a number."""
        rows = Rows(out, x, count, 0, 0, 1, 1.0)
        self.library.check(self.library.lib.jitsoftmax_launch(self.handle, byref(rows), stream))

    def close(self):
        self.library.lib.jitsoftmax_kernel_destroy(self.handle)
        self.handle = c_void_p()
