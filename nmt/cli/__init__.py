"""The commands: they read arguments, wire the parts together and report; no logic of their own."""

import sys

if sys.argv[:1] == ["-m"]:  # while Python looks for the module of `python -m nmt.cli.train`
    raise SystemExit("a command is started by its name, such as nmt-train, or as python -m nmt train")
