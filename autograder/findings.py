"""What is told about one examined part, as plain data.

Nothing of this needs a notebook file or a sandbox, so that `check` is quick in a learner's kernel.
"""

from .catalogue import Exercise, Part
from .diagnosis import diagnose
from .examiner import PartResult
from .verdicts import Verdict


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
        if mistake:
            message["en"] += f"\n  likely mistake: {mistake.text['en']}"
            message["zh"] += f"\n  很可能是这个错误：{mistake.text['zh']}"
        if result.verdict is not Verdict.MISSING:
            message["en"] += f"\n  read: chapter {exercise.chapter}, «{exercise.title['en']}»"
            message["zh"] += f"\n  阅读：第 {exercise.chapter} 章《{exercise.title['zh']}》"
    promises = [{"kept": outcome.broken is None, **outcome.promise.text} for outcome in result.outcomes]
    return part_report(result.part, result.score, result.verdict, mistake and mistake.name, message, promises)


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
