"""The package's modules as syntax trees, and the imports each of them makes.

`MODULES` maps a dotted name to its `Module`. `Module.imports` lists every import, those inside
functions included, with the name of the module it really loads: `from lazyarr.graph import op`
loads `lazyarr.graph.op` when that is a file, and `lazyarr.graph` otherwise.
"""

import ast
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "lazyarr"


@dataclass(frozen=True)
class Import:
    """One imported module: where, what, how."""

    target: str
    line: int
    in_function: bool
    relative: bool


@dataclass
class Module:
    """One file of the package."""

    name: str
    path: Path
    tree: ast.Module
    imports: list[Import] = field(default_factory=list)


def dotted(path: Path) -> str:
    """Module name of a file below the repository's root."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def loaded(node: ast.Import | ast.ImportFrom, known: set[str]) -> list[str]:
    """The modules that an import statement names, as far down as they are files."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    base = node.module or ""
    return [f"{base}.{a.name}" if f"{base}.{a.name}" in known else base for a in node.names]


def imports_of(tree: ast.Module, known: set[str]) -> list[Import]:
    """Every import of a module, in reading order."""
    found: list[Import] = []
    stack: list[tuple[ast.AST, bool]] = [(tree, False)]
    while stack:
        node, inside = stack.pop()
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            relative = isinstance(node, ast.ImportFrom) and node.level > 0
            names = dict.fromkeys(loaded(node, known))
            found += [Import(name, node.lineno, inside, relative) for name in names]
        inside = inside or isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
        stack += [(child, inside) for child in ast.iter_child_nodes(node)]
    return sorted(found, key=lambda entry: entry.line)


def read(folder: Path = PACKAGE) -> dict[str, Module]:
    """All modules below a folder, by dotted name."""
    paths = {dotted(path): path for path in sorted(folder.rglob("*.py"))}
    modules = {
        name: Module(name, path, ast.parse(path.read_text(encoding="utf-8"), str(path)))
        for name, path in paths.items()
    }
    for module in modules.values():
        module.imports = imports_of(module.tree, set(modules))
    return modules


MODULES = read()
