"""What each forked command would otherwise import or find out by itself: the process that forks them imports this."""

from importlib import import_module

import torch

from nmt.ops.products import onednn_is_exact

COMMANDS = ("nmt.cli.train", "nmt.experiment.training", "nmt.cli.translate", "nmt.cli.translation")
LATER = ("matplotlib.font_manager", "torch._dynamo")  # by pictures, and by DistributedDataParallel
for name in COMMANDS + LATER:
    import_module(name)
torch.set_num_threads(1)  # a process that forks must have no others
onednn_is_exact()
