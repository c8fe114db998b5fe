"""What a lesson's cells compute: tests compare it with what the lesson's prose says of it."""

import contextlib
import io

import matplotlib

from minitx.lessons import notebook


def names(number):
    """The names that the cells of a lesson define, and under "printed" the text of each cell.

    Cells run in this process, one after the other, but for the last, the kit's own experiment.
    """
    code = [cell.source for cell in notebook.get(number).cells if cell.kind == "code"]
    defined, printed = {"__name__": "lesson"}, []
    with matplotlib.rc_context({"backend": "agg"}):
        for i, source in enumerate(code[:-1]):
            text = io.StringIO()
            with contextlib.redirect_stdout(text):
                exec(compile(source, f"lesson {number}, cell {i}", "exec"), defined)
            printed.append(text.getvalue())
        matplotlib.pyplot.close("all")
    return defined | {"printed": printed}
