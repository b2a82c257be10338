"""Which of several events in turn ends a step: the optimizers of a GAN, an encoder and a decoder that are called one after the other."""

from __future__ import annotations

from collections.abc import Hashable

PATIENCE = 3  # times an event may come round without the learnt end before it is the end itself


class Cycle:
    """Learns the last event of a repeating sequence.

    Until an event comes a second time nothing is known; then the event before it was the end of the first round.
    """

    def __init__(self) -> None:
        self.end: Hashable | None = None
        self._seen: list[tuple[Hashable, int]] = []

    def event(self, key: Hashable, now: int) -> list[int]:
        """Tell an event; returns the times (ns) of the ends of steps that it shows, at most two; `now` itself when it is an end."""
        ends: list[int] = []
        if self.end is None and self._seen and any(key == known for known, _ in self._seen):
            self.end, when = self._seen[-1]
            ends.append(when)
            self._seen = []
        self._seen.append((key, now))
        if self.end is not None and (key == self.end or self._outgrown(key)):
            self.end = key
            self._seen = []
            ends.append(now)
        return ends

    def alone(self, key: Hashable) -> bool:
        """`key` is the known end, and nothing came before it: a whole round of one event."""
        return self.end is not None and not self._seen and key == self.end

    def _outgrown(self, key: Hashable) -> bool:
        return sum(key == known for known, _ in self._seen) >= PATIENCE

    def flush(self) -> list[int]:
        """The script is over: the end of a single, never repeated round."""
        last = self._seen[-1:] if self.end is None else []
        self._seen = []
        return [when for _, when in last]
