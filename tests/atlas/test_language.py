"""The atlas in Japanese: what the page says, flags, what the command prints."""

import json

import atlases
import pytest
from elements import Elements

from minitx.analysis.atlas import flags, patches
from minitx.analysis.machine import language
from minitx.analysis.pages import atlas as page


@pytest.fixture
def japanese():
    """Texts in Japanese."""
    with language.using("ja"):
        yield


@pytest.mark.usefixtures("japanese")
def test_the_page_is_in_japanese():
    html = page.page(atlases.atlas(2, 4, 1, 2))
    assert '<html lang="ja">' in html and "<title>fabricated のアトラス</title>" in html
    written = Elements(html)
    known = json.loads(written.held["translations"])
    for kind in ("offset", "same token", "query and key", "flagged heads", "the decoder"):
        assert known[kind] != kind
    assert known["{0} heads, a row for each layer; a letter is a flag ({1})."]
    assert any(text.startswith("Every head as one picture: each token") for text in known)
    assert "語頭" in written.data["runs"][0]["spaces"][0]["queries"]["types"]
    assert written.data["projections"]["pca3"].endswith("3 次元）")  # noqa: RUF001


@pytest.mark.usefixtures("japanese")
def test_offsets_and_flags_are_in_japanese():
    assert flags.where(-1) == "一つ前のトークン" and flags.where(3) == "3 つ後のトークン"
    assert patches.where((-1, 0)) == "1 つ上のパッチ"
    assert patches.where((2, -1)) == "2 つ下、1 つ左のパッチ"


def test_a_page_in_english_brings_no_translations():
    assert 'id="translations">{}</script>' in page.page(atlases.atlas(2, 4, 1, 2))
