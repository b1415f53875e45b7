"""Errors in the command line and its help, in both languages."""

import pytest

from autograder.arguments import parser
from autograder.cli import COMMANDS, main


def error_text(capsys, *arguments: str) -> str:
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    assert ended.value.code == 2
    return capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "en", "zh"),
    [
        (["grade"], "required: FOLDER. See autograder grade --help", "缺少 FOLDER。用法见 autograder grade --help"),
        (["nothing"], "invalid choice: 'nothing'", "没有 'nothing'，可选的有 'list'"),
        (["grade", "x", "--jobs", "0"], "'0' is not a whole number above 0", "--jobs：'0' 不是正整数"),
        (["grade", "x", "--colour"], "unrecognized arguments: --colour", "不认识的参数：--colour"),
        (["bench", "--json"], "expected one argument", "--json 后面缺少一个值"),
    ],
)
def test_a_wrong_command_line_is_explained_in_one_line(capsys, arguments, en, zh):
    for lang, words in (("en", en), ("zh", zh)):
        shown = error_text(capsys, "--lang", lang, *arguments)
        assert words in shown
        assert shown.count("\n") == 1


@pytest.mark.parametrize("command", [[], *([name] for name in COMMANDS)])
def test_help_is_wholly_in_one_language(command):
    helps = {lang: _help(command, lang) for lang in ("en", "zh")}
    assert helps["en"].isascii() or not command or command == ["grade"]
    assert "用法" in helps["zh"]
    assert not any(word in helps["zh"] for word in ("usage", "options", "show", "default"))


def _help(command: list[str], lang: str) -> str:
    whole = parser(COMMANDS, ["--lang", lang])
    return (whole._subparsers._group_actions[0].choices[command[0]] if command else whole).format_help()


@pytest.mark.parametrize("arguments", [["--lang", "zh", "list"], ["list", "--lang", "zh"], ["list", "--lang=zh"]])
def test_the_language_may_come_before_or_after_the_command(capsys, arguments):
    assert main(arguments) == 0
    assert "掩码" in capsys.readouterr().out


def test_names_in_the_list_are_never_cut(capsys):
    assert main(["list", "--lang", "en"]) == 0
    shown = capsys.readouterr().out
    assert "…" not in shown
    assert "01_from_recurrence_to_attention" in shown
