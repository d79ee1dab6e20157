"""What the generated texts of a run share and its sources never hold.

Rules know the debris of yesterday; this finds any: a note that a model adds to every text, tokens
of a template, an error message, a mark nobody sees, in any language and script. The generated texts
of one sign (P1-, Q-, …) are compared with the real ones of the same pairs (Q+ and P+ together), one
of each per pair.

- Features of a text: its runs of 1 to MAX_TOKENS tokens, and its classes: those of its characters
  (scripts other than Latin, pictures, private or unseen characters), and whether it is APART. A
  token is a word without case, any number, a mark, or a character of a script without spaces. The
  beginning and the end of a text and line breaks are tokens, too: a prefix, a suffix and a line are
  runs like others.
- A text is APART if it has less than SHORT of the median length of its sign, shares no rarer word
  (two characters of a script without spaces) with the real texts of its pair, a real text with the
  other real ones, and at least ECHOED of its rarer words are in another such text of its sign: a
  refusal or a remark to whoever asks, in whatever wording and language. A real answer of one line
  is about a subject of its own.
- Test: if generated and real texts were written alike, which of the s texts that hold a feature are
  among the n generated ones and which among the m sources would be chance, and for a of them

      p(a, s) = sum over x >= a of C(n, x) C(m, s - x) / C(n + m, s)     (Fisher's exact test).

  Many features are tested at once. One in s texts cannot have a smaller p than p(s, s), so only the
  K(s) features in at least s texts can pass (Tarone 1990): with the least s where
  K(s) p(s, s) <= ALPHA, a feature is reported if p <= ALPHA / K(s). Runs and classes are two
  families, as there are thousands of the one and a few of the other, which would need as many texts
  to be found: ALPHA is for the runs, CLASSES_ALPHA for the classes. Anything is reported of texts
  that were written alike with a chance of at most the sum of the two per sign.
- Size: at least MIN_SHARE of the generated texts hold it, and sources MIN_RATIO times more rarely.
- Instructions have no real counterpart, and requests share their phrases ("I'd like", "please",
  "find texts that"), which is expected. Of them, only runs with a mark or a class of characters
  that is not ordinary are reported, and ends of MIN_END_TOKENS tokens that REQUEST_SHARE share.

A run is extended while AGREEING of the texts that hold it go on alike, so that the runs of one part
are one. At most SAMPLE pairs are compared; what was found is counted over all, in a stream.
"""

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from statistics import median
from typing import Any, NamedTuple

VERSION = 2  # of the definitions here
ALPHA, CLASSES_ALPHA = 0.01, 0.003
MIN_SHARE, MIN_RATIO = 0.02, 20.0
REQUEST_SHARE, MIN_END_TOKENS = 0.25, 3
AGREEING = 0.8
SAMPLE = 1500  # pairs: 15 s; what 2 % of them share is found
MAX_TOKENS, MAX_PART = 4, 60
MAX_PARTS, MAX_EXAMPLES, CONTEXT = 12, 3, 60
SHORT, ECHOED = 1 / 3, 1 / 2
COMMON, MIN_COMMON = 0.05, 2  # a word in more of the real texts, and in more than two, is no sign
MIN_LETTERS = 3  # of a word
APART = "class short texts about something else"

START, END = "\x02", "\x03"
_SPACELESS = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_TOKEN = re.compile(rf"\n+|[{_SPACELESS}]|\d+|(?:(?![{_SPACELESS}])[^\W\d_])+|\S")
_ORDINARY = frozenset(".,;:!?'\"’‘“”()-–—…/&%$€£،؛؟。，、！？：；（）「」¿¡·«»\n")
_SENTENCE_ENDS = frozenset(".!?…。！？")  # before a part: of the text that it follows
_CLASSES = {
    "Cc": "control characters",
    "Cf": "unseen characters",
    "Co": "private characters",
    "So": "pictures and symbols",
    "Mn": "combining marks",
}
Gram = tuple[str, ...]


class Texts(NamedTuple):
    """The texts of a group by sign, the real ones (Q+, P+) among them."""

    group_id: int
    pair: str
    texts: Mapping[str, str]


@dataclass
class _Part:
    """A part that texts share, and how often: `tokens` are folded; a class has one token."""

    tokens: Gram
    counts: Counter[str] = field(default_factory=Counter)
    sources: int = 0
    text: str = ""
    examples: list[dict[str, Any]] = field(default_factory=list)

    @property
    def total(self) -> int:
        """How many generated texts hold it."""
        return sum(self.counts.values())

    @property
    def classes(self) -> set[str]:
        """The classes of its characters, as tokens."""
        return set(_classes("".join(self.tokens).strip(START + END)))

    @property
    def is_class(self) -> bool:
        """Whether it is a class of characters."""
        return self.tokens[0].startswith("class ")


@dataclass(frozen=True)
class _Usual:
    """What is usual of the texts of a sign, to find which are APART.

    `lengths`: median, in tokens; `common`: words that many real texts have; `echoed`: by sign the
    words that two or more of its short texts about something else have.
    """

    sources: Sequence[str]
    lengths: Mapping[str, float]
    common: frozenset[str]
    echoed: Mapping[str, frozenset[str]]

    @classmethod
    def of(cls, groups: Collection[Texts], sources: Sequence[str]) -> "_Usual":
        """Of these groups."""
        lengths: dict[str, list[int]] = {}
        held: Counter[str] = Counter()
        for each in groups:
            for sign, text in each.texts.items():
                lengths.setdefault(sign, []).append(len(_TOKEN.findall(text)))
            for sign in sources:
                held.update(_words(each.texts.get(sign, "")))
        least = max(MIN_COMMON, COMMON * len(groups) * len(sources))
        common = frozenset(word for word, count in held.items() if count > least)
        medians = {sign: median(of_sign) for sign, of_sign in lengths.items()}
        found = cls(sources, medians, common, {})
        echoed = {}
        for sign in medians:
            there = (found._elsewhere(sign, each.texts) for each in groups if sign in each.texts)
            counts = Counter(word for words in there if words is not None for word in words)
            echoed[sign] = frozenset(word for word, count in counts.items() if count > 1)
        return replace(found, echoed=echoed)

    def classes(self, sign: str, texts: Mapping[str, str]) -> list[str]:
        """APART where the text of this sign is."""
        words = self._elsewhere(sign, texts)
        if words is None or len(words & self.echoed[sign]) < ECHOED * len(words):
            return []
        return [APART]

    def _elsewhere(self, sign: str, texts: Mapping[str, str]) -> set[str] | None:
        """The rarer words of a short text about something else; None for any other text."""
        if len(_TOKEN.findall(texts[sign])) >= SHORT * self.lengths[sign]:
            return None
        words = _words(texts[sign]) - self.common
        others = (texts[one] for one in self.sources if one != sign and one in texts)
        return None if words & set[str]().union(*map(_words, others)) else words


def _words(text: str) -> set[str]:
    """The words of a text without case, and of scripts without spaces every two characters."""
    tokens = [token.casefold() for token in _TOKEN.findall(text)]
    found = {token for token in tokens if len(token) >= MIN_LETTERS and token.isalpha()}
    return found | {
        one + other
        for one, other in pairwise(tokens)
        if len(one) == len(other) == 1 and one.isalpha() and other.isalpha()
    }


def shared_parts(
    sample: Iterable[Texts],
    every: Callable[[], Iterable[Texts]],
    signs: Sequence[str],
    *,
    sources: Sequence[str],
    requests: Sequence[str] = (),
) -> dict[str, Any]:
    """What is shared: `parts`, most frequent first, each with its counts by sign and examples.

    sample: groups to compare, of each pair the first, SAMPLE at most. every: makes a stream of all
    groups, to count what was found. signs: of the generated texts, `requests` those that are
    instructions; sources: of the real ones. With fewer than MIN_PAIRS pairs nothing can be found,
    and `reason` says so.
    """
    chosen: dict[str, Texts] = {}
    for each in sample:
        if len(chosen) < SAMPLE:
            chosen.setdefault(each.pair, each)
    report: dict[str, Any] = {"version": VERSION, "pairs": len(chosen)}
    if len(chosen) < MIN_PAIRS:
        reason = f"{len(chosen)} pairs: at least {MIN_PAIRS} are needed"
        return report | {"parts": [], "reason": reason}
    usual = _Usual.of(chosen.values(), sources)
    tokens = [
        {
            sign: [*_tokens(text), *usual.classes(sign, each.texts)]
            for sign, text in each.texts.items()
        }
        for each in chosen.values()
    ]
    found: dict[Gram, _Part] = {}
    given = [[token for sign in sources for token in each[sign]] for each in tokens]
    for sign in signs:
        written = [each[sign] for each in tokens]
        for gram in _shared(written, given, is_request=sign in requests):
            found.setdefault(gram, _Part(gram))
    parts = list(found.values())
    if parts:
        _count(parts, every(), signs, usual)
    ranked = sorted(parts, key=lambda part: (part.is_class, -part.total, part.tokens))
    distinct = sorted(_distinct(ranked), key=lambda part: -part.total)
    return report | {"parts": [_as_json(part) for part in distinct[:MAX_PARTS]]}


def _tokens(text: str) -> list[str]:
    """The folded tokens of a text between START and END, then the classes of its characters."""
    return [START, *(_folded(one) for one in _TOKEN.findall(text)), END, *_classes(text)]


def _folded(token: str) -> str:
    if token[0] == "\n":
        return "\n"
    return "0" if token.isdigit() else token.casefold()


def _classes(text: str) -> Iterator[str]:
    """The classes of a text's characters beyond ASCII, as tokens: they stand behind END."""
    if text.isascii() and text.isprintable():
        return
    for one in sorted({_class(each) for each in set(text)} - {""}):
        yield f"class {one}"


def _class(character: str) -> str:
    category = unicodedata.category(character)
    if character in "\n\t\r" or (character.isascii() and category != "Cc"):
        return ""
    if category[0] == "L":
        script = unicodedata.name(character, "UNNAMED").split(" ")[0]
        return "" if script == "LATIN" else f"letters: {script.lower()}"
    return "" if character in "°©®¦" else _CLASSES.get(category, "")


def _shared(
    written: Sequence[list[str]], given: Sequence[list[str]], *, is_request: bool
) -> list[Gram]:
    """The parts that the written texts share and the given ones do not hold, each extended."""
    n, m = len(written), len(given)
    support = _supports(written, given, _least_support(n, m))
    classes = {gram: both for gram, both in support.items() if gram[0].startswith("class ")}
    runs = {gram: both for gram, both in support.items() if gram not in classes}
    grams = [
        gram
        for family, alpha in ((runs, ALPHA), (classes, CLASSES_ALPHA))
        for gram in _passing(family, n, m, alpha)
        if not (is_request and _is_expected(gram, support[gram][0] / n))
    ]
    grams.sort(key=lambda gram: (-support[gram][0], -len(gram)))
    found: dict[Gram, None] = {}
    for gram in grams:
        if not any(_holds(one, gram) for one in found):
            found[_extended(gram, written)] = None
    return list(found)


def _passing(support: Mapping[Gram, tuple[int, int]], n: int, m: int, alpha: float) -> list[Gram]:
    """The features of a family that more generated texts hold than chance gives, by Tarone."""
    by_size = Counter(a + b for a, b in support.values())
    tested: Counter[int] = Counter()  # K(s): how many features are in at least s texts
    for size in range(max(by_size, default=0), 0, -1):
        tested[size] = tested[size + 1] + by_size[size]
    limit = next(
        (s for s in range(1, n + 1) if tested[s] * math.exp(_log_p(s, n, m)) <= alpha), None
    )
    if limit is None:
        return []
    return [
        gram
        for gram, (a, b) in support.items()
        if a + b >= limit
        and a >= MIN_SHARE * n
        and a * m >= MIN_RATIO * b * n
        and chance(a, b, n, m) * tested[limit] <= alpha
    ]


def chance(a: int, b: int, n: int, m: int) -> float:
    """P(at least a of the a + b texts that hold a feature are among the n generated of n + m)."""
    held = a + b
    whole = _log_choose(n + m, held)
    return sum(
        math.exp(_log_choose(n, x) + _log_choose(m, held - x) - whole)
        for x in range(max(a, held - m), min(held, n) + 1)
    )


def _log_choose(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def _log_p(support: int, n: int, m: int) -> float:
    """log p(s, s): the least that a feature in s texts can reach."""
    return _log_choose(n, support) - _log_choose(n + m, support)


def _least_support(n: int, m: int) -> int:
    """The least s with p(s, s) <= ALPHA: rarer features cannot be found."""
    return next((s for s in range(1, n + 1) if _log_p(s, n, m) <= math.log(ALPHA)), n + 1)


MIN_PAIRS = next(n for n in range(1, 100) if _least_support(n, n) <= n)


def _supports(
    written: Sequence[list[str]], given: Sequence[list[str]], least: int
) -> dict[Gram, tuple[int, int]]:
    """In how many written and given texts each feature is that at least `least` texts hold.

    A run is counted only if both of its shorter runs are that frequent (Apriori), which bounds the
    memory: rare runs, nearly all of them, are never stored.
    """
    found: dict[Gram, tuple[int, int]] = {}
    frequent: set[Gram] | None = None
    for size in range(1, MAX_TOKENS + 1):
        counts = [Counter[Gram](), Counter[Gram]()]
        for texts, counted in zip((written, given), counts, strict=True):
            for tokens in texts:
                runs = set(zip(*(tokens[start:] for start in range(size)), strict=False))
                if frequent is not None:
                    known = frequent
                    runs = {run for run in runs if run[:-1] in known and run[1:] in known}
                counted.update(runs)
        frequent = {
            run
            for run in counts[0].keys() | counts[1].keys()
            if counts[0][run] + counts[1][run] >= least
        }
        found |= {run: (counts[0][run], counts[1][run]) for run in frequent if run != (START,)}
    edges = {(START,), (END,)}
    return {
        run: both
        for run, both in found.items()
        if run not in edges and (len(run) == 1 or not run[-1].startswith("class "))
    }


def _is_expected(gram: Gram, share: float) -> bool:
    """Whether a shared run of requests is only how requests are phrased."""
    if any(_is_mark(token) or token.startswith("class ") for token in gram):
        return False
    is_end = gram[-1] == END and len(gram) > MIN_END_TOKENS
    return not (is_end and share >= REQUEST_SHARE)


def _is_mark(token: str) -> bool:
    return not token.isalnum() and token not in _ORDINARY and token not in (START, END)


def _extended(gram: Gram, texts: Sequence[list[str]]) -> Gram:
    """The run, longer on both sides while AGREEING of the texts that hold it go on alike."""
    if gram[0].startswith("class "):
        return gram
    holding = [(tokens, place) for tokens in texts if (place := _place(gram, tokens)) is not None]
    for step in (1, -1):
        while len(gram) < MAX_PART:
            edge = len(gram) if step == 1 else -1
            following = Counter(
                tokens[place + edge] for tokens, place in holding if 0 <= place + edge < len(tokens)
            )
            token, count = following.most_common(1)[0] if following else ("", 0)
            if count < AGREEING * len(holding) or token.startswith("class "):
                break
            gram = (*gram, token) if step == 1 else (token, *gram)
            if step == -1:
                holding = [
                    (tokens, place - 1)
                    for tokens, place in holding
                    if place and tokens[place - 1] == token
                ]
            else:
                holding = [
                    (tokens, place)
                    for tokens, place in holding
                    if tokens[place + edge : place + edge + 1] == [token]
                ]
    while len(gram) > 1 and gram[0] in _SENTENCE_ENDS:
        gram = gram[1:]
    return gram


def _place(gram: Gram, tokens: Sequence[str]) -> int | None:
    """Where a run begins in a text; None where the text does not hold it."""
    size, first = len(gram), gram[0]
    for place, token in enumerate(tokens):
        if token == first and tuple(tokens[place : place + size]) == gram:
            return place
    return None


def _holds(gram: Gram, part: Gram) -> bool:
    return _place(part, gram) is not None


def _count(
    parts: Sequence[_Part], groups: Iterable[Texts], signs: Sequence[str], usual: _Usual
) -> None:
    """Count the parts over all groups: the groups by sign, and the sources that hold them."""
    for each in groups:
        for sign in (*signs, *usual.sources):
            text = each.texts.get(sign)
            if text is None:
                continue
            tokens = [*_tokens(text), *usual.classes(sign, each.texts)]
            there = set(tokens)
            for part in parts:
                if not there.issuperset(part.tokens):
                    continue
                place = _place(part.tokens, tokens)
                if place is None:
                    continue
                if sign in usual.sources:
                    part.sources += 1
                    continue
                part.counts[sign] += 1
                if len(part.examples) < MAX_EXAMPLES or not part.text:
                    shown, around = _shown(part, text, place)
                    part.text = part.text or shown
                    part.examples.append({"group_id": each.group_id, "sign": sign, "text": around})


def _shown(part: _Part, text: str, place: int) -> tuple[str, str]:
    """A part as it stands in a text, and with what is around it."""
    if part.is_class:
        name = part.tokens[0].removeprefix("class ")
        if part.tokens[0] == APART:
            return name, _visible(text)
        start = next(number for number, one in enumerate(text) if _class(one) == name)
        return name, _visible(text[max(0, start - CONTEXT) : start + CONTEXT])
    spans = [each.span() for each in _TOKEN.finditer(text)]
    first = max(0, place - 1)  # START is no token of the text
    last = min(len(spans), place - 1 + len(part.tokens)) - 1
    start, end = spans[first][0], spans[max(first, last)][1]
    around = _visible(text[max(0, start - CONTEXT) : end + CONTEXT])
    if {START, "0", END}.issuperset(part.tokens):  # another number in every text
        return "a number", around
    return _visible(text[start:end].strip()), around


def _visible(text: str) -> str:
    """A text with its unseen characters by number."""
    return "".join(
        one if one.isprintable() or one == "\n" else f"[U+{ord(one):04X}]" for one in text
    )


def _distinct(ranked: Sequence[_Part]) -> list[_Part]:
    """The parts without those that are in texts only because one before them in the order is."""
    kept: list[_Part] = []
    for part in ranked:
        if not any(_is_same(part, one) for one in kept):
            kept.append(part)
    return kept


def _is_same(part: _Part, other: _Part) -> bool:
    """Whether a part is there because the other one is."""
    if part.is_class:
        is_why = part.tokens[0] in other.classes
        if part.tokens[0] == APART:
            is_why = other.tokens[0] == START and other.tokens[-1] == END
        return other.total >= AGREEING * part.total and is_why
    if _holds(part.tokens, other.tokens):
        return True
    return other.total >= AGREEING * part.total and _holds(other.tokens, part.tokens)


def _as_json(part: _Part) -> dict[str, Any]:
    first, last = part.tokens[0], part.tokens[-1]
    where = "anywhere"
    if part.is_class:
        where = "texts" if first == APART else "characters"
    elif first == START:
        where = "whole text" if last == END else "beginning"
    elif last == END:
        where = "last line" if first == "\n" else "end"
    elif first == "\n" and last == "\n" and len(part.tokens) > 2:
        where = "line"
    return {
        "text": part.text,
        "where": where,
        "counts": dict(sorted(part.counts.items())),
        "sources": part.sources,
        "examples": part.examples[:MAX_EXAMPLES],
    }
