"""Quotes values of users in error messages."""

_LONGEST = 60


def quoted(value: object) -> str:
    """A value in one line of bounded length, even if its `repr` fails."""
    try:
        text = " ".join(repr(value).split())
    except Exception:
        return f"a {type(value).__name__}"
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "..."
