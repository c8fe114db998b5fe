"""The elements of a page, as a browser would find them."""

import json
from html.parser import HTMLParser


class Elements(HTMLParser):
    """[tag, attributes, text inside] of every element, in order."""

    def __init__(self, page):
        super().__init__()
        self.elements, self._inside = [], False
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.elements.append([tag, dict(attributes), ""])
        self._inside = True

    def handle_endtag(self, tag):
        """Text behind it is of no element."""
        self._inside = False

    def handle_data(self, text):
        if self._inside:
            self.elements[-1][2] += text

    def all(self, tag):
        return [element for element in self.elements if element[0] == tag]

    @property
    def held(self):
        """{id: text} of the scripts that hold data."""
        return {x["id"]: text for _, x, text in self.all("script") if "id" in x}

    @property
    def data(self):
        """What the page's program reads."""
        return json.loads(self.held["data"])

    @property
    def programs(self):
        """The texts of the others."""
        return [text for _, x, text in self.all("script") if "id" not in x]
