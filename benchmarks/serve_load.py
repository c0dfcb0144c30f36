"""nmt-serve under load: many clients, each of which sends one sentence after the other, against nmt-translate.

    python -m benchmarks.serve_load --model MODEL --input test.en [--clients 50] [--seconds 60]

First the sentences, one a line, are translated as nmt-translate does, which gives the right answers and the speed to
compare with. Then so many clients ask a server of its own process for one sentence at a time, over connections that
stay open: each answer must be the right one. In a third of that time again, SIGTERM comes in the middle: what was sent
before must be answered. Exit code 1 where an answer is wrong, lost, or an error. The clients take their share of the
same cores.
"""

import argparse
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from http.client import HTTPConnection, HTTPException
from itertools import count
from pathlib import Path
from threading import Event, Thread

from nmt.data.corpus import read_lines
from nmt.decoding.translator import Translator
from nmt.models.model_file import load_model

WARM = 3.0  # seconds before anything is counted


class Clients:
    """So many clients that ask until `stop`; what they got, by sentence."""

    def __init__(self, port: int, lines: Sequence[str], expected: Sequence[str], pair: tuple[str, str], number: int):
        self.port = port
        self.lines = lines
        self.expected = expected
        self.pair = pair
        self.stop = Event()
        self.counts: Counter[str] = Counter()
        self.answers: list[tuple[float, float]] = []  # when one was sent, and its latency
        self.broken: list[float] = []  # when one was sent that got no answer
        self._next = count()
        self._threads = [Thread(target=self._ask, daemon=True) for _ in range(number)]
        for thread in self._threads:
            thread.start()

    def join(self) -> None:
        for thread in self._threads:
            thread.join()

    def _ask(self) -> None:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=300)
        source, target = self.pair
        while not self.stop.is_set():
            place = next(self._next) % len(self.lines)
            body = json.dumps({"q": self.lines[place], "source": source, "target": target})
            sent = time.monotonic()
            try:
                connection.request("POST", "/translate", body, {"content-type": "application/json"})
                response = connection.getresponse()
                answer = json.load(response)
            except ConnectionRefusedError:
                self.counts["refused a connection"] += 1
                return
            except (OSError, HTTPException):
                self.broken.append(sent)
                connection.close()
                continue
            if response.status == 200:
                self.answers.append((sent, time.monotonic() - sent))
                right = answer["translatedText"] == self.expected[place]
                self.counts["right" if right else "wrong"] += 1
            elif response.status == 503 and "stopping" in answer["error"]:
                self.counts["told that it stops"] += 1
                return
            else:
                self.counts[f"status {response.status}"] += 1


class Server:
    """nmt-serve in a process of its own, with the options."""

    def __init__(self, model: Path, options: Sequence[str]) -> None:
        command = [sys.executable, "-m", "nmt.cli.serve", "--model", str(model), "--port", "0", "--device", "cpu"]
        command.append("--whole-lines")  # as nmt-translate does
        self.process = subprocess.Popen([*command, *options], stderr=subprocess.PIPE, text=True)
        assert self.process.stderr is not None
        told = ""
        for line in self.process.stderr:
            told += line
            if match := re.search(r":(\d+)$", line):
                self.port = int(match[1])
                return
        raise SystemExit(told)

    def metric(self, name: str) -> float:
        connection = HTTPConnection("127.0.0.1", self.port)
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
        connection.close()
        (value,) = re.findall(rf"^{name} (.+)$", text, re.MULTILINE)
        return float(value)

    def memory(self) -> float:
        """Resident megabytes, on Linux."""
        return int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6

    def end(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(300)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--input", type=Path, required=True, help="one sentence a line")
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--lines", type=int, default=None, help="of the input (default: all)")
    options, others = parser.parse_known_args()
    lines = [line for line in read_lines(options.input) if line.strip()][: options.lines]
    speed, expected = _translated(options.model, lines)
    print(f"nmt-translate: {len(lines)} sentences, {speed:.1f} sentences/s", flush=True)
    data = load_model(options.model).config.data
    pair = data.source_language, data.target_language

    server = Server(options.model, others)
    clients = Clients(server.port, lines, expected, pair, options.clients)
    time.sleep(WARM)
    began, memory = time.monotonic(), server.memory()
    batches, in_batches = (server.metric(f"nmt_batch_lines_{name}") for name in ("count", "sum"))
    time.sleep(options.seconds)
    ended = time.monotonic()
    mean = (server.metric("nmt_batch_lines_sum") - in_batches) / (server.metric("nmt_batch_lines_count") - batches)
    growth = server.memory() - memory
    clients.stop.set()
    clients.join()
    code = server.end()
    latencies = sorted(latency for sent, latency in clients.answers if began <= sent and sent + latency <= ended)
    served = len(latencies) / (ended - began)
    median, late = statistics.median(latencies), latencies[int(0.99 * len(latencies))]
    print(f"nmt-serve: {options.clients} clients, {len(latencies)} answers in {ended - began:.0f} s, {served:.1f}/s")
    print(f"  {served / speed:.2f} of nmt-translate; batches of {mean:.1f} sentences; memory {growth:+.0f} MB")
    print(f"  latency: median {1000 * median:.0f} ms, 99th percentile {1000 * late:.0f} ms")
    print(f"  answers: {dict(clients.counts)}; without an answer: {len(clients.broken)}; exit code {code}", flush=True)
    failed = set(clients.counts) != {"right"} or bool(clients.broken) or code != 0

    server = Server(options.model, others)
    clients = Clients(server.port, lines, expected, pair, options.clients)
    time.sleep(WARM + options.seconds / 3)
    asked = time.monotonic()
    code = server.end()
    clients.join()
    lost = sum(sent < asked for sent in clients.broken)
    after = sum(1 for sent, latency in clients.answers if sent < asked < sent + latency)
    print(f"SIGTERM: {after} requests were held and answered, {lost} lost; {dict(clients.counts)}; exit code {code}")
    unexpected = set(clients.counts) - {"right", "told that it stops", "refused a connection"}
    return 1 if failed or lost or unexpected or code != 0 else 0


def _translated(model: Path, lines: Sequence[str]) -> tuple[float, list[str]]:
    """The sentences a second of nmt-translate, and what it writes; the first sentences are translated twice."""
    translator = Translator.load(model)
    list(translator.translate(lines[:100]))
    began = time.monotonic()
    translations = [best[0].text for best in translator.translate(lines)]
    return len(lines) / (time.monotonic() - began), translations


if __name__ == "__main__":
    sys.exit(main())
