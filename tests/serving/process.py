"""A real server in a process of its own."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from threading import Thread

LONGEST = 300.0  # seconds until it listens, on a busy machine


class Server:
    """nmt-serve on a free port, listening. `stop` ends it."""

    def __init__(self, *options: str, cwd: Path | None = None) -> None:
        command = [sys.executable, "-m", "nmt", "serve", "--port", "0", "--device", "cpu", *options]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=cwd)
        self.errors: list[str] = []
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.errors.append(line)
            if match := re.search(r"listening on http://\S+:(\d+)$", line):
                self.port = int(match[1])
                break
        else:
            raise AssertionError("".join(self.errors))
        self._reader = Thread(target=lambda: self.errors.extend(self.process.stderr or ()), daemon=True)
        self._reader.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def memory(self) -> float:
        """Its resident memory in MB."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6

    def stop(self, number: int = signal.SIGTERM) -> tuple[int, list[str]]:
        """End it with a signal; returns its exit code and what it wrote to standard error."""
        self.process.send_signal(number)
        code = self.process.wait(LONGEST)
        self._reader.join()
        assert self.process.stderr is not None
        self.process.stderr.close()
        return code, self.errors
