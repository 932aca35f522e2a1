"""Where the main thread spends CPU time: its stack, looked at each time that some milliseconds of it are used.

A tracing profiler (cProfile) would slow the loop down to half its speed, and looking from another thread would find the
loop where it lets others run, which is where it waits.  So the system's own timer of CPU time interrupts it (SIGPROF).
A long call into C counts for the line that made it; a loop that waits is not seen at all.
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections import Counter
from dataclasses import dataclass
from types import FrameType

#: Between two looks, in seconds of CPU time.
INTERVAL = 0.005
_DEEPEST = 200

Stack = tuple[str, ...]  # the outermost function first


@dataclass(frozen=True, slots=True)
class Profile:
    """How often each stack was seen, in so many seconds, and how many of CPU time the process used in these."""

    stacks: Counter[Stack]
    seconds: float
    cpu: float

    def folded(self) -> str:
        """One stack a line with how often it was seen, as flame graph tools read it."""
        lines = (f"{';'.join(stack)} {count}" for stack, count in self.stacks.most_common())
        return "".join(f"{line}\n" for line in lines)

    def table(self, most: int = 40) -> str:
        """The functions that were seen most, in per cent: at work themselves, and with what they call."""
        own: Counter[str] = Counter()
        total: Counter[str] = Counter()
        for stack, count in self.stacks.items():
            own[stack[-1]] += count
            for function in set(stack):
                total[function] += count
        samples = sum(self.stacks.values())
        head = f"{samples} samples; {self.cpu:.2f} s of CPU time in {self.seconds:.2f} s"
        lines = [head, f"{'self %':>7}{'total %':>9}  function"]
        for function, count in sorted(total.items(), key=lambda each: (-own[each[0]], -each[1]))[:most]:
            lines.append(f"{100 * own[function] / samples:7.1f}{100 * count / samples:9.1f}  {function}")
        return "\n".join(lines) + "\n"


async def sample(seconds: float, interval: float = INTERVAL) -> Profile:
    """Look at the main thread for so long.  Raises ``ValueError`` if the event loop runs in another thread."""
    stacks: Counter[Stack] = Counter()

    def look(_: int, frame: FrameType | None) -> None:
        stacks[_stack(frame)] += 1

    before = signal.signal(signal.SIGPROF, look)
    began, cpu = time.monotonic(), time.process_time()
    try:
        signal.setitimer(signal.ITIMER_PROF, interval, interval)
        await asyncio.sleep(seconds)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, before)
    return Profile(stacks, time.monotonic() - began, time.process_time() - cpu)


def _stack(frame: FrameType | None) -> Stack:
    found: list[str] = []
    while frame is not None and len(found) < _DEEPEST:
        code = frame.f_code
        module = frame.f_globals.get("__name__", "?")
        found.append(f"{module}.{code.co_qualname}")
        frame = frame.f_back
    return tuple(reversed(found))
