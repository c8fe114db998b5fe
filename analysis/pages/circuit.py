"""A circuit as a figure and as files."""

from ..drawing import draw
from ..machine.files import as_json, finite, write_all
from ..measures import circuit_drawing


def figure(circuit):
    """The circuit's largest edges, layer above layer: a matplotlib Figure."""
    with draw.style():
        edges = circuit.edges[: circuit_drawing.SHOWN]
        places = circuit_drawing.places_of(edges)
        n_rows = len({y for _, y in places.values()})
        width = max(5.0, circuit_drawing.width_of(places))
        picture = draw.figure(width, 1.4 + 0.75 * n_rows)
        circuit_drawing.graph(picture.add_subplot(), edges, circuit.scores)
        return draw.headed(picture, title(circuit, len(edges)))


def title(circuit, n_shown):
    """What the circuit carries, beside chance, in a line."""
    n = len(circuit.edges)
    edges = f"{n} edges" if n_shown == n else f"the largest {n_shown} of {n} edges"
    carried = f"faithfulness {circuit.faithfulness:.2f}, random circuits {circuit.null:.2f} (99%)"
    return f"{edges}: {carried}"


def save(circuit, folder):
    """Write circuit.json and circuit.svg into a folder, which is made if it is not there."""
    folder.mkdir(parents=True, exist_ok=True)
    text = as_json(finite(circuit.to_dict())) + "\n"
    with draw.style():
        picture = draw.svg(figure(circuit))
    write_all({folder / "circuit.json": text, folder / "circuit.svg": picture})
    return folder
