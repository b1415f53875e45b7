"""What a person is told when something cannot be done: what happened, what is safe and what to do next, in both languages."""


class Told(Exception):
    """`message` says it in either language; as a plain string it is English."""

    def __init__(self, en: str, zh: str):
        super().__init__(en)
        self.message = {"en": en, "zh": zh}

    def __reduce__(self):
        return type(self), (self.message["en"], self.message["zh"])


class InputError(Told):
    """What was asked for cannot be done at all."""


class Unfinished(Told):
    """The grader could not finish. Every mark given before stays in the journal."""


class Locked(Unfinished):
    """Nothing can be written for now: another program holds the gradebook, or it cannot be reached."""
