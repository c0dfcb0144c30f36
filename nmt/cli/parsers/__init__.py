"""The options of all commands, as argparse knows them; what the values may be is checked in the modules above.

`--help`, `--version` and a wrong option are answered from here before anything else is imported, so no module of this
folder imports what takes long: PyTorch, NumPy, pydantic, sacreBLEU. Where a help text repeats a name or a number from
one that does, tests/cli/test_parsers.py compares the two.
"""
