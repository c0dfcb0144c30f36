"""Numbers in Prometheus's text format, counted by hand."""

from nmt.serving.metrics import Histogram, Metrics


def test_a_histogram_counts_values_up_to_each_bound() -> None:
    histogram = Histogram((1, 2.5, 7))
    for value in (1, 1.5, 2.5, 9):
        histogram.observe(value)
    assert list(histogram.lines("x")) == [
        'x_bucket{le="1"} 1',
        'x_bucket{le="2.5"} 3',
        'x_bucket{le="7"} 3',
        'x_bucket{le="+Inf"} 4',
        "x_sum 14.000000",
        "x_count 4",
    ]


def test_every_number_has_a_type_and_a_meaning() -> None:
    metrics = Metrics()
    metrics.requests["/", 200] += 2
    metrics.waiting = lambda: 5
    lines = metrics.text().splitlines()
    helped, typed = ([line.split()[2] for line in lines if line.startswith(f"# {what}")] for what in ("HELP", "TYPE"))
    assert helped == typed
    named = [line.partition("{")[0].split()[0] for line in lines if not line.startswith("#")]
    families = {name.removesuffix("_bucket").removesuffix("_sum").removesuffix("_count") for name in named}
    assert families == set(typed)
    assert 'nmt_requests_total{path="/",status="200"} 2' in lines
    assert "nmt_waiting_requests 5" in lines
