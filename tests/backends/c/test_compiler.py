"""The C compiler: found, tried out, remembered; every way it can fail is a clear error."""

import ctypes
import os
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from lazyarr.backends.c import compiler
from lazyarr.backends.c.compiler import Compiler, build, find_compiler, level, load
from lazyarr.backends.cache import Cache, open_cache
from lazyarr.config import set_options
from lazyarr.errors import BackendError

pytestmark = [pytest.mark.fast, pytest.mark.backends]

SOURCE = "double f(double x) { return x * 2; }\n"


def call(library: ctypes.CDLL, x: float, name: str = "f") -> float:
    function = getattr(library, name)
    function.restype, function.argtypes = ctypes.c_double, (ctypes.c_double,)
    return function(x)


@pytest.fixture
def real() -> Compiler:
    """The compiler of the whole test run."""
    return find_compiler()


@pytest.fixture
def folder(tmp_path, monkeypatch, real):
    """A cache of this test's own, which knows the real compiler."""
    own = Cache(tmp_path / "cache")
    for entry in open_cache().entries():
        if (entry.path / "compiler.json").exists():
            shutil.copytree(entry.path, own.root / entry.key)
    monkeypatch.setenv("LAZYARR_CACHE_DIR", str(own.folder))  # for child processes
    with set_options(cache_dir=str(own.folder)):
        yield tmp_path


@pytest.fixture
def fake(folder, monkeypatch, real):
    """Return a function that makes $CC a script around the real compiler."""

    def install(script: str) -> Path:
        path = folder / "fake cc"
        path.write_text(f'#!/bin/sh\nREAL="{real.command[0]}"\n{script}\n')
        path.chmod(0o755)
        monkeypatch.setenv("CC", f"'{path}'")
        return path

    return install


@pytest.fixture
def unprobed(monkeypatch, real):
    """Take the facts of the real compiler for those of any other."""
    monkeypatch.setattr(
        compiler,
        "_probe",
        lambda command, identity, _: replace(real, command=command, identity=identity),
    )


# a compiler that only fails once it meets the word BAD in a source
GOOD_UNTIL_BAD = 'grep -q BAD program.c 2>/dev/null || exec "$REAL" "$@"\n'


def test_compile_load_call():
    assert call(load(SOURCE), 21.0) == 42.0
    assert load(SOURCE) is load(SOURCE)


def test_what_was_found_is_described():
    found = find_compiler()
    assert os.path.isabs(found.command[0])
    assert found.version
    assert "-march=native" in found.flags
    assert found is find_compiler()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="libmvec is part of glibc")
def test_the_vector_functions_are_the_ones_really_called():
    found = find_compiler()
    if not found.vector:
        pytest.skip("no libmvec here")
    assert "exp" in found.vector
    assert "lgamma" not in found.vector
    source = (
        '__attribute__((simd("notinbranch"), const)) double exp(double);\n'
        "void f(double *restrict y, const double *restrict x, long n) {\n"
        "#pragma omp simd\nfor (long i = 0; i < n; i++) y[i] = exp(x[i]); }\n"
    )
    _, path = build(source)
    assert b"_ZGV" in path.read_bytes()


def test_flags_make_another_program():
    assert build(SOURCE)[0] != build(SOURCE, ["-DX"])[0]
    assert call(load("double f(double x) { return x + X; }", ["-DX=5"]), 1.0) == 6.0


def test_the_level_falls_with_size():
    levels = [level("x;" * n) for n in (10, 500, 501, 1500, 1501)]
    assert levels == ["-O3"] * 2 + ["-O2"] * 2 + ["-O1"]


def test_accents_and_spaces_in_the_cache_folder(tmp_path):
    with set_options(cache_dir=str(tmp_path / "Márton dir" / "é ü")):
        assert call(load("double f(double x) { return x - 1; } /* é */"), 1.0) == 0.0


def test_a_known_compiler_and_source_run_nothing(folder, fake):
    script = fake('echo run >> "$0.log"\nexec "$REAL" "$@"')
    code = (
        "from lazyarr.backends.c.compiler import load, find_compiler\n"
        f"load({SOURCE!r}); find_compiler()"
    )
    log = Path(f"{script}.log")
    counts = []
    for seed in ("1", "2", "3"):
        environment = os.environ | {"PYTHONHASHSEED": seed}
        subprocess.run([sys.executable, "-c", code], env=environment, check=True, timeout=60)
        counts.append(len(log.read_text().splitlines()))
    assert counts[0] > 1
    assert counts[1:] == counts[:1] * 2


def test_a_changed_compiler_is_tried_again(fake):
    fake('exec "$REAL" "$@"')
    first = find_compiler()
    fake('exec "$REAL" "$@" # another size')
    compiler._search.cache_clear()
    assert find_compiler().identity != first.identity


# ---------------------------------------------------------------------------------------- failures


def test_a_source_that_fails_is_kept(folder):
    with pytest.raises(BackendError, match="undeclared") as caught:
        build("int f(void) { return undeclared_name; } /* é */")
    kept = Path(str(caught.value).rpartition("kept in ")[2].rstrip(")"))
    assert "undeclared_name" in kept.read_text(encoding="utf-8")
    assert len(str(caught.value).splitlines()) < 50


def test_a_killed_compiler(unprobed, fake):
    fake(GOOD_UNTIL_BAD + "kill -9 $$")
    with pytest.raises(BackendError, match=r"killed \(signal 9\); out of memory"):
        build("int BAD;")


def test_a_hanging_compiler_is_stopped_with_its_children(unprobed, fake, monkeypatch):
    script = fake(GOOD_UNTIL_BAD + 'sleep 300 & echo $! > "$0.child"\nwait')
    find_compiler()
    monkeypatch.setenv("LAZYARR_COMPILE_TIMEOUT", "0.5")
    start = time.monotonic()
    with pytest.raises(BackendError, match="LAZYARR_COMPILE_TIMEOUT"):
        build("int BAD;")
    assert time.monotonic() - start < 20
    child = int(Path(f"{script}.child").read_text())
    for _ in range(100):
        if not _alive(child):
            break
        time.sleep(0.02)
    assert not _alive(child)


def _alive(process: int) -> bool:
    """Does the process run (a dead one nobody waited for does not count)?"""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_full_disk(unprobed, fake):
    fake(GOOD_UNTIL_BAD + 'echo "fatal error: program.o: No space left on device" >&2; exit 1')
    with pytest.raises(BackendError, match="disk full; free some space, or set LAZYARR_CACHE_DIR"):
        build("int BAD;")


def test_a_compiler_that_lies(unprobed, fake):
    fake(GOOD_UNTIL_BAD + "exit 0")
    with pytest.raises(BackendError, match="wrote no library"):
        build("int BAD;")


def test_a_compiler_that_writes_rubbish(unprobed, fake):
    fake(GOOD_UNTIL_BAD + "echo rubbish > program.so")
    with pytest.raises(BackendError, match="cannot be loaded"):
        load("int BAD;")


def test_a_truncated_library_is_built_again(folder):
    source = "double f(double x) { return x * 3; }"
    _, path = build(source)
    path.write_bytes(path.read_bytes()[:1000])
    assert call(load(source), 2.0) == 6.0
    assert path.stat().st_size > 1000


def test_a_library_that_cannot_be_loaded_is_built_again(folder):
    source = "double f(double x) { return x * 4; }"
    key, path = build(source)
    open_cache().discard(key)

    def make(entry: Path) -> None:
        (entry / path.name).write_bytes(b"sound checksum, no library")

    open_cache().build(key, make)
    assert call(load(source), 2.0) == 8.0


@pytest.mark.parametrize("options", ["-m64 -DLAZYARR_TEST=7", "-m64   '-DLAZYARR_TEST=7'"])
def test_a_compiler_with_a_space_in_its_path_and_options(options, folder, monkeypatch, real):
    path = folder / "my cc"
    path.symlink_to(real.command[0])
    monkeypatch.setenv("CC", f"'{path}' {options}")
    assert find_compiler().command == (str(path), "-m64", "-DLAZYARR_TEST=7")
    assert call(load("double f(double x) { return x + LAZYARR_TEST; }"), 1.0) == 8.0


def test_a_command_that_cannot_be_read_is_shown(folder, monkeypatch):
    monkeypatch.setenv("CC", "gcc 'no end")
    with pytest.raises(BackendError, match="CC=.*no end.*No closing quotation"):
        find_compiler()


@pytest.mark.parametrize("text", ["soon", "nan", "0", "-1"])
def test_a_time_limit_that_is_none(text, folder, monkeypatch):
    find_compiler()
    monkeypatch.setenv("LAZYARR_COMPILE_TIMEOUT", text)
    with pytest.raises(BackendError, match=f"LAZYARR_COMPILE_TIMEOUT='{text}'"):
        build("int no_time;")


def test_no_time_limit(folder, monkeypatch):
    monkeypatch.setenv("LAZYARR_COMPILE_TIMEOUT", "inf")
    assert call(load("double f(double x) { return x * 9; }"), 1.0) == 9.0


def test_a_cache_folder_removed_while_the_compiler_runs(unprobed, fake):
    script = fake(
        'case "$PWD" in */v1/*) if mkdir "$0.once" 2>/dev/null; then rm -r "$PWD"; exit 1; fi;; '
        'esac\nexec "$REAL" "$@"'
    )
    assert call(load("double f(double x) { return x * 5; }"), 2.0) == 10.0
    assert Path(f"{script}.once").exists()


def test_a_folder_from_which_nothing_may_be_loaded(tmp_path, monkeypatch):
    """The real thing, where a disk can be mounted so that nothing on it may be run."""
    disk = tmp_path / "disk"
    disk.mkdir()
    options = [shutil.which("mount") or "false", "-t", "tmpfs", "-o", "noexec", "none", str(disk)]
    if subprocess.run(options, capture_output=True).returncode:
        pytest.skip("mounting needs root")
    try:
        monkeypatch.setattr(compiler, "open_cache", lambda: Cache(tmp_path / "facts"))
        find_compiler()
        with pytest.raises(BackendError, match="noexec.*LAZYARR_CACHE_DIR"):
            load("double f(double x) { return x; } /* not here */", cache=Cache(disk))
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)


def test_no_compiler_says_what_to_install(folder, monkeypatch):
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setattr(compiler, "_zig", lambda: None)
    with pytest.raises(BackendError, match=r"apt install gcc.*pip install lazyarr\[cc\]"):
        find_compiler()


def test_a_chosen_compiler_that_is_missing_is_named(folder, monkeypatch):
    monkeypatch.setenv("CC", "/no/such/gcc-99 -m64")
    with pytest.raises(BackendError, match="/no/such/gcc-99"):
        build(SOURCE)


def test_a_broken_cc_gives_way_to_the_next(folder, monkeypatch, real):
    commands = folder / "bin"
    commands.mkdir()
    (commands / "cc").write_text("#!/bin/sh\necho broken >&2; exit 1\n")
    (commands / "cc").chmod(0o755)
    (commands / "gcc").symlink_to(real.command[0])
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", f"{commands}{os.pathsep}{os.environ['PATH']}")
    assert find_compiler().command == (str(commands / "gcc"),)


def test_a_compiler_that_refuses_flags_does_without(fake):
    fake(
        'case "$*" in *native*|*openmp*|*mvec*) echo "unknown flag" >&2; exit 1;; esac\n'
        'exec "$REAL" "$@"'
    )
    found = find_compiler()
    assert "-march=native" not in found.flags
    assert "-fopenmp-simd" not in found.flags
    assert "-fno-math-errno" in found.flags
    assert found.vector == frozenset()
    assert call(load(SOURCE), 1.0) == 2.0


@pytest.mark.slow
@pytest.mark.skipif(compiler._zig() is None, reason="the ziglang wheel is not installed")
def test_the_compiler_of_the_ziglang_wheel(folder, monkeypatch):
    monkeypatch.setenv("CC", f"'{compiler._zig()}' cc")
    assert "clang" in find_compiler().version
    assert call(load(SOURCE), 1.0) == 2.0


WORKER = """
import ctypes, sys
from lazyarr.backends.c.compiler import load
for i in range(4):
    f = load(f"double f(double x) {{ return x + {i}; }}").f
    f.restype, f.argtypes = ctypes.c_double, (ctypes.c_double,)
    assert f(1.0) == 1.0 + i
"""


def test_processes_share_one_cache(folder):
    workers = [subprocess.Popen([sys.executable, "-c", WORKER]) for _ in range(4)]
    assert [worker.wait(timeout=120) for worker in workers] == [0] * 4
    # the compiler's facts, and four programs
    assert len(Cache(folder / "cache").entries()) == 5


def test_a_small_disk_that_fills_up(tmp_path, monkeypatch):
    """The real thing, where a file system of 64 KiB can be mounted."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = shutil.which("mount")
    options = [mount or "false", "-t", "tmpfs", "-o", "size=64k", "none", str(disk)]
    if subprocess.run(options, capture_output=True).returncode:
        pytest.skip("mounting needs root")
    try:
        monkeypatch.setattr(compiler, "open_cache", lambda: Cache(tmp_path / "facts"))
        find_compiler()
        with pytest.raises(BackendError, match="full"):
            build("char large[1 << 20] = {1};", cache=Cache(disk))
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)
