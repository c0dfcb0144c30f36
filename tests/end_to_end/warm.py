"""What each forked command would otherwise import or find out by itself: the process that forks them imports this."""

from importlib import import_module

import torch

from nmt.ops.products import onednn_is_exact

for name in ("nmt.cli.train", "nmt.cli.translate", "nmt.cli.evaluate", "matplotlib.font_manager"):
    import_module(name)
torch.set_num_threads(1)  # a process that forks must have no others
onednn_is_exact()
