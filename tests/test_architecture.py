"""The law of the rooms: who may import whom. Data flows one way, and nothing that knows an answer is near a student.

`LAYERS` lists the rooms in order. A room may import from rooms in earlier layers and from itself, never from its neighbours
in the same layer or from later layers. Every import counts: at the top of a file, inside a function, for type checking only,
or by `importlib.import_module` with a name that is written out.
"""

import ast
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "autograder"

# The files directly in autograder/ are the rooms "data" (words and course data) and "doors" (what users start).
DATA = {"catalogue", "course", "errors", "files", "language", "results", "sections", "verdicts"}
DOORS = {"__init__", "__main__", "arguments", "cli", "nbgrader_engine"}
LAYERS = (
    ("data",),
    ("student", "reference"),
    ("mistakes", "hints"),
    ("exam", "intake"),
    ("suites",),
    ("isolation", "reports"),
    ("gradebook", "learner"),
    ("grading", "checks"),
    ("benchmarks",),
    ("doors",),
)
LEVEL = {room: level for level, rooms in enumerate(LAYERS) for room in rooms}
ALONE = {
    "student": set(),
    "reference": set(),
    "mistakes": {"data", "reference"},
    "suites": {"exam", "reference", "mistakes"},
}
MOST_FILES_AT_THE_TOP = 14


def module_name(path: Path, package: Path) -> str:
    parts = path.relative_to(package.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def room_of(module: str) -> str:
    """The room of `autograder.exam.proxy` is `exam`; the plugin's conftest among the suites is a door."""
    parts = module.split(".")
    if len(parts) == 1 or module == "autograder.suites.conftest":
        return "doors"
    if parts[1] in DATA:
        return "data"
    return "doors" if parts[1] in DOORS else parts[1]


def modules_in(package: Path) -> dict[str, Path]:
    return {module_name(path, package): path for path in sorted(package.rglob("*.py"))}


def imports(path: Path, package: Path, known: dict[str, Path]) -> set[str]:
    """The modules of the package that a file imports, anywhere in it."""
    here = module_name(path, package).split(".")
    if path.name != "__init__.py":
        here = here[:-1]
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = here[: len(here) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            inside = [f"{module}.{alias.name}" for alias in node.names]
            names = [name if name in known else module for name in inside]
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("importlib.import_module", "import_module"):
            names = [node.args[0].value] if isinstance(node.args[0], ast.Constant) else []
        else:
            continue
        found |= {name for name in names if name.split(".")[0] == package.name}
    return found


def violations(package: Path) -> list[str]:
    """Every import that goes the wrong way."""
    known = modules_in(package)
    found = []
    for module, path in known.items():
        room = room_of(module)
        for imported in sorted(imports(path, package, known)):
            other = room_of(imported)
            if other == room:
                continue
            if room not in LEVEL or other not in LEVEL:
                found.append(f"{module} imports {imported}: a room that is not in LAYERS")
            elif LEVEL[other] >= LEVEL[room] or other not in ALONE.get(room, {other}):
                found.append(f"{module} imports {imported}: {room} may not import {other}")
    return found


def reached(start: str) -> set[str]:
    """Everything that a module imports, directly or through others."""
    known = modules_in(PACKAGE)
    seen, waiting = set(), [start]
    while waiting:
        module = waiting.pop()
        if module in known and module not in seen:
            seen.add(module)
            waiting += [*imports(known[module], PACKAGE, known), *_packages_around(module)]
    return seen - {"autograder"}


def _packages_around(module: str) -> list[str]:
    """Importing `autograder.exam.proxy` runs `autograder/exam/__init__.py` too. The doors are left out: they import lazily."""
    parts = module.split(".")
    return [".".join(parts[:n]) for n in range(2, len(parts))]


@pytest.fixture
def copied(tmp_path) -> Path:
    return shutil.copytree(PACKAGE, tmp_path / "autograder", ignore=shutil.ignore_patterns("__pycache__"))


def test_every_import_follows_the_law_of_the_rooms():
    assert violations(PACKAGE) == []


@pytest.mark.parametrize(
    ("file", "line", "said"),
    [
        ("student/perform.py", "from autograder.exam import promise", "student may not import exam"),
        ("student/wire.py", "from ..catalogue import Limits", "student may not import data"),
        ("reference/ch06_masks.py", "from autograder.mistakes import mistake", "reference may not import mistakes"),
        ("exam/proxy.py", "import autograder.isolation.session", "exam may not import isolation"),
        ("reports/pages.py", "from ..isolation import session", "reports may not import isolation"),
        ("intake/collect.py", "from autograder.exam.proxy import Student", "intake may not import exam"),
        ("suites/test_06_masks.py", "from autograder.catalogue import find", "suites may not import data"),
        ("grading/grade.py", "from autograder.cli import main", "grading may not import doors"),
        ("learner/progress.py", "from autograder.gradebook import rows", "learner may not import gradebook"),
        ("exam/tolerance.py", "import importlib; importlib.import_module('autograder.checks.audit')", "exam may not import checks"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("lazy", [False, True], ids=["at the top", "inside a function"])
def test_a_forbidden_import_is_found(copied, file, line, said, lazy):
    path = copied / file
    added = f"\n\ndef added():\n    {line}\n" if lazy else f"\n{line}\n"
    path.write_text(path.read_text(encoding="utf-8") + added, encoding="utf-8")
    found = violations(copied)
    assert len(found) == 1
    assert said in found[0]


def test_a_new_room_must_be_listed(copied):
    (copied / "attic").mkdir()
    (copied / "attic" / "things.py").write_text("from autograder.exam import promise\n")
    assert "a room that is not in LAYERS" in violations(copied)[0]


def test_few_files_lie_directly_in_the_package():
    assert {path.stem for path in PACKAGE.glob("*.py")} == DATA | DOORS
    assert len(DATA | DOORS) <= MOST_FILES_AT_THE_TOP


def test_no_private_part_of_pytest_is_used():
    assert not [path for path in PACKAGE.rglob("*.py") if "_pytest" in path.read_text(encoding="utf-8")]


def test_the_class_engine_does_not_need_pytest():
    """Only the plugin, which pytest itself loads, imports pytest."""
    users = [name for name, path in modules_in(PACKAGE).items() if "import pytest" in path.read_text(encoding="utf-8")]
    assert users == ["autograder.grading.pytest_plugin"]


@pytest.mark.parametrize("room", ["student", "reference"])
def test_what_runs_beside_a_student_reaches_no_other_room(room):
    for module in (name for name in modules_in(PACKAGE) if room_of(name) == room):
        assert {room_of(name) for name in reached(module)} <= {room}, module


@pytest.mark.parametrize("start", ["intake.collect", "reports.write", "isolation.zygote", "learner.notebook"])
def test_reading_writing_and_starting_do_without_torch(start):
    """Looking at an archive, writing a table or starting a zygote must not wait for torch."""
    code = f"import autograder.{start}, sys; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
