"""The C compiler: which one there is, what it can do, and how a source becomes a loaded library.

Candidates are $CC, cc, gcc, clang, and the compiler in the `ziglang` wheel; the first that can
build and load a small library wins. What it can do is found out by trying (flags it takes,
functions it replaces by libmvec's vector versions) and remembered in the disk cache under the
compiler's path, time and size, so a known compiler costs a new process no run.

    library = load("double f(double x) { return x + 1; }")
    library.f

Every failure is a BackendError that names the compiler and says what to do.
"""

import ctypes
import functools
import hashlib
import importlib.util
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from lazyarr.backends.c import clones
from lazyarr.backends.cache import Cache, cache_key, open_cache
from lazyarr.errors import BackendError

INSTALL = "install one: `apt install gcc`, or `pip install lazyarr[cc]` (a compiler as a wheel)"

SHARED = ("-shared", "-fPIC")
WANTED = (
    "-std=gnu11",
    "-march=native",
    "-fopenmp-simd",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fno-strict-aliasing",  # scratch is used again for values of another type
    "-fno-tree-slp-vectorize",  # gcc 12 packs unrolled sums of constants wrongly with AVX-512
    "-fipa-icf",  # equal functions become one, at -O1 too
    "-w",
)
"""Flags every program is built with, where the compiler takes them."""

VECTOR = ("-fveclib=libmvec",)
"""clang's way to vector math; gcc refuses it and needs none."""

PRECISE = ("-ffp-contract=off",)
"""Added for `precise` programs: no fused multiply-add where the source has two operations."""

OPENMP = ("-fopenmp",)
"""Added for programs that run loops on several threads, where the compiler can."""

UNARY = (
    "exp exp2 exp10 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh "
    "asinh acosh atanh cbrt erf erfc"
).split()
BINARY = "pow atan2 hypot".split()

# statements up to which a program is built with the level; larger ones with -O1, which takes 0.16
# ms a statement and not 0.27, and whose loops are at most 8 % slower
LEVELS = ((500, "-O3"), (1500, "-O2"))

_PROBE = "double lazyarr_probe(double x) { return x + 1; }\n"
_PROGRAM = "program.c"
_LIBRARY = "program.so"


@dataclass(frozen=True)
class Compiler:
    """A working compiler: how to call it, the flags it takes, the vector functions it has.

    `vector` holds C names of the math library (`exp`, `expf`, ...) that a `simd` loop may call at
    vector speed, when declared `__attribute__((simd("notinbranch"), const))`.
    """

    command: tuple[str, ...]
    version: str
    flags: tuple[str, ...]
    link: tuple[str, ...]
    vector: frozenset[str]
    identity: str
    openmp: bool = False
    clones: bool = False  # whether it makes vector versions of functions in a program

    @property
    def name(self) -> str:
        """The command as one would type it."""
        return shlex.join(self.command)


def level(source: str) -> str:
    """Return the optimisation level for a source of this size, counted in statements."""
    statements = source.count(";")
    return next((flag for limit, flag in LEVELS if statements <= limit), "-O1")


def find_compiler() -> Compiler:
    """Return the compiler of this process, or raise a BackendError that says what to install."""
    return _found(os.environ.get("CC", ""), os.environ.get("PATH", ""), open_cache())


def build(
    source: str, flags: Iterable[str] = (), *, cache: Cache | None = None
) -> tuple[str, Path]:
    """Return cache key and path of the shared library built from `source`, built where need be.

    `flags` come after the compiler's own; an `-O` among them replaces the level chosen by size.
    Raises BackendError with the compiler's message and the place where the source was kept.
    """
    compiler, cache = find_compiler(), cache or open_cache()
    flags = tuple(flags)
    chosen = () if any(flag.startswith("-O") for flag in flags) else (level(source),)
    options = (*chosen, *compiler.flags, *flags)
    key = cache_key("c", source, compiler.identity, *options, *compiler.link)

    def make(folder: Path) -> None:
        (folder / _PROGRAM).write_text(source, encoding="utf-8")
        try:
            _build(compiler.command, folder, options, compiler.link)
        except BackendError as error:
            kept = cache.keep(f"{key}.c", source)
            where = f"the source was kept in {kept}" if kept else "the source could not be kept"
            raise BackendError(f"{error}\n({where})") from None

    return key, cache.build(key, make) / _LIBRARY


def load(source: str, flags: Iterable[str] = (), *, cache: Cache | None = None) -> ctypes.CDLL:
    """Return the loaded library built from `source`; each is loaded once in a process.

    A library on disk that cannot be loaded is built again, once.
    """
    cache = cache or open_cache()
    key, path = build(source, flags, cache=cache)
    for last in (False, True):
        if library := _LOADED.get(key):
            return library
        try:
            return _LOADED.setdefault(key, ctypes.CDLL(str(path)))
        except OSError as error:
            if last:
                raise BackendError(_unloadable(find_compiler().name, error)) from error
            cache.discard(key)
            _, path = build(source, flags, cache=cache)
    raise AssertionError("unreachable")


_LOADED: dict[str, ctypes.CDLL] = {}


# ------------------------------------------------------------------------------ running a compiler


def _build(
    command: Sequence[str], folder: Path, options: Sequence[str], link: Sequence[str]
) -> None:
    """Compile program.c of `folder` to program.so there. Its path never reaches the compiler."""
    _run([*command, *options, *SHARED, "-o", _LIBRARY, _PROGRAM, *link], folder)
    if not (folder / _LIBRARY).exists():
        raise BackendError(f"{shlex.join(command)} reported success but wrote no library")


def _run(command: Sequence[str], folder: Path) -> str:
    """Run the compiler in `folder`; return its output or raise a BackendError that explains."""
    name, limit = shlex.join(command[:1]), _time_limit()
    # Its scratch files go where the result goes: that folder is writable, private and removed. zig
    # keeps its libc beside the entries; without a writable place it would wait for ever.
    environment = {"ZIG_GLOBAL_CACHE_DIR": str(folder.parent / "zig")} | os.environ
    environment |= {"LC_ALL": "C", "TMPDIR": str(folder)}
    try:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # so that a hanging compiler's children can be ended with it
        )
    except OSError as error:
        raise BackendError(f"the C compiler {name} cannot be run: {error}; {INSTALL}") from error
    try:
        output = process.communicate(timeout=limit)[0].decode(errors="replace")
    except subprocess.TimeoutExpired:
        raise BackendError(
            f"the C compiler {name} did not finish within {limit:g} s and was stopped; set "
            "LAZYARR_COMPILE_TIMEOUT to allow more seconds"
        ) from None
    finally:
        _end(process)
    if process.returncode:
        raise BackendError(_complaint(name, command, process.returncode, output))
    return output


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the process and its children where it still runs."""
    if process.poll() is None:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except (OSError, AttributeError):
            process.kill()
        process.communicate()


def _complaint(name: str, command: Sequence[str], code: int, output: str) -> str:
    """Say in one message what a failed compiler run means."""
    text = output.strip()
    if "No space left on device" in text or "Disk quota exceeded" in text:
        return (
            f"the C compiler {name} found the disk full; free some space, or set LAZYARR_CACHE_DIR "
            f"and TMPDIR to another disk\n{text}"
        )
    if code < 0 or "Killed signal" in text or "Killed (program" in text:
        return f"the C compiler {name} was killed (signal {-code}); out of memory?\n{text}"
    lines = text.splitlines()
    shown = "\n".join(lines[:40]) + (f"\n... {len(lines) - 40} more lines" if lines[40:] else "")
    return f"the C compiler failed with code {code}: {shlex.join(command)}\n{shown}"


def _unloadable(name: str, error: Exception) -> str:
    """Say that a built library cannot be loaded, and why that may be."""
    closed = "not permitted" in str(error) or "failed to map" in str(error)
    why = "; the disk of the cache folder may forbid it (noexec): set LAZYARR_CACHE_DIR to another"
    return f"the library that {name} built cannot be loaded: {error}{why if closed else ''}"


def _time_limit() -> float | None:
    """Return the seconds of LAZYARR_COMPILE_TIMEOUT, None for `inf`."""
    text = os.environ.get("LAZYARR_COMPILE_TIMEOUT", "300")
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not seconds > 0:
        raise BackendError(f"LAZYARR_COMPILE_TIMEOUT={text!r} is not a number of seconds above 0")
    return None if seconds == float("inf") else seconds


# ------------------------------------------------------------------------------ finding a compiler


_FIND_LOCK = threading.Lock()


def _found(chosen: str, path: str, cache: Cache) -> Compiler:
    with _FIND_LOCK:
        found = _search(chosen, path, cache)
    if isinstance(found, Compiler):
        return found
    raise BackendError(found)


@functools.cache
def _search(chosen: str, path: str, cache: Cache) -> Compiler | str:
    """Return the first candidate that works, or why none does: both are found out only once."""
    reasons = []
    try:
        candidates = _candidates(chosen, path)
    except BackendError as error:
        return str(error)
    for command in candidates:
        try:
            return _remembered(command, cache)
        except BackendError as error:
            reasons.append(str(error))
    if reasons:
        return f"no working C compiler; {INSTALL}\n" + "\n".join(reasons)
    if chosen:
        return f"CC={chosen!r} is not a command that can be run; unset it, or {INSTALL}"
    return f"no C compiler was found (cc, gcc, clang, ziglang); {INSTALL}"


def _candidates(chosen: str, path: str) -> list[tuple[str, ...]]:
    """Return the commands to try, by absolute path. $CC, once set, is the only one."""
    if chosen.strip():
        try:
            head, *rest = shlex.split(chosen)
        except ValueError as error:
            raise BackendError(f"CC={chosen!r} cannot be read: {error}") from None
        found = shutil.which(head, path=path)
        return [(found, *rest)] if found else []
    names = (shutil.which(name, path=path) for name in ("cc", "gcc", "clang"))
    commands = [(found,) for found in dict.fromkeys(names) if found]
    if zig := _zig():
        commands.append((zig, "cc"))
    return commands


def _zig() -> str | None:
    """Return the path of the compiler in the ziglang wheel, which is not imported for it."""
    spec = importlib.util.find_spec("ziglang")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        if found := shutil.which("zig", path=folder):
            return found
    return None


def _identity(command: Sequence[str]) -> str:
    """Return what changes when the compiler does: its path, size and time of change."""
    real = os.path.realpath(command[0])
    try:
        status = os.stat(real)
    except OSError as error:
        raise BackendError(f"the C compiler {command[0]} cannot be read: {error}") from error
    return f"{shlex.join(command)}|{real}|{status.st_size}|{status.st_mtime_ns}"


def _remembered(command: tuple[str, ...], cache: Cache) -> Compiler:
    """Return what is known about a compiler, from the cache or by trying it."""
    identity = _identity(command)
    probe = hashlib.sha256(Path(__file__).read_bytes() + clones.probe().encode()).hexdigest()
    key = cache_key("compiler", identity, probe)

    def make(folder: Path) -> None:
        facts = asdict(_probe(command, identity, folder))
        for scrap in folder.iterdir():
            scrap.unlink()
        facts["vector"] = sorted(facts["vector"])
        (folder / "compiler.json").write_text(json.dumps(facts, indent=1), encoding="utf-8")

    facts = json.loads((cache.build(key, make) / "compiler.json").read_text(encoding="utf-8"))
    fields = {
        name: tuple(value) if isinstance(value, list) else value for name, value in facts.items()
    }
    return Compiler(**fields | {"vector": frozenset(facts["vector"])})


# ------------------------------------------------------------------------- what a compiler can do


def _probe(command: tuple[str, ...], identity: str, folder: Path) -> Compiler:
    """Find out version, flags and vector functions by building small libraries in `folder`."""
    version = (_run([*command, "--version"], folder).splitlines() or ["unknown"])[0].strip()
    flags, link = _accepted(command, folder)
    threads, versions = (f(command, folder, flags) for f in (_has_threads, _has_clones))
    for more in _vector_links():
        vector = _vectorised(command, folder, flags, (*link, *more))
        if vector:
            link = (*link, *more)
            return Compiler(command, version, flags, link, vector, identity, threads, versions)
    return Compiler(command, version, flags, link, frozenset(), identity, threads, versions)


def _accepted(command: tuple[str, ...], folder: Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the flags and the libraries to link that the compiler takes without a warning."""

    def takes(*options: str) -> bool:
        flags = [option for option in options if not option.startswith("-l")]
        link = [option for option in options if option.startswith("-l")]
        try:
            _try(command, _PROBE, folder, ("-O1", "-Werror", *flags), link)
        except BackendError:
            return False
        return True

    if takes(*WANTED, "-lm"):
        return (*WANTED, *filter(takes, VECTOR)), ("-lm",)
    _try(command, _PROBE, folder, (), ())  # raises where nothing works
    return tuple(filter(takes, (*WANTED, *VECTOR))), tuple(filter(takes, ("-lm",)))


def _has_threads(command: tuple[str, ...], folder: Path, flags: tuple[str, ...]) -> bool:
    """Tell whether loops can be run on several threads: the flag is taken and its library found."""
    source = _PROBE.replace("return x", "\n#pragma omp parallel num_threads(2)\n{}\nreturn x")
    try:
        _try(command, source, folder, ("-O1", *flags, *OPENMP), ())
    except BackendError:
        return False
    return True


def _has_clones(command: tuple[str, ...], folder: Path, flags: tuple[str, ...]) -> bool:
    """Tell whether simd loops call vector versions of a function of the same program."""
    source = _PROBE + clones.probe()
    try:
        return clones.has_versions(_try(command, source, folder, ("-O1", *flags), ()))
    except BackendError:
        return False


def _try(
    command: tuple[str, ...],
    source: str,
    folder: Path,
    options: Sequence[str],
    link: Sequence[str],
) -> bytes:
    """Build a probe, load it, call `lazyarr_probe(1.0)`; return the library's bytes."""
    (folder / _PROGRAM).write_text(source, encoding="utf-8")
    (folder / _LIBRARY).unlink(missing_ok=True)
    _build(command, folder, options, link)
    # a fresh name for each: the loader knows a library it has seen by its name
    path = folder / f"probe{len(list(folder.iterdir()))}.so"
    (folder / _LIBRARY).rename(path)
    try:
        probe = ctypes.CDLL(str(path)).lazyarr_probe
    except (OSError, AttributeError) as error:
        raise BackendError(_unloadable(shlex.join(command), error)) from None
    probe.restype, probe.argtypes = ctypes.c_double, (ctypes.c_double,)
    if not probe(1.0) >= 1.0:
        raise BackendError(f"what {shlex.join(command)} builds computes wrong results")
    return path.read_bytes()


def _vector_links() -> list[tuple[str, ...]]:
    """Return ways to link libmvec, the likeliest first; none where the libc has none."""
    if not sys.platform.startswith("linux"):
        return []
    try:
        ctypes.CDLL("libmvec.so.1")
    except OSError:
        return []
    # a compiler that brings its own libc (zig) does not search the system's folders
    folders = (f"/lib/{os.uname().machine}-linux-gnu", "/lib64", "/usr/lib64", "/usr/lib")
    files = (Path(folder) / "libmvec.so.1" for folder in folders)
    return [("-lmvec",), *((str(file),) for file in files if file.exists())]


def _vectorised(
    command: tuple[str, ...], folder: Path, flags: tuple[str, ...], link: tuple[str, ...]
) -> frozenset[str]:
    """Return the functions whose simd loops call a vector version, when built as programs are.

    Only names that this libmvec has are tried; which of them are really called shows in the
    symbols of the library that comes out.
    """
    names = _libmvec_names()
    if not names:
        return frozenset()
    try:
        library = _try(command, _vector_probe(names), folder, ("-O2", *flags), link)
    except BackendError:
        return frozenset()
    called = set(re.findall(rb"_ZGV[a-z]N\d+v+_(\w+)\0", library))
    return frozenset(name for name in names if name.encode() in called)


def _libmvec_names() -> list[str]:
    """Return the functions, double and float, of which the installed libmvec has some version."""
    library = ctypes.CDLL("libmvec.so.1")
    found = []
    for name in (*UNARY, *BINARY):
        arguments = "vv" if name in BINARY else "v"
        for suffix, lanes in (("", "2"), ("f", "4")):
            if any(
                hasattr(library, f"_ZGV{isa}N{lanes}{arguments}_{name}{suffix}") for isa in "bn"
            ):
                found.append(name + suffix)
    return found


def _vector_probe(names: Sequence[str]) -> str:
    """Return a source with one simd loop over each function."""
    lines = []
    for name in names:
        kind = "float" if name.endswith("f") and name[:-1] in (*UNARY, *BINARY) else "double"
        two = name.removesuffix("f") in BINARY
        types, values = (f"{kind}, {kind}", "x[i], x[i]") if two else (kind, "x[i]")
        lines.append(
            f'__attribute__((simd("notinbranch"), const)) {kind} {name}({types});\n'
            f"void loop_{name}({kind} *restrict y, const {kind} *restrict x) {{\n"
            f"#pragma omp simd\nfor (int i = 0; i < 64; i++) y[i] = {name}({values}); }}\n"
        )
    return "".join([*lines, _PROBE])
