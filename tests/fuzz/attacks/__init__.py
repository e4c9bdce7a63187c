"""One file per attack: `prepare(folder)` makes what its cases begin with, `case(pick, material, folder)` is one try.

A case draws everything from `pick`. It raises if Surefoot did anything but work or refuse with a typed error.
"""
