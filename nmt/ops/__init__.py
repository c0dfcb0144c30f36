"""The mathematics as pure functions; each fast version stands beside its plain twin, with the same signature."""
