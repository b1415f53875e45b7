"""Write marks into nbgrader's own gradebook, so that its feedback, export and formgrader work unchanged.

Each submission is entered in one transaction, which is repeated if another writer gets in the way. What a person entered
(marks, extra credit, comments, extensions, penalties) is never changed. If the automatic mark changes and a person has
given a mark too, the cell is flagged for manual grading again.
"""

import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from nbgrader.api import Gradebook, InvalidEntry
from sqlalchemy import event, inspect, text
from sqlalchemy.engine import Engine, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, IntegrityError, OperationalError, SQLAlchemyError

from autograder.course import COURSE
from autograder.errors import InputError, Locked, Unfinished
from autograder.intake.submission import check_cell
from autograder.results import SubmissionReport

from . import rows
from .upstream import ask_alembic_library, newest_schema

T = TypeVar("T")
WAIT_SECONDS = 30  # for another writer, before giving up
TRIES = 8  # if two writers conflict


def address(db_url: str) -> str:
    """The URL as SQLAlchemy wants it: an absolute file that waits for locks, or PostgreSQL through psycopg."""
    try:
        url = make_url(db_url)
    except ArgumentError:
        raise InputError(
            f"--db {db_url}: not a database URL; wanted sqlite:///gradebook.db or postgresql://user@host/name",
            f"--db {db_url}：不是数据库 URL；应为 sqlite:///gradebook.db 或 postgresql://用户@主机/库名",
        ) from None
    if url.drivername in ("postgresql", "postgres"):
        url = url.set(drivername="postgresql+psycopg")
    if url.get_backend_name() == "sqlite" and url.database:
        url = url.set(database=str(Path(url.database).absolute()))
        if "timeout" not in url.query:
            url = url.update_query_dict({"timeout": str(WAIT_SECONDS)})
    return url.render_as_string(hide_password=False)


class Marks:
    """The gradebook as the grader uses it."""

    def __init__(self, db_url: str):
        ask_alembic_library()
        self.url = address(db_url)
        self.book = _patiently(self.url, lambda: _opened(self.url))
        if self.book.engine.dialect.name == "sqlite":
            _let_writers_queue(self.book.engine)
        self._prepared: set[str] = set()

    def __enter__(self) -> "Marks":
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    def close(self) -> None:
        self.book.close()

    def enter(self, report: SubmissionReport, timestamp: str | None = None) -> None:
        """Enter one report. Before the first report of an exercise, enter the exercise itself."""
        if report.exercise not in self._prepared:
            self._transaction(lambda db: rows.add_exercise(db, report.exercise))
            self._prepared.add(report.exercise)
        self._transaction(lambda db: rows.add_report(db, report, timestamp))

    def holds(self, report: SubmissionReport) -> bool:
        """Whether the gradebook already has exactly these marks."""
        scores = {check_cell(part.id): part.score for part in report.parts}
        return self._transaction(lambda db: rows.scores(db, report.student, report.exercise)) == scores

    def _transaction(self, steps: Callable[[Any], T]) -> T:
        def whole() -> T:
            try:
                done = steps(self.book.db)
                self.book.db.commit()
                return done
            except BaseException:
                self.book.db.rollback()
                raise

        return _patiently(self.url, whole)


def _opened(url: str) -> Gradebook:
    book = Gradebook(url, COURSE)
    try:
        if not inspect(book.engine).has_table("alembic_version"):  # another process was killed before it wrote this
            book.db.execute(text("CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL)"))
            book.db.execute(text("INSERT INTO alembic_version VALUES (:version)"), {"version": newest_schema()})
            book.db.commit()
        return book
    except BaseException:
        book.close()
        raise


def _patiently(url: str, whole: Callable[[], T]) -> T:
    """Run the whole transaction, and repeat it from the start if another writer got in the way."""
    for left in reversed(range(TRIES)):
        try:
            return whole()
        except ImportError as missing:
            raise _unwritten(url, missing) from None
        except (SQLAlchemyError, InvalidEntry) as refused:
            if not left or not _may_succeed_later(refused):
                raise _unwritten(url, refused) from None
            time.sleep(random.uniform(0, 0.1))
    raise AssertionError("the last try either returns or raises")


def _may_succeed_later(refused: Exception) -> bool:
    """Whether to try again: after a deadlock, or if two writers entered the same row. We already waited for a lock."""
    if isinstance(refused, InvalidEntry):
        return True
    if isinstance(refused, OperationalError) and "locked" in str(refused.orig):
        return False
    code = getattr(getattr(refused, "orig", None), "sqlstate", None) or ""
    exists = isinstance(refused, DBAPIError) and "already exists" in str(refused.orig)
    return isinstance(refused, IntegrityError) or exists or code[:2] in ("40", "55")


def _unwritten(url: str, refused: Exception) -> Unfinished:
    place = make_url(url).render_as_string(hide_password=True)
    reason = str(getattr(refused, "orig", None) or refused).strip().splitlines()[0]
    kind = Locked if isinstance(refused, OperationalError) else Unfinished
    return kind(
        f"the gradebook {place} cannot be written ({reason}). The marks are kept in the journal; "
        "when the gradebook is free, run the same command to enter them",
        f"无法写入成绩册 {place}（{reason}）。分数已保存在日志中；成绩册可用后再次运行同一命令即可写入",
    )


def _let_writers_queue(engine: Engine) -> None:
    """Take SQLite's write lock at the start of a transaction, so that a second writer waits instead of failing."""
    engine.dispose()

    @event.listens_for(engine, "connect")
    def connected(connection: Any, record: Any) -> None:
        connection.isolation_level = None  # the driver starts no transactions by itself

    @event.listens_for(engine, "begin")
    def begun(connection: Any) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")
