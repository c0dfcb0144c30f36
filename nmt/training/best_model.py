"""The best model of a run that is resumed: made anew from its checkpoint where its file is damaged or gone.

It knows the names of the files, and nothing of how a model becomes the best.
"""

import shutil
from collections.abc import Callable

from nmt.errors import UserError
from nmt.files import written_atomically
from nmt.models.model_file import load_model
from nmt.training.progress import Progress
from nmt.training.run_folder import RunFolder


def mend_best(folder: RunFolder, progress: Progress, log: Callable[[str], None], *, is_averaged: bool) -> None:
    """Make the best model of a resumed run anew if it cannot be read; the log says so, or why that is not possible.

    Its checkpoint has the same bytes. That of a finished run which averaged its checkpoints (`is_averaged`) may be the
    average, and is left to the user.
    """
    if not progress.best:
        return
    try:
        load_model(folder.best_path)
        return
    except UserError as error:
        problem = str(error)
    _, update = progress.best[0]
    checkpoint = folder.checkpoint_path(update)
    try:
        load_model(checkpoint)
    except UserError as error:
        log(f"warning: {problem}; nor can it be made anew from its checkpoint ({error})")
        return
    if progress.finished is not None and is_averaged:
        log(f"warning: {problem}; the best of the checkpoints, of which it may have been an average, is {checkpoint}")
        return
    with open(checkpoint, "rb") as model, written_atomically(folder.best_path, "wb") as copy:
        shutil.copyfileobj(model, copy)
    log(f"warning: {problem}; made anew from its checkpoint, of update {update:,}")
