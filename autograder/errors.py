"""Errors for people: what happened, what is safe and what to do next, in both languages."""

from .language import Text


class UserError(Exception):
    """`message` is the text in both languages; `str(error)` is the English text."""

    def __init__(self, en: str, zh: str):
        super().__init__(en)
        self.message = Text(en, zh)

    def __reduce__(self) -> tuple[type["UserError"], tuple[str, str]]:
        return type(self), (self.message.en, self.message.zh)


class InputError(UserError):
    """The request itself is wrong, so nothing was done."""


class Unfinished(UserError):
    """The grader could not finish. The journal keeps every mark given before."""


class Locked(Unfinished):
    """Nothing can be written now: another program holds the gradebook, or it cannot be reached."""
