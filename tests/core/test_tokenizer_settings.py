"""Settings beside a tokenizer: the reference library's ids, or a refusal that names the setting."""

import json
import warnings
from pathlib import Path

import pytest
import tokenizer_folders
from folder_states import POINTER
from tokenizer_folders import FOLDERS, PAIR, TEXTS, WORDS

from minitx.words.text import Tokenizer

pytestmark = pytest.mark.filterwarnings("ignore:the tokenizer.json in .* cuts texts otherwise")
GOLDEN = Path(__file__).parents[1] / "golden" / "tokenizer-folders.json"
IDS = json.loads(GOLDEN.read_text(encoding="utf-8"))
REFUSED = {  # the library gives other ids than these folders say, or drops a token
    "added-elsewhere": r"adds '\[NEW\]' as 7, but its id here is \d+; fix added_tokens_decoder",
    "metaspace-json no-prefix": "add_prefix_space is off in .*XLMRobertaTokenizer",
    "mark": "vocab.txt is a text with a byte order mark: save it as UTF-8 without one",
}


def model_type(files):
    return json.loads(files["config.json"])["model_type"]


def why_refused(name):
    return next((text for end, text in REFUSED.items() if name.endswith(end)), None)


def is_ours(name, text):
    """Whether minitx reads a text otherwise on purpose: see minitx/words/text.py.

    A vocab.txt with capitals is cased unless a setting says otherwise, and the <mask> of a RoBERTa
    without tokenizer.json takes the blank before it, as when these models were trained.
    """
    if name.startswith("roberta-files"):
        settings = FOLDERS[name].get("tokenizer_config.json", "") + str(FOLDERS[name])
        return "<mask>" in text and '"lstrip"' not in settings
    settings = FOLDERS[name].get("tokenizer_config.json", "")
    from_vocab = name in ("of electra files", "of mpnet files") or name.startswith("bert-vocab")
    is_silent = from_vocab and "do_lower_case" not in settings
    return is_silent and text != text.lower()


@pytest.mark.parametrize("name", [name for name in FOLDERS if not why_refused(name)])
def test_ids_are_the_reference_library_s(tmp_path, name):
    """177 folders; before their settings were read 40 of them agreed."""
    folder = tokenizer_folders.write(tmp_path, FOLDERS[name])
    tokenizer = Tokenizer(folder, model_type(FOLDERS[name]))
    texts = [i for i, text in enumerate(TEXTS) if not is_ours(name, text)]
    assert len(texts) >= 4
    ids = {i: tokenizer.encode(TEXTS[i]).tolist() for i in texts}
    assert ids == {i: IDS[name]["ids"][i] for i in texts}
    if not any(is_ours(name, text) for text in PAIR):
        assert tokenizer.encode(*PAIR).tolist() == IDS[name]["pair"]


@pytest.mark.parametrize("name", [name for name in FOLDERS if why_refused(name)])
def test_what_no_token_can_follow_is_refused_by_name(tmp_path, name):
    folder = tokenizer_folders.write(tmp_path, FOLDERS[name])
    with pytest.raises(ValueError, match=why_refused(name)):
        Tokenizer(folder, model_type(FOLDERS[name])).encode("the tide")


@pytest.mark.parametrize(
    "file,content,message",
    [
        ("added_tokens.json", {"<new>": "x"}, "an added token of .* has the id 'x'; wanted"),
        ("added_tokens.json", {"<new>": 1.5}, "an added token of .* has the id 1.5; wanted"),
        (
            "tokenizer_config.json",
            {"added_tokens_decoder": {"9": 4}},
            "token 9 .added_tokens_decoder .* is 4; want",
        ),
        (
            "tokenizer_config.json",
            {"mask_token": {"lstrip": 1}},
            "mask_token .* is {'lstrip': 1}; want",
        ),
        ("tokenizer_config.json", {"do_lower_case": "yes"}, "the tokenizer in .* does not load: "),
        ("tokenizer_config.json", {"added_tokens_decoder": 5}, "the tokenizer in .* not load: "),
        ("added_tokens.json", [], "added_tokens.json does not hold a JSON object"),
    ],
    ids=range(7),
)
def test_settings_of_a_wrong_kind_are_named(tmp_path, file, content, message):
    folder = tokenizer_folders.write(tmp_path, FOLDERS["bert-json nothing"])
    (folder / file).write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        Tokenizer(folder, "bert").encode("the tide")


def linked(path):
    path.symlink_to("../../blobs/0123")


WHAT_IT_IS = [  # a file, how it is written, what is said of it
    ("tokenizer.json", lambda path: path.write_bytes(b" \n"), "tokenizer.json is empty: get"),
    ("tokenizer.json", lambda path: path.write_text("{}", "utf-16"), "tokenizer.json is UTF-16: s"),
    ("tokenizer.json", lambda path: path.write_text("{}", "utf-8-sig"), "with a byte order mark"),
    ("tokenizer.json", linked, "is no file but a link to ../../blobs/0123: get it again"),
    ("vocab.txt", lambda path: path.mkdir(), "vocab.txt is no file but a folder: get it again"),
    ("vocab.txt", lambda path: path.write_bytes(b""), "vocab.txt is empty: get the file again"),
    (
        "spm.model",
        lambda path: path.write_bytes(b"\x0a."),
        "the pieces of a DeBERTa v2, which is no",
    ),
    (
        "tokenizer.model",
        lambda path: path.write_text("IQ== 0"),
        "the pieces of a Llama, Mistral or",
    ),
    ("sentencepiece.bpe.model", lambda path: path.write_text("x"), "pieces of an XLM-RoBERTa or"),
    (
        "tokenizer.model",
        lambda path: path.write_bytes(POINTER),
        "tokenizer.model is a Git LFS poin",
    ),
]


@pytest.mark.parametrize("file,write,message", WHAT_IT_IS, ids=range(len(WHAT_IT_IS)))
def test_a_file_that_is_no_tokenizer_is_named_with_what_it_is(tmp_path, file, write, message):
    write(tmp_path / file)
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        Tokenizer(tmp_path, "bert").encode("the tide")


def test_an_empty_merges_txt_does_not_cut_words_into_letters(tmp_path):
    (tmp_path / "vocab.json").write_text('{"t": 0, "h": 1, "e": 2, "the": 3}', encoding="utf-8")
    (tmp_path / "merges.txt").write_text("\n", encoding="utf-8")
    with pytest.raises(ValueError, match="merges.txt is empty: get the file again"):
        load(tmp_path)


@pytest.mark.parametrize(
    "name", sorted(n for n in IDS if "words" in IDS[n] and not is_ours(n, "The"))
)
def test_words_are_encoded_each_alone(tmp_path, name):
    """As the library's with is_split_into_words=True; the numbers are its word_ids."""
    folder = tokenizer_folders.write(tmp_path, FOLDERS[name])
    tokenizer = Tokenizer(folder, model_type(FOLDERS[name]))
    ids, numbers = IDS[name]["words"]
    assert tokenizer.encode(list(WORDS)).tolist() == ids
    assert tokenizer.word_numbers(WORDS).tolist() == [-1 if n is None else n for n in numbers]
    with pytest.raises(ValueError, match="a word is 3; wanted a text"):
        tokenizer.encode(["a", 3])
    with pytest.raises(ValueError, match="one of two texts is cut into words"):
        tokenizer.encode(["a"], "b")


def load(folder):
    return Tokenizer(folder, "gpt2").encode("the tide")


def test_a_file_that_its_class_does_not_follow_is_warned_of(tmp_path):
    """The ids are the class's, as the reference library's; golden above."""
    name = "gpt2-json-prefix nothing"
    folder = tokenizer_folders.write(tmp_path / "a", FOLDERS[name])
    with pytest.warns(UserWarning, match="cuts texts otherwise than GPT2Tokenizer, the class of"):
        load(folder)
    plain = json.dumps({"tokenizer_class": "PreTrainedTokenizerFast"})
    (folder / "tokenizer_config.json").write_text(plain, encoding="utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load(folder)


def test_a_bpe_with_dropout_is_refused(tmp_path):
    folder = tokenizer_folders.write(tmp_path, FOLDERS["plain-json nothing"])
    whole = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    whole["model"]["dropout"] = 0.1
    (folder / "tokenizer.json").write_text(json.dumps(whole), encoding="utf-8")
    with pytest.raises(ValueError, match="has dropout 0.1.*: its ids would be random; set dropout"):
        load(folder)
