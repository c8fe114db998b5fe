"""tiny-bart: a piece is a character, so the place of a part is known in pieces too."""

import numpy as np
import pytest

from minitx.loading.files import read_json
from minitx.weights import dates, local
from minitx.words.text import Tokenizer

FOLDER = local.BUNDLED / "tiny-bart"
TOKENIZER = Tokenizer(FOLDER, "bart")
DRAWN = dates.draw(np.random.default_rng(4), 300, dates.FORMS)


def test_pieces_are_the_characters_between_begin_and_end():
    for text, *_ in DRAWN:
        ids = TOKENIZER.encode(text)
        assert TOKENIZER.pieces(ids) == ["<s>", *text, "</s>"]
        assert TOKENIZER.decode(ids) == text
        assert TOKENIZER.encode(text, special=False).tolist() == ids[1:-1].tolist()


def test_the_span_of_a_part_is_one_place_later_in_pieces():
    for text, _, spans, _ in DRAWN:
        ids = TOKENIZER.encode(text)[1:]
        for span in spans.values():
            assert TOKENIZER.decode(ids[span]) == text[span]


def test_all_texts_fit_and_all_characters_are_known():
    settings = read_json(FOLDER / "config.json")
    day = dates.date(2023, 9, 27)  # a Wednesday, with the longest names
    forms = [(form, front) for form in dates.FORMS for front in dates.FRONTS]
    texts = [dates.write(day, form, front, gap="  ").text for form, front in forms]
    longest = max(len(TOKENIZER.encode(text)) for text in texts)
    assert longest <= settings["max_position_embeddings"]  # measured 55, of 64
    ids = TOKENIZER.encode(dates.ALPHABET)
    assert settings["vocab_size"] == max(ids) + 1 == len(dates.ALPHABET) + 4
    assert TOKENIZER.pieces(TOKENIZER.encode("é"))[1:-1] == ["<unk>"]


@pytest.mark.parametrize("file", ["config.json", "generation_config.json"])
def test_decoding_begins_with_the_end_and_forces_nothing(file):
    settings = read_json(FOLDER / file)
    special = "bos_token_id", "pad_token_id", "eos_token_id", "decoder_start_token_id"
    assert [settings[name] for name in special] == [0, 1, 2, 2]
    assert settings["forced_bos_token_id"] is settings["forced_eos_token_id"] is None
