"""The version of nbgrader's tables.

nbgrader asks the command `alembic`, which takes seconds and must be on the PATH. The library knows the same: whoever
imports this module lets nbgrader ask it instead.
"""

import nbgrader.api
from alembic.config import Config
from alembic.script import ScriptDirectory


def newest_schema() -> str:
    with nbgrader.api._temp_alembic_ini("sqlite://") as settings:
        return ScriptDirectory.from_config(Config(settings)).get_current_head()


nbgrader.api.get_alembic_version = newest_schema
