"""Which language to speak, and the words that several parts of the program say."""

import locale
import os

LANGUAGES = ("en", "zh")

VERDICTS = {
    "pass": {"en": "right", "zh": "正确"},
    "wrong": {"en": "wrong", "zh": "错误"},
    "error": {"en": "error", "zh": "出错"},
    "timeout": {"en": "too slow", "zh": "超时"},
    "memory": {"en": "too much memory", "zh": "内存超限"},
    "policy": {"en": "not allowed", "zh": "违规"},
    "missing": {"en": "not written", "zh": "未完成"},
    "grader_error": {"en": "grader error", "zh": "评分程序出错"},
}


def preferred(asked: str | None = None) -> str:
    """`asked`, or AUTOGRADER_LANG, or the locale; English otherwise."""
    places = (asked, os.environ.get("AUTOGRADER_LANG"), *(os.environ.get(n) for n in ("LC_ALL", "LC_MESSAGES", "LANG")))
    for place in (*places, locale.getlocale()[0]):
        if place and place[:2].lower() in LANGUAGES:
            return place[:2].lower()
    return "en"
