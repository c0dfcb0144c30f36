"""python -m nmt: the commands, as `nmt` has them."""

from nmt.cli import start

if __name__ == "__main__":
    raise SystemExit(start.main("nmt"))
