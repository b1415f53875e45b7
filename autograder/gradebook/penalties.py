"""Late penalties, from the plugin and settings that `nbgrader autograde` would use here."""

from functools import cache

from nbgrader.apps import NbGrader
from nbgrader.plugins import LateSubmissionPlugin
from nbgrader.preprocessors import AssignLatePenalties


def late_penalty(student: str, score: float, seconds: float) -> float | None:
    """The penalty for being late by this many seconds, at most the score. None if the plugin does not decide."""
    penalty: float | None = _plugin().late_submission_penalty(student, score, seconds)
    return None if penalty is None else min(max(penalty, 0.0), score)


@cache
def _plugin() -> LateSubmissionPlugin:
    """The plugin that `nbgrader_config.py` in the current folder, or in Jupyter's folders, chooses."""
    app = NbGrader()
    app.load_config_file()
    step = AssignLatePenalties(config=app.config)
    step.init_plugin()
    return step.plugin_inst
