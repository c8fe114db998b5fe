"""Lesson 20: its checks tell right answers from wrong ones; its prose says what its cells give."""

from answered import answers

from minitx.lessons.checks.lesson_20 import check_bytes, check_merge, check_word


def merged(step=2, new=lambda number: [number]):
    """A merge that goes on `step` behind the begin of a pair, and writes what `new` says."""

    def answer(tokens, pair, number):
        out, i = [], 0
        while i < len(tokens):
            is_pair = tuple(tokens[i : i + 2]) == pair
            out += new(number) if is_pair else [tokens[i]]
            i += step if is_pair else 1
        return out

    return answer


SAID = {
    check_merge: [
        (merged(), "right"),
        (lambda tokens, pair, number: tokens, r"wanted \[9, 3, 9\], .*; the pair is still there"),
        (merged(step=1), r"got \[9, 2, 3, 9, 2\]"),
        (
            lambda tokens, pair, number: (
                [9, 9] if tokens == [1, 1, 1] else merged()(tokens, pair, 9)
            ),
            "its second token is used up",
        ),
        (merged(new=lambda number: [1, 2, number]), "both tokens of the pair go"),
        (lambda tokens, pair, number: len(tokens), r"wanted a list, this gives a value \(int\)"),
        ([9, 3, 9], "wanted a function, such as lambda tokens, pair"),
    ],
    check_bytes: [
        (lambda text: len(text.encode()), "right"),
        (len, "'naïve' has 5 characters, but 6 bytes"),
        (lambda text: len(text.split()), "these are words"),
        (lambda text: 3 * len(text), "'a cat': wanted 5, got 15"),
        (24, "wanted a function, such as lambda text"),
    ],
    check_word: [
        ("people", "right"),
        ("friend", "right"),
        ("world", "right"),
        ("water", "both cuts have 'ater'"),
        ("dog", "'dog' has 3 letters; wanted at least 5"),
        ("People", "in small letters"),
        ("the people", "wanted one English word"),
        (7, "7: wanted one English word"),
    ],
}

test_answers = answers(SAID)


def test_the_prose_says_what_the_cells_give(names, printed):
    assert "d | og |  do | g" in printed
    assert {b" the", b" I"} <= set(names["names"][256:276])
    by_count, by_chance = names["by_count"], names["by_chance"]
    assert by_count[-1] > 2.2 and max(x[-1] for x in by_chance) < 1.25
    assert 1 - 1 / by_count[49] > (1 - 1 / by_count[-1]) / 2
    losses = names["losses"]
    assert [round(losses[x][1], 2) for x in ("in two", "another word")] == [0.73, 0.80]
    assert losses["usual"][0] < losses["left out"][0] < losses["in two"][0]
    assert names["spelled"]["letters"] > 5.55 > 5 * names["spelled"]["usual"]


def test_a_kana_begins_with_what_all_kana_begin_with(names, printed):
    assert ": 24 tokens\nI am a cat.: 6 tokens" in printed
    assert names["english"] == 3 * len(names["cat"]) == names["n_bytes"]
    assert names["own_names"][256] == "い".encode()[:2]
