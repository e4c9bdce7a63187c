"""What is read from and written to files: states by name, checked as they are read, and what they may import."""
