"""Calling a compiled program from Python: checks, results, scratch, then one function pointer.

An `Interface` says what a program takes and returns; `launch` gives a callable for it. The fast one
is `launcher*.c`, a small extension module that is built once and kept in the disk cache; where it
cannot be built (no Python.h) `PortableProgram` does the same through ctypes.

A launcher converts nothing. What does not fit exactly goes to `on_mismatch(*args)`, by default a
`Converter`: it takes what NumPy would (lists, other layouts, Python numbers), or raises. A nonzero
code of the program goes to `on_code(code, args)`, whose result is the result of the call.
"""

import ctypes
import importlib.machinery
import importlib.util
import os
import sys
import sysconfig
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

import numpy as np

from lazyarr.backends.c.compiler import build
from lazyarr.backends.cache import open_cache
from lazyarr.backends.loop.interface import Interface, check_sizes, output_shapes
from lazyarr.errors import ArgumentError, BackendError, DTypeError, OverflowValueError, ShapeError
from lazyarr.graph.shapes import Atom, Size, lone_atom
from lazyarr.graph.types import TensorType

ALIGNMENT = 64
"""Bytes to which results and scratch are aligned."""

SIZES_DISAGREE = -1
"""The code of a call whose sizes the program was not made for; the interpreter knows better."""

RETURNS = ("list", "single", "tuple")

# the instructions of launcher.c
CONST, DIM, ADD, MUL, FLOORDIV, MAX, EQUAL, LENGTH, START, END = range(10)
COMPUTED = {
    "floordiv": FLOORDIV,
    "max": MAX,
    "bc": EQUAL,  # a program takes both sizes to be equal; with a 1 it would be another program
    "length": LENGTH,
    "start": START,
}


@dataclass(frozen=True)
class Pointers:
    """The addresses of a loaded program, and the object that keeps them valid.

    Where no function `arena` tells the bytes of scratch, the size `scratch` does. The entry returns
    `done` when all went well, and `done` more than the code of what failed; 0 but for the fast one.
    """

    entry: int
    arena: int = 0
    table: int = 0
    keep: object = field(default=None, compare=False)
    scratch: int | Size = 0
    done: int = 0


def launch(
    interface: Interface,
    pointers: Pointers,
    on_code: Callable[[int, tuple], object],
    *,
    on_mismatch: Callable[..., object] | None = None,
    returns: str = "list",
    bound: Sequence[np.ndarray | None] = (),
    reject_one: bool = False,
    portable: bool = False,
    trust: bool = False,
    donated: Sequence[int] = (),
    reuse: Sequence[int] = (),
) -> Callable[..., object]:
    """Return a callable of a program: positional arguments in, fresh arrays out.

    The fast one takes `out=`, arrays to write the results into: one for `single`, otherwise one or
    None for each output. They share no memory with an input or each other; others are mismatches.

    Parameters
    ----------
    returns
        `list`, `tuple`, or `single` for the one output by itself.
    bound
        For each input an array that is given now, or None where the call gives it.
    reject_one
        Treat a call in which an unknown size is 1 as a mismatch (NumPy broadcasts there).
    portable
        Use ctypes also where the extension module is there.
    trust
        Look at the rank of arrays only: the caller vouches for dtypes, layouts and sizes.
    donated
        Inputs that must be writable, since results may take their memory.
    reuse
        For each output the donated input whose memory it may take, or -1. That is done where the
        input has the output's shape and shares memory with no other input.
    """
    native = None if portable else extension()
    make = _native(native) if native else PortableProgram
    converter = Converter(interface, tuple(bound), on_code)
    program = make(
        interface,
        pointers,
        on_code,
        on_mismatch or converter,
        RETURNS.index(returns),
        tuple(bound),
        reject_one,
        trust,
        tuple(donated),
        tuple(reuse),
    )
    converter.exact = program.exact
    return program


# ---------------------------------------------------------------------------------- the conversion


class Converter:
    """Takes a call that does not fit a program exactly: converts and calls again, or raises."""

    def __init__(
        self,
        interface: Interface,
        bound: tuple[np.ndarray | None, ...],
        on_code: Callable[[int, tuple], object],
    ):
        self.interface, self.bound, self.on_code = interface, bound, on_code
        self.exact: Callable[..., object] | None = None

    def __call__(self, *args: object, **named: object) -> object:
        """Return the result for the converted arguments."""
        face = self.interface
        free = [i for i in range(len(face.inputs)) if i >= len(self.bound) or self.bound[i] is None]
        if named:
            raise ArgumentError(f"inputs are given by position, not by name ({', '.join(named)})")
        if len(args) != len(free):
            raise ArgumentError(f"the program takes {len(free)} inputs, got {len(args)}")
        given = [as_input(face.inputs[i], a, face.name(i)) for i, a in zip(free, args, strict=True)]
        arrays: list = [*self.bound, *[None] * (len(face.inputs) - len(self.bound))]
        for i, array in zip(free, given, strict=True):
            arrays[i] = array
        env = check_sizes(face, [array.shape for array in arrays])
        if output_shapes(face, env) is None:
            return self.on_code(SIZES_DISAGREE, tuple(given))
        result = self.exact(*given)
        if result is NotImplemented:
            ones = ", ".join(str(atom) for atom, n in env.items() if n == 1)
            raise ShapeError(f"this program is not made for a size of 1 ({ones})")
        return result


def as_input(type_: TensorType, value: object, name: str) -> np.ndarray:
    """Return `value` as a C-contiguous aligned array of exactly the type's dtype and rank.

    Python numbers take the dtype; arrays and NumPy scalars must have it; lists are read by NumPy
    and cast where that is safe.
    """
    dtype = type_.dtype
    if isinstance(value, bool | int | float | complex) and not isinstance(value, np.generic):
        array = _weak(dtype, value, name)
    else:
        strong = isinstance(value, np.ndarray | np.generic)
        try:
            array = np.asarray(value)
        except (ValueError, TypeError) as error:
            raise ArgumentError(f"{name} is not an array: {error}") from error
        if array.dtype != dtype:
            # another byte order is the same dtype in another layout
            same = array.dtype.newbyteorder("=") == dtype
            if not same and (strong or not np.can_cast(array.dtype, dtype, "safe")):
                raise DTypeError(f"{name} must have dtype {dtype}, got {array.dtype}; use astype")
    if array.ndim != type_.ndim:
        raise ShapeError(f"{name} must have {type_.ndim} axes, got shape {array.shape}")
    return np.require(array, dtype, ["C", "A", "E"])


def _weak(dtype: np.dtype, value: bool | int | float | complex, name: str) -> np.ndarray:
    """Return a Python number as a 0-d array, as weak promotion has it."""
    kinds = {bool: "biufc", int: "iufc", float: "fc", complex: "c"}
    kind = next(k for python, k in kinds.items() if isinstance(value, python))
    if dtype.kind not in kind:
        raise DTypeError(f"{name} must have dtype {dtype}, got {value!r}; use astype")
    try:
        return np.asarray(value, dtype)
    except OverflowError as error:
        raise OverflowValueError(f"{name}: {value!r} does not fit {dtype}") from error


# -------------------------------------------------------------------------------- the fast launcher


_EXTENSION: list[ModuleType | None] = []
_EXTENSION_LOCK = threading.Lock()
_NAME = "lazyarr_launcher"

SOURCES = ("launcher_pool.c", "launcher_sizes.c", "launcher.c", "launcher_make.c")
"""The files that make up the extension module, one after the other."""


def extension() -> ModuleType | None:
    """Return the compiled launcher module, or None where it cannot be built (see `obstacle`)."""
    if not _EXTENSION:
        with _EXTENSION_LOCK:
            if not _EXTENSION:
                _EXTENSION.append(_load_extension())
    return _EXTENSION[0]


obstacle = ""
"""Why the fast launcher is missing, for reports."""


def _load_extension() -> ModuleType | None:
    global obstacle
    if os.environ.get("LAZYARR_LAUNCHER") == "ctypes":
        obstacle = "LAZYARR_LAUNCHER=ctypes"
        return None
    try:
        return build_extension()
    except (BackendError, ImportError, OSError) as error:
        obstacle = str(error)
        return None


def build_extension() -> ModuleType:
    """Build (or find in the cache) and import the launcher module; raise where that fails."""
    return build_module(_NAME, SOURCES)


def build_module(name: str, sources: Sequence[str]) -> ModuleType:
    """Build (or find in the cache) and import an extension module; raise where that fails."""
    folders = (sysconfig.get_path("include"), np.get_include())
    headers = (Path(folders[0], "Python.h"), Path(folders[1], "numpy", "arrayobject.h"))
    for header in headers:
        if not header.exists():
            raise BackendError(f"{header} is missing (install the headers of Python)")
    here = Path(__file__).parent
    source = "".join((here / part).read_text(encoding="utf-8") for part in sources)
    # the versions are no macros that the source reads; they make it another entry of the cache
    made_for = f"{sysconfig.get_config_var('SOABI')}/{sys.version_info}/{np.__version__}"
    flags = ["-O2", *(f"-I{folder}" for folder in folders), f'-DLAZYARR_MADE_FOR="{made_for}"']
    if sys.platform == "darwin":
        flags += ["-undefined", "dynamic_lookup"]
    key, path = build(source, flags)
    try:
        return _import(name, path)
    except ImportError:
        open_cache().discard(key)
        return _import(name, build(source, flags)[1])


def _import(name: str, path: Path) -> ModuleType:
    loader = importlib.machinery.ExtensionFileLoader(name, str(path))
    spec = importlib.util.spec_from_file_location(name, path, loader=loader)
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def _native(module: ModuleType) -> Callable[..., object]:
    """Return a constructor of the extension's programs that takes PortableProgram's arguments."""

    def make(
        face: Interface,
        pointers: Pointers,
        on_code: Callable,
        on_mismatch: Callable,
        returns: int,
        bound: tuple,
        reject_one: bool,
        trust: bool,
        donated: tuple,
        reuse: tuple,
    ) -> object:
        number = {atom: i for i, atom in enumerate(face.atoms)}

        def slots(types: Sequence[TensorType]) -> tuple:
            return tuple((t.dtype, tuple(size_code(s, number) for s in t.shape)) for t in types)

        return module.Program(
            entry=pointers.entry,
            arena=pointers.arena,
            table=pointers.table,
            n_dims=len(face.atoms),
            inputs=slots(face.inputs),
            outputs=slots(face.outputs),
            checks=tuple(_checks(face, number)),
            bound=bound,
            keep=pointers.keep,
            on_mismatch=on_mismatch,
            on_code=on_code,
            returns=returns,
            reject_one=reject_one,
            trust=trust,
            donated=donated,
            reuse=reuse,
            scratch=size_code(pointers.scratch, number),
            done=pointers.done,
        )

    return make


def size_code(size: int | Size, number: dict[Atom, int]) -> int | tuple[int, ...]:
    """Return a size as an int, or as postfix code over the numbered unknowns.

    >>> from lazyarr.graph.shapes import unknown
    >>> n = unknown("n")
    >>> size_code(n + 1, {n.atom: 0})
    (1, 0, 0, 1, 2, 9)
    """
    return (*_code(size, number), END) if isinstance(size, Size) else size


def _checks(face: Interface, number: dict[Atom, int]) -> Iterator[tuple[int, ...]]:
    """Yield code that has no value where the program cannot be called."""
    for a, b in face.equal:
        yield (*_code(a, number), *_code(b, number), EQUAL, END)
    for size in face.nonzero:
        yield (CONST, 1, *_code(size, number), FLOORDIV, END)


def _code(size: object, number: dict[Atom, int]) -> list[int]:
    """Return code that pushes one size; None (an open end of a slice) pushes 0."""
    if isinstance(size, Atom):
        return _atom_code(size, number)
    if not isinstance(size, Size):
        return [CONST, size or 0]
    code: list[int] = []
    for position, (monomial, factor) in enumerate(size.terms):
        term: list[int] = []
        for atom in monomial:
            term += (_atom_code(atom, number)) + ([MUL] if term else [])
        if factor != 1 or not monomial:
            term += [CONST, factor] + ([MUL] if monomial else [])
        code += term + ([ADD] if position else [])
    return code


def _atom_code(atom: Atom, number: dict[Atom, int]) -> list[int]:
    if atom in number:
        return [DIM, number[atom]]
    if atom.kind not in COMPUTED:
        raise BackendError(
            f"the launcher cannot compute the size {atom}; no input has it as a size"
        )
    code = [word for argument in atom.args for word in _code(argument, number)]
    code.append(COMPUTED[atom.kind])
    if atom.kind in ("length", "start"):
        _, start, stop, _ = atom.args
        code.append((start is not None) + 2 * (stop is not None))
    return code


# ---------------------------------------------------------------------------- the portable launcher


_ENTRY = ctypes.CFUNCTYPE(
    ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p
)
_ARENA = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)


class PortableProgram:
    """The launcher in Python and ctypes: same meaning, some microseconds a call."""

    def __init__(
        self,
        interface: Interface,
        pointers: Pointers,
        on_code: Callable[[int, tuple], object],
        on_mismatch: Callable[..., object],
        returns: int,
        bound: tuple[np.ndarray | None, ...],
        reject_one: bool,
        trust: bool = False,
        donated: tuple[int, ...] = (),
        reuse: tuple[int, ...] = (),
    ):
        unbound = set(interface.atoms)
        for type_ in interface.inputs:
            unbound -= {lone_atom(size) for size in type_.shape}
        if unbound:
            raise ValueError(f"unknown size {unbound.pop()} is no input's size by itself")
        self.interface, self.pointers, self.reject_one = interface, pointers, reject_one
        self.on_code, self.on_mismatch = on_code, on_mismatch
        self.returns, self.donated = RETURNS[returns], donated
        self.bound = [*bound, *[None] * (len(interface.inputs) - len(bound))]
        self.entry = _ENTRY(pointers.entry)
        self.arena = _ARENA(pointers.arena) if pointers.arena else None

    def __call__(self, *args: object, **named: object) -> object:
        """Return the results, or what on_mismatch or on_code return."""
        result = NotImplemented if named else self.exact(*args)
        return self.on_mismatch(*args, **named) if result is NotImplemented else result

    def exact(self, *args: object) -> object:
        """Call; on a mismatch return NotImplemented instead of calling on_mismatch."""
        face = self.interface
        if len(args) != sum(array is None for array in self.bound):
            return NotImplemented
        rest = iter(args)
        arrays = [next(rest) if array is None else array for array in self.bound]
        arrays = [_exactly(t, a) for t, a in zip(face.inputs, arrays, strict=True)]
        if any(array is None for array in arrays):
            return NotImplemented
        if any(not arrays[i].flags.writeable for i in self.donated):
            return NotImplemented
        try:
            env = check_sizes(face, [array.shape for array in arrays])
        except (ShapeError, ZeroDivisionError):
            return NotImplemented
        shapes = output_shapes(face, env)
        if shapes is None or (self.reject_one and 1 in env.values()):
            return NotImplemented
        outputs = [empty(t.dtype, s) for t, s in zip(face.outputs, shapes, strict=True)]
        if code := self._run([*arrays, *outputs], [env[atom] for atom in face.atoms]):
            return self.on_code(code, args)
        if self.returns == "single":
            return outputs[0]
        return outputs if self.returns == "list" else tuple(outputs)

    def _run(self, arrays: list[np.ndarray], dims: list[int]) -> int:
        buffers = (ctypes.c_void_p * (len(arrays) or 1))(*(a.ctypes.data for a in arrays))
        sizes = (ctypes.c_int64 * (len(dims) or 1))(*dims)
        scratch = empty(np.dtype(np.uint8), (self.arena(sizes) if self.arena else ALIGNMENT,))
        return self.entry(buffers, sizes, scratch.ctypes.data, self.pointers.table)


def _exactly(type_: TensorType, value: object) -> np.ndarray | None:
    """Return the argument as an array where it fits as it is, else None."""
    if type(value) is np.ndarray:
        flags = value.flags
        fits = value.dtype == type_.dtype and flags.c_contiguous and flags.aligned
        return value if fits and value.ndim == type_.ndim else None
    if type_.ndim or not isinstance(value, bool | int | float | np.generic):
        return None
    try:
        return as_input(type_, value, "a number")
    except (DTypeError, OverflowValueError):
        return None


def empty(dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
    """Return an uninitialised C-contiguous array whose data starts at a multiple of 64 bytes."""
    count = dtype.itemsize
    for n in shape:
        count *= n
    block = np.empty(count + ALIGNMENT, np.uint8)
    start = -block.ctypes.data % ALIGNMENT
    return block[start : start + count].view(dtype).reshape(shape)
