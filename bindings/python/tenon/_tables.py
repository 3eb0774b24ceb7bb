"""Tables for people: plain in a terminal, HTML in a notebook."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    Rows = list[list[str]]  # the first row is the head


def number(value: float) -> str:
    """Four digits, or all those before the point, without an exponent.

    >>> number(0.67732), number(9.4), number(22551.7)
    ('0.6773', '9.4', '22552')
    """
    return f"{value:.4g}" if value < 10000 else f"{value:.0f}"


def plain(title: str, rows: Rows, note: str = "") -> str:
    """Columns as wide as they need to be, the last one free."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip()
             for row in rows]
    return "\n".join([title, *lines, *([note] if note else [])])


def html(title: str, rows: Rows, note: str = "") -> str:
    """One table element with a caption; every text is escaped."""
    from html import escape

    head = "".join(f"<th>{escape(cell)}</th>" for cell in rows[0])
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>"
                   for row in rows[1:])
    foot = f"<p>{escape(note)}</p>" if note else ""
    return (f"<table><caption>{escape(title)}</caption><thead><tr>{head}</tr></thead>"
            f"<tbody>{body}</tbody></table>{foot}")
