"""Looking at runs that are there: what they recorded, what is wrong with them, pages about them. Never imports torch."""
