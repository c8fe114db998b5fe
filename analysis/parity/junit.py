"""The outcome as JUnit XML, which CI services show: one test case for each layer.

pytest writes such a file of tests (minitx/testing.py is for these); `minitx verify` runs none.
"""

from xml.etree import ElementTree

from ..drawing import draw
from . import compare


def xml(parity, name):
    """A <testsuite> with a <testcase> for what each layer computes, and for what precedes them.

    A case fails with the layer's first differing point.
    """
    groups = {}
    for row in parity.rows:
        groups.setdefault(place(row.point), []).append(row)
    failed = 0
    suite = ElementTree.Element("testsuite", name=f"minitx verify {name}")
    for title, rows in groups.items():
        case = ElementTree.SubElement(suite, "testcase", classname=name, name=title)
        over = [row for row in rows if not row.share <= parity.bound]
        if over:
            failed += 1
            text = f"{over[0].name} differs by {over[0].share:.1e} of its largest value"
            failure = ElementTree.SubElement(case, "failure", message=text)
            failure.text = f"at {compare.where(over[0], parity)}; {len(over)} of {len(rows)} differ"
    suite.attrib |= {"tests": str(len(groups)), "failures": str(failed)}
    ElementTree.indent(suite)
    text = ElementTree.tostring(suite, encoding="unicode", xml_declaration=True)
    return draw.printable(text) + "\n"


def place(point):
    """The part of the forward pass in which a point lies."""
    name = point if isinstance(point, str) else point[0]
    stack = "encoder, " if name.startswith("enc_") else ""
    if isinstance(point, tuple):
        return f"{stack}layer {point[1]}"
    return f"{stack}{name}"
