"""The HTML report about runs: `page.py` assembles it from the parts in the other files."""
