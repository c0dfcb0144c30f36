"""A real Chromium, driven by chromedriver over its HTTP interface (https://www.w3.org/TR/webdriver2/)."""

import base64
import json
import re
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # the name that the standard gives to references
ARGUMENTS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-dev-shm-usage",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip
PATIENCE = 120.0  # seconds, on a busy machine


class Browser:
    """One window. `folder` is for its profile."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        assert CHROMIUM is not None
        assert DRIVER is not None
        self._driver = subprocess.Popen([DRIVER, "--port=0"], stdout=subprocess.PIPE, text=True)
        assert self._driver.stdout is not None
        self._url = ""
        for line in self._driver.stdout:
            if match := re.search(r"successfully on port (\d+)", line):
                self._url = f"http://127.0.0.1:{match[1]}"
                break
        options = {"binary": CHROMIUM, "args": [*ARGUMENTS, f"--user-data-dir={folder}", *arguments]}
        capabilities = {"browserName": "chrome", "goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
        try:
            session = self._call("POST", "/session", {"capabilities": {"alwaysMatch": capabilities}})
        except BaseException:
            self._end()
            raise
        self._session = f"/session/{session['sessionId']}"

    def close(self) -> None:
        try:
            self._call("DELETE", self._session)
        finally:
            self._end()

    def _end(self) -> None:
        self._driver.terminate()
        self._driver.communicate()

    def open(self, url: str) -> None:
        self._do("/url", url=url)

    def run(self, script: str, *arguments: object) -> Any:
        """What a script returns."""
        return self._do("/execute/sync", script=script, args=arguments)

    def until(self, script: str, *arguments: object) -> Any:
        """The first result of a script that is true."""
        for _ in range(int(PATIENCE / 0.1)):
            if result := self.run(script, *arguments):
                return result
            time.sleep(0.1)
        raise AssertionError(f"never: {script}; the page says {self.run('return document.body.innerText')!r}")

    def find(self, css: str) -> str:
        return str(self._do("/element", using="css selector", value=css)[ELEMENT])

    def type(self, css: str, text: str) -> None:
        self._do(f"/element/{self.find(css)}/value", text=text)

    def click(self, css: str) -> None:
        self._do(f"/element/{self.find(css)}/click")

    def point(self, css: str) -> None:
        """Move the mouse over an element."""
        move = {"type": "pointerMove", "duration": 0, "x": 0, "y": 0, "origin": {ELEMENT: self.find(css)}}
        self._do("/actions", actions=[{"type": "pointer", "id": "mouse", "actions": [move]}])

    def press(self, *keys: str) -> None:
        """Keys, one after the other, to what has the focus."""
        actions = [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]
        self._do("/actions", actions=[{"type": "key", "id": "keyboard", "actions": actions}])

    def resize(self, width: int, height: int) -> None:
        self._do("/window/rect", width=width, height=height)

    def prefer(self, scheme: str) -> None:
        """Have the system prefer light or dark."""
        media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        self._do("/goog/cdp/execute", cmd="Emulation.setEmulatedMedia", params=media)

    def console(self) -> list[str]:
        """What the page, or the browser about it, has written since the last time."""
        return [entry["message"] for entry in self._do("/se/log", type="browser")]

    def picture(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self._call("GET", f"{self._session}/screenshot")))

    def _do(self, path: str, **fields: object) -> Any:
        return self._call("POST", f"{self._session}{path}", fields)

    def _call(self, method: str, path: str, fields: object = None) -> Any:
        body = None if fields is None else json.dumps(fields).encode()
        request = Request(f"{self._url}{path}", body, {"content-type": "application/json"}, method=method)
        with urlopen(request, timeout=PATIENCE) as response:
            return json.load(response)["value"]
