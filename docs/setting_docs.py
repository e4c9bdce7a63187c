"""Extension of griffe for the API reference: fields that are documented without a docstring.

A setting has its default and description in `Field(default, description=...)`, a tensor its shape in a comment.
"""

import ast
import re
from typing import Any

import griffe


class SettingDocs(griffe.Extension):
    """Reads settings of pydantic models, and comments after the fields of records."""

    def on_attribute_instance(self, *, attr: griffe.Attribute, **kwargs: Any) -> None:
        """Give the attribute a docstring if it has none; a call of Field is replaced by its default."""
        call = attr.value
        text = _comment(attr)
        if isinstance(call, griffe.ExprCall) and str(call.function) == "Field":
            named = {one.name: one.value for one in call.arguments if isinstance(one, griffe.ExprKeyword)}
            defaults = [one for one in call.arguments if not isinstance(one, griffe.ExprKeyword)]
            attr.value = defaults[0] if defaults else None
            text = _description(named.get("description"))
        if text and attr.docstring is None:
            attr.docstring = griffe.Docstring(text, parent=attr)


def _description(expression: Any) -> str:
    """A description as a sentence; sections of the config have none."""
    if expression is None:
        return "A section of the config."
    try:
        text = str(ast.literal_eval(f"({expression})"))
    except ValueError:  # computed, as some settings of parts are; the settings page has them
        return ""
    return f"{text[0].upper()}{text[1:]}."


def _comment(attr: griffe.Attribute) -> str:
    """What a comment says after a field, with shapes as code."""
    if attr.lineno is None or not attr.parent or not attr.parent.is_class:
        return ""
    _, _, comment = attr.lines_collection[attr.filepath][attr.lineno - 1].partition("  # ")
    return re.sub(r"^(\[.*?](?: each| bool)?)", r"`\1`", comment)
