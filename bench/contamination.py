"""Recall of the contamination check on edited and paraphrased questions, its precision on real
questions, and its time and memory at scale: the tables of docs/contamination.md.

    nice python bench/contamination.py edits [--real ../shared/data]
    nice python bench/contamination.py paraphrases [--real ../shared/data]
    nice python bench/contamination.py heavy [--real ../shared/data]
    nice python bench/contamination.py scale [--ours 1000000] [--theirs 100000]

Questions are those of tests/data/paraphrases.jsonl, passages those of the first demo
set and the natural
probe. Seeds are fixed.
"""

import argparse
import json
import random
import resource
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

# A script's own folder comes first on the path: bench/analysis.py would replace the package.
sys.path[:] = [place for place in sys.path if Path(place).resolve() != Path(__file__).parent]

from analysis.text.overlap import OverlapIndex, overlaps  # noqa: E402
from db.corpus.texts import CorpusText  # noqa: E402

ROOT = Path(__file__).resolve().parents[1]
CYRILLIC = str.maketrans("aceopxyi", "асеорхуі")
REAL = ("google_queries/pairs", "code_math/mbpp_pairs", "code_math/gsm8k_pairs")
EXCERPT, CLEAN = 30, 1000
Edit = Callable[[str, random.Random, list[str]], str]


def rows_of(path: Path) -> list[dict[str, str]]:
    """The rows of a JSONL file."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def pairs() -> list[dict[str, str]]:
    """The frozen paraphrases: id, query, paraphrase."""
    return rows_of(ROOT / "tests" / "data" / "paraphrases.jsonl")


def passages() -> list[str]:
    """Passages of the demo set and of the natural probe."""
    demo = [
        row["text"] for row in rows_of(ROOT / "tests" / "data" / "first_demo" / "passages.jsonl")
    ]
    probe = rows_of(ROOT / "trainer" / "probe" / "natural.jsonl")
    return list(dict.fromkeys([*demo, *(row["passage_a"] for row in probe)]))


def real_questions(folder: Path) -> list[tuple[str, str]]:
    """(id, question) of all 4,389 questions of the shared data."""
    return [
        (row["query_id"], row["query"])
        for name in REAL
        for row in rows_of(folder / f"{name}.jsonl")
    ]


def change_word(text: str, rng: random.Random, vocabulary: list[str]) -> str:
    """One word, any of them, becomes another."""
    tokens = text.split()
    tokens[rng.randrange(len(tokens))] = rng.choice(vocabulary)
    return " ".join(tokens)


def typo(text: str, rng: random.Random, vocabulary: list[str]) -> str:
    """A letter of a word of four or more is lost, doubled, replaced or swapped with the next."""
    tokens = text.split()
    places = [place for place, token in enumerate(tokens) if len(token) > 3]
    if not places:
        return text
    place = rng.choice(places)
    word = tokens[place]
    at = rng.randrange(len(word) - 1)
    tokens[place] = rng.choice(
        [
            word[:at] + word[at + 1 :],
            word[:at] + word[at] + word[at:],
            word[:at] + rng.choice("abcdefghijklmnopqrstuvwxyz") + word[at + 1 :],
            word[:at] + word[at + 1] + word[at] + word[at + 2 :],
        ]
    )
    return " ".join(tokens)


def two_typos(text: str, rng: random.Random, vocabulary: list[str]) -> str:
    """Two typing errors, maybe in one word."""
    return typo(typo(text, rng, vocabulary), rng, vocabulary)


def homoglyphs(text: str, rng: random.Random, vocabulary: list[str]) -> str:
    """Half of the letters that have a Cyrillic look-alike."""
    return "".join(letter.translate(CYRILLIC) if rng.random() < 0.5 else letter for letter in text)


def full_width(text: str, rng: random.Random, vocabulary: list[str]) -> str:
    """Full-width letters, as NFKC undoes them, and an invisible mark in every word."""
    wide = "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in text)
    return " ".join(word[:1] + "\u200b" + word[1:] for word in wide.split())


def every_fifth(text: str, rng: random.Random, vocabulary: list[str]) -> str:
    """Every fifth word becomes another, from a random one of the first five on."""
    tokens = text.split()
    for place in range(rng.randrange(5), len(tokens), 5):
        tokens[place] = rng.choice(vocabulary)
    return " ".join(tokens)


def every_fourth(text: str, rng: random.Random, vocabulary: list[str]) -> str:
    """Every fourth word becomes another, from a random one of the first four on."""
    tokens = text.split()
    for place in range(rng.randrange(4), len(tokens), 4):
        tokens[place] = rng.choice(vocabulary)
    return " ".join(tokens)


def excerpt(text: str, rng: random.Random, others: list[str]) -> str:
    """30 consecutive words of the text between the halves of another one."""
    tokens, around = text.split(), rng.choice(others).split()
    start = rng.randrange(max(1, len(tokens) - EXCERPT + 1))
    middle = len(around) // 2
    return " ".join([*around[:middle], *tokens[start : start + EXCERPT], *around[middle:]])


EDITS: dict[str, Edit] = {
    "one word changed": change_word,
    "a typo": typo,
    "two typos": two_typos,
    "Cyrillic letters": homoglyphs,
    "full-width, invisible marks": full_width,
    "every 5th word changed": every_fifth,
}


def recall(texts: list[str], field: str, edit: Edit, seed: int = 0) -> tuple[float, int]:
    """Share of the texts whose edited copy is found, and pairs of an edited and another text."""
    rng = random.Random(seed)
    vocabulary = sorted({word for text in texts for word in text.split()})
    edited = [edit(text, rng, vocabulary) for text in texts]
    found = overlaps(
        [CorpusText(field, "positive", text) for text in edited],
        [CorpusText(field, "positive", text) for text in texts],
    )
    right = {each.one for each in found if each.one == each.other}
    return len(right) / len(texts), sum(each.one != each.other for each in found)


def clean_passages(folder: Path) -> tuple[list[str], list[str]]:
    """1,000 real passages of at least 40 words, and 1,000 others, of other articles."""
    rows = [
        row
        for row in rows_of(folder / "google_queries" / "passages.jsonl")
        if len(row["text"].split()) >= 40
    ]
    first = rows[:CLEAN]
    titles = {row["title"] for row in first}
    second = [row for row in rows[CLEAN:] if row["title"] not in titles][:CLEAN]
    return [row["text"] for row in first], [row["text"] for row in second]


def heavy_recall(
    kept: list[str], changed: list[str], clean: list[str], field: str
) -> tuple[float, int, int]:
    """(share of the changed texts whose original is found, wrong pairs of these, pairs of the clean
    texts with the originals)."""
    theirs = [CorpusText(field, "positive", text) for text in kept]
    found = overlaps([CorpusText(field, "positive", text) for text in changed], theirs)
    right = {each.one for each in found if each.one == each.other}
    false = overlaps([CorpusText(field, "positive", text) for text in clean], theirs)
    wrong = len({each.one for each in found} - right)
    return len(right) / len(kept), wrong, len({each.one for each in false})


def heavy(folder: Path) -> list[tuple[str, int, float, int, int]]:
    """(edit, texts, recall, wrong texts, clean texts that were reported of 1,000) of each."""
    rng = random.Random(0)
    passages, others = clean_passages(folder)
    known = [text for _, text in real_questions(folder)]
    questions, further = known[:CLEAN], known[CLEAN : 2 * CLEAN]
    found = []
    for name, field, texts, clean in (
        ("every 4th word changed, passages", "passage", passages, others),
        ("every 4th word changed, questions", "query", questions, further),
    ):
        words = sorted({word for text in texts for word in text.split()})
        changed = [every_fourth(text, rng, words) for text in texts]
        found.append((name, len(texts), *heavy_recall(texts, changed, clean, field)))
    cut = [excerpt(text, rng, others) for text in passages]
    found.append(
        ("30 words in another passage", len(cut), *heavy_recall(passages, cut, others, "passage"))
    )
    return found


def paraphrase_precision(folder: Path, thresholds: Sequence[float]) -> list[tuple[float, ...]]:
    """(threshold, recall, wrong pairs, clean questions reported of 1,000, clean passages that would
    be reported of 1,000 if passages were compared) of each threshold."""
    from analysis.embed.embedding import encode
    from analysis.text.paraphrases import paraphrase_pairs

    frozen = pairs()
    clean = [text for _, text in real_questions(folder)][:CLEAN]
    first, second = (encode([row[name] for row in frozen]) for name in ("query", "paraphrase"))
    other = encode(clean)
    passages, others = map(encode, clean_passages(folder))
    found = []
    for threshold in thresholds:
        near = {(a, b) for a, b, _ in paraphrase_pairs(second, first, threshold)}
        right = sum(a == b for a, b in near)
        reported = [
            len({a for a, _, _ in paraphrase_pairs(ours, theirs, threshold)})
            for ours, theirs in ((other, first), (others, passages))
        ]
        wrong = len({a for a, b in near if a != b})
        found.append((threshold, right / len(frozen), wrong, *reported))
    return found


def precision(texts: int, recall: float, wrong: float, false: float) -> float:
    """Of all texts reported, changed and clean, those whose own original was found."""
    return recall * texts / (recall * texts + wrong + false)


def report_heavy(folder: Path) -> None:
    """Print recall and precision of heavier edits, and of paraphrases by threshold."""
    print("| edit | texts | found | clean texts reported of 1,000 | precision |")
    print("|---|---:|---:|---:|---:|")
    for name, count, share, wrong, false in heavy(folder):
        of = precision(count, share, wrong, false)
        print(f"| {name} | {count:,} | {share:.3f} | {false} | {of:.3f} |")
    print("| threshold | found of 300 | clean questions of 1,000 | precision | clean passages |")
    print("|---:|---:|---:|---:|---:|")
    for threshold, share, wrong, false, passages in paraphrase_precision(
        folder, (0.4, 0.45, 0.5, 0.55, 0.6)
    ):
        of = precision(len(pairs()), share, wrong, false)
        print(f"| {threshold} | {share:.3f} | {false} | {of:.3f} | {passages} |")


def light_pairs(questions: list[str]) -> list[tuple[int, int, str]]:
    """Pairs of different questions that the check calls overlapping, and how."""
    rows = [CorpusText("query", "positive", text) for text in questions]
    return [
        (each.one, each.other, each.how) for each in overlaps(rows, rows) if each.one < each.other
    ]


def report_edits(real: Path) -> None:
    """Print recall by edit, and what is found among real questions."""
    questions = [row["query"] for row in pairs()]
    print("| edit | questions | passages |\n|---|---:|---:|")
    for name, edit in EDITS.items():
        shares = [recall(questions, "query", edit), recall(passages(), "passage", edit)]
        print(
            f"| {name} | " + " | ".join(f"{share:.3f} ({other})" for share, other in shares) + " |"
        )
    if real.is_dir():
        known = [text for _, text in real_questions(real)]
        found = light_pairs(known)
        hows = {how: sum(each[2] == how for each in found) for how in {each[2] for each in found}}
        print(f"\n{len(known):,} real questions: {len(found)} pairs {hows}")


def report_paraphrases(real: Path) -> None:
    """Print recall on the frozen pairs and what is found among real questions, by threshold."""
    from analysis.embed.embedding import encode
    from analysis.text.paraphrases import THRESHOLD, paraphrase_pairs

    frozen, known = pairs(), real_questions(real)
    first, second = (encode([row[name] for row in frozen]) for name in ("query", "paraphrase"))
    texts = [text for _, text in known]
    vectors = encode(texts)
    against = np.concatenate([first, vectors])
    light = {(one, other) for one, other, _ in light_pairs(texts)}
    same = {
        frozenset((row["one"], row["other"])): bool(row["same"])
        for row in rows_of(ROOT / "tests" / "data" / "paraphrase_judgments.jsonl")
    }
    print("| threshold | recall | wrong pairs | among real questions | of them the same |")
    print("|---:|---:|---:|---:|---:|")
    for threshold in (0.55, THRESHOLD, 0.65, 0.7, 0.75):
        found = [(a, b) for a, b, _ in paraphrase_pairs(second, against, threshold)]
        right = sum(a == b for a, b in found)
        mine = [
            frozenset((known[a][0], known[b][0]))
            for a, b, _ in paraphrase_pairs(vectors, vectors, threshold)
            if a < b and (a, b) not in light
        ]
        judged = [same[pair] for pair in mine if pair in same]
        agreed = f"{np.mean(judged):.2f}" if len(judged) == len(mine) else "not judged"
        print(
            f"| {threshold} | {right / len(frozen):.3f} | {len(found) - right} | {len(mine)} "
            f"| {agreed} |"
        )
    print("\nThe plain cosine:\n\n| cosine | recall | wrong pairs | among real questions |")
    print("|---:|---:|---:|---:|")
    for threshold in (0.65, 0.68, 0.72, 0.8):
        cosines = second @ against.T >= threshold
        right = int(np.trace(cosines[:, : len(frozen)]))
        rows, columns = np.nonzero(np.triu(vectors @ vectors.T >= threshold, 1))
        mine_plain = set(zip(rows.tolist(), columns.tolist(), strict=True)) - light
        print(
            f"| {threshold} | {right / len(frozen):.3f} | {int(cosines.sum()) - right} "
            f"| {len(mine_plain):,} |"
        )


def synthetic(count: int, seed: int, words: int) -> Iterator[CorpusText]:
    """Passages of words by Zipf's law; every 100th is an edited copy of one with the seed 1."""
    vocabulary = [f"w{number:x}" for number in range(200_000)]
    shares = 1 / np.arange(1, len(vocabulary) + 1)
    limits = np.cumsum(shares / shares.sum())
    for place in range(count):
        copied = seed != 1 and place % 100 == 0
        generator = np.random.default_rng([1, place // 100] if copied else [seed, place])
        chosen = np.searchsorted(limits, generator.random(words))
        tokens = [vocabulary[min(number, len(vocabulary) - 1)] for number in chosen]
        if copied:
            tokens[::5] = ["changed"] * len(tokens[::5])
        yield CorpusText("passage", "positive", " ".join(tokens))


def report_scale(ours: int, theirs: int, words: int) -> None:
    """Print the CPU time and the memory of the surface methods."""
    against = list(synthetic(theirs, 1, words))
    started = time.process_time()
    index = OverlapIndex(against)
    built, found, looked = time.process_time() - started, 0, 0.0
    block: list[CorpusText] = []
    for row in synthetic(ours, 2, words):
        block.append(row)
        if len(block) == 2000:
            started = time.process_time()
            found += len(index.find(block))
            looked += time.process_time() - started
            block = []
    started = time.process_time()
    found += len(index.find(block)) if block else 0
    looked += time.process_time() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(
        f"{ours:,} x {theirs:,} passages of {words} words: index {built:.0f} s, compare "
        f"{looked:.0f} s of one core, {found:,} pairs ({ours // 100:,} planted), "
        f"peak {peak:.1f} GB"
    )


def main() -> None:
    """Print one of the tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["edits", "paraphrases", "heavy", "scale"])
    parser.add_argument("--real", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--ours", type=int, default=1_000_000)
    parser.add_argument("--theirs", type=int, default=100_000)
    parser.add_argument("--words", type=int, default=100)
    given = parser.parse_args()
    if given.what == "edits":
        report_edits(given.real)
    elif given.what == "heavy":
        report_heavy(given.real)
    elif given.what == "paraphrases":
        report_paraphrases(given.real)
    else:
        report_scale(given.ours, given.theirs, given.words)


if __name__ == "__main__":
    main()
