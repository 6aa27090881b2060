"""Who competes. A contestant offers variants of itself for a case; the fastest of them is timed beside the others.

A constructor raises RuntimeError or OSError where the contestant cannot be had at all.
"""

import ctypes
import importlib.util
import os
import warnings
from ctypes import POINTER, byref, c_int, c_void_p

import torch

from peers.library import Library, find_library, version_of


def triton_kernels():
    try:
        from peers import triton_kernels as kernels
    except ImportError as error:
        raise RuntimeError(f"no Triton: {error}") from None
    return kernels


def stream():
    return torch.cuda.current_stream().cuda_stream


def launcher(launch, of):
    """A call for the timer out of launch(out, x), with the buffers that of(buffers) picks."""
    def call(buffers):
        out, x = of(buffers)
        launch(out, x)
        return out
    return call


def rows(buffers):
    return buffers.out, buffers.x


def packed(buffers):
    return buffers.flat_out, buffers.flat_x


class Contestant:
    version = None

    def variants(self, case):
        """[(name, call(buffers) -> output)]. Those of an earlier case may be invalid afterwards."""
        raise NotImplementedError

    def error_of(self, case):
        return case.softmax_error


class Copy(Contestant):
    """The limit: the driver's copy, a copy by PyTorch's elementwise kernel, copy kernels in Triton."""

    def __init__(self, options):
        del options
        try:
            self.kernels = triton_kernels().copy_variants()
        except RuntimeError:
            self.kernels = []

    def variants(self, case):
        def words(launch):
            return lambda out, x: launch(out.view(torch.int32), x.view(torch.int32))

        launches = [("driver", lambda out, x: out.copy_(x)),
                    ("PyTorch's x | 0", words(lambda out, x: torch.bitwise_or(x, 0, out=out)))]
        launches += [(name, words(launch)) for name, launch in self.kernels]
        return [(name, launcher(launch, packed)) for name, launch in launches]

    def error_of(self, case):
        return case.copy_error


class JitSoftmax(Contestant):
    def __init__(self, options):
        path = options.library or find_library(options.root)
        if path is None:
            raise RuntimeError("no libjitsoftmax.so below build*/: build the target jitsoftmax_shared, "
                               "or give --library")
        self.library = Library(path, "current")
        self.version = version_of(path)
        self.kernel = None

    def variants(self, case):
        if self.kernel is not None:
            self.kernel.close()
            self.kernel = None
        self.kernel = kernel = self.library.prepare(case.shape.cols, case.shape.in_dtype)

        def launch(out, x):
            kernel.launch(out.data_ptr(), x.data_ptr(), x.shape[0], stream())
        return [("the built-in choice", launcher(launch, rows))]


class Torch(Contestant):
    def __init__(self, options):
        del options
        self.version = torch.__version__

    def variants(self, case):
        return [("torch.softmax", launcher(lambda out, x: torch.softmax(x, -1, out=out), rows))]


class Compiled(Contestant):
    """Its output is its own: a compiled function that allocates is what people use."""

    def __init__(self, options):
        del options
        triton_kernels()  # its kernels are Triton's
        import torch._dynamo.config as config
        warnings.filterwarnings("ignore", module="torch")  # such as why it splits a reduction
        # A shape more is a recompilation more of one function, which would fall back to eager at the limit.
        config.recompile_limit = config.accumulated_recompile_limit = 100_000
        self.version = torch.__version__
        self.function = torch.compile(lambda x: torch.softmax(x, -1), dynamic=False)

    def variants(self, case):
        return [("torch.compile, static shapes", lambda buffers: self.function(buffers.x))]


class Triton(Contestant):
    def __init__(self, options):
        del options
        self.kernels = triton_kernels()
        self.version = self.kernels.triton.__version__

    def variants(self, case):
        device = torch.cuda.get_device_properties(torch.cuda.current_device())
        return [(name, launcher(launch, rows))
                for name, launch in self.kernels.softmax_variants(case.sets[0].x, device)]


class Cudnn(Contestant):
    LIBRARY = "libcudnn.so.9"
    DTYPES = {"f32": 0, "f64": 1, "f16": 2, "bf16": 9}  # cudnnDataType_t
    ACCURATE = 1  # cudnnSoftmaxAlgorithm_t: subtracts the maximum
    MODES = {"instance": 0, "channel": 1}  # cudnnSoftmaxMode_t; the same for a row of N x 1 x 1
    NCHW = 0

    def __init__(self, options):
        del options
        self.cudnn = self.load()
        self.handle, self.descriptor = c_void_p(), c_void_p()
        self.check(self.cudnn.cudnnCreate(byref(self.handle)), "cudnnCreate")
        self.check(self.cudnn.cudnnCreateTensorDescriptor(byref(self.descriptor)), "cudnnCreateTensorDescriptor")
        number = self.cudnn.cudnnGetVersion()
        self.version = f"{number // 10000}.{number // 100 % 100}.{number % 100}"

    @staticmethod
    def load():
        package = importlib.util.find_spec("nvidia.cudnn") if importlib.util.find_spec("nvidia") else None
        folders = package.submodule_search_locations if package else []
        # By its bare name first: the one that PyTorch has loaded already, or the system's.
        for path in (Cudnn.LIBRARY, *(os.path.join(folder, "lib", Cudnn.LIBRARY) for folder in folders)):
            try:
                cudnn = ctypes.CDLL(path)
                break
            except OSError as error:
                reason = error
        else:
            raise RuntimeError(f"no cuDNN: {reason}")
        for function, arguments in {
            "cudnnCreate": [POINTER(c_void_p)],
            "cudnnSetStream": [c_void_p, c_void_p],
            "cudnnCreateTensorDescriptor": [POINTER(c_void_p)],
            "cudnnSetTensor4dDescriptor": [c_void_p] + [c_int] * 6,
            "cudnnSoftmaxForward": [c_void_p, c_int, c_int, c_void_p, c_void_p, c_void_p, c_void_p, c_void_p, c_void_p],
        }.items():
            getattr(cudnn, function).argtypes, getattr(cudnn, function).restype = arguments, c_int
        cudnn.cudnnGetVersion.argtypes, cudnn.cudnnGetVersion.restype = [], ctypes.c_size_t
        cudnn.cudnnGetErrorString.argtypes, cudnn.cudnnGetErrorString.restype = [c_int], ctypes.c_char_p
        return cudnn

    def check(self, status, what):
        if status != 0:
            raise RuntimeError(f"{what}: {self.cudnn.cudnnGetErrorString(status).decode()}")

    def variants(self, case):
        shape = case.shape
        self.check(self.cudnn.cudnnSetTensor4dDescriptor(self.descriptor, self.NCHW, self.DTYPES[shape.in_dtype],
                                                         shape.rows, shape.cols, 1, 1), "cudnnSetTensor4dDescriptor")
        # The scaling factors are f64 for f64, otherwise f32.
        factor = ctypes.c_double if shape.in_dtype == "f64" else ctypes.c_float
        one, zero = factor(1), factor(0)

        def launch(mode):
            def run(out, x):
                self.check(self.cudnn.cudnnSetStream(self.handle, stream()), "cudnnSetStream")
                self.check(self.cudnn.cudnnSoftmaxForward(
                    self.handle, self.ACCURATE, mode, byref(one), self.descriptor, x.data_ptr(),
                    byref(zero), self.descriptor, out.data_ptr()), "cudnnSoftmaxForward")
            return run
        return [(f"accurate, {name} mode", launcher(launch(mode), rows)) for name, mode in self.MODES.items()]


CONTESTANTS = {"jitsoftmax": JitSoftmax, "torch": Torch, "compile": Compiled, "triton": Triton, "cudnn": Cudnn}
