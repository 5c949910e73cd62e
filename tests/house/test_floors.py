"""A module imports its own floor or a lower one, and no circle exists.

errors < config < graph < graph/ops < autodiff < xtensor < passes < backends < namespace < lazyarr.
"""

import sys

import pytest

from tests.house.source import MODULES, Import, Module

pytestmark = pytest.mark.fast

FLOORS = [
    "lazyarr.errors",
    "lazyarr.config",
    "lazyarr.graph",
    "lazyarr.graph.ops",
    "lazyarr.autodiff",
    "lazyarr.xtensor",
    "lazyarr.passes",
    "lazyarr.backends",
    "lazyarr.namespace",
    "lazyarr",
]
MACHINES = ("c", "numba", "jax", "torch")
OPTIONAL = {
    "array_api_compat",
    "IPython",
    "jax",
    "jaxlib",
    "ml_dtypes",
    "numba",
    "llvmlite",
    "pandas",
    "scipy",
    "torch",
    "xarray",
    "ziglang",
}


def below(name: str, package: str) -> bool:
    return name == package or name.startswith(package + ".")


def floor(name: str) -> int:
    """Number of the floor of a module: the longest matching entry of FLOORS."""
    return max((len(entry), FLOORS.index(entry)) for entry in FLOORS if below(name, entry))[1]


def own(module: Module) -> list[Import]:
    return [entry for entry in module.imports if below(entry.target, "lazyarr")]


def machine(name: str) -> str | None:
    """The machine whose private folder a module lies in, if any."""
    for entry in MACHINES:
        if below(name, f"lazyarr.backends.{entry}"):
            return entry
    return None


def may_be_inside(target: str) -> bool:
    """Whether a function may import this: a backend, an optional package, the standard library."""
    root = target.partition(".")[0]
    return machine(target) is not None or root in OPTIONAL or root in sys.stdlib_module_names


def circles(edges: dict[str, set[str]]) -> list[list[str]]:
    """Strongly connected components of more than one module (Tarjan's, without recursion)."""
    number: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []
    for start in edges:
        work = [] if start in number else [(start, iter(sorted(edges[start])))]
        while work:
            name, targets = work[-1]
            if name not in number:
                number[name] = low[name] = len(number)
                stack.append(name)
            target = next((t for t in targets if t not in number or t in stack), None)
            if target is not None and target not in number:
                work.append((target, iter(sorted(edges[target]))))
                continue
            if target is not None:
                low[name] = min(low[name], number[target])
                continue
            work.pop()
            if work:
                low[work[-1][0]] = min(low[work[-1][0]], low[name])
            if low[name] == number[name]:
                part = stack[stack.index(name) :]
                del stack[stack.index(name) :]
                if len(part) > 1:
                    found.append(sorted(part))
    return found


def test_imports_go_down() -> None:
    wrong = [
        f"{module.path}:{entry.line}: {name} imports {entry.target}, which is above it"
        for name, module in MODULES.items()
        for entry in own(module)
        if floor(entry.target) > floor(name)
    ]
    assert not wrong, "\n".join(wrong)


def test_imports_are_absolute() -> None:
    wrong = [
        f"{module.path}:{entry.line}: a relative import"
        for module in MODULES.values()
        for entry in module.imports
        if entry.relative
    ]
    assert not wrong, "\n".join(wrong)


def test_no_circles() -> None:
    edges = {
        name: {entry.target for entry in own(module) if entry.target in MODULES} - {name}
        for name, module in MODULES.items()
    }
    assert circles(edges) == []


def test_circles_are_found() -> None:
    edges = {"a": {"b"}, "b": {"c"}, "c": {"b", "d"}, "d": set(), "e": {"a"}}
    assert circles(edges) == [["b", "c"]]
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}}) == [["a", "b", "c"]]
    assert circles({"a": {"b", "c"}, "b": {"d"}, "c": {"d"}, "d": set()}) == []


def test_machines_do_not_know_each_other() -> None:
    wrong = [
        f"{module.path}:{entry.line}: {machine(name)} imports {entry.target}"
        for name, module in MODULES.items()
        for entry in own(module)
        if machine(name) and machine(entry.target) not in (None, machine(name))
    ]
    assert not wrong, "\n".join(wrong)


def test_function_imports_load_a_backend_or_an_optional_package() -> None:
    wrong = [
        f"{module.path}:{entry.line}: imports {entry.target} inside a function"
        for module in MODULES.values()
        for entry in module.imports
        if entry.in_function and not may_be_inside(entry.target)
    ]
    assert not wrong, "\n".join(wrong)


def test_optional_packages_are_not_imported_by_modules_above_the_machines() -> None:
    """At module level only a machine's own folder, loaded on demand, may name its package."""
    wrong = [
        f"{module.path}:{entry.line}: imports {entry.target} at module level"
        for name, module in MODULES.items()
        for entry in module.imports
        if not entry.in_function
        and entry.target.partition(".")[0] in OPTIONAL - {"array_api_compat"}
        and machine(name) is None
    ]
    assert not wrong, "\n".join(wrong)
