"""The HTML page about runs: `page.py` puts it together, the other files hold its parts."""
