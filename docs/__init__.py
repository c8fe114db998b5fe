"""The documentation: `python -m docs` makes docs/_build/html, which works from disk.

build      what is put together, in which order
cache      what was computed is kept from build to build, as long as no source has changed
notebooks  pages with code: lessons, how-to pages; executed
contents   the page of all lessons with their map, and the plans of courses
gallery    a page for each experiment
works      how to cite, and whose figures the experiments reproduce
reference  pages of names, points, commands and words, written from the code
handouts   lessons as PDF, of four pages at most: python -m docs.handouts
links      every link and resource of the finished pages
conf.py    Sphinx's settings; pages/ has what is written by hand
"""
