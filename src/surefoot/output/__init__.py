"""What people read: quoted values, exceptions in one line, streams and the terminal."""
