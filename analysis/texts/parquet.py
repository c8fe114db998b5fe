"""Documents of a Parquet file, one row at a time; a few pages of its columns are held at once."""

import contextlib

ROWS = 256  # at once
BUFFER = 1 << 20  # bytes of a column that are read ahead


@contextlib.contextmanager
def opened(path):
    """A Parquet file, which is closed behind; raises ValueError for what is none."""
    try:
        import pyarrow.parquet
    except ImportError:
        text = f"{path.name!r} is a Parquet file; to read it: pip install 'minitx[parquet]'"
        raise ValueError(text) from None
    with path.open("rb") as stream, _named(path, "it"):
        how = {"buffer_size": BUFFER, "pre_buffer": False}
        with pyarrow.parquet.ParquetFile(stream, **how) as file:
            yield file


@contextlib.contextmanager
def _named(path, where):
    """What pyarrow raises inside becomes a ValueError with the file's name."""
    from pyarrow.lib import ArrowException

    try:
        yield
    except ConnectionError:  # of a URL, which it names
        raise
    except (ArrowException, OSError) as error:
        said = str(error).partition("\n")[0]
        raise ValueError(
            f"{path.name!r} is not a Parquet file, or is damaged: {where} cannot be read: {said}"
        ) from None


def columns(file):
    """Names of the columns of an open file."""
    return file.schema_arrow.names


def n_rows(path):
    """The number of rows, of which the end of the file tells."""
    with opened(path) as file:
        return file.metadata.num_rows


def check_text(file, names, where):
    """Raise ValueError unless these columns hold texts."""
    from pyarrow import types

    tests = "is_string", "is_large_string", "is_string_view"  # older versions have no views
    tests = [getattr(types, test) for test in tests if hasattr(types, test)]
    for name in names:
        kind = file.schema_arrow.field(name).type
        inner = kind.value_type if types.is_dictionary(kind) else kind
        if not any(is_text(inner) for is_text in tests):
            raise ValueError(f"{where}: column {name!r} holds {kind}, no text; wanted string")


def rows(path, file, names, choice):
    """(number of the row from 1, its cells {name: value}) of each row that is read.

    choice: see sampling.Every; groups of rows without one that is drawn are not read.
    """
    number = 0
    for group in range(file.num_row_groups):
        n = file.metadata.row_group(group).num_rows
        taken = choice.takes(n)
        if taken:
            with _named(path, f"group {group} of {file.num_row_groups} groups of rows"):
                for i, cells in _rows_of(file, group, names, taken):
                    where = f"{path.name}, row {number + i + 1}"
                    yield number + i + 1, {name: _value(x, name, where) for name, x in cells}
        number += n


def _value(cell, name, where):
    """A cell as Python has it; raises ValueError for a text that is not UTF-8."""
    try:
        return cell.as_py()
    except UnicodeDecodeError as error:
        wrong = f"is not valid UTF-8: byte {error.start} ({error.reason})"
        raise ValueError(f"{where}: column {name!r} {wrong}") from None


def _rows_of(file, group, names, taken):
    """(number inside the group, cells) of the rows of one group that are taken, in rising order."""
    wanted = iter(taken)
    i = next(wanted, None)
    first = 0
    for batch in file.iter_batches(ROWS, row_groups=[group], columns=[*dict.fromkeys(names)]):
        end = first + batch.num_rows
        while i is not None and i < end:
            yield i, [(name, batch.column(name)[i - first]) for name in names]
            i = next(wanted, None)
        if i is None:
            return
        first = end
