"""Start the zygote in an interpreter that knows nothing about the course.

Run as a file with `-I -S`: no site packages, no .pth files, no environment. The package `autograder` is replaced by an
empty one that contains only this folder, so no suite, reference or solution can be imported here. Its `check` and `hint`
do nothing; they exist because a submitted notebook calls them.
"""

import importlib.util
import json
import os
import sys
import types
from typing import Any


def boot(settings: dict[str, Any]) -> None:
    sys.path += settings["libraries"]
    sys.dont_write_bytecode = True
    here = os.path.dirname(os.path.abspath(__file__))
    course = types.ModuleType("autograder", "The grader as a submitted notebook sees it: checks and hints do nothing.")
    course.__path__ = []
    vars(course).update(check=_do_nothing, hint=_do_nothing)
    sys.modules["autograder"] = course
    spec = importlib.util.spec_from_file_location(
        "autograder.student", os.path.join(here, "__init__.py"), submodule_search_locations=[here]
    )
    assert spec is not None
    assert spec.loader is not None
    student = importlib.util.module_from_spec(spec)
    sys.modules["autograder.student"] = student
    spec.loader.exec_module(student)
    for name in settings["preload"]:
        importlib.import_module(name)
    from autograder.student import server

    server.main(settings)


def _do_nothing(*names: object, **options: object) -> None:
    pass


if __name__ == "__main__":
    boot(json.loads(sys.argv[1]))
