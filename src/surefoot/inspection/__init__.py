"""Looking at runs: what they recorded, what is wrong with them, pages about them. Never imports torch."""
