"""Hypothesis-made programs and changed real text against the properties of ``tests/fuzzing``, for as long as is asked.

    python benchmarks/fuzz.py --minutes 60 [--jobs N] [--only NAME …] [--seeds FOLDER …] [--out FOLDER] [--seed N]

Minutes are of processor time, of each process. Each failure is written to a file of the folder, as small as hypothesis made it in half a
minute; of those that look alike (the same property, the same fault or the same codes) three are kept. Exit code 1 where there was any.
With ``--jobs`` so many processes go on from seeds a thousand apart, each beginning with another property; what they print stands in
``N.log`` of the folder.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import warnings
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT)]
os.environ["STREAMLINT_NO_CACHE"] = "1"

from fuzzing import campaign, seeds  # noqa: E402
from fuzzing.properties import spent  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from rename import File  # noqa: E402

MOST = 60_000  # characters of a real file that is changed at random
ALIKE = 3
APART = 1000  # between the seeds of processes side by side


def texts(folders: list[Path]) -> campaign.Programs | None:
    """Files of these folders that mention CUDA, each a program."""
    found = sorted(path for folder in folders for path in folder.rglob("*") if path.suffix in seeds.LANGUAGES and path.is_file())
    kept = [path for path in found if path.stat().st_size < MOST and re.search(rb"cuda|hip|cupy|numba", path.read_bytes())]
    if not kept:
        return None
    print(f"{len(kept)} real files", flush=True)
    return st.one_of(campaign.written(), st.sampled_from(kept).map(seeds.file_of).map(lambda file: (file,)))


def signature(name: str, error: BaseException) -> str:
    """What failures that are alike have in common."""
    text = str(error)
    codes = sorted(set(re.findall(r"^(lost|new): (SL\d{3})", text, re.MULTILINE)))
    where = re.findall(r'File "[^"]*/(\w+\.py)", line (\d+)', text)
    first = re.sub(r"\d+|'[^']*'", "_", text.partition("\n")[0])[:80]
    return f"{name} {codes or ''} {where[-1] if where else ''} {'' if codes else first}"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--seeds", nargs="*", type=Path, default=[])
    parser.add_argument("--out", type=Path, default=Path("build/fuzz"))
    parser.add_argument("--seed", type=int, default=0)
    words = parser.parse_args()
    warnings.simplefilter("ignore")
    words.out.mkdir(parents=True, exist_ok=True)
    if words.jobs > 1:
        return _side_by_side(words)
    everything = campaign.all_properties(texts(words.seeds))
    chosen = [one for name, one in everything.items() if not words.only or name in words.only]
    first = words.seed // APART % len(chosen)
    chosen = chosen[first:] + chosen[:first]
    tried: Counter[str] = Counter()
    alike: Counter[str] = Counter()
    turn, begun = words.seed, spent()
    while spent() - begun < words.minutes * 60:
        for one in chosen:
            if spent() - begun > words.minutes * 60:
                break
            outcome = campaign.hold(
                one, 12 * one.weight, 400, seed=turn, known=lambda error, name=one.name: alike[signature(name, error)] >= ALIKE
            )
            tried[one.name] += outcome.tried
            print(f"{one.name}: {outcome.tried} in {outcome.seconds:.0f} s", flush=True)
            if outcome.against is not None:
                mark = signature(one.name, outcome.against)
                alike[mark] += 1
                path = words.out / f"{one.name}-{turn}.txt"
                path.write_text(f"{mark}\n{outcome.against}\n\n{_shown(outcome.example)}", encoding="utf-8", errors="backslashreplace")
                print(f"{path}: {mark}", flush=True)
        turn += 1
        print(f"{(spent() - begun) / 60:.1f} min, {sum(tried.values())} programs: {dict(tried)}", flush=True)
    print(f"{sum(alike.values())} failures of {len(alike)} kinds in {sum(tried.values())} programs")
    return 1 if alike else 0


def _side_by_side(words: argparse.Namespace) -> int:
    """A process for each job; what the last line of each says is put together."""
    running = []
    for number in range(words.jobs):
        seed = str(words.seed + APART * number)
        command = [sys.executable, __file__, "--minutes", str(words.minutes), "--out", str(words.out), "--seed", seed]
        command += ["--only", *words.only] * bool(words.only) + ["--seeds", *map(str, words.seeds)] * bool(words.seeds)
        with (words.out / f"{number}.log").open("w", encoding="utf-8") as log:
            running.append(subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT))
    codes = [each.wait() for each in running]
    ends = [(words.out / f"{number}.log").read_text(encoding="utf-8").splitlines()[-1:] for number in range(words.jobs)]
    for number, end in enumerate(ends):
        print(number, *end)
    programs = sum(int(found[1]) for end in ends for line in end if (found := re.search(r"in (\d+) programs$", line)))
    print(f"{programs} programs in {words.jobs} processes, {sum(map(bool, codes))} of which found or met something")
    return int(any(codes))


def _shown(example: tuple[object, ...]) -> str:
    parts = []
    for each in example:
        if isinstance(each, tuple) and each and isinstance(each[0], File):
            parts += [f"--- {file.name} ({file.language})\n{file.text}" for file in each]
        else:
            parts.append(f"--- {each!r}")
    return "\n".join(parts)


if __name__ == "__main__":
    sys.exit(main())
