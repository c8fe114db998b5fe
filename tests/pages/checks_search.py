"""The documentation's search in a real browser: it splits a query as the index is split."""

from docs import search

QUERIES = "重み", "残差ストリームと LayerNorm", "表", "W_Q of 2 heads", "前の単語、の位置", ""


def test_a_query_is_split_as_the_index_is(new_page):
    page = new_page(1280, 720)
    split = page.evaluate(
        f"queries => {{ {search.SPLIT} return queries.map(splitQuery); }}", QUERIES
    )
    assert split == [*map(search.asked, QUERIES)]
