"""NumPy as a strict test double of cupy: calls that fail on a device raise here.

An :class:`Array` holds an ndarray and offers what ``cupy.ndarray`` offers. Functions must exist in the cupy that is
installed and take the arguments as given; ufuncs must have a loop for the dtypes, with the result's dtype of NumPy;
arrays of the host and of the device do not mix. What was learnt by reading cupy's source stands in ``REFUSED``.
"""

import contextlib
import importlib
import inspect
import types
from collections import Counter

import cupy
import cupyx.scipy.special
import numpy as np
import scipy.special

TRANSFERS = Counter()
"""What has gone to the host or come from it, by how."""


class Refused(AssertionError):
    """cupy would not do this, or not so."""


class Array(np.lib.mixins.NDArrayOperatorsMixin):
    """What stands for a ``cupy.ndarray``."""

    __array_priority__ = 100
    __hash__ = None

    def __init__(self, a):
        self._a = a

    def __getattr__(self, name):
        if name.startswith("__") or not hasattr(cupy.ndarray, name):
            raise AttributeError(f"a cupy.ndarray has no {name!r}")
        found = getattr(self._a, name)
        if name == "item":
            TRANSFERS["item"] += 1
            return found
        return _method(name, found) if callable(found) else wrapped(found)

    real = property(
        lambda self: wrapped(self._a.real), lambda self, value: setattr(self._a, "real", bare(value))
    )
    imag = property(
        lambda self: wrapped(self._a.imag), lambda self, value: setattr(self._a, "imag", bare(value))
    )

    def __array__(self, *args, **kwargs):
        raise TypeError("Implicit conversion to a NumPy array is not allowed.")

    def __len__(self):
        return len(self._a)

    def __iter__(self):
        return (self[i] for i in range(len(self._a)))

    def _number(self, kind):
        TRANSFERS["item"] += 1
        return kind(self._a)

    def __bool__(self):
        return self._number(bool)

    def __int__(self):
        return self._number(int)

    def __index__(self):
        return self._number(lambda a: a.__index__())

    def __float__(self):
        return self._number(float)

    def __complex__(self):
        return self._number(complex)

    def __getitem__(self, place):
        return wrapped(self._a[_place(place)])

    def __setitem__(self, place, value):
        only_here("setitem", [value], deep=False)
        if isinstance(value, (list, tuple)):
            raise Refused("setitem: cupy takes arrays and numbers")
        self._a[_place(place)] = bare(value)

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        name = ufunc.__name__
        theirs = getattr(cupy, name, None) or getattr(cupyx.scipy.special, name, None)
        if theirs is None or (method != "__call__" and not hasattr(theirs, method)):
            return NotImplemented
        out = options.get("out")
        only_here(name, [*inputs, *(out or ())])
        if method == "__call__" and isinstance(theirs, cupy.ufunc):
            check_loop(ufunc, theirs, inputs)
        given = {key: bare(value) for key, value in options.items()}
        found = getattr(ufunc, method)(*map(bare, inputs), **given)
        return out[0] if out else wrapped(found)

    def __array_function__(self, function, kinds, args, kwargs):
        parts = (function.__module__ or "numpy").split(".")[1:]
        module = MODULE
        for part in parts:
            module = getattr(module, part)
        return getattr(module, function.__name__)(*args, **kwargs)


def _place(place):
    """An index as an ndarray takes it; cupy takes no arrays of the host in it, which would be copied there."""
    only_here("indexing", place if type(place) is tuple else [place])
    return bare(place)


def wrapped(value):
    """Arrays as Arrays; what NumPy makes a number of, cupy leaves an array of no axes."""
    if isinstance(value, (np.ndarray, np.generic)):
        return Array(np.asarray(value)) if not isinstance(value, np.ndarray) else Array(value)
    if isinstance(value, tuple) and any(isinstance(one, (np.ndarray, np.generic)) for one in value):
        made = [wrapped(one) for one in value]
        return type(value)(*made) if hasattr(value, "_fields") else tuple(made)
    return [wrapped(one) for one in value] if type(value) is list else value


def bare(value):
    """Arrays as ndarrays."""
    if isinstance(value, Array):
        return value._a
    if type(value) in (tuple, list):
        return type(value)(bare(one) for one in value)
    return value


def only_here(name, values, deep=True):
    """Refuse arrays of the host."""
    for value in values:
        if isinstance(value, np.ndarray):
            raise Refused(f"{name}: cupy refuses an array of the host")
        if deep and type(value) in (tuple, list):
            only_here(name, value)


def check_loop(ours, theirs, inputs):
    """A ufunc needs a loop for its operands; it is cupy's first that they can be cast to."""
    numbers = [bare(one) for one in inputs]
    kinds = [one if type(one) in (bool, int, float, complex) else np.asarray(one).dtype for one in numbers]
    common = np.result_type(*kinds)
    dtypes = [one if isinstance(one, np.dtype) else common for one in kinds]
    for loop in theirs.types:
        takes, gives = loop.split("->")
        if all(
            dtype == _dtype(char) or np.can_cast(dtype, _dtype(char)) for dtype, char in zip(dtypes, takes)
        ):
            with np.errstate(all="ignore"):
                wanted = np.asarray(ours(*[np.ones((), dtype) for dtype in dtypes])).dtype
            if _dtype(gives) != wanted:
                raise Refused(f"{ours.__name__}: of {dtypes} cupy makes {_dtype(gives)}, NumPy {wanted}")
            return
    raise Refused(f"{ours.__name__}: cupy has no loop for {dtypes}")


def _dtype(char):
    if char == "E":
        return importlib.import_module("ml_dtypes").bfloat16
    return np.dtype(char)


# -- functions ---------------------------------------------------------------------------------------------------------
def _refuse_repeat(a, repeats, axis=None):
    if not isinstance(repeats, (int, np.integer)):
        raise Refused("repeat: cupy before version 14 takes no array of repeats")


def _refuse_sort(a, axis=-1, kind=None):
    if kind not in (None, "stable"):
        raise Refused(f"sort: cupy has no kind {kind!r}")


def _refuse_where(condition, x=None, y=None):
    if not isinstance(condition, Array):
        raise Refused("where: cupy's condition is an array")


def _refuse_polygamma(n, x):
    if not isinstance(n, Array):
        raise Refused("polygamma: cupy's order is an array")


def _refuse_solve(a, b):
    if b.ndim > 1 and a.shape[:-1] != b.shape[:-1]:
        raise Refused("solve: cupy does not broadcast")


def _refuse_searchsorted(a, v, side="left", sorter=None):
    if a.ndim != 1:
        raise Refused("searchsorted: cupy searches one axis")


def _refuse_nonzero(a):
    if not a.ndim:
        raise Refused("nonzero: cupy refuses arrays of no axes")


REFUSED = {
    "repeat": _refuse_repeat,
    "sort": _refuse_sort,
    "argsort": _refuse_sort,
    "where": _refuse_where,
    "polygamma": _refuse_polygamma,
    "solve": _refuse_solve,
    "searchsorted": _refuse_searchsorted,
    "nonzero": _refuse_nonzero,
}
"""function: what raises for arguments that NumPy takes and cupy does not."""
FROM_HOST = ("asarray", "array", "ascontiguousarray")


def _method(name, found):
    theirs = inspect.getdoc(getattr(cupy.ndarray, name)) or ""

    def call(*args, **kwargs):
        only_here(name, [*args, *kwargs.values()])
        for key in kwargs:
            if key not in theirs.partition("\n")[0]:
                raise Refused(f"ndarray.{name}: cupy has no argument {key!r}: {theirs.partition(chr(10))[0]}")
        if name in REFUSED:
            REFUSED[name](Array(found.__self__), *args, **kwargs)
        return wrapped(found(*bare(args), **{key: bare(value) for key, value in kwargs.items()}))

    return call


def _function(name, ours, theirs):
    def call(*args, **kwargs):
        values = [*args, *kwargs.values()]
        if name in FROM_HOST:
            TRANSFERS["from host"] += isinstance(
                args[0], (np.ndarray, np.generic, list, tuple, int, float, complex)
            )
        else:
            only_here(name, values)
        try:
            if not isinstance(theirs, cupy.ufunc):  # SciPy's zeta is a function, cupy's a ufunc
                inspect.signature(theirs).bind(*args, **kwargs)
        except TypeError as fault:
            raise Refused(f"{name}: {fault}; cupy's signature is {inspect.signature(theirs)}") from None
        if name in REFUSED:
            REFUSED[name](*args, **kwargs)
        if getattr(theirs, "__module__", "").startswith("cupy.linalg"):
            _check_matrices(name, args)
        options = {key: bare(value) for key, value in kwargs.items()}
        return wrapped(ours(*bare(args), **options))

    return call


def _check_matrices(name, args):
    for one in args:
        if isinstance(one, Array) and one.dtype.char not in "fdFD" and name != "einsum":
            raise Refused(f"linalg.{name}: cuSOLVER has no {one.dtype}")


class Module:
    """The names that a module of NumPy or SciPy and its twin of cupy have in common."""

    def __init__(self, ours, theirs):
        self._ours, self._theirs = ours, theirs

    def __getattr__(self, name):
        theirs = getattr(self._theirs, name, None)
        if theirs is None:
            raise Refused(f"{self._theirs.__name__} has no {name!r}")
        ours = getattr(self._ours, name)
        if isinstance(theirs, types.ModuleType):
            return Module(ours, theirs)
        if isinstance(ours, type) or not callable(ours):
            return ours  # dtypes and numbers
        if isinstance(ours, np.ufunc):
            return _ufunc(name, ours, theirs)
        if name in ("dtype", "finfo", "iinfo", "result_type", "promote_types"):
            return lambda *args: ours(*[one.dtype if isinstance(one, Array) else one for one in args])
        return _function(name, ours, theirs)


def _ufunc(name, ours, theirs):
    def call(*args, **kwargs):
        if not any(isinstance(one, Array) for one in args):
            raise Refused(f"{name}: cupy takes its own arrays, not {args!r}")
        if not isinstance(theirs, cupy.ufunc) and name != "matmul":  # one of SciPy's, and here a function
            return _function(name, ours, theirs)(*args, **kwargs)
        return next(one for one in args if isinstance(one, Array)).__array_ufunc__(
            ours, "__call__", *args, **kwargs
        )

    call.at = lambda *args: next(one for one in args if isinstance(one, Array)).__array_ufunc__(
        ours, "at", *args
    )
    return call


class Library(Module):
    """What kernels get as ``xp``: see ``tandem.backends.cuda.kernels.library._Module``."""

    def __init__(self):
        super().__init__(np, cupy)
        self.special = Module(scipy.special, cupyx.scipy.special)

    def errstate(self, **options):
        return contextlib.nullcontext()

    def asnumpy(self, a):
        only_here("asnumpy", [a])
        TRANSFERS["to host"] += 1
        return bare(a).copy()


MODULE = Library()
__all__ = ["MODULE", "TRANSFERS", "Array", "Refused", "bare"]
