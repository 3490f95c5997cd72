"""One log that grows: the file, the profile that reads it, dates for lines that have none."""

import logging
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from costwatch_agent.followed_files import FollowedFile, Lines
from costwatch_agent.log_profiles import TROUBLES, Profile, profile_named
from costwatch_agent.log_reading import Item, LogReader, Told, UndecidedReader
from costwatch_agent.progress import Point
from costwatch_agent.records import Document

log = logging.getLogger(__name__)
UNDECIDED_LINES: Final = 2_000


class FollowedLog:
    """A log by its path. `known`: what `state` said before a restart."""

    def __init__(
        self, path: Path, profiles: Sequence[Profile], told: Told, known: Document | None = None
    ) -> None:
        known = known or {}
        troubles = profile_named(TROUBLES)
        chosen = [profile for profile in profiles if profile.name == known.get("profile")]
        self._told = told
        self._profiles = chosen or list(profiles)
        self._reader = UndecidedReader(
            [
                LogReader(profile, troubles, told, memory=known.get("memory") if chosen else None)
                for profile in self._profiles
            ]
        )
        self.file = FollowedFile(path, known.get("file") if chosen else None)
        self.lines = 0
        self._is_warned = False

    @property
    def profile(self) -> Profile | None:
        """Which one reads it, once a line has shown that."""
        return self._reader.chosen.profile if self._reader.chosen is not None else None

    def state(self) -> Document | None:
        """Where reading stands; None until it is known how to read."""
        chosen = self._reader.chosen
        if chosen is None:
            return None
        return {
            "file": self.file.state(),
            "profile": chosen.profile.name,
            "memory": chosen.remembered(),
        }

    def read(self) -> tuple[list[Item], bool]:
        """What one read of the file tells, and whether there is more to read now."""
        try:
            found = self.file.read()
        except OSError as error:  # a file system that went away under it
            log.warning("%s cannot be read: %s", self.file.path, error.strerror)
            self.file.close()
            self.file = FollowedFile(self.file.path, self.file.state())
            return [], False
        if found is None:
            return [], False
        is_decided = self.profile is not None
        items = self._items(found)
        self.lines += len(found.lines)
        if not is_decided and self.profile is not None:
            log.info("%s is read as %s", self.file.path, self.profile.name)
        elif self.profile is None and self.lines >= UNDECIDED_LINES and not self._is_warned:
            self._is_warned = True
            log.warning("%s: no profile finds a step in its lines; see --profile", self.file.path)
        return items, not found.at_end

    def _items(self, found: Lines) -> list[Item]:
        at_ms = int(time.time() * 1000) if found.is_live else None
        has_dates = found.is_live or self._has_dates(found.lines)
        if not has_dates and found.is_last:
            at_ms = found.modified_ms
        items: list[Item] = []
        for line in found.lines:
            items.extend(self._reader.read(line, at_ms=at_ms))
        items.extend(self._reader.release())
        return items if has_dates else going_back(items)

    def _has_dates(self, lines: Sequence[str]) -> bool:
        """Whether the log itself says when its lines were written."""
        chosen = self._reader.chosen
        if chosen is not None and chosen.memory.last_ms is not None:
            return True
        readers = [chosen] if chosen is not None else self._reader.candidates
        return any(reader.dates(line) for reader in readers for line in lines)


def going_back(items: Sequence[Item]) -> list[Item]:
    """Dates for a log that has none, found whole: back from its end by what the steps took."""
    found: list[Item] = []
    after: Point | None = None
    for item in reversed(items):
        if isinstance(item, Point):
            if after is not None:
                steps = max(after.step - item.step, 0)
                took_ms = round((after.step_time_s or 0.0) * steps * 1000)
                item = replace(item, at_ms=after.at_ms - took_ms)
            after = item
        elif after is not None:
            item = replace(item, at_ms=after.at_ms)
        found.append(item)
    return found[::-1]
