"""Attacks that are not a program: damaged files, planted files, forged cells, links, devices, names."""

import copy
import json
import os
import socket
import stat
import zipfile
from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from autograder.catalogue import find
from autograder.checks.samples import solution, untouched, with_answer
from autograder.intake.submission import grade_id

from .corpus import Attack, right_script
from .target import Target

MASKS = find("06_masks")
NOTEBOOK = "06_masks.ipynb"
WRONG = "def {}(*args, **kwargs):\n    return None"
PLANT = "import os\nos._exit(0)\n"
UNUSUAL: list[Attack] = []


def attack(group: str, **about):
    """Add a builder to the corpus. It gets the folder to fill, the target and the attack itself."""

    def enter(build):
        def put(target: Target, entry: Attack) -> None:
            build(entry.place(target), target, entry)

        UNUSUAL.append(Attack(f"{group}/{build.__name__}", build.__doc__.strip(), put, **about))
        return build

    return enter


def notebook_of(source: str):
    return new_notebook(cells=[new_code_cell(source)])


def wrong_notebook():
    """The released notebook with a worthless answer in every part."""
    notebook = untouched(MASKS)
    for part in MASKS.parts:
        notebook = with_answer(notebook, part.name, WRONG.format(part.name))
    return notebook


def write(place: Path, notebook) -> None:
    nbformat.write(notebook, place / NOTEBOOK)


# 5: planted files


def plant(place: Path, **files: str) -> None:
    write(place, wrong_notebook())
    for name, content in files.items():
        (place / name.replace("__", ".")).write_text(content)


@attack("05_planted_files")
def tests_and_their_settings(place, target, entry):
    """A conftest.py and a pytest.ini beside the submission. Nothing may read them; it must earn nothing."""
    plant(place, conftest__py=PLANT, pytest__ini="[pytest]\naddopts = --collect-only\n", tox__ini="[pytest]\n")


@attack("05_planted_files")
def start_up_files(place, target, entry):
    """sitecustomize.py, usercustomize.py and a .pth file beside the submission. It must earn nothing."""
    plant(place, sitecustomize__py=PLANT, usercustomize__py=PLANT, evil__pth="import os; os._exit(0)\n")


@attack("05_planted_files")
def false_libraries(place, target, entry):
    """A torch.py, a random.py and an autograder.py that shadow the real ones. It must earn nothing."""
    module = "class Any:\n    def __getattr__(self, name): return lambda *a, **k: True\nimport sys\nsys.modules[__name__] = Any()\n"
    plant(place, torch__py=module, random__py=module, autograder__py=module, nbgrader_config__py=PLANT)


# 9: forged cells


@attack("09_forged_cells")
def edited_check(place, target, entry):
    """The locked check cell replaced by a number. It must earn nothing."""
    notebook = wrong_notebook()
    for cell in notebook.cells:
        if grade_id(cell).startswith("check-"):
            cell.source = "20"
    write(place, notebook)


@attack("09_forged_cells")
def deleted_check(place, target, entry):
    """The locked check cells deleted, because a missing check cannot fail. It must earn nothing."""
    notebook = wrong_notebook()
    notebook.cells = [cell for cell in notebook.cells if not grade_id(cell).startswith("check-")]
    write(place, notebook)


@attack("09_forged_cells")
def repeated_name(place, target, entry):
    """A second cell with the name of a check cell. It must earn nothing, and must not stop the grader."""
    notebook = wrong_notebook()
    twin = copy.deepcopy(next(cell for cell in notebook.cells if grade_id(cell) == "check-causal_mask"))
    twin.source, twin["id"] = "3.0", "twin"
    notebook.cells.insert(0, twin)
    write(place, notebook)


@attack("09_forged_cells")
def forged_points(place, target, entry):
    """Check cells that claim to be worth 1000 points and to be passed. It must earn nothing."""
    notebook = wrong_notebook()
    for cell in notebook.cells:
        if grade_id(cell).startswith("check-"):
            cell.metadata.nbgrader |= {"points": 1000, "locked": False, "solution": True}
            cell.outputs = [nbformat.v4.new_output("execute_result", {"text/plain": "1000.0"}, execution_count=1)]
    write(place, notebook)


@attack("09_forged_cells")
def forged_metadata(place, target, entry):
    """Metadata of the wrong types in every cell. It must earn nothing, and must not stop the grader."""
    notebook = json.loads(nbformat.writes(wrong_notebook()))
    forms = [[], "text", 7, None, {"grade_id": 5}, {"grade_id": ["x"]}, {"schema_version": 99}]
    for i, cell in enumerate(notebook["cells"]):
        cell["metadata"]["nbgrader"] = forms[i % len(forms)]
    (place / NOTEBOOK).write_text(json.dumps(notebook))


@attack("09_forged_cells")
def another_name(place, target, entry):
    """A notebook under another name beside an empty one. Only the right name counts; it must earn nothing."""
    write(place, wrong_notebook())
    nbformat.write(solution(MASKS), place / "06_masks (1).ipynb")


# 11, 25: what only a notebook can contain


@attack("25_ordinary_faults")
def syntax_error(place, target, entry):
    """Code that cannot be parsed. It must be an ordinary error."""
    write(place, with_answer(wrong_notebook(), "causal_mask", "def causal_mask(:\n    return"))


@attack("25_ordinary_faults", earns=20)
def shell_commands(place, target, entry):
    """Shell commands and magics beside right answers. They are not run, and the answers keep their marks."""
    notebook = solution(MASKS)
    mark = target.mark(entry.name)
    notebook.cells.insert(0, new_code_cell(f"%%bash\ntouch /tmp/{mark}\nsleep 60 &"))
    notebook.cells.insert(0, new_code_cell(f"!touch /tmp/{mark}\n!pip install nothing\n%cd /\nfiles = !ls\n%pip list"))
    write(place, notebook)


@attack("25_ordinary_faults", earns=20)
def awaits_in_a_notebook(place, target, entry):
    """A top-level await beside right answers. It works as in Jupyter."""
    notebook = solution(MASKS)
    notebook.cells.insert(0, new_code_cell("import asyncio\nawait asyncio.sleep(0)"))
    write(place, notebook)


# 17: links and paths


@attack("17_links_and_paths")
def link_to_another_students_file(place, target, entry):
    """The notebook is a link to what somebody else handed in. It must not be followed."""
    (place / "06_masks.py").symlink_to(target.neighbour)


@attack("17_links_and_paths")
def link_to_another_students_folder(place, target, entry):
    """The exercise's folder is a link to somebody else's. It must not be followed."""
    place.rmdir()
    place.symlink_to(target.neighbour.parent)


@attack("17_links_and_paths")
def link_to_a_secret(place, target, entry):
    """The notebook is a link to a file in the home folder of the grader. It must not be read."""
    (place / NOTEBOOK).symlink_to(target.home / "secret.txt")


@attack("17_links_and_paths")
def archive_that_climbs(place, target, entry):
    """An archive with absolute and climbing paths in place of a notebook. It must not be unpacked."""
    mark = target.mark(entry.name)
    with zipfile.ZipFile(place / "06_masks.zip", "w") as archive:
        for name in (f"/tmp/{mark}", f"../../../../../../tmp/{mark}", "../../control/06_masks/06_masks.py"):
            archive.writestr(name, "x")


@attack("17_links_and_paths")
def exercise_named_to_climb(place, target, entry):
    """An exercise folder with dots and a backslash in its name. It is not a known exercise, and nothing is written elsewhere."""
    other = place.with_name(f"..\\..\\{target.mark(entry.name)}")
    other.mkdir()
    (other / f"{other.name}.py").write_text(right_script(MASKS))


# 22: too much


@attack("22_too_much")
def notebook_of_100_mb(place, target, entry):
    """A notebook of 100 MB. It must be refused without being read."""
    with open(place / NOTEBOOK, "wb") as file:
        file.write(b'{"cells": [], "padding": "')
        file.truncate(100 * 2**20)


@attack("22_too_much")
def notebook_of_100_000_cells(place, target, entry):
    """A notebook of 100,000 cells. It must be refused."""
    cell = '{"cell_type":"code","source":"","metadata":{},"outputs":[],"execution_count":null}'
    text = f'{{"nbformat":4,"nbformat_minor":4,"metadata":{{}},"cells":[{",".join([cell] * 100_000)}]}}'
    (place / NOTEBOOK).write_text(text)


@attack("22_too_much")
def deeply_nested_notebook(place, target, entry):
    """JSON nested a hundred thousand deep. It must be refused."""
    (place / NOTEBOOK).write_bytes(b'{"cells":' + b"[" * 100_000)


@attack("22_too_much")
def one_enormous_cell(place, target, entry):
    """One cell of seven megabytes on a single line. It must cost only itself."""
    write(place, notebook_of("x = " + "(" * 100 + "1+" * 3_000_000 + "1" + ")" * 100))


@attack("22_too_much")
def not_utf_8(place, target, entry):
    """Bytes that are not text. It must be refused."""
    (place / NOTEBOOK).write_bytes(b"\xff\xfe\x00" * 1000)


# 24: not a notebook


@attack("24_not_a_notebook")
def empty_file(place, target, entry):
    """An empty file. It must be reported as damaged."""
    (place / NOTEBOOK).touch()


@attack("24_not_a_notebook")
def half_a_notebook(place, target, entry):
    """Half of a notebook. It must be reported as damaged."""
    text = nbformat.writes(solution(MASKS))
    (place / NOTEBOOK).write_text(text[: len(text) // 2])


@attack("24_not_a_notebook", earns=20)
def format_3(place, target, entry):
    """A right notebook in the format of 2013. It may be read or refused, but must not stop the grader."""
    cells = [{"cell_type": "code", "language": "python", "input": right_script(MASKS), "outputs": [], "metadata": {}, "collapsed": False, "prompt_number": 1}]  # fmt: skip
    old = {
        "nbformat": 3,
        "nbformat_minor": 0,
        "metadata": {"name": ""},
        "worksheets": [{"cells": cells, "metadata": {}}],
    }
    (place / NOTEBOOK).write_text(json.dumps(old))


@attack("24_not_a_notebook", earns=20)
def format_2(place, target, entry):
    """A right notebook in the format of 2011. It may be read or refused, but must not stop the grader."""
    cells = [
        {"cell_type": "code", "language": "python", "input": right_script(MASKS), "outputs": [], "collapsed": False}
    ]
    old = {"nbformat": 2, "metadata": {"name": ""}, "worksheets": [{"cells": cells}]}
    (place / NOTEBOOK).write_text(json.dumps(old))


@attack("24_not_a_notebook", earns=20)
def without_metadata(place, target, entry):
    """Right code in cells that have lost their metadata. It may be read or refused."""
    (place / NOTEBOOK).write_text(
        json.dumps(
            {"nbformat": 4, "nbformat_minor": 4, "cells": [{"cell_type": "code", "source": right_script(MASKS)}]}
        )
    )


@attack("24_not_a_notebook")
def a_folder(place, target, entry):
    """A folder with the name of the notebook. It is not a file."""
    (place / NOTEBOOK).mkdir()


@attack("24_not_a_notebook")
def a_pipe(place, target, entry):
    """A named pipe that nobody writes to. The grader must not wait for it."""
    os.mkfifo(place / NOTEBOOK)


@attack("24_not_a_notebook")
def a_device(place, target, entry):
    """An endless device (or a link to it, where devices cannot be made). The grader must not read from it."""
    try:
        os.mknod(place / NOTEBOOK, 0o666 | stat.S_IFCHR, os.stat("/dev/zero").st_rdev)
    except OSError:
        (place / NOTEBOOK).symlink_to("/dev/zero")


@attack("24_not_a_notebook")
def a_socket(place, target, entry):
    """A socket with the name of the notebook. It is not a file."""
    here = os.getcwd()
    os.chdir(place)  # a socket's path may have no more than 107 characters
    try:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(NOTEBOOK)
    finally:
        os.chdir(here)


@attack("24_not_a_notebook")
def cells_of_the_wrong_kind(place, target, entry):
    """Cells that are numbers, lists and null. It must be reported as damaged."""
    (place / NOTEBOOK).write_text(
        json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [1, [], None, {}]})
    )


@attack("24_not_a_notebook")
def text_only(place, target, entry):
    """A notebook without code. Nothing was answered."""
    write(place, new_notebook(cells=[new_markdown_cell("# I did it, honestly")]))


# 26, 27: names


def name(student: str, group: str = "27_names"):
    def enter(build):
        return attack(group, student=student, earns=20)(build)

    return enter


def right_program(place: Path) -> None:
    (place / "06_masks.py").write_text(right_script(MASKS), encoding="utf-8")


@name("<script>alert(1)<&sol;script>", "26_hostile_text")
def script_as_a_name(place, target, entry):
    """A student named like a script. Every page must show the name as text."""
    right_program(place)


@name("=cmd|' &C calc'!A0", "26_hostile_text")
def formula_as_a_name(place, target, entry):
    """A student named like a formula. The spreadsheet must show it as text."""
    right_program(place)


@name("@SUM(1+1)", "26_hostile_text")
def another_formula_as_a_name(place, target, entry):
    """A student whose name begins with @. The spreadsheet must show it as text."""
    right_program(place)


@name(" spaces  around ")
def spaces(place, target, entry):
    """A name with spaces at both ends. It is a name like any other."""
    right_program(place)


@name("名字 😀 ñ")
def unicode(place, target, entry):
    """A name in Chinese with an emoji. It is a name like any other."""
    right_program(place)


@name("two\nlines\tand a tab")
def newline(place, target, entry):
    """A name with a line break and a tab. It is a name like any other."""
    right_program(place)


@name("n" * 255)
def as_long_as_possible(place, target, entry):
    """A name of 255 bytes. It is a name like any other."""
    right_program(place)


@name("Same Name")
def one_of_two_cases(place, target, entry):
    """A name that differs from another only in case. Each keeps its own marks."""
    right_program(place)


@attack("27_names", student="same name")
def other_of_two_cases(place, target, entry):
    """The other of the two, with a wrong answer. Each keeps its own marks."""
    (place / "06_masks.py").write_text(WRONG.format("causal_mask"))


@name(b"not \xff utf-8".decode(errors="surrogateescape"))
def not_text(place, target, entry):
    """A name whose bytes are not text. It is a name like any other."""
    right_program(place)


@name("-rf --out=elsewhere")
def options(place, target, entry):
    """A name that looks like options of a command. It is a name like any other."""
    right_program(place)


@name("results.json")
def like_our_own_file(place, target, entry):
    """A student named like a file that the grader writes. Both must be written."""
    right_program(place)


@name("gradescope")
def like_our_own_folder(place, target, entry):
    """A student named like a folder that the grader writes. Both must be written."""
    right_program(place)
