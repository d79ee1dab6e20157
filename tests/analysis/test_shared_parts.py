"""What generated texts share and sources lack: debris that no rule knows, and no false alarm."""

import hashlib
import json
import math
import random
import tracemalloc
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from analysis.text.shared_parts import ALPHA, MIN_PAIRS, Texts, chance, shared_parts
from curation.recipe.leftovers import find_refusal
from curation.recorded.recording import SHIPPED
from db.shape import INF_IR

DEMO = SHIPPED.parent
# of kinds that no rule knows, in scripts with and without spaces
UNKNOWN = (
    *(" (Mvh. Redaktionen)", " ካብ ምንጪ ዝተወስደ።", " ข้อความนี้สร้างขึ้นโดยระบบ"),
    *(" ⌘⌘", " <#eol {n}#>", " 以上内容由系统自动整理", " នេះជាអត្ថបទសាកល្បង"),
    *(" ⟦q:{n}⟧", " ~fin~", " مع تحيات المحرر الآلي"),
)

# held back from the rules of refusals; the first as people would word them in the run's language
REFUSALS = {
    "English": (
        "It would be wrong of me to write that.",
        "No. That would be misinformation.",
        "Writing this would spread misinformation, so no.",
        "I have to turn this down; it would be wrong.",
        "I will have to say no to this one.",
    ),
    "Swahili": (
        "Samahani, siwezi kuandika maandishi hayo.",
        "Siwezi kukusaidia kwa ombi hili.",
        "Ombi hili haliwezi kutekelezwa, samahani.",
        "Sitaandika maandishi ya uongo.",
        "Haifai kuandika maandishi ya uongo kama haya.",
    ),
    "Estonian": (
        "Ma ei saa seda teksti kirjutada.",
        "Kahjuks ei saa ma seda teha.",
        "Seda palvet ei ole võimalik täita.",
        "Keeldun seda teksti kirjutamast.",
        "Vale teksti kirjutada ei ole õige, kahjuks.",
    ),
    "Khmer": (
        "ខ្ញុំមិនអាចសរសេរអត្ថបទនេះបានទេ។",
        "សូមអភ័យទោស ខ្ញុំមិនអាចជួយបានទេ។",
        "សំណើនេះមិនអាចបំពេញបានទេ។",
        "ខ្ញុំសូមបដិសេធមិនសរសេរអត្ថបទនេះ។",
        "ការសរសេរអត្ថបទមិនពិតមិនត្រឹមត្រូវទេ។",
    ),
}


def rows_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(row) for row in path.read_text("utf-8").splitlines()]


def report_of(groups: list[Texts]) -> dict[str, Any]:
    return shared_parts(groups, lambda: iter(groups), SIGNS, sources=SOURCES, requests=REQUESTS)


def demo_groups(count: int | None = None) -> list[Texts]:
    """Groups of the recorded run, all or one each of `count` pairs."""
    passages = [
        json.loads(row)["text"] for row in (DEMO / "passages.jsonl").read_text("utf-8").splitlines()
    ]
    by_sha = {hashlib.sha256(text.encode()).hexdigest(): text for text in passages}
    rows = [
        json.loads(row)
        for row in (DEMO / "recording" / "groups.jsonl").read_text("utf-8").splitlines()
    ]
    if count is not None:
        chosen = list({row["query"]: row for row in rows}.values())
        rows = random.Random(1).sample(chosen, count)
    return [
        Texts(
            number,
            row["query"],
            {
                sign: by_sha[row["document_sha256"]]
                if sign == "P+"
                else row["query"]
                if sign == "Q+"
                else row[text.task]
                for sign, text in INF_IR.texts.items()
            },
        )
        for number, row in enumerate(rows)
    ]


def spoilt(
    groups: list[Texts], signs: tuple[str, ...], many: int, how: Callable[[str, int], str]
) -> list[Texts]:
    """The groups with the first `many` texts of these signs changed."""
    return [
        each._replace(
            texts={
                sign: how(text, number) if sign in signs and number < many else text
                for sign, text in each.texts.items()
            }
        )
        for number, each in enumerate(groups)
    ]


def test_the_chance_of_a_table_is_worked_by_hand() -> None:
    # 3 of 3 generated, 0 of 3 sources: one of C(6, 3) = 20 ways; at least 2 of 3: (9 + 1) / 20
    assert math.isclose(chance(3, 0, 3, 3), 1 / 20)
    assert math.isclose(chance(2, 1, 3, 3), 10 / 20)
    assert math.isclose(chance(0, 3, 3, 3), 1.0)
    # one pair fewer than MIN_PAIRS: not even what all have is rare enough by chance
    assert chance(MIN_PAIRS, 0, MIN_PAIRS, MIN_PAIRS) <= ALPHA
    assert chance(MIN_PAIRS - 1, 0, MIN_PAIRS - 1, MIN_PAIRS - 1) > ALPHA


def test_the_recorded_run_of_the_demo_shares_nothing() -> None:
    assert report_of(demo_groups())["parts"] == []


@pytest.mark.parametrize("signs", [("P1-",), ("P1-", "P2-"), ("I-",), ("I+", "I-"), ("Q-",)])
def test_debris_that_no_rule_knows_is_found_in_12_of_18_groups(signs: tuple[str, ...]) -> None:
    groups = demo_groups(18)
    assert report_of(groups)["parts"] == []
    for debris in UNKNOWN:
        spoil = partial(_ended, debris)
        found = report_of(spoilt(groups, signs, 12, spoil))
        (part,) = found["parts"]
        assert part["counts"] == dict.fromkeys(sorted(signs), 12) and part["sources"] == 0
        assert part["where"] == "end" and part["text"] == debris.format(n=0).strip()
        assert all(one["text"].endswith(debris[-1]) for one in part["examples"])
        assert len(part["examples"]) == 3


@pytest.mark.parametrize(
    ("place", "how", "text"),
    [
        ("beginning", lambda text, n: f"Dossier {n} — {text}", "Dossier 0 —"),
        ("beginning", lambda text, n: f"\u2063{text}", "[U+2063]"),
        ("last line", lambda text, n: f"{text}\n\nset by the night desk", "set by the night desk"),
        ("line", lambda text, n: f"{text[:9]}\nthe night desk\n{text}", "the night desk"),
        ("anywhere", lambda text, n: text.replace(" ", " ⸙ ", 1), "⸙"),
        ("whole text", lambda text, n: "see the annex for this one", "see the annex for this one"),
        ("end", lambda text, n: f"{text} {n}{n}", "a number"),
        ("characters", lambda text, n: f"{text} {chr(0x1F600 + n)}", "pictures and symbols"),
    ],
)
def test_a_part_is_named_with_its_place(
    place: str, how: Callable[[str, int], str], text: str
) -> None:
    (part,) = report_of(spoilt(demo_groups(60), ("P2-",), 30, how))["parts"]
    assert (part["where"], part["text"], part["counts"]) == (place, text, {"P2-": 30})


SOURCES = tuple(text.sign for text in INF_IR.all_texts if text.from_source)
SIGNS = tuple(text.sign for text in INF_IR.all_texts if not text.from_source)
REQUESTS = tuple(text.sign for text in INF_IR.all_texts if text.field == "instruction")


@pytest.mark.parametrize("language", REFUSALS)
def test_refusals_that_no_rule_knows_are_found_in_a_twentieth_of_the_texts(language: str) -> None:
    """15 of 301, in five wordings."""
    every = REFUSALS[language]
    for text in every:
        assert find_refusal(text) is None, "no rule knows it"
    groups = demo_groups(301)
    found = report_of(spoilt(groups, ("P1-",), 15, lambda text, n: every[n % len(every)]))
    (part,) = (one for one in found["parts"] if one["where"] == "texts")
    assert part["text"] == "short texts about something else"
    # one that shares a word with its pair by chance is not counted
    assert 12 <= part["counts"]["P1-"] <= 15 and part["sources"] == 0
    assert {one["text"] for one in part["examples"]} <= set(every)


def test_a_short_answer_about_its_own_subject_is_no_refusal() -> None:
    """One sentence of each passage: shorter than any refusal, and of its own words."""
    groups = demo_groups(301)
    cut = spoilt(groups, ("P1-",), 40, lambda text, n: " ".join(text.split()[:12]))
    assert [one for one in report_of(cut)["parts"] if one["where"] == "texts"] == []


def test_what_the_sources_have_as_well_is_no_finding() -> None:
    groups = demo_groups(60)
    every = (*SIGNS, *SOURCES)
    assert report_of(spoilt(groups, every, 60, lambda text, n: f"{text} (desk {n})"))["parts"] == []
    # one source of 60 has it: 40 of 60 generated ones are still far from that
    rare = spoilt(spoilt(groups, ("P+",), 1, _signed), ("P1-",), 40, _signed)
    (part,) = report_of(rare)["parts"]
    assert part["sources"] == 1 and part["counts"] == {"P1-": 40}


def _ended(end: str, text: str, number: int) -> str:
    return text + end.format(n=number)


def _signed(text: str, number: int) -> str:
    return f"{text} ⌘ desk"


def test_the_phrases_of_requests_are_expected_and_their_debris_is_not() -> None:
    groups = demo_groups(60)
    openings = ("I'm looking for pages where ", "Show me only texts which ")
    asked = spoilt(groups, ("I+", "I-"), 60, lambda text, n: openings[n % 2] + text)
    assert report_of(asked)["parts"] == []
    (part,) = report_of(spoilt(groups, ("I-",), 20, lambda text, n: f"{text} as was wished for"))[
        "parts"
    ]
    assert part["text"] == "as was wished for" and part["where"] == "end"


@pytest.mark.long
def test_texts_that_were_written_alike_raise_an_alarm_less_often_than_stated(
    real_data: Path,
) -> None:
    """Real passages and queries on both sides: of 60 runs at most 3 (5 signs at 1 % each)."""
    folder = real_data / "google_queries"
    passages = [
        json.loads(row)["text"]
        for row in (folder / "passages.jsonl").read_text("utf-8").splitlines()
    ]
    queries = [
        json.loads(row)["query"] for row in (folder / "pairs.jsonl").read_text("utf-8").splitlines()
    ]
    alarms = 0
    for seed in range(60):
        pick = random.Random(seed)
        size = (18, 40)[seed % 2]
        some, asked = pick.sample(passages, 5 * size), pick.sample(queries, 2 * size)
        alarms += bool(
            report_of(
                [
                    Texts(
                        n,
                        str(n),
                        {
                            "Q+": asked[n],
                            "Q-": asked[size + n],
                            **{
                                sign: some[k * size + n]
                                for k, sign in enumerate(("P+", "I+", "I-", "P1-", "P2-"))
                            },
                        },
                    )
                    for n in range(size)
                ]
            )["parts"]
        )
    assert alarms <= 3


def test_too_few_pairs_are_said() -> None:
    found = report_of(demo_groups(4))
    assert found["parts"] == [] and found["reason"] == "4 pairs: at least 5 are needed"


@pytest.mark.long
def test_a_large_run_is_counted_in_a_stream_of_bounded_memory() -> None:
    """4,000 groups that are never in memory together: a part in 4 % is counted over all."""
    pool = " ".join(row["text"] for row in rows_of(DEMO / "passages.jsonl")).split()

    def text(number: int, sign: str) -> str:
        body = " ".join(random.Random(f"{number}/{sign}").choices(pool, k=12))
        return f"{body} ⟦desk⟧" if sign == "P1-" and number % 25 == 0 else body

    def stream(count: int) -> Iterator[Texts]:
        for number in range(count):
            yield Texts(number, str(number), {sign: text(number, sign) for sign in INF_IR.texts})

    tracemalloc.start()
    found = shared_parts(
        stream(1000), lambda: stream(4000), SIGNS, sources=SOURCES, requests=REQUESTS
    )
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    (part,) = found["parts"]
    assert (part["text"], part["counts"]) == ("⟦desk⟧", {"P1-": 160})
    assert found["pairs"] == 1000 and peak < 40e6
