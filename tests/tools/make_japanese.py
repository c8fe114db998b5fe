"""Makes tests/golden/japanese: 1,000 Japanese sentences, a vocabulary, the reference library's ids.

Needs fugashi and ipadic (the extra `test` has them) and the reference library.

sentences.txt: one a line; 400 are a template with words drawn for its slots, 300 are two of these
in one line, 300 have something in them that is awkward to split. vocab.txt: word pieces of their
words; some characters are left out, so that there are unknown words. ids.npz: the library's ids of
all sentences, `wordpiece` and `character`, one sentence after another, and how many there are of
each, `wordpiece_lengths` and `character_lengths`.
"""

import json
import random
import shutil
from collections import Counter
from importlib.metadata import version
from pathlib import Path

import numpy as np

HERE = Path(__file__).parents[1] / "golden" / "japanese"
SPECIAL = "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"
SLOTS = {
    "who": "私 彼女 山田さん 隣の猫 新しい先生 子どもたち 東京の友人 図書館の司書 研究者 祖父 駅員 "
    "その画家 弟 医師 留学生 社長 漁師 大学院生 警察官 村の人々",
    "when": "昨日 今朝 来週の月曜日 一九九八年の夏 真夜中に 雨の日に 二、三日前 毎年三月 夕方 "
    "卒業式の後 正午ごろ 平成十二年 このごろ 子どものころ",
    "where": "京都 海辺の町 学校の裏 古い書店 研究室 北海道の牧場 駅前の喫茶店 山の上 "
    "市役所の三階 川沿いの道 工場 美術館",
    "what": "手紙 機械翻訳の論文 りんご 自転車 長い小説 位置埋め込み 写真 統計の教科書 味噌汁 "
    "注意機構の図 天気予報 ニュース 古い地図 桜の木 言語モデル",
    "does": "読んだ 書き直した 探していた 食べてしまった 見つけた 忘れられない 友だちに見せた "
    "買わなかった 調べている 直そうとした 大切にしている 描きはじめた 持ってこなかった",
    "how": "ゆっくり 静かに なんとなく 一生懸命 たまに 思ったより早く いつものように すっかり",
}
TEMPLATES = (
    "{when}、{who}は{where}で{what}を{does}。",
    "{who}が{how}{what}を{does}のは{when}のことだった。",
    "「{what}を{does}」と{who}は{where}で言った。",
    "{where}に行けば、{who}が{how}{what}を{does}かもしれない。",
    "{when}から{who}は{what}を{does}が、{where}の{who2}はそうではなかった。",
    "なぜ{who}は{where}の{what}を{does}のだろうか?",
    "{how}{does}{what}について、{who}と{who2}が{where}で話し合った。",
    "{who}によると、{when}{where}では誰も{what}を{does}とは思わなかったらしい。",
)
# what is put into a sentence: other forms of width, numbers, Latin, signs, rare characters
AWKWARD = (
    "ＢＥＲＴ GPT-2 ＡＢＣ１２３ ﾊﾝｶｸｶﾅ ﾊﾟﾋﾟﾌﾟ か゛ が 3.14% １，０００円 ℃ ㈱ ① ㍻ ﷺ "
    "http://example.org/a_b?c=1 [MASK] [SEP] 😀 👨‍👩‍👧 々 ヶ月 ゝ 〜 … "
    "―― （笑） 『』 《》 ・ ／ ＝ × ± x² H₂O café Ünï ёж 한국어 中文 鬱 龘 𠮷野家 神 "
    "神󠄀 ー っ ンジャメナ コンピュータ・サイエンス ああああああ wwww Transformer's "
    "e-mail@x.jp"
).split()
AWKWARD += ["\u3000", "  ", "\u00a0", "\u200b", "\ufeff", "\t", "ー" * 120, "a" * 101, "W" * 100]


def sentences():
    rng = random.Random(0)

    def simple():
        words = {slot: rng.choice(text.split()) for slot, text in SLOTS.items()}
        return rng.choice(TEMPLATES).format(**words, who2=rng.choice(SLOTS["who"].split()))

    first = [simple() for _ in range(400)]
    double = [simple() + simple() for _ in range(300)]
    awkward = []
    for i in range(300):
        text, insert = simple(), AWKWARD[i % len(AWKWARD)]
        place = rng.randrange(len(text) + 1)
        awkward.append(text[:place] + insert + text[place:])
    return [*first, *double, *awkward]


def vocabulary(texts):
    """Pieces of the words of these texts: frequent words, ends of words, most characters."""
    import fugashi
    import ipadic
    from tokenizers.normalizers import NFKC

    tagger = fugashi.GenericTagger(ipadic.MECAB_ARGS)
    words = Counter()
    for text in texts:
        words.update(word.surface for word in tagger(NFKC().normalize_str(text)))
    characters = sorted({character for word in words for character in word})
    kept = [character for i, character in enumerate(characters) if i % 23]
    frequent = [word for word, n in words.most_common(400) if 1 < len(word) < 12]
    ends = [f"##{word[1:]}" for word in frequent[::3]]
    pieces = [*SPECIAL, *kept, *(f"##{x}" for x in kept), *frequent[::2], *ends]
    return list(dict.fromkeys(pieces))


def tokenizer_folder(folder, kind, **more):
    """A tokenizer's folder as the Japanese BERTs have it; kind: of its pieces."""
    settings = {"tokenizer_class": "BertJapaneseTokenizer", "do_lower_case": False}
    settings |= {"word_tokenizer_type": "mecab", "subword_tokenizer_type": kind}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tokenizer_config.json").write_text(json.dumps(settings | more))
    shutil.copy(HERE / "vocab.txt", folder / "vocab.txt")
    return folder


def reference_ids(texts, kind, **more):
    from transformers import BertJapaneseTokenizer

    tokenizer = BertJapaneseTokenizer(
        str(HERE / "vocab.txt"),
        word_tokenizer_type="mecab",
        subword_tokenizer_type=kind,
        mecab_kwargs={"mecab_dic": "ipadic"},  # its own is unidic_lite by now
        **more,
    )
    return [tokenizer(text)["input_ids"] for text in texts]


# variant -> kind of its pieces, further settings
VARIANTS = {
    "wordpiece": ("wordpiece", {}),
    "character": ("character", {"do_lower_case": True}),
}


def main():
    HERE.mkdir(exist_ok=True)
    texts = sentences()
    assert len(texts) == 1000 and not any("\n" in text for text in texts)
    (HERE / "sentences.txt").write_text("\n".join(texts) + "\n", encoding="utf-8")
    (HERE / "vocab.txt").write_text("\n".join(vocabulary(texts)) + "\n", encoding="utf-8")
    ids = {name: reference_ids(texts, kind, **more) for name, (kind, more) in VARIANTS.items()}
    write_ids(HERE, ids, ("transformers", "tokenizers", "fugashi", "ipadic"))


def write_ids(folder, named, packages):
    """Write the ids of lists of texts, by name, how many each text has, and the versions."""
    arrays = {}
    for name, ids in named.items():
        arrays[name] = np.concatenate(ids).astype(np.uint16)
        arrays[f"{name}_lengths"] = np.array([*map(len, ids)], np.uint16)
    np.savez_compressed(folder / "ids.npz", **arrays)
    versions = {package: version(package) for package in packages}
    (folder / "versions.json").write_text(json.dumps(versions, indent=1) + "\n")


if __name__ == "__main__":
    main()
