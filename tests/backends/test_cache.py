"""The disk cache: whole entries or none, private, bounded, shared by threads and processes."""

import errno
import os
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import pytest

from lazyarr.backends import cache as module
from lazyarr.backends.cache import Cache, cache_key, default_folder, default_limit, open_cache
from lazyarr.config import set_options
from lazyarr.errors import BackendError

pytestmark = pytest.mark.fast

ROOT_USER = hasattr(os, "getuid") and os.getuid() == 0


def writer(text: str = "built", name: str = "program"):
    """A `make` that writes one file and counts its calls."""

    def make(folder: Path) -> None:
        make.calls += 1
        (folder / name).write_text(text, encoding="utf-8")

    make.calls = 0
    return make


@pytest.fixture
def cache(tmp_path) -> Cache:
    return Cache(tmp_path / "cache")


@pytest.fixture
def fresh_private(monkeypatch):
    """A process that has not fallen back to its temporary folder yet."""
    monkeypatch.setattr(module, "_PRIVATE", module._Private())


def test_an_entry_is_made_once(cache):
    make = writer()
    first = cache.build("k", make)
    assert cache.build("k", make) == first == cache.get("k")
    assert (first / "program").read_text() == "built"
    assert make.calls == 1
    assert Cache(cache.folder).build("k", make) == first
    assert make.calls == 1


def test_a_missing_entry_is_none(cache):
    assert cache.get("k") is None
    cache.discard("k")


def test_the_key_separates_parts_and_is_stable():
    assert cache_key("ab", "c") != cache_key("a", "bc")
    assert cache_key("a", 1) == cache_key("a", 1)
    # a process with another hash seed computes the same name
    code = "from lazyarr.backends.cache import cache_key; print(cache_key('é', ('x', 1)))"
    seeds = [_python(code, PYTHONHASHSEED=seed).stdout for seed in ("1", "2")]
    assert {seed.strip() for seed in seeds} == {cache_key("é", ("x", 1))}


@pytest.mark.parametrize("damage", ["truncate", "flip", "remove", "no manifest", "empty manifest"])
def test_a_damaged_entry_is_made_again(cache, damage):
    make = writer("a long enough text")
    path = cache.build("k", make)
    file, manifest = path / "program", path / "manifest"
    match damage:
        case "truncate":
            file.write_bytes(file.read_bytes()[:5])
        case "flip":
            file.write_bytes(b"A" + file.read_bytes()[1:])
        case "remove":
            file.unlink()
        case "no manifest":
            manifest.unlink()
        case "empty manifest":
            manifest.write_text("")
    assert cache.get("k") is None
    assert (cache.build("k", make) / "program").read_text() == "a long enough text"
    assert make.calls == 2


def test_a_file_in_place_of_an_entry_is_replaced(cache):
    (cache.root / "k").write_text("not a folder")
    assert (cache.build("k", writer()) / "program").exists()


def test_a_failing_make_leaves_nothing(cache):
    def make(folder: Path) -> None:
        (folder / "half").write_text("half")
        raise BackendError("no")

    with pytest.raises(BackendError):
        cache.build("k", make)
    assert list(cache.root.iterdir()) == []
    assert cache.build("k", writer())


def test_names_with_spaces_and_accents(tmp_path):
    cache = Cache(tmp_path / "Márton dir" / "é ü")
    assert (cache.build("k", writer("é")) / "program").read_text(encoding="utf-8") == "é"


def test_the_folder_is_private(tmp_path):
    cache = Cache(tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b").stat().st_mode & 0o777 == 0o700
    cache.root.chmod(0o755)
    assert Cache(cache.folder).root.stat().st_mode & 0o777 == 0o700


@pytest.mark.skipif(not ROOT_USER, reason="only root can give a folder away")
@pytest.mark.parametrize("which", ["folder", "root"])
def test_a_folder_of_another_owner_is_refused(tmp_path, which, fresh_private):
    good = Cache(tmp_path / "cache")
    os.chown(getattr(good, which), 12345, -1)
    with pytest.warns(RuntimeWarning, match="belongs to user 12345"):
        cache = Cache(tmp_path / "cache")
    assert tmp_path not in cache.root.parents
    assert cache.build("k", writer())
    assert not (good.root / "k").exists()


def test_an_impossible_folder_falls_back_with_one_warning(tmp_path, fresh_private):
    (tmp_path / "file").write_text("")
    with pytest.warns(RuntimeWarning, match="LAZYARR_CACHE_DIR") as caught:
        first = Cache(tmp_path / "file" / "cache")
        second = Cache(tmp_path / "file" / "other")
        path = first.build("k", writer())
    assert len(caught) == 1
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert second.get("k") == path


def test_a_folder_that_cannot_be_written_is_still_read(tmp_path, fresh_private, monkeypatch):
    folder = tmp_path / "cache"
    old = Cache(folder).build("old", writer())
    cache = Cache(folder)
    real = module.tempfile.mkdtemp

    def mkdtemp(*args, dir=None, **kwargs):
        if dir is not None and folder in Path(dir).parents:
            raise OSError(errno.EROFS, "Read-only file system")
        return real(*args, dir=dir, **kwargs)

    monkeypatch.setattr(module.tempfile, "mkdtemp", mkdtemp)
    with pytest.warns(RuntimeWarning, match="Read-only"):
        new = cache.build("new", writer())
    assert folder not in new.parents
    assert cache.get("old") == old
    assert cache.get("new") == new


def test_a_folder_removed_meanwhile_is_made_again(cache):
    cache.build("k", writer())
    cache.clear()
    cache.root.rmdir()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert cache.folder in cache.build("k", writer()).parents


def test_a_full_disk_is_a_clear_error(cache):
    def make(folder: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(BackendError, match=r"full .*No space left.*LAZYARR_CACHE_DIR"):
        cache.build("k", make)
    assert list(cache.root.iterdir()) == []


def test_the_least_recently_used_go_first(tmp_path):
    cache = Cache(tmp_path, limit=3500)
    for age, key in enumerate("dcba"):
        path = cache.build(key, writer("x" * 800))
        os.utime(path, (time.time() - 100 * (4 - age),) * 2)
    assert cache.get("d")  # touching it makes it the newest
    cache.build("e", writer("x" * 800))
    assert {entry.key for entry in cache.entries()} == {"b", "a", "d", "e"}
    assert sum(entry.size for entry in cache.entries()) <= 3500


def test_an_entry_larger_than_the_limit_is_usable(tmp_path):
    cache = Cache(tmp_path, limit=10)
    assert (cache.build("k", writer("x" * 1000)) / "program").exists()


def test_leftovers_of_killed_processes_are_removed(cache):
    old, new = cache.root / ".new-old", cache.root / ".new-new"
    for folder in (old, new):
        folder.mkdir()
        (folder / "half").write_text("half")
    os.utime(old, (0, 0))
    cache.prune()
    assert not old.exists()
    assert new.exists()


def test_entries_and_clear(cache):
    for key in "ab":
        cache.build(key, writer("x" * 100))
    cache.keep("failed.c", "int x")
    assert [entry.key for entry in cache.entries()] == ["a", "b"]
    assert all(entry.size >= 100 and entry.used > 0 for entry in cache.entries())
    assert cache.clear() == 2
    assert cache.entries() == []
    assert list(cache.root.iterdir()) == []


def test_kept_text_survives_and_is_readable(cache):
    path = cache.keep("k.c", "int é;")
    assert path.read_text(encoding="utf-8") == "int é;"


@pytest.mark.parametrize(
    ("text", "size"),
    [("", 1 << 30), ("1000", 1000), ("2K", 2048), ("1.5MiB", 3 << 19), ("1g", 1 << 30)],
)
def test_limit(monkeypatch, text, size):
    monkeypatch.setenv("LAZYARR_CACHE_SIZE", text)
    assert default_limit() == size


def test_a_limit_that_is_no_size(monkeypatch):
    monkeypatch.setenv("LAZYARR_CACHE_SIZE", "plenty")
    with pytest.raises(BackendError, match="500M"):
        default_limit()


def test_the_folder_is_an_option_or_the_users(monkeypatch, tmp_path):
    with set_options(cache_dir=str(tmp_path / "x")):
        assert default_folder() == tmp_path / "x"
        assert open_cache() is open_cache()
    with set_options(cache_dir=None):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        assert default_folder() == tmp_path / "lazyarr"
        monkeypatch.setenv("XDG_CACHE_HOME", "relative")  # the XDG standard says to ignore it
        monkeypatch.setenv("HOME", str(tmp_path))
        assert default_folder() == tmp_path / ".cache" / "lazyarr"
    code = "from lazyarr.backends.cache import default_folder; print(default_folder())"
    assert _python(code, LAZYARR_CACHE_DIR="/some/where").stdout.strip() == "/some/where"


def test_many_threads_build_once(cache):
    make, found = writer(), []

    def slow(folder: Path) -> None:
        time.sleep(0.02)
        make(folder)

    threads = [
        threading.Thread(target=lambda: found.append(cache.build("k", slow))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert len(set(found)) == 1
    assert make.calls == 1


PROCESS = """
import sys, time
from pathlib import Path
from lazyarr.backends.cache import Cache
cache = Cache(sys.argv[1])
for turn in range(10):
    key = f"k{turn}"
    def make(folder):
        (folder / "a").write_text(key * 1000)
        if sys.argv[2] == "die" and turn == 5:
            import os; os.kill(os.getpid(), 9)
        (folder / "b").write_text(key)
    path = cache.build(key, make)
    assert (path / "a").read_text() == key * 1000 and (path / "b").read_text() == key
"""


def test_many_processes_share_a_folder_and_one_is_killed(tmp_path):
    workers = [
        subprocess.Popen([sys.executable, "-c", PROCESS, str(tmp_path), how])
        for how in ("live", "die", "live", "live")
    ]
    codes = [worker.wait(timeout=60) for worker in workers]
    assert codes[0] == codes[2] == codes[3] == 0
    cache = Cache(tmp_path)
    assert len(cache.entries()) == 10
    assert all(cache.get(entry.key) for entry in cache.entries())


def _python(code: str, **environment: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
