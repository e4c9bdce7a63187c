"""Settings: the typed config, how layers of it are merged, kinds of parts by name, and names of other libraries."""
