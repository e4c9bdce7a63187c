"""The command line, called in this process: its exit code, if nothing but a typed error came of it."""

import contextlib
import io

from surefoot.cli.main import main


def surefoot(*arguments: object) -> int:
    """`surefoot ARGUMENTS`: 0, 1 for findings of `doctor`, or 2 with one message; anything else is a failure."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main([str(argument) for argument in arguments])
    assert code in (0, 1, 2), (code, out.getvalue(), err.getvalue())
    assert "Traceback" not in err.getvalue(), err.getvalue()
    assert not set("\x1b\x07\x9b") & set(out.getvalue() + err.getvalue()), "controls of the terminal"
    assert code != 2 or err.getvalue().startswith("error: "), err.getvalue()
    return code
