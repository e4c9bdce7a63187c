"""The machine and its processes: cores, memory, threads, ranks and clusters."""
