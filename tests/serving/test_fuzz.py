"""Some hundred requests that hypothesis draws: 2xx or 4xx, never 5xx, and JSON with a reason wherever it is refused.

`python -m tests.serving.fuzz` sends ten thousand to a real server, and watches its memory.
"""

from collections.abc import Iterator

import pytest

pytest.importorskip("starlette", reason="the server needs the extra serve")

from hypothesis import HealthCheck, given, settings

from nmt.serving.api import Service, application
from nmt.serving.limits import Limits
from tests.serving.client import Client
from tests.serving.doubles import Backwards
from tests.serving.fuzz import Sent, requests


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    service = Service(Backwards(), limits=Limits(characters=1000, body=50_000))  # type: ignore[arg-type]
    yield Client(application(service))
    service.batcher.close()


@settings(max_examples=50, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(requests())
def test_any_request_is_answered_or_refused(client: Client, sent: Sent) -> None:
    headers = {} if sent.kind is None else {"content-type": sent.kind}
    answer = client.request(sent.method, sent.path, content=sent.body, headers=headers)
    assert 200 <= answer.status < 500
    if sent.path == "/translate" or answer.status >= 400:
        fields = answer.json() if sent.method != "HEAD" else {"error": ""}
        assert ("error" in fields) == (answer.status >= 400)
