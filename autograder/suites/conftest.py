"""pytest runs these suites through our plugin: `pytest autograder/suites/test_06_masks.py --submission FILE`."""

from autograder.grading.pytest_plugin import (  # noqa: F401
    draw,
    pytest_addoption,
    pytest_configure,
    pytest_pyfunc_call,
    pytest_sessionfinish,
    student,
)
