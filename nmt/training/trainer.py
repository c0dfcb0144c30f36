"""The training loop: updates in a fixed order, validations in turn, and a saved state to resume from bit for bit.

It knows batches, a model and a run folder; how a model is validated and written comes from outside. The state is
written between updates only, so no position inside an accumulation has to be restored.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from torch.optim import Optimizer

from nmt.config import Config
from nmt.config.schema import Interval
from nmt.data.batching import Batch, Indices, batches, padding_share, plan_epoch, shared_batches
from nmt.data.binarised import PairedIds
from nmt.data.subwords import Vocabularies
from nmt.errors import UserError
from nmt.models.seq2seq import Seq2Seq
from nmt.ops.computing import computing
from nmt.training.averaging import average_weights
from nmt.training.checkpoint import State, random_state, restore, seed_process, write_state
from nmt.training.distributed import Parallel, Processes
from nmt.training.interruption import Interrupted, StopRequest
from nmt.training.optim import Schedule, better
from nmt.training.progress import Progress, Window
from nmt.training.records import Records, readable
from nmt.training.run_folder import RunFolder
from nmt.training.surroundings import surroundings, take_over
from nmt.training.update import chosen_computing, update

Validate = Callable[[Seq2Seq], dict[str, float]]
"""Scores a model on the validation corpus: loss, perplexity, bleu. It must leave all random states alone."""

WriteModel = Callable[[Path, Seq2Seq, dict[str, Any]], None]
"""Writes a model file; the last argument says how the weights came about."""


class Bar(Protocol):
    """The part of a tqdm progress bar that the trainer uses."""

    def update(self, count: int) -> object: ...

    def close(self) -> None: ...


class Trainer:
    """One run: from its first update, or from a saved state, to its end."""

    def __init__(
        self,
        *,
        config: Config,
        model: Seq2Seq,
        optimizer: Optimizer,
        schedule: Schedule,
        corpus: PairedIds,
        vocabularies: Vocabularies,
        data: str,
        folder: RunFolder,
        state: State | None,
        validate: Validate,
        write_model: WriteModel,
        log: Callable[[str], None],
        progress_bar: Callable[[int, int, int], Bar],
        processes: Processes,
    ) -> None:
        """`state`: what to resume from, or None. `progress_bar`: a bar for (epoch, batches done, batches in all).

        Of several processes each has a trainer of its own; the first one alone writes, and its log is the one to read.

        `data` is a fingerprint of the corpora and vocabularies; a run that began with another one is refused with a
        UserError, because its weights stand for other pieces and its position for other batches.
        """
        self.config, self.settings = config, config.training
        self.model, self.optimizer, self.schedule = model, optimizer, schedule
        self.corpus, self.vocabularies, self.data = corpus, vocabularies, data
        self.folder = folder
        self.validate, self.write_model = validate, write_model
        self.log, self.progress_bar = log, progress_bar
        self.processes = processes
        self.parallel = self._in_parallel() if processes.size > 1 else None
        self.computing = chosen_computing(self.settings, model.output_weight.device)
        self.stop = StopRequest()
        self.progress, recorded = Progress(), 0
        self.batches_in_epoch = 1  # known once the epoch is planned
        if state is not None:
            if state.numbers.get("data") != data:
                raise UserError(
                    f"{folder.path}: the corpus files or subword models are no longer those that this run began with; "
                    "put them back to resume it, or give another --output"
                )
            restore(state, model=model, optimizer=optimizer, rank=processes.rank)
            for warning in take_over(state.numbers["surroundings"], self._surroundings()):
                log(warning)
            self.progress = Progress.from_json(state.numbers["progress"], rank=processes.rank)
            self.schedule.restore(state.numbers["schedule"])
            recorded = state.numbers["recorded"]
            kept = self.progress.kept(self.settings)
            if processes.is_first:  # what a kill left between saving and removing
                folder.remove_checkpoints(lambda number: number in kept)
        if processes.rank and (state is None or state.numbers["surroundings"].get("processes", 1) <= processes.rank):
            seed_process(config.seed, processes.rank, self.progress.update)
        self.records = Records(folder.path, recorded, self.progress.is_after, log) if processes.is_first else None

    def train(self) -> Progress:
        """Train to the end. Raises Interrupted, with the state saved, when a signal asks to stop."""
        try:
            with self.stop.installed():
                while self.progress.finished is None:
                    self._train_epoch()
        finally:
            if self.records is not None:
                self.records.close()
        return self.progress

    def _in_parallel(self) -> Parallel:
        example = next(batches(self.corpus, [np.zeros(1, dtype=np.int64)]))
        return Parallel(self.model, self.processes, example=example, smoothing=self.settings.label_smoothing)

    def _train_epoch(self) -> None:
        """From the current position to the end of the epoch, or of training."""
        progress = self.progress
        plan = plan_epoch(self.corpus, self.config, epoch=progress.epoch)
        self.batches_in_epoch = progress.within(len(plan))
        if progress.validated == progress.update:
            self._finish_if_over()  # resumed after the last validation: no epoch begins
            if progress.finished:
                return
        if progress.position == 0:
            share = padding_share(plan, self.corpus.source_lengths, self.corpus.target_lengths)
            self.log(f"epoch {progress.epoch + 1}: {len(plan):,} batches, {share:.1%} padding")
        groups = self._groups(plan)
        bar = self.progress_bar(progress.epoch + 1, progress.position, len(plan))
        try:
            while True:
                if self._is_due(self.settings.validate_every) and progress.validated != progress.update:
                    self._validate()
                self._finish_if_over()
                self._save_if_asked()
                began = time.perf_counter()
                group = [] if progress.finished else next(groups, [])
                if not group:
                    return
                self._update(group, began)
                bar.update(len(group))
                if progress.position == 0:
                    groups = iter(())  # the epoch has ended; what is due at its end comes first
        finally:
            bar.close()

    def _groups(self, plan: list[Indices]) -> Iterator[list[Batch | None]]:
        """This process's shares of the batches from the current position on, as many together as one update takes."""
        stream = shared_batches(
            self.corpus,
            plan,
            share=(self.processes.rank, self.processes.size),
            sampling=self.config.subwords.sampling,
            vocabularies=self.vocabularies,
            seed=self.config.seed,
            epoch=self.progress.epoch,
            start=self.progress.position,
        )
        while group := list(islice(stream, self.settings.accumulate)):
            yield group

    def _update(self, group: list[Batch | None], began: float) -> None:
        """One update, and all counters that move with it; `began`: when its batches were asked for."""
        progress = self.progress
        factor = self.schedule.factor(progress.update + 1, progress.epoch + 1)
        rate = self.settings.optimizer.learning_rate * factor
        result = update(self.model, self.optimizer, group, rate=rate, config=self.settings, parallel=self.parallel)
        progress.update += 1
        if result.parts > len(group):
            self.log(
                f"update {progress.update:,}: the memory does not hold its batch, computed in {result.parts} parts"
            )
        progress.rate = rate
        progress.position += len(group)
        if progress.position == self.batches_in_epoch:
            progress.epoch, progress.position = progress.epoch + 1, 0
        seconds = time.perf_counter() - began
        progress.window.add(group, result, seconds)
        progress.seconds += seconds
        if progress.update % self.settings.log_every == 0 or progress.end(self.settings):
            self._report()

    def _report(self) -> None:
        """Write the means since the last report, and the last learning rate."""
        window, self.progress.window = self.progress.window, Window()
        self._record("train", {**window.means(self.processes), "learning_rate": self.progress.rate})

    def _record(self, split: str, numbers: dict[str, float]) -> None:
        epoch = self.progress.epoch + self.progress.position / self.batches_in_epoch
        seconds = round(self.progress.seconds, 3)
        record = {"step": self.progress.update, "epoch": round(epoch, 4), "split": split, **numbers, "seconds": seconds}
        if self.records is not None:
            self.records.write(record)
        self.log(readable(record))

    def _is_due(self, interval: Interval | None) -> bool:
        """Whether the current update ends an interval."""
        if interval is None or self.progress.update == 0:
            return False
        if interval.unit == "updates":
            return self.progress.update % interval.count == 0
        return self.progress.position == 0 and self.progress.epoch % interval.count == 0

    def _validate(self) -> None:
        """Score the model, and let the score steer the rate, the checkpoints and the end of training."""
        self._save()  # so that an interruption from here on loses nothing
        began = time.perf_counter()
        metrics = self._metrics()
        progress = self.progress
        progress.seconds += time.perf_counter() - began
        is_best = progress.record(metrics, self.settings)
        self._record("valid", metrics)
        if (message := self.schedule.validated(metrics)) is not None:
            self.log(message)
        kept = progress.kept(self.settings)
        training = {"updates": progress.update, "epochs": progress.epoch, "validation": metrics}
        if progress.update in kept:
            self._write_model(self.folder.checkpoint_path(progress.update), training)
        if is_best:
            self._write_model(self.folder.best_path, training)
        self._save()
        if self.processes.is_first:
            self.folder.remove_checkpoints(lambda number: number in kept)

    def _metrics(self) -> dict[str, float]:
        """What validation finds. A signal ends it at once; several processes leave together, before the next update."""
        with computing(fused=self.computing.fused), self.stop.at_once() if self.processes.size == 1 else nullcontext():
            return self.validate(self.model)

    def _write_model(self, path: Path, training: dict[str, Any]) -> None:
        if self.processes.is_first:
            self.write_model(path, self.model, training)

    def _finish_if_over(self) -> None:
        """At the end of training: a last validation, the average of the best, and the state that says it is over."""
        reason = self.progress.end(self.settings)
        if reason is None:
            return
        if self.progress.window.updates:
            self._report()
        if self.progress.validated != self.progress.update:
            self._validate()
        if self.settings.average_best and len(self.progress.best) > 1:
            self._average()
        self.progress.finished = reason
        self._save()

    def _average(self) -> None:
        """Average the best checkpoints; the average becomes the best model if it validates better than each of them."""
        progress, metric = self.progress, self.settings.validation.metric
        updates = [number for _, number in progress.best[: self.settings.average_best]]
        self.processes.wait()  # the first one has written them all
        last = {name: weight.clone() for name, weight in self.model.state_dict().items()}
        self.model.load_state_dict(average_weights([self.folder.checkpoint_path(number) for number in updates]))
        try:
            metrics = self._metrics()
            self._record("average", metrics)
            wins = better(metric, metrics[metric], progress.best[0][0])
            if wins:
                training = {"updates": progress.update, "epochs": progress.epoch, "validation": metrics}
                self._write_model(self.folder.best_path, {**training, "average_of_updates": sorted(updates)})
        finally:
            self.model.load_state_dict(last)
        verdict = "better, and now the best model" if wins else "no better than the best checkpoint"
        self.log(f"average of {len(updates)} checkpoints: {metric} {metrics[metric]:.4g}, {verdict}")

    def _save_if_asked(self) -> None:
        """Save the state when it is time to, or when a signal has come; then leave, in the latter case."""
        asked = max(self.processes.gather(self.stop.number or 0))  # one process may have its signal before another
        if asked or self._is_due(self.settings.save_every):
            self._save()
        if asked:
            raise Interrupted(asked)

    def _surroundings(self) -> dict[str, Any]:
        return surroundings(self.model.output_weight.device, self.computing, self.processes.size)

    def _save(self) -> None:
        random_states = self.processes.gather_states(random_state())
        progress = self.progress.as_json(self.processes)
        if self.records is None:
            return
        numbers = {
            "progress": progress,
            "schedule": self.schedule.state(),
            "recorded": self.records.saved_size(),
            "data": self.data,
            "surroundings": self._surroundings(),
        }
        path, model, optimizer = self.folder.state_path, self.model, self.optimizer
        write_state(path, model=model, optimizer=optimizer, numbers=numbers, random_states=random_states)
