"""Checks of an experiment's options: each raises ValueError that says what was given and wanted."""


def at_least(name, value, least):
    """Raise ValueError unless an option is `least` or more."""
    if value < least:
        raise ValueError(f"--{name} is {value}; wanted {least} or more")


def within(name, value, least, most):
    """Raise ValueError unless least <= value <= most; a figure of more could not be read."""
    if not least <= value <= most:
        raise ValueError(f"--{name} is {value}; wanted {least} to {most}")


def several(documents, least=2):
    """Raise ValueError unless an interval can be drawn: for one document it has no width."""
    if len(documents) < least:
        raise ValueError(
            f"--documents: {len(documents)} read; an interval over documents needs at least {least}"
        )
