"""The commands: they read arguments, wire the parts together and report; no logic of their own."""
