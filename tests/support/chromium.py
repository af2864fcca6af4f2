"""Which Chromium the browser tests use."""

from __future__ import annotations

import os
import shutil
from typing import Any

VARIABLE = "HARNESS_WEB_CHROMIUM"
_FLAGS = (
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # Each page in a process of its own, so that one can crash and the others live.
    "--site-per-process",
)
_FEATURES = (
    # The list under the address bar is a page of its own, loaded for every window and seen by no
    # test: it costs a second of CPU each time.
    "WebUIOmniboxPopup",
    "WebUIOmniboxAimPopup",
    # A process that waits for a next page, beside each that is open: it is started and thrown away.
    "SpareRendererForSitePerProcess",
    # What Playwright turns off and a list of ours would turn on again.
    "AvoidUnnecessaryBeforeUnloadCheckSync",
    "DestroyProfileOnBrowserClose",
    "HttpsUpgrades",
    "MediaRouter",
    "OptimizationHints",
    "Translate",
)
_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def installed_chromium() -> str | None:
    """The path of a browser that is on this machine; None leaves it to Playwright's own."""
    named = os.environ.get(VARIABLE)
    if named:
        return named
    return next((path for name in _NAMES if (path := shutil.which(name))), None)


def launch_options() -> dict[str, Any]:
    """What `chromium.launch(**options)` needs here."""
    options: dict[str, Any] = {"args": [*_FLAGS, f"--disable-features={','.join(_FEATURES)}"]}
    path = installed_chromium()
    if path is not None:
        options["executable_path"] = path
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        # Chromium does not start its sandbox for root, which is who runs tests in a container.
        options["chromium_sandbox"] = False
    return options
