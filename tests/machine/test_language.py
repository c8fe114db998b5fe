"""The language of a command: from its flag, the environment or the locale, while it runs."""

import shlex

import pytest

from minitx.analysis import commands
from minitx.analysis.contract import numbers
from minitx.analysis.machine import language


def test_the_locale_chooses_the_language_of_a_command_and_a_flag_comes_first(monkeypatch):
    monkeypatch.delenv(language.ENVIRONMENT, raising=False)
    for name in language.LOCALE:
        monkeypatch.delenv(name, raising=False)
    assert language.of_environment() == "en"
    monkeypatch.setenv("LANG", "ja_JP.UTF-8")
    assert language.of_environment() == "ja" and language.current() == "en"
    monkeypatch.setenv("LC_ALL", "C")
    assert language.of_environment() == "en"
    monkeypatch.setenv(language.ENVIRONMENT, "xx")
    with pytest.raises(ValueError, match="the language is 'xx'; wanted one of en, ja"):
        language.of_environment()


def test_the_flag_without_a_value_is_refused(capsys):
    for argv in (["--lang"], ["list", "--lang"]):
        with pytest.raises(SystemExit, match="2"):
            commands.run_command(argv)
        assert "--lang: expected one argument" in capsys.readouterr().err


def test_numbers_of_a_label_stay_in_the_order_of_the_translation():
    assert language._numbered("#2 of #1", ["3", "8"]) == "8 of 3"
    assert language._numbered("#: #", ["0.5", "-1"]) == "0.5: -1"


def test_the_language_ends_with_its_context(monkeypatch):
    monkeypatch.delenv(language.ENVIRONMENT, raising=False)
    with language.using("ja"):
        assert language.translated("none") == "なし"
        assert language.count(2, "document") == "文書 2 件"
    assert language.translated("none") == "none"


def test_texts_of_html_are_translated_and_its_gaps_and_names_stay(monkeypatch):
    page = '<p title="Model" id="Model">Text</p><b>{{body}}</b>'
    monkeypatch.setenv(language.ENVIRONMENT, "ja")
    assert language.in_html(page) == '<p title="モデル" id="Model">文章</p><b>{{body}}</b>'
    monkeypatch.setenv(language.ENVIRONMENT, "en")
    assert language.in_html(page) == page


def test_a_command_answers_in_the_language_that_it_is_asked_in(capsys):
    assert commands.run_command("list --lang ja".split()) == 0
    assert "同梱モデル" in capsys.readouterr().out
    assert commands.run_command(["list"]) == 0
    assert "bundled models" in capsys.readouterr().out


def test_what_argparse_says_is_in_the_language_too(capsys):
    with pytest.raises(SystemExit):
        commands.run_command("trace --lang ja".split())
    errors = capsys.readouterr().err
    assert errors.startswith("使い方: ") and "エラー: 次の引数が必要です: MODEL, TEXT" in errors
    with pytest.raises(SystemExit):
        commands.run_command("trace --lang en".split())
    assert "the following arguments are required: MODEL, TEXT" in capsys.readouterr().err


def test_a_label_that_is_put_together_is_translated_piece_by_piece():
    with language.using("ja"):
        assert language.label("positions, layer 3: no such text\nlayer 10,000") == (
            "位置, 第3層: no such text\n第10,000層"
        )
        assert language.label("layer 3, 0.5") == "第3層, 0.5"


def test_numbers_are_declared_in_english_in_every_language():
    """A constant that a declaration names has a translation of its own: the key would hold both."""
    with language.using("ja"):
        declared = numbers.of_experiment("fact n: heads with {what}", {"what": "positions"})
    assert declared[0].means == "heads with positions"


@pytest.mark.parametrize(
    "command, said",
    [
        ("trace tiny-gpt2 'He went out.' --keep pattern", "MB を"),
        ("compare tiny-bert tiny-bert --experiment slices", "# slices: 埋め込みは"),
        ("verify tiny-gpt2 tiny-gpt2 --text sample", "すべての重みが一致"),
    ],
)
def test_commands_answer_in_japanese(tmp_path, capsys, monkeypatch, command, said):
    monkeypatch.chdir(tmp_path)
    assert commands.run_command(shlex.split(f"{command} --lang ja")) == 0
    assert said in capsys.readouterr().out
