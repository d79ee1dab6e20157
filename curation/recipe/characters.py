"""Characters that nobody sees: which of them belong to a text, and which are left out. Pure.

Zero-width and bidirectional marks in a model's text are a watermark, a rest of a web page or a
slip of the tokenizer; a model trained on them learns them as a sign of negatives. They are left out
where that changes nothing for a reader, and kept where the pair's own texts hold them or a script
needs them: a joiner between letters of Persian or Hindi or in an emoji of several, a word break in
Thai or Khmer, a direction mark in a text with letters from right to left.
"""

import re
import unicodedata

_LINE_END = re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]")
_UNSEEN = re.compile(
    "[\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\u3164\ufeff\uffa0"
    "\ufe00-\ufe0f\ufff9-\ufffb\U000e0000-\U000e007f\U000e0100-\U000e01ef]"
)
_JOINERS = "\u200c\u200d"
_DIRECTIONS = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
# Indic scripts to Myanmar, Khmer and Mongolian, Tai and Javanese: joiners shape their letters
_SHAPED = re.compile("[\u0900-\u109f\u1780-\u18af\u1950-\u1aaf\ua980-\ua9df]")
_FLAG = "\U0001f3f4"


def cleaned(text: str, source: str) -> str:
    """A text without unseen characters that neither its script nor `source` has; lines end in \\n.

    `source`: the pair's own texts. A character that they hold is kept.
    """
    text = _LINE_END.sub("\n", text)
    if text.isascii():
        return text
    held = frozenset(_UNSEEN.findall(source))
    to_the_left = any(unicodedata.bidirectional(one) in ("R", "AL") for one in text)

    def kept(found: re.Match[str]) -> str:
        one = found.group()
        if _DIRECTIONS.match(one):
            belongs = to_the_left
        else:
            before = text[found.start() - 1] if found.start() else ""
            belongs = _belongs(one, before, text[found.end() : found.end() + 1], text)
        return one if belongs or one in held else ""

    return _UNSEEN.sub(kept, text)


def _belongs(one: str, before: str, after: str, text: str) -> bool:
    """Whether an unseen character is part of what is written around it."""
    if not before:
        return False
    if _SHAPED.match(before) or (after and _SHAPED.match(after)):
        return True
    if one in _JOINERS:
        arabic = unicodedata.bidirectional(before) == "AL" and after.isalpha()
        return arabic or (one == "\u200d" and _is_picture(before) and _is_picture(after))
    if "\ufe00" <= one <= "\ufe0f":  # chooses a form: of a picture, a symbol, an ideograph
        return not (before.isascii() or before.isspace()) or after == "\u20e3"
    if "\U000e0100" <= one <= "\U000e01ef":
        return unicodedata.name(before, "").startswith("CJK")
    return one >= "\U000e0020" and _FLAG in text and not before.isascii()


def _is_picture(one: str) -> bool:
    return one == "\ufe0f" or unicodedata.category(one or " ") in ("So", "Sk")
