"""Pages in a real browser: what Chromium makes of them."""

import gzip
import json
import os
import re
import shutil
import subprocess
from base64 import b64decode
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from surefoot.inspection.report.document import script_hash

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_PATIENCE_S = 120
_FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--hide-scrollbars"),
    # Nothing has a name here: neither the page nor the browser itself reaches anyone.
    *("--host-resolver-rules=MAP * ~NOTFOUND", "--virtual-time-budget=10000"),
)
_PROBE = """
(async () => {
  const wait = () => new Promise((done) => setTimeout(done, 30));
  while (!document.body.dataset.drawn) await wait();
  const report = await (async () => { %s })();
  await wait();  // Chromium reports what it blocked in a task of its own.
  const found = {
    problem: document.getElementById("problem").textContent,
    requests: performance.getEntriesByType("resource").map((entry) => entry.name),
    ...report,
  };
  const place = document.createElement("pre");
  place.id = "probe";
  place.textContent = JSON.stringify(found);
  document.body.append(place);
})();
"""


def unpacked(page: str, name: str) -> str:
    """The text of a packed element of a page: `plotly` or `data`."""
    return gzip.decompress(b64decode(page.partition(f'id="{name}">')[2].partition("</script>")[0])).decode()


def find_browser() -> str:
    """Chromium's path. Without one: skip, or fail where SUREFOOT_REQUIRE_BROWSER says that there must be one."""
    found = next((path for name in _NAMES if (path := shutil.which(name))), None)
    if found is None:
        reason = "no Chromium on this machine ('make browser' installs it)"
        if os.environ.get("SUREFOOT_REQUIRE_BROWSER"):
            pytest.fail(reason)
        pytest.skip(reason)
    return found


def probe(page: str, folder: Path, script: str, width: int = 1400) -> dict[str, Any]:
    """What a script finds once all charts are drawn, with whatever the page complained about and asked for."""
    file = folder / "probed.html"
    file.write_text(with_script(page, _PROBE % script), encoding="utf-8")
    dom = _run(folder, f"--window-size={width},2000", "--dump-dom", file.as_uri())
    found = re.search(r'<pre id="probe">(.*?)</pre>', dom, flags=re.DOTALL)
    assert found, f"the charts were never drawn: {dom[-2000:]}"
    result: dict[str, Any] = json.loads(unescape(found[1]))
    return result


def with_script(page: str, script: str, before: str = "</body>") -> str:
    """A page with one more script, which its content security policy allows."""
    head, tail = page.replace("script-src ", f"script-src {script_hash(script)} ", 1).rsplit(before, 1)
    return f"{head}<script>{script}</script>{before}{tail}"


def screenshot(page: str, folder: Path, width: int, height: int) -> Path:
    """A picture of the page."""
    file, picture = folder / "shown.html", folder / "shown.png"
    file.write_text(page, encoding="utf-8")
    _run(folder, f"--window-size={width},{height}", f"--screenshot={picture}", file.as_uri())
    return picture


def _run(folder: Path, *arguments: str) -> str:
    profile = folder / "profile"
    shutil.rmtree(profile, ignore_errors=True)
    command = [find_browser(), *_FLAGS, f"--user-data-dir={profile}", *arguments]
    done = subprocess.run(command, capture_output=True, timeout=_PATIENCE_S, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()
