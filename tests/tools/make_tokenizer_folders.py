"""Makes tests/golden/tokenizer-folders.json: the reference library's ids in FOLDERS.

{folder's name: {"ids": ids of each of TEXTS, "pair": of PAIR}, or {"error": what it raises}}.
"""

import json
import tempfile
from pathlib import Path

import transformers
from tokenizer_folders import FOLDERS, PAIR, TEXTS, WORDS, write

GOLDEN = Path(__file__).parents[1] / "golden" / "tokenizer-folders.json"


def main():
    transformers.logging.set_verbosity_error()
    with tempfile.TemporaryDirectory() as place:
        answers = {
            name: of_library(write(Path(place) / name, files)) for name, files in FOLDERS.items()
        }
    lines = [f"{json.dumps(name)}: {json.dumps(answer)}" for name, answer in answers.items()]
    GOLDEN.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def of_library(folder):
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    except Exception as error:
        return {"error": type(error).__name__}
    ids = [tokenizer(text)["input_ids"] for text in TEXTS]
    answer = {"ids": ids, "pair": tokenizer(*PAIR)["input_ids"]}
    if folder.name.startswith("of "):  # those that were added with words
        words = tokenizer(list(WORDS), is_split_into_words=True)
        answer["words"] = words["input_ids"], words.word_ids()
    return answer


if __name__ == "__main__":
    main()
