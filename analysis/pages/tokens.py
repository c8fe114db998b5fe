"""The design that all pages share: colours, light, dark and printed, and sizes; stated here alone.

The report, the film, the live page, the explorable one and the atlas take it as CSS (`css`); the
programs that draw as JavaScript (`script`); the documentation as variables of its theme (`theme`).
"""

import json

COLOURS = {  # light, dark
    "text": ("#1c1c1c", "#ecece8"),
    "soft": ("#5b5b58", "#adada7"),
    "back": ("#ffffff", "#141414"),
    "card": ("#f7f7f5", "#1f1f1e"),
    "line": ("#d6d6d0", "#42423e"),
    "link": ("#0059a3", "#7cc0ff"),
    "query": ("#0067a8", "#6cc0ff"),
    "key": ("#b84a00", "#ff9d57"),
    "chosen": ("#00785a", "#3ad6a6"),
    "bar": ("#3f8cc2", "#4f9bd6"),
    "more": ("#5b3a94", "#b9a6f0"),
    "less": ("#6b6000", "#d8cc4e"),
    "yes": ("#0b5f34", "#85dfae"),
    "yes-back": ("#e2f3e9", "#14301f"),
    "partly": ("#734800", "#f0c670"),
    "partly-back": ("#fcefd3", "#372a0c"),
    "no": ("#2f4f74", "#a9c6e8"),
    "no-back": ("#e3ecf6", "#1a2a3d"),
    "undecided": ("#5b3a94", "#c9b8f5"),
    "undecided-back": ("#efe9f9", "#2c2145"),
    "bad": ("#9c2a00", "#ff9f78"),
    "bad-back": ("#fde8e1", "#3b1a0e"),
    "paper": ("#ffffff", "#ffffff"),  # of figures that are files, light and dark: see `turned`
    # light and dark exchanged, hues kept: c -> 0.1 + 0.8 (c + 1 - 2 luma); white becomes #1a1a1a
    "turned": ("none", "invert(.9) hue-rotate(180deg)"),
}
LIGHT, DARK = ({name: pair[i] for name, pair in COLOURS.items()} for i in range(2))
PRINTED = LIGHT | {"text": "#000000", "soft": "#444444", "line": "#bbbbbb", "link": "#003d73"}
SIZES = {
    "font": "16px/1.5 system-ui, sans-serif",
    "h1": "1.75rem",
    "h2": "1.3rem",
    "h3": "1rem",
    "dense": ".93rem",  # tables, and pages that are tools
    "small": ".85rem",
    "prose": "70ch",  # the longest line of a text
    "round": ".4rem",  # corners of boxes
}
NARROW = {"h1": "1.35rem", "h2": "1.2rem"}  # on a phone
PHONE = "(max-width: 40rem)"


def css():
    """The tokens as variables of CSS, for a page in the system's theme.

    >>> css().partition("--text")[0]
    ':root { color-scheme: light dark; '
    """
    # pages whose theme is chosen have its colours on the element itself
    printed = _variables({name: f"{value} !important" for name, value in PRINTED.items()})
    return "\n".join(
        (
            f":root {{ color-scheme: light dark; {_variables(LIGHT | SIZES)} }}",
            f"@media (prefers-color-scheme: dark) {{ :root {{ {_variables(DARK)} }} }}",
            f"@media {PHONE} {{ :root {{ {_variables(NARROW)} }} }}",
            f"@media print {{ :root {{ color-scheme: light !important; {printed} }} }}\n",
        )
    )


def script():
    """The colours as a constant of JavaScript."""
    return f"const TOKENS = {json.dumps({'light': LIGHT, 'dark': DARK})};"


def theme(colours):
    """Variables of the documentation's theme (furo): those of the theme by their tokens, and all.

    >>> theme(LIGHT)["color-brand-content"] == LIGHT["link"]
    True
    """
    return {name: colours[token] for name, token in FURO.items()} | colours | SIZES


FURO = {
    "color-foreground-primary": "text",
    "color-foreground-secondary": "soft",
    "color-foreground-muted": "soft",
    "color-background-primary": "back",
    "color-background-secondary": "card",
    "color-background-border": "line",
    "color-brand-primary": "link",
    "color-brand-content": "link",
    "color-brand-visited": "link",
}


def _variables(tokens):
    return "; ".join(f"--{name}: {value}" for name, value in tokens.items())
