"""nmt-serve under load: many clients, each of which sends one sentence after the other, against nmt-translate.

    python -m benchmarks.serve_load --model MODEL --input test.en [--clients 50] [--seconds 60]

First the sentences, one a line, are translated as nmt-translate does, which gives the right answers and the speed to
compare with. Then so many clients ask a server of its own process for one sentence at a time, over connections that
stay open: each answer must be the right one. In a third of that time again, SIGTERM comes in the middle: what was sent
before must be answered. Exit code 1 where an answer is wrong, lost, or an error.

The clients are a process of their own (`serve_clients`), which takes little of the cores that it shares with the
server: its processor time is printed beside the server's.
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
from collections.abc import Mapping, Sequence
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from benchmarks.serve_clients import Answer
from nmt.data.corpus import read_lines
from nmt.decoding.translator import Translator
from nmt.models.model_file import load_model

WARM = 3.0  # seconds before anything is counted


class Clients:
    """So many clients in a process of their own, which ask until `stop`, or until the server stops."""

    def __init__(self, port: int, lines: Sequence[str], pair: tuple[str | None, str | None], number: int) -> None:
        source, target = pair
        bodies = [json.dumps({"q": line, "source": source, "target": target}) for line in lines]
        command = [sys.executable, "-m", "benchmarks.serve_clients", str(port), str(number)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdin is not None
        self._process.stdin.write(f"{json.dumps(bodies)}\n")
        self._process.stdin.flush()

    def results(self) -> dict[str, Any]:
        """What they got, as `serve_clients` writes it; their input ends with the call, which has them stop."""
        text, _ = self._process.communicate()
        results: dict[str, Any] = json.loads(text)
        results["answers"] = [Answer(*answer) for answer in results["answers"]]
        return results


def _counted(asked: Mapping[str, Any], expected: Sequence[str]) -> Counter[str]:
    """How many answers there are of which kind."""
    counts: Counter[str] = Counter()
    for answer in asked["answers"]:
        fields = json.loads(answer.body)
        if answer.status == 200:
            counts["right" if fields["translatedText"] == expected[answer.place] else "wrong"] += 1
        elif answer.status == 503 and "stopping" in fields["error"]:
            counts["told that it stops"] += 1
        else:
            counts[f"status {answer.status}"] += 1
    if asked["refused"]:
        counts["refused a connection"] = asked["refused"]
    return counts


class Server:
    """nmt-serve in a process of its own, with the options."""

    def __init__(self, model: Path, options: Sequence[str]) -> None:
        command = [sys.executable, "-m", "nmt", "serve", "--model", str(model), "--port", "0", "--device", "cpu"]
        command += ["--split-sentences", "false"]  # as nmt-translate does
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

    def processor(self) -> float:
        """Seconds of processor time, on Linux."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

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
    speed, processor, expected = _translated(options.model, lines)
    print(f"nmt-translate: {len(lines)} sentences, {speed:.1f} sentences/s, {processor:.2f} ms of processor time each")
    data = load_model(options.model).config.data
    pair = data.source_language, data.target_language

    server = Server(options.model, others)
    clients = Clients(server.port, lines, pair, options.clients)
    time.sleep(WARM)
    began, memory, computed = time.monotonic(), server.memory(), server.processor()
    batches, in_batches = (server.metric(f"nmt_batch_lines_{name}") for name in ("count", "sum"))
    time.sleep(options.seconds)
    ended, computed = time.monotonic(), server.processor() - computed
    mean = (server.metric("nmt_batch_lines_sum") - in_batches) / (server.metric("nmt_batch_lines_count") - batches)
    growth = server.memory() - memory
    asked = clients.results()
    code = server.end()
    latencies = sorted(one.got - one.sent for one in asked["answers"] if began <= one.sent and one.got <= ended)
    within = sum(began <= one.got <= ended for one in asked["answers"])
    served = within / (ended - began)
    median, late = statistics.median(latencies), latencies[int(0.99 * len(latencies))]
    counts = _counted(asked, expected)
    print(f"nmt-serve: {options.clients} clients, {within} answers in {ended - began:.0f} s, {served:.1f}/s")
    print(f"  {served / speed:.2f} of nmt-translate; batches of {mean:.1f} sentences; memory {growth:+.0f} MB")
    print(f"  latency: median {1000 * median:.0f} ms, 99th percentile {1000 * late:.0f} ms")
    print(
        f"  processor time an answer: server {1000 * computed / within:.2f} ms, "
        f"clients {1000 * asked['processor'] / len(asked['answers']):.2f} ms"
    )
    print(f"  answers: {dict(counts)}; without an answer: {len(asked['broken'])}; exit code {code}", flush=True)
    failed = set(counts) != {"right"} or bool(asked["broken"]) or code != 0

    server = Server(options.model, others)
    clients = Clients(server.port, lines, pair, options.clients)
    time.sleep(WARM + options.seconds / 3)
    told = time.monotonic()
    code = server.end()
    asked = clients.results()
    counts = _counted(asked, expected)
    lost = sum(sent < told for sent in asked["broken"])
    held = sum(one.sent < told < one.got for one in asked["answers"])
    print(f"SIGTERM: {held} requests were held and answered, {lost} lost; {dict(counts)}; exit code {code}")
    unexpected = set(counts) - {"right", "told that it stops", "refused a connection"}
    return 1 if failed or lost or unexpected or code != 0 else 0


def _translated(model: Path, lines: Sequence[str]) -> tuple[float, float, list[str]]:
    """The sentences a second of nmt-translate, its milliseconds of processor time for each, and what it writes.

    The first sentences are translated twice.
    """
    translator = Translator.load(model)
    list(translator.translate(lines[:100]))
    began, processor = time.monotonic(), time.process_time()
    translations = [best[0].text for best in translator.translate(lines)]
    seconds, processor = time.monotonic() - began, time.process_time() - processor
    return len(lines) / seconds, 1000 * processor / len(lines), translations


if __name__ == "__main__":
    sys.exit(main())
