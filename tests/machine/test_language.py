"""The language of a command: from its flag, the environment or the locale, while it runs."""

import pytest

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


def test_numbers_of_a_label_stay_in_the_order_of_the_translation():
    assert language._numbered("#2 of #1", ["3", "8"]) == "8 of 3"
    assert language._numbered("#: #", ["0.5", "-1"]) == "0.5: -1"


def test_the_language_ends_with_its_context(monkeypatch):
    monkeypatch.delenv(language.ENVIRONMENT, raising=False)
    with language.using("ja"):
        assert (
            language.translated("none") == "なし" and language.count(2, "document") == "文書 2 件"
        )
    assert language.translated("none") == "none"


def test_texts_of_html_are_translated_and_its_gaps_and_names_stay(monkeypatch):
    page = '<p title="Model" id="Model">Text</p><b>{{body}}</b>'
    monkeypatch.setenv(language.ENVIRONMENT, "ja")
    assert language.in_html(page) == '<p title="モデル" id="Model">文章</p><b>{{body}}</b>'
    monkeypatch.setenv(language.ENVIRONMENT, "en")
    assert language.in_html(page) == page


def test_a_command_answers_in_the_language_that_it_is_asked_in(capsys):
    from minitx.analysis import commands

    assert commands.run_command(["list", "--lang", "ja"]) == 0
    assert "同梱モデル" in capsys.readouterr().out
    assert commands.run_command(["list"]) == 0
    assert "bundled models" in capsys.readouterr().out
