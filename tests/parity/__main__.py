"""Compares many cases and says what was exercised: `make parity N=2000`, or `python -m tests.parity --help`."""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from moorage.adapters.kube.convert import Converter
from tests.controlplane.build import BuildError
from tests.kit.clusters import THEMES, random_case
from tests.parity import sides
from tests.parity.build import build
from tests.parity.compare import Difference
from tests.parity.exercise import exercised, missing, table
from tests.parity.findings import kinds, report, save, shrunk
from tests.parity.oracle import Case, Oracle


class Tally:
    """What came of the cases so far."""

    def __init__(self) -> None:
        self.compared = 0
        self.unsure = 0
        self.exercised: Counter[str] = Counter()
        self.disagreed: Counter[str] = Counter()
        self.kinds: Counter[str] = Counter()
        self.examples: dict[str, Case] = {}

    def add(self, case: Case, answer: dict[str, Any], found: list[Difference]) -> None:
        """Count one compared case; the shortest example of each kind of difference is kept."""
        self.compared += 1
        parts = exercised(answer, case)
        self.exercised.update(parts)
        if not found:
            return
        kind = found[0].kind
        self.kinds[kind] += 1
        self.disagreed.update(part for part in parts if any(part.split(" ")[0] in d.kind for d in found))
        if kind not in self.examples or len(json.dumps(case)) < len(json.dumps(self.examples[kind])):
            self.examples[kind] = case


def main() -> int:
    """The command; exit status 1 if there was a disagreement or, of many cases, too few exercised some part."""
    arguments = _arguments()
    try:
        program = build()
    except BuildError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    with Oracle(program, selfcheck=not arguments.fast) as oracle:
        if arguments.replay:
            return max(_replay(oracle, path) for path in arguments.replay)
        return _run(oracle, arguments)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.parity",
        description="Has Moorage and kube-scheduler decide the same generated cases, and says what was exercised.",
    )
    parser.add_argument("cases", type=int, nargs="?", default=2000, help="how many cases (default: 2000)")
    parser.add_argument("--seed", type=int, help="repeats a run (default: a new one each time)")
    parser.add_argument("--theme", action="append", choices=THEMES, help="only these themes; repeatable")
    parser.add_argument("--fast", action="store_true", help="do not check the oracle against SchedulePod")
    parser.add_argument("--no-shrink", action="store_true", help="show failing cases as they were made")
    parser.add_argument("--replay", type=Path, nargs="+", metavar="FILE", help="compare saved cases instead")
    return parser.parse_args()


def _run(oracle: Oracle, arguments: argparse.Namespace) -> int:
    seed = arguments.seed if arguments.seed is not None else random.SystemRandom().randrange(1 << 32)
    print(f"Comparing {arguments.cases} cases, --seed {seed}", flush=True)
    rng = random.Random(seed)
    themes = tuple(arguments.theme or THEMES)
    cases = (random_case(rng, themes) for _ in range(arguments.cases))
    tally = Tally()
    converter = Converter()
    shown = time.monotonic()
    for case, answer in sides.ask_all(oracle, cases):
        try:
            tally.add(case, answer, sides.differences(case, answer, converter))
        except sides.OracleUnsure:
            tally.unsure += 1
        if time.monotonic() - shown > 10:
            shown = time.monotonic()
            print(f"  {tally.compared} compared, {sum(tally.kinds.values())} disagreements", flush=True)
    for number, (kind, count) in enumerate(tally.kinds.most_common(), 1):
        case = tally.examples[kind]
        if not arguments.no_shrink:
            case = shrunk(oracle, case, kind)
        print(f"\n{number}. {kind}: {count} cases")
        print(report(oracle, case))
        print(f"saved as {save(case)}")
    print(f"\n{table(tally.exercised, tally.disagreed, tally.compared)}\n")
    rare = missing(tally.exercised, tally.compared) if themes == THEMES else []
    for part, count, demand in rare:
        print(f"too rarely exercised: {part}, {count} cases of {demand}")
    print(
        f"{tally.compared} cases compared, {sum(tally.kinds.values())} disagreements; "
        f"{tally.unsure} left out, since the oracle was not sure of itself"
    )
    return 1 if tally.kinds or rare else 0


def _replay(oracle: Oracle, path: Path) -> int:
    case = json.loads(path.read_text())
    print(f"{path}\n{report(oracle, case)}")
    return 1 if any(kinds(oracle, case)) else 0


if __name__ == "__main__":
    sys.exit(main())
