"""What we change in nbgrader: the version of its tables comes from the library `alembic`.

nbgrader runs the command `alembic`, which takes seconds and must be on the PATH. The library knows the same.
"""

import nbgrader.api
from alembic.config import Config
from alembic.script import ScriptDirectory


def newest_schema() -> str:
    with nbgrader.api._temp_alembic_ini("sqlite://") as settings:
        return ScriptDirectory.from_config(Config(settings)).get_current_head()


def ask_alembic_library() -> None:
    """Let nbgrader ask the library from now on. Call this before a gradebook is opened."""
    nbgrader.api.get_alembic_version = newest_schema
