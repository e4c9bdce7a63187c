"""What `surefoot bench` measures: each subject in a process of its own, in turns, with the spread shown."""
