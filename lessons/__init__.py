"""Lessons: notebooks in which every number is computed in front of the reader.

notebook  a lesson's file: its cells, its translation, its .ipynb
build     executes a lesson and makes a page of it
sphinx    what pages look like: the settings that docs/ and a single lesson have in common
command   `minitx lesson`
checks    what tells a reader whether an exercise is solved, a file a lesson
"""

from .notebook import Lesson, every, get

__all__ = ["Lesson", "every", "get"]
