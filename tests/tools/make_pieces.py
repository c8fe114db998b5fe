"""Makes tests/golden/pieces: small SentencePiece models, sentences, the reference library's ids.

Needs the reference library, sentencepiece (the extra `test` has it) and protobuf.

sources.txt: 320 sentences, one a line, from the bundled novel; targets.txt: as many in German, a
template with words drawn for its slots. Half of both have something in them that is awkward to cut.
A folder for each kind of tokenizer, with the files that such a checkpoint has: `marian`, one
vocabulary for the pieces of two unigram models; `separate`, two, of byte-pair models, where <pad>
has the same id in both (the library would write the source's into a target); `t5`, and `t5-json`,
the same as the library saves it; and `bart`, bytes.
ids.npz: the library's ids of all sentences, one after another, and how many there are of each
(`…_lengths`). decoded.json: its texts for the ids of every third sentence.
"""

import contextlib
import io
import json
import random
import re
import shutil
import tempfile
import unicodedata
from pathlib import Path

import make_japanese

TESTS = Path(__file__).parents[1]
HERE = TESTS / "golden" / "pieces"
NOVEL = TESTS.parent / "analysis" / "texts" / "sample.txt"
N = 320
SLOTS = {
    "who": "der Frosch,die Lehrerin,mein Nachbar,das kleine Mädchen,ein alter Fischer,Frau Größe,"
    "unser Hund,der Müller,die Ärztin,kein Übersetzer,der Briefträger,jeder zweite Student",
    "does": "sucht,verkauft,findet,liest,vergisst,zeichnet,übersetzt,kauft,beschreibt,versteckt",
    "what": "einen Brief,das rote Boot,zwei Bücher,die Straßenkarte,den Schlüssel,ein Gedicht,"
    "das Frühstück,die Maschine,drei Äpfel,nichts,das Wörterbuch,eine Aufmerksamkeit",
    "where": "am Fluss,in der Küche,hinter dem Haus,auf dem Markt,im Wald,über den Dächern,"
    "vor der Tür,an der Universität,in München,bei den Kühen",
    "when": "heute,am Montag,im Jahr 1921,vor dem Essen,oft,nie,um 7.30 Uhr,während des Sommers",
}
TEMPLATES = (
    "{when} {does} {who} {where} {what}.",
    "Warum {does} {who} {what} {where}?",
    "„{who} {does} {what}“, sagte {who2}.",
    "{who2} glaubt, dass {who} {where} {what} {does} - {when}!",
    "Ich weiß nicht, ob {who} {when} {what} {does} oder {where} schläft.",
)
# what is put into a sentence: other forms of characters, blanks, special tokens, unknown signs
AWKWARD = (
    "ＢＥＲＴ ﬁn ½ ① ² Ⅳ … é e\u0301 ß ẞ ç Ünï 日本語 한국어 ж 😀 👩\u200d🔬 → ≠ € § © ° "
    "</s> <unk> <pad> <s> <mask> <extra_id_0> <extra_id_7> <extra_id_100> <0x0A> >>fra<< >>deu<< "
    "<< >> ▁ ▁▁a _ __ # ## \\ ``quoted'' 3,000.50 1921-05-03 a.m. e-mail@x.org don't can’t "
    "http://example.org/a?b=c ALLCAPS iiiiiiiiii …… !!! ?! -- — –"
).split(" ")
AWKWARD += ["  ", "\t", "\u00a0", "\u3000", "\u200b", "\ufeff", "\u00ad", "\x07", "W" * 90]
BEGINNINGS = ">>fra<< ", ">>fra<<", ">>deu<< ", ">>xyz<< ", " >>fra<< ", ">>fra ", ">><<", "  "


def sources():
    """Sentences of the novel, the same each time."""
    rng = random.Random(0)
    every = re.split(r"\n|(?<=[.!?”]) ", NOVEL.read_text(encoding="utf-8"))
    return _awkward(rng, rng.sample([text for text in every if 20 < len(text) < 90], N))


def targets():
    rng = random.Random(1)

    def sentence():
        words = {slot: rng.choice(text.split(",")) for slot, text in SLOTS.items()}
        text = rng.choice(TEMPLATES).format(**words, who2=rng.choice(SLOTS["who"].split(",")))
        return text[0].upper() + text[1:]

    return _awkward(rng, [sentence() for _ in range(N)])


def _awkward(rng, sentences):
    """Every second sentence with an insert, a tenth with a beginning, and three that are blank."""
    texts = []
    for i, text in enumerate(sentences):
        place = rng.randrange(len(text) + 1)
        insert = AWKWARD[i // 2 % len(AWKWARD)] if i % 2 else ""
        begin = "" if i % 10 else BEGINNINGS[i // 10 % len(BEGINNINGS)]
        texts.append(begin + text[:place] + insert + text[place:])
    return [*texts[:-3], "", " ", ">>fra<<"]


def model(kind, texts, n, **more):
    """A SentencePiece model as bytes; its normalization is a small part of NFKC."""
    import sentencepiece

    out = io.BytesIO()
    more |= {"sentence_iterator": iter(texts), "model_writer": out, "model_type": kind}
    more |= {"vocab_size": n, "normalization_rule_tsv": "rules.tsv"}  # the name is in the model
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        Path("rules.tsv").write_text(_rules(), encoding="utf-8")
        sentencepiece.SentencePieceTrainer.train(num_threads=1, minloglevel=2, **more)
    return out.getvalue()


def _rules():
    """Lines of codes before and after: what NFKC does to some characters, blanks are one blank."""
    characters = [*"ﬁﬂ½①②³²Ⅳ…℃㈱", *map(chr, range(0xFF01, 0xFF5F))]
    rules = {c: unicodedata.normalize("NFKC", c) for c in characters}
    rules |= {"e\u0301": "é", "\u200b": " ", "\ufeff": "", "\x07": ""}
    rules |= dict.fromkeys("\u00a0\u3000\t", " ")
    lines = []
    for before, after in rules.items():
        sides = (" ".join(f"{ord(c):X}" for c in side) for side in (before, after))
        lines.append("\t".join(sides))
    return "\n".join(lines) + "\n"


def training():
    """What the models are trained on: the novel, and German sentences without inserts."""
    novel = [line for line in NOVEL.read_text(encoding="utf-8").split("\n") if line]
    german = [text for text in targets() if text.isprintable()][::2]
    return novel, german


def marian(folder, kind, separate):
    """Marian's files: the pieces of two models in one vocabulary, or in one for each."""
    folder.mkdir(parents=True, exist_ok=True)
    vocabularies = []
    for side, texts, n in zip(("source", "target"), training(), (400, 240)):
        (folder / f"{side}.spm").write_bytes(model(kind, texts, n))
        vocabularies.append(_pieces(folder / f"{side}.spm"))
    settings = {"source_lang": "en", "target_lang": "de", "separate_vocabs": separate}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    if not separate:
        vocabularies = [dict.fromkeys([*vocabularies[0], *vocabularies[1]])]
    for name, pieces in zip(("vocab.json", "target_vocab.json"), vocabularies):
        own = [piece for piece in pieces if piece not in ("<s>", "</s>", "<unk>")]
        # some pieces of the models are in no vocabulary, as in real folders
        kept = [piece for i, piece in enumerate(own) if i % 29 != 28]
        names = ["</s>", "<unk>", ">>fra<<", ">>deu<<", *kept]
        names.insert(2 if separate else len(names), "<pad>")
        ids = {piece: i for i, piece in enumerate(names)}
        (folder / name).write_text(json.dumps(ids, ensure_ascii=False), encoding="utf-8")


def _pieces(path):
    import sentencepiece

    processor = sentencepiece.SentencePieceProcessor(model_file=str(path))
    return dict.fromkeys(processor.id_to_piece(i) for i in range(processor.get_piece_size()))


def t5(folder):
    """T5's file: padding, the end and the unknown piece come first."""
    folder.mkdir(parents=True, exist_ok=True)
    first = {"pad_id": 0, "eos_id": 1, "unk_id": 2, "bos_id": -1}
    (folder / "spiece.model").write_bytes(model("unigram", training()[0], 400, **first))


def bart(folder):
    """BART's files: bytes, merged, as RoBERTa's."""
    import tokenizers

    folder.mkdir(parents=True, exist_ok=True)
    bpe = tokenizers.ByteLevelBPETokenizer()
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    options = dict(vocab_size=500, special_tokens=special, show_progress=False)
    bpe.train_from_iterator(training()[0], **options)
    bpe.save_model(str(folder))
    vocab = json.loads((folder / "vocab.json").read_text(encoding="utf-8"))
    vocab["<mask>"] = len(vocab)
    (folder / "vocab.json").write_text(json.dumps(vocab, ensure_ascii=False), encoding="utf-8")


def reference(kind):
    import transformers

    names = {"t5": "T5Tokenizer", "t5-json": "T5Tokenizer", "bart": "BartTokenizer"}
    return getattr(transformers, names.get(kind, "MarianTokenizer")).from_pretrained(HERE / kind)


# name of the ids -> folder, whether as a target
VARIANTS = {
    "marian": ("marian", False),
    "marian_target": ("marian", True),
    "separate": ("separate", False),
    "separate_target": ("separate", True),
    "t5": ("t5", False),
    "t5-json": ("t5-json", False),
    "bart": ("bart", False),
}


def main():
    shutil.rmtree(HERE, ignore_errors=True)
    texts = {"sources": sources(), "targets": targets()}
    marian(HERE / "marian", "unigram", separate=False)
    marian(HERE / "separate", "bpe", separate=True)
    t5(HERE / "t5")
    bart(HERE / "bart")
    (HERE / "t5-json").mkdir()
    reference("t5").backend_tokenizer.save(str(HERE / "t5-json" / "tokenizer.json"), pretty=False)
    for name, lines in texts.items():
        assert len(lines) == N and not any("\n" in line for line in lines)
        (HERE / f"{name}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    named, decoded = {}, {}
    for name, (folder, is_target) in VARIANTS.items():
        tokenizer = reference(folder)
        name_of_texts, keyword = ("targets", "text_target") if is_target else ("sources", "text")
        lines = texts[name_of_texts]
        named[name] = ids = [tokenizer(**{keyword: line})["input_ids"] for line in lines]
        # the library takes all ids for the target's
        if name != "separate":
            decode = tokenizer.decode
            decoded[name] = [decode(row, skip_special_tokens=True) for row in ids[::3]]
    text = json.dumps(decoded, ensure_ascii=False, indent=0)
    (HERE / "decoded.json").write_text(text + "\n", encoding="utf-8")
    make_japanese.write_ids(HERE, named, ("transformers", "tokenizers", "sentencepiece"))


if __name__ == "__main__":
    main()
