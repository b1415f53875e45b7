"""Errors for people: what happened, what is safe and what to do next, in both languages."""

from .language import Text


class UserError(Exception):
    """`message` says it in either language; as a plain string it is English."""

    def __init__(self, en: str, zh: str):
        super().__init__(en)
        self.message = Text(en, zh)

    def __reduce__(self) -> tuple[type["UserError"], tuple[str, str]]:
        return type(self), (self.message.en, self.message.zh)


class InputError(UserError):
    """What was asked for cannot be done at all."""


class Unfinished(UserError):
    """The grader could not finish. Every mark given before stays in the journal."""


class Locked(Unfinished):
    """Nothing can be written now: another program holds the gradebook, or it cannot be reached."""
