"""Who may import whom. Data flows one way, and nothing that knows an answer is near a student."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "autograder"
COMPARISON = {"comparison", "complexity", "hunt", "promises", "proxy", "verdicts"}


def imports(path: Path) -> set[str]:
    """The parts of `autograder` a file imports: `reference`, `student`, `catalogue` …"""
    found = set()
    package = ("autograder", *path.relative_to(PACKAGE).parent.parts)
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join([*base, *([node.module] if node.module else [])])
            names = [f"{module}.{alias.name}" for alias in node.names]
        else:
            continue
        found |= {name.split(".")[1] for name in names if name.startswith("autograder.")}
    return found


def files(folder: str) -> list[Path]:
    return sorted((PACKAGE / folder).glob("*.py"))


@pytest.mark.parametrize("path", files("student"), ids=lambda path: path.name)
def test_what_runs_beside_a_student_imports_no_other_part(path):
    assert imports(path) <= {"student"}


@pytest.mark.parametrize("path", files("reference"), ids=lambda path: path.name)
def test_the_reference_imports_no_other_part(path):
    assert imports(path) <= {"reference"}


@pytest.mark.parametrize("path", files("mistakes"), ids=lambda path: path.name)
def test_mistakes_lean_on_the_reference_alone(path):
    assert imports(path) <= {"mistakes", "reference"}


@pytest.mark.parametrize("path", files("suites"), ids=lambda path: path.name)
def test_suites_import_reference_mistakes_and_comparison(path):
    assert imports(path) <= {"reference", "mistakes", *COMPARISON}


def test_nothing_imports_the_command_line():
    users = [path.name for path in PACKAGE.rglob("*.py") if "cli" in imports(path) and path.name != "__main__.py"]
    assert users == []


def test_the_learners_entry_point_does_not_import_torch_at_once():
    assert "torch" not in (PACKAGE / "__init__.py").read_text() + (PACKAGE / "notebook.py").read_text()
