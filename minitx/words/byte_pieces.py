"""Readable labels of tokens that are bytes: letters, and of a letter in several tokens its part."""

from functools import cache


def labels(tokenizer, ids):
    """A label for each id; bytes that make no letter are shown as <0xE6>."""
    from tokenizers.decoders import ByteLevel

    added = tokenizer.get_added_tokens_decoder()
    suffix = getattr(tokenizer.model, "end_of_word_suffix", None) or ""
    of_bytes = isinstance(tokenizer.decoder, ByteLevel)
    pieces = []
    for i in ids:
        piece = tokenizer.id_to_token(i) or f"<{i}>"
        alphabet = _alphabet() if of_bytes and i not in added else None
        pieces.append(_bytes(piece.removesuffix(suffix), alphabet))
    return parts(pieces)


def parts(pieces):
    """Pieces of UTF-8 -> their letters; one that several pieces share as 東 1/3, 東 2/3, 東 3/3."""
    shown = [""] * len(pieces)
    owner = [i for i, piece in enumerate(pieces) for _ in piece]
    start = 0
    data = b"".join(pieces)
    for letter in data.decode("utf-8", "surrogateescape"):
        end = start + len(letter.encode("utf-8", "surrogateescape"))
        owners = sorted({*owner[start:end]})
        start = end
        if "\udc80" <= letter <= "\udcff":  # a byte of no letter
            byte = ord(letter) - 0xDC00
            shown[owners[0]] += f"<0x{byte:02X}>"
            continue
        for part, i in enumerate(owners, 1):
            shown[i] += letter
            if len(owners) > 1:
                shown[i] += f" {part}/{len(owners)}"
    return shown


def _bytes(piece, alphabet):
    """The bytes of a piece: by an alphabet of bytes, or of a text in which <0xE6> is one."""
    if alphabet is not None:
        return b"".join(alphabet.get(letter, letter.encode()) for letter in piece)
    is_byte = len(piece) == 6 and piece.startswith("<0x") and piece.endswith(">")
    if is_byte and piece[3] in "89ABCDEF":  # others are letters of one byte
        return bytes.fromhex(piece[3:5])
    return piece.encode("utf-8", "surrogatepass")


@cache
def _alphabet():
    """{letter: its byte} of byte-level BPE (GPT-2): those that cannot be printed are moved up."""
    printed = [
        *range(33, 127),
        *range(161, 173),
        *range(174, 256),
    ]
    moved = [byte for byte in range(256) if byte not in printed]
    letters = {chr(byte): byte for byte in printed}
    letters |= {chr(256 + i): byte for i, byte in enumerate(moved)}
    return {letter: bytes([byte]) for letter, byte in letters.items()}
