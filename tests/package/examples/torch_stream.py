"""From Python, through ctypes: the softmax of a PyTorch tensor, on the stream that PyTorch uses now.

    torch_stream.py libjitsoftmax.so
"""

import ctypes
import sys

try:
    import torch
except ImportError:
    sys.exit(print("skipped: no PyTorch here") or 77)
if not torch.cuda.is_available():
    sys.exit(print("skipped: no GPU here") or 77)


class Problem(ctypes.Structure):
    _fields_ = [("cols", ctypes.c_int64), ("in_", ctypes.c_int32), ("out", ctypes.c_int32),
                ("op", ctypes.c_int32), ("layout", ctypes.c_int32)]


class Rows(ctypes.Structure):
    _fields_ = [("out", ctypes.c_void_p), ("in_", ctypes.c_void_p), ("count", ctypes.c_int64),
                ("out_stride", ctypes.c_int64), ("in_stride", ctypes.c_int64), ("inner", ctypes.c_int64),
                ("scale", ctypes.c_float)]


DTYPES = {torch.float16: 0, torch.bfloat16: 1, torch.float32: 2, torch.float64: 3}

library = ctypes.CDLL(sys.argv[1])
library.jitsoftmax_last_error.restype = ctypes.c_char_p


def check(status):
    if status != 0:
        raise RuntimeError(library.jitsoftmax_last_error().decode())


engine = ctypes.c_void_p()  # lives as long as the process
check(library.jitsoftmax_create(b"current", ctypes.byref(engine)))


def softmax(x):
    """Along the last dimension. Ordered on the current stream, as everything of PyTorch's."""
    x = x.contiguous()
    out = torch.empty_like(x)
    dtype = DTYPES[x.dtype]
    problem = Problem(x.shape[-1], dtype, dtype, 0, 0)
    rows = Rows(out.data_ptr(), x.data_ptr(), x.numel() // max(1, x.shape[-1]), 0, 0, 1, 1.0)
    stream = ctypes.c_void_p(torch.cuda.current_stream(x.device).cuda_stream)
    check(library.jitsoftmax_softmax(engine, ctypes.byref(problem), ctypes.byref(rows), stream))
    return out


torch.manual_seed(1)
with torch.cuda.stream(torch.cuda.Stream()):
    x = torch.randn(8, 128, 4096, device="cuda", dtype=torch.bfloat16)
    difference = (softmax(x).float() - torch.softmax(x.float(), dim=-1)).abs().max().item()
print("as PyTorch's" if difference < 1e-3 else f"differs from PyTorch's by {difference}")
