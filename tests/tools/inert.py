"""Is what was written only shown? Reads pages, pictures and files as their programs do.

Each function gives what is wrong: a list of texts, empty where nothing in a file can act.
"""

import io
import json
import re
from xml.etree import ElementTree

import numpy as np
from elements import Elements

CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
ADDRESSES = "src", "href", "action", "formaction", "xlink:href", "data", "poster"
SAFE = "#", "data:image/", "data:font/"  # how addresses may begin
LINKS = "a", "link"  # which may lead elsewhere: nothing is asked for until they are clicked
SIGN = "hit()"  # what hostile texts call


def html(content):
    """A page: attributes and scripts that came from a text; data only programs read may have it."""
    wrong = []
    for tag, given, text in Elements(content.decode()).elements:
        attributes = {name: value or "" for name, value in given.items()}
        wrong += [f"{tag} has {name}" for name in attributes if name.startswith("on")]
        for name in ADDRESSES:
            address = attributes.get(name, "#")
            if tag not in LINKS and not address.startswith(SAFE):
                wrong.append(f"{tag} asks for {address[:60]}")
            if address.startswith("javascript:"):
                wrong.append(f"{tag} leads to {address[:60]}")
        if tag == "script" and "type" not in attributes and SIGN in text:
            wrong.append("a script has a text's words")
    return wrong


def xml(content):
    """A picture, or a report for a CI service."""
    text = content.decode()
    wrong = [f"has {word!r}" for word in CONTROL.findall(text)]
    for element in ElementTree.fromstring(text).iter():
        tag = element.tag.rpartition("}")[2]
        if tag in ("script", "foreignObject", "iframe", "handler"):
            wrong.append(f"has <{tag}>")
        for name, value in element.attrib.items():
            plain = name.rpartition("}")[2]
            if plain.startswith("on") or (plain == "href" and not value.startswith(SAFE)):
                wrong.append(f"{tag} has {name}={value[:60]}")
    return wrong


def markdown(content):
    """Tables and headings; in a table each row has as many cells as the first."""
    text = content.decode()
    wrong = [f"has {word}" for word in re.findall(r"(?<!`)<[a-z!/][^`]*?>", text)]
    for table in re.split(r"\n(?!\|)", text):
        sizes = {len(re.findall(r"(?<!\\)\|", line)) for line in table.strip().splitlines()[1:]}
        if table.lstrip().startswith("|") and len(sizes) > 1:
            wrong.append(f"rows of {sizes} cells")
    return wrong + terminal(text)


def png(content):
    """A picture, whose texts are those of a program's name at most."""
    return ["has a text"] if SIGN.encode() in content else []


def npz(content):
    """Arrays, without pickles."""
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        return [name for name in arrays if arrays[name].dtype == object]


def as_json(content):
    """JSON of the standard: no NaN."""
    json.loads(content, parse_constant=lambda name: 1 / 0)
    return []


def terminal(text):
    return [f"has {word!r}" for word in sorted({*CONTROL.findall(text)})]


READERS = {
    ".html": html,
    ".svg": xml,
    ".xml": xml,
    ".md": markdown,
    ".png": png,
    ".npz": npz,
    ".json": as_json,
    ".lock": len,
}
