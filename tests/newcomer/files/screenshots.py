"""Takes screenshots of pages with Chromium, if there is one."""

import shutil
import subprocess
import sys
from pathlib import Path

target, pages = Path(sys.argv[1]), [*map(Path, sys.argv[2:]), *Path(sys.argv[1]).glob("*.html")]
browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
if browser is None:
    print("no Chromium: no screenshots")
    sys.exit()
for page in pages:
    picture = target.resolve() / ("-".join(page.with_suffix("").parts) + ".png")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1200,3000"]
    options.append("--virtual-time-budget=20000")  # until the charts are drawn
    command = [browser, *options, f"--screenshot={picture}", page.resolve().as_uri()]
    subprocess.run(command, check=True, capture_output=True, timeout=600)
    print(picture.name)
