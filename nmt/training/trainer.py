"""The training loop: updates in a fixed order, validations at intervals, saved states to resume from bit for bit.

It knows batches, a model and a run folder; how a model is validated and written comes from outside. The state is
written between updates only, so no position inside an accumulation has to be restored.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from nmt.data.batch import Batch, Candidates, Indices
from nmt.data.batching import batches, read_batch
from nmt.data.planning import padding_share, plan_epoch
from nmt.data.store import PairedIds
from nmt.data.subwords import Vocabularies
from nmt.errors import counted
from nmt.files import copy_atomically
from nmt.models.seq2seq import Seq2Seq
from nmt.ops.computing import computing
from nmt.signals import Interrupted, StopRequest
from nmt.training.averaging import averaged_checkpoints, with_weights
from nmt.training.corpus_loss import Validate, Validation
from nmt.training.divergence import Diverged, beyond_start, bound
from nmt.training.optim import improves
from nmt.training.progress import Progress, Window
from nmt.training.records import Records, readable
from nmt.training.scheduled_sampling import probability, with_own_words
from nmt.training.states import SavedStates
from nmt.training.update import Parallel, UpdateResult, chosen_computing, update

WriteModel = Callable[[Path, Seq2Seq, dict[str, Any]], None]
"""Writes a model file; the last argument says how the weights came about."""

MakeCandidates = Callable[[Seq2Seq, Batch, int], Candidates]
"""The candidates of a batch in this update, by the present model. It must leave all random states alone."""

MOST_POSITIONS = 1 << 13
"""Positions of candidates, padding included, that are computed at once: a few hundred MB for 512 units."""


@dataclass(kw_only=True, eq=False)
class Trainer:
    """One run, from where its progress stands to its end.

    With several processes, each has its own trainer; only the first writes, and its log is the one to read.
    """

    states: SavedStates  # with what they are states of: the model, its optimizer and schedule, and so on
    corpus: PairedIds
    vocabularies: Vocabularies
    progress: Progress
    records: Records | None  # of the first process
    validate: Validate
    write_model: WriteModel
    log: Callable[[str], None]
    progress_bar: Callable[[int, int, int], "tqdm[Any]"]  # for (epoch, batches done, batches in all)
    candidates: MakeCandidates | None = None  # for minimum risk training
    begins_trained: bool = False  # whether the model has been trained before, and is validated before its first update
    is_trial: bool = False  # whether its updates are to show what late ones take, when words are sampled most often

    def __post_init__(self) -> None:
        self.config, self.folder, self.processes = self.states.config, self.states.folder, self.states.processes
        self.model, self.optimizer, self.schedule = self.states.model, self.states.optimizer, self.states.schedule
        self.settings = self.config.training
        self.pieces = self.vocabularies.target.size
        self.parallel: Parallel | None = None
        if self.processes.size > 1:
            example = read_batch(self.corpus, np.zeros(1, dtype=np.int64))
            self.parallel = Parallel(self.model, self.processes, example=example, config=self.settings)
        self.stop = StopRequest()
        self.batches_in_epoch = 1  # known once the epoch is planned
        self._last_window = self.progress.window  # that has had an update
        self._began: tuple[float, float] | None = None  # when this sitting's first update ended, and the share done

    @property
    def place(self) -> str:
        """Where the run is, for messages."""
        progress = self.progress
        epoch = progress.epochs(self.batches_in_epoch)
        return f"after update {progress.update:,} (epoch {epoch:.2f}, learning rate {progress.rate:.4g})"

    def train(self) -> None:
        """Train to the end. Raises Interrupted, with the state saved, when a signal asks to stop, or Diverged."""
        try:
            with self.stop.installed():
                while self.progress.finished is None:
                    self._train_epoch()
        except Diverged as error:  # raised where nothing is known of updates
            raise Diverged(error.finding, where=self.place) from error
        finally:
            if self.records is not None:
                self.records.close()

    def _train_epoch(self) -> None:
        """From the current position to the end of the epoch, or of training."""
        progress = self.progress
        plan = plan_epoch(self.corpus, self.config, epoch=progress.epoch)
        self.batches_in_epoch = len(plan)
        if progress.validated == progress.update and self._end_if_over():  # resumed after the last validation
            return
        if not progress.epoch and not progress.position and self._reason_to_end() is None:
            share = padding_share(plan, self.corpus.source_lengths, self.corpus.target_lengths)
            self.log(f"epoch 1: {counted(len(plan), 'batch', 'batches')}, {share:.1%} padding")
        groups = self.groups(plan, start=progress.position)
        with closing(self.progress_bar(progress.epoch + 1, progress.position, len(plan))) as bar:
            while self._between_updates():
                began = time.perf_counter()
                if not (group := next(groups, [])):
                    return  # the epoch has ended
                self.update(group, began)
                if not bar.disable:
                    bar.set_postfix_str(self._pace(), refresh=False)
                bar.update(len(group))

    def _pace(self) -> str:
        """For the line on a terminal: the loss and the speed since the last report, and how long the run will take."""
        window, now = self._last_window, time.perf_counter()
        if not window.tokens:  # all updates were left out
            return ""
        line = f"loss {window.loss / window.tokens:.3f}, {window.tokens / window.seconds:,.0f} target tokens/s"
        share = self.progress.done(self.settings, self.batches_in_epoch)
        if self._began is None:  # after the first update, which takes longer than others
            self._began = now, share
        began, share_before = self._began
        if share <= share_before:
            return line
        seconds = (now - began) * (1 - share) / (share - share_before)
        return f"{line}, {tqdm.format_interval(seconds)} left of the run"

    def _between_updates(self) -> bool:
        """Validate, end training, and save where it is time to; returns whether training continues."""
        progress = self.progress
        if self._reason_to_end() is not None:
            self._begin_end()
        is_due = progress.is_due(self.settings.validate_every) if progress.update else self.begins_trained
        if is_due and progress.validated != progress.update:
            self._validate()
        is_over = self._end_if_over()
        self._save_if_asked()
        return not is_over

    def groups(self, plan: Sequence[Indices], *, start: int) -> Iterator[list[Batch | None]]:
        """This process's shares of the batches from position `start` on, as many together as one update takes."""
        stream = batches(
            self.corpus,
            plan,
            vocabularies=self.vocabularies,
            sampling=self.config.subwords.sampling,
            sort_by=self.config.training.sort_by,
            seed=self.config.seed,
            epoch=self.progress.epoch,
            start=start,
            share=(self.processes.rank, self.processes.size),
        )
        while group := list(islice(stream, self.settings.accumulate)):
            yield group

    def update(self, group: list[Batch | None], began: float) -> None:
        """One update and all counters that it moves; `began`: when its batches were asked for."""
        progress = self.progress
        batches = self._with_own_words(self._with_candidates(group))
        done = progress.done(self.settings, self.batches_in_epoch)
        factor = self.schedule.factor(progress.update + 1, progress.epoch + 1, done)
        rate = self.settings.optimizer.learning_rate * factor
        result = update(self.model, self.optimizer, batches, rate=rate, config=self.settings, parallel=self.parallel)
        progress.update, progress.rate = progress.update + 1, rate
        if self.states.average is not None and result.is_finite:
            self.states.average.follow(progress.update - progress.skipped)
        if result.parts > len(batches):
            self.log(
                f"update {progress.update:,}: the memory does not hold its batch, computed in {result.parts} parts"
            )
        progress.position += len(group)
        if progress.position == self.batches_in_epoch:
            progress.epoch, progress.position = progress.epoch + 1, 0
        seconds = time.perf_counter() - began
        if result.is_finite:
            progress.window.add(result, seconds)
            self._last_window = progress.window
        else:
            self._skip(result)
        progress.seconds += seconds
        if progress.update % self.settings.log_every == 0:
            self._report()

    def _with_own_words(self, group: list[Batch | None]) -> list[Batch | None]:
        """The batches of an update, with the model's words in them where sampling is scheduled."""
        if (settings := self.settings.scheduled_sampling) is None:
            return group
        device = self.model.output_weight.device
        chance = settings.probability if self.is_trial else probability(settings, self.progress.update)
        with computing(*chosen_computing(self.settings, device)):
            return [None if batch is None else with_own_words(self.model, batch.to(device), chance) for batch in group]

    def _with_candidates(self, group: list[Batch | None]) -> list[Batch | None]:
        """The batches of an update, with their candidates where the objective has some; in parts where these are many.

        A signal ends the search at once, with the state saved: this comes first in an update, which has changed nothing
        yet, and drawn nothing. Several processes leave together, before the next update.
        """
        if (make := self.candidates) is None:
            return group
        try:
            with self._translating():
                update = self.progress.update
                parts: list[Batch | None] = []
                for batch in group:
                    if batch is None:
                        parts.append(None)
                        continue
                    having = batch._replace(candidates=make(self.model, batch, update))
                    parts += having.with_candidates_within(MOST_POSITIONS)
                return parts
        except Interrupted:
            self._save_unless_saved()
            raise

    def _skip(self, result: UpdateResult) -> None:
        """Count an update that was left out, or end training if there have been too many."""
        self.progress.skipped += 1
        finding = f"loss {result.loss / result.tokens:.4g}, gradient norm {result.gradient_norm:.4g}"
        skipped, allowed = self.progress.skipped, self.settings.skip_non_finite
        if skipped > allowed:
            limit = f" (training.skip_non_finite: {allowed})" if allowed else ""
            raise Diverged(finding + limit)
        self.log(f"warning: update {self.progress.update:,}: {finding}; left out, {skipped} of at most {allowed}")

    def _report(self) -> None:
        """Write the means since the last report, and the last learning rate."""
        window, self.progress.window = self.progress.window, Window()
        skipped = {"skipped_updates": self.progress.skipped} if self.progress.skipped else {}
        self._record("train", {**window.means(), "learning_rate": self.progress.rate, **skipped})

    def _record(self, split: str, numbers: dict[str, float]) -> None:
        epoch = self.progress.epochs(self.batches_in_epoch)
        seconds = round(self.progress.seconds, 3)
        record = {"step": self.progress.update, "epoch": round(epoch, 4), "split": split, **numbers, "seconds": seconds}
        if self.records is not None:
            self.records.write(record)
        self.log(readable(record))

    def _validate(self) -> None:
        """Score the model, and let the score steer the rate, the checkpoints and the end of training.

        Where there is a moving average of its weights, the model has that, also in its files.
        """
        self._save()  # so that an interruption from here on loses nothing
        average = self.states.average
        with nullcontext() if average is None else average.in_model():
            self._score_and_keep()
        self._save()

    def _score_and_keep(self) -> None:
        metrics, *_ = validation = self._scored()
        progress = self.progress
        is_best = progress.record(metrics, self.settings)
        progress.note_loss(metrics["loss"], bound(self.settings.divergence, self.pieces))
        self._record("valid", metrics)
        if self.records is not None:
            self.records.show(progress.update, validation)
        if (message := self.schedule.validated(metrics)) is not None:
            self.log(message)
        checkpoint = self.folder.checkpoint_path(progress.update)
        is_kept = progress.update in progress.kept(self.settings)
        if is_kept:
            self._write_model(checkpoint, metrics)
        if is_best and not is_kept:
            self._write_model(self.folder.best_path, metrics)
        elif is_best and self.processes.is_first:
            copy_atomically(checkpoint, self.folder.best_path)

    def _scored(self) -> Validation:
        """What validation says of the model. A signal ends it at once; several processes leave together, before an
        update."""
        began = time.perf_counter()
        with self._translating():
            validation = self.validate(self.model)
        self.progress.seconds += time.perf_counter() - began
        return validation

    @contextmanager
    def _translating(self) -> Iterator[None]:
        """Have the block translate with the configured kernels, and a signal end it unless others take part."""
        fused = chosen_computing(self.settings, self.model.output_weight.device).fused
        at_once = self.stop.at_once() if self.processes.size == 1 else nullcontext()
        with computing(fused=fused), at_once:
            yield

    def _write_model(self, path: Path, metrics: dict[str, float], **more: Any) -> None:
        """Write the model as it is, with how it came about."""
        if self.processes.is_first:
            training = {"updates": self.progress.update, "epochs": self.progress.epoch, "validation": metrics}
            self.write_model(path, self.model, {**training, **more})

    def _reason_to_end(self) -> str | None:
        """Why training is over at this point, or None."""
        return self.progress.end(self.settings) or self.schedule.end()

    def _end_if_over(self) -> bool:
        """Finish training if it is over; returns whether it is. Raises Diverged."""
        reason = self._reason_to_end()
        if reason is None:
            self._check_divergence(is_over=False)
            return False
        self._finish(reason)
        return True

    def _begin_end(self) -> None:
        """Note the point from which a longer run would go on, and report the last updates."""
        if self.states.before_end is None:
            self.states.before_end = self.states.numbers(self.progress, self.records)
        if self.progress.window.updates:
            self._report()

    def _finish(self, reason: str) -> None:
        """The last line of the log, the last validation, the average of the best, and the state that says why it ends.

        Raises Diverged where the model is no better than at its start.
        """
        self._begin_end()
        if self.progress.validated != self.progress.update:
            self._validate()
        self._check_divergence(is_over=True)
        if self.settings.average_best > 0:
            self._average()
        self.progress.finished = reason
        self._save()

    def _check_divergence(self, *, is_over: bool) -> None:
        """Raise Diverged where the last validations were no better than the start."""
        if (finding := beyond_start(self.progress, self.settings, self.pieces, is_over=is_over)) is not None:
            raise Diverged(finding)

    def _average(self) -> None:
        """Average the best checkpoints: if the average validates better than each, it is the best model."""
        progress, metric = self.progress, self.settings.validation.metric
        best = progress.best[: self.settings.average_best]
        files = {one.update: self.folder.checkpoint_path(one.update) for one in best}
        whole, weights = averaged_checkpoints(files, processes=self.processes, log=self.log)
        if len(whole) < 2:
            self.log(f"no average: it needs at least two of the best checkpoints, and {len(whole)} can be read")
            return
        with with_weights(self.model, weights):
            metrics, *_ = self._scored()
            before = progress.best[0].value, progress.best[0].loss
            is_better = improves(metric, (metrics[metric], metrics["loss"]), before)
            self._record("average", metrics)
            if is_better:
                self._write_model(self.folder.best_path, metrics, average_of_updates=sorted(whole))
        verdict = "better, and now the best model" if is_better else "no better than the best checkpoint"
        self.log(f"average of {len(whole)} checkpoints: {metric} {metrics[metric]:.4g}, {verdict}")

    def _save_if_asked(self) -> None:
        """Save the state when it is time to or a signal has come, unless it is saved; leave, in the latter case."""
        asked = self.processes.largest(self.stop.number or 0)  # one process may have its signal before another
        if asked or self.progress.is_due(self.settings.save_every):
            self._save_unless_saved()
        if asked:
            raise Interrupted(asked)

    def _save_unless_saved(self) -> None:
        if self.states.update != self.progress.update:
            self._save()

    def _save(self) -> None:
        self.states.write(self.progress, self.records)
