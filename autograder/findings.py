"""What is told about one examined part, as plain data.

Nothing of this needs a notebook file or a sandbox, so that `check` is quick in a learner's kernel.
"""

import re

from .catalogue import Exercise, Part
from .diagnosis import diagnose
from .examiner import PartResult
from .language import LANGUAGES
from .sections import section
from .verdicts import Verdict

MISTAKE = {"en": "likely mistake: ", "zh": "很可能是这个错误："}
READ = {"en": "read: ", "zh": "阅读："}
ADDED = re.compile(rf"\n  (?:{'|'.join([*MISTAKE.values(), *READ.values()])}).*", re.DOTALL)


def report(exercise: Exercise, result: PartResult, salt: str) -> dict:
    """What is told about one examined part."""
    mistake = diagnose(exercise, result, salt)
    first = result.first_broken
    message = {"en": "", "zh": ""}
    if first:
        message = dict(first.broken.message)
        if result.verdict is Verdict.WRONG:
            message = {
                "en": f"{message['en']}\n  promise: {first.promise.text['en']}",
                "zh": f"{message['zh']}\n  要求：{first.promise.text['zh']}",
            }
        where = section(exercise, result.part)["words"]
        for lang in LANGUAGES:
            if mistake:
                message[lang] += f"\n  {MISTAKE[lang]}{mistake.text[lang]}"
            if result.verdict is not Verdict.MISSING:
                message[lang] += f"\n  {READ[lang]}{where[lang]}"
    promises = [{"kept": outcome.broken is None, **outcome.promise.text} for outcome in result.outcomes]
    return part_report(result.part, result.score, result.verdict, mistake and mistake.name, message, promises)


def seen(message: str) -> str:
    """A message without the mistake and the section, for a page that shows them by itself."""
    return ADDED.sub("", message)


def part_report(part: Part, score: float, verdict: Verdict, mistake, message: dict, promises: list) -> dict:
    return {
        "id": part.name,
        "score": score,
        "max_score": part.points,
        "verdict": str(verdict),
        "mistake": mistake,
        "message": message,
        "promises": promises,
    }
