"""SmolLM3 (Bakouch et al. 2025): Llama, in which every fourth layer turns nothing (NoPE)."""

from . import llama, qwen
from .family import Key

THETA = 2_000_000.0


def turning(raw, n):
    """Whether each layer turns queries and keys; where nothing is said, every n-th does not."""
    given, every = raw.get("no_rope_layers"), raw.get("no_rope_layer_interval", 4)
    if given is None:
        if type(every) is not int or every < 1:
            text = f"no_rope_layer_interval is {every!r:.80}"
            raise ValueError(f"{text}; expected a whole number above 0")
        return [(layer + 1) % every != 0 for layer in range(n)]
    if not isinstance(given, list) or len(given) < n or any(x not in (0, 1) for x in given):
        text = f"no_rope_layers are {given!r:.80}"
        raise ValueError(f"{text}; expected 0 or 1 for each of {n} layers")
    return [bool(x) for x in given[:n]]


def places(raw, values):
    """Layers that turn nothing may have a window."""
    n = values["n_layers"]
    turns = turning(raw, n)
    kinds = raw.get("layer_types")
    if kinds is None:
        has_windows = bool(raw.get("use_sliding_window"))
        kinds = [qwen.KINDS[has_windows and not turn] for turn in turns]
    windows = qwen.windows(raw | {"layer_types": kinds, "use_sliding_window": True}, values)
    theta = {"rope_theta": raw.get("rope_theta") or THETA}
    rotary = llama.places(raw | theta, values)["rotary"]
    of_layers = tuple(turn if is_on else None for turn, is_on in zip(rotary, turns))
    return windows | {"rotary": of_layers if any(turns) else ()}


FAMILY = llama.FAMILY._replace(
    config=llama.CONFIG | {"tied": Key("tie_word_embeddings", True)},
    places=places,
    knows=(*qwen.KNOWS, "no_rope_layers", "no_rope_layer_interval"),
)
