"""Start the zygote in an interpreter that knows nothing of the course.

Run as a file with `-I -S`: no site packages, no .pth files, no environment. The package `autograder` is replaced by an
empty one that holds only this folder, so that no suite, reference or solution can ever be imported here. Its `check` and
`hint` do nothing; they are there because a submitted notebook calls them.
"""

import importlib.util
import json
import os
import sys
import types


def boot(settings: dict) -> None:
    sys.path += settings["libraries"]
    sys.dont_write_bytecode = True
    here = os.path.dirname(os.path.abspath(__file__))
    course = types.ModuleType("autograder", "The grader as a submitted notebook sees it: checks and hints do nothing.")
    course.__path__ = []
    course.check = lambda *names, **options: None
    course.hint = lambda *names, **options: None
    sys.modules["autograder"] = course
    place = importlib.util.spec_from_file_location(
        "autograder.student", os.path.join(here, "__init__.py"), submodule_search_locations=[here]
    )
    student = importlib.util.module_from_spec(place)
    sys.modules["autograder.student"] = student
    place.loader.exec_module(student)
    for name in settings["preload"]:
        importlib.import_module(name)
    from autograder.student import server

    server.main(settings)


if __name__ == "__main__":
    boot(json.loads(sys.argv[1]))
