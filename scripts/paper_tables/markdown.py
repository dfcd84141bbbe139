"""Numbers as text, and tables in Markdown."""

NONE = "–"


def number(value, decimals=0, unit="", scale=1.0):
    return NONE if value is None else f"{value * scale:,.{decimals}f}{unit}"


def percent(value, decimals=1):
    return number(value, decimals, " %", 100.0)


def megabytes(value, decimals=0):
    return number(value, decimals, " MB", 1e-6)


def last_and_whole(show, last, whole):
    """Of the last tenth, and of the whole run in brackets."""
    return NONE if last is None and whole is None else f"{show(last)} ({show(whole)})"


def between(values, unit="", scale=1.0):
    """The least and the greatest of those that are there."""
    values = [value for value in values if value is not None]
    if not values:
        return NONE
    least, greatest = (number(value, scale=scale) for value in (min(values), max(values)))
    return f"{greatest}{unit}" if least == greatest else f"{least} to {greatest}{unit}"


def table(title, head, rows, note="", labels=1):
    """A table with its title above it. A column in which no row has anything is left out, but the first `labels`, which say what
    the rows are of."""
    columns = [column for column in range(len(head)) if column < labels or any(row[column] not in (NONE, "") for row in rows)]
    print(f"\n**{title}.**{note and ' ' + note}\n")
    if len(columns) == labels:
        print("Nothing of it is measured.")
        return
    for row in (head, None, *rows):
        print(f"| {' | '.join(row[column] for column in columns)} |" if row else f"|{'---|' * len(columns)}")
