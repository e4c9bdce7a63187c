"""`surefoot doctor RUN ...`"""

import json as json_format
from pathlib import Path

from surefoot.cli.arguments import Switch


def run(run: Path, /, json: Switch = False) -> int:
    """Diagnose a run: print its problems, the evidence and remedies. Exit code 0 if healthy, 1 if not.

    Args:
        run: a run directory; the run may be finished or still in progress
        json: print JSON
    """
    from surefoot.inspection.diagnosis import diagnose, print_diagnosis

    diagnosis = diagnose(run)
    if json:
        print(json_format.dumps(diagnosis.to_json(), indent=1))
    else:
        print_diagnosis(diagnosis)
    return 0 if diagnosis.is_healthy else 1
