"""The words of statements, as the server cuts them: `core/notation/scanner.h`."""

from __future__ import annotations

import re
from collections.abc import Iterator

# What is no letter beyond ASCII: signs, marks, punctuation, pictures, private use.
_NO_LETTERS = (
    "\x80-\xa9\xab-\xb4\xb6-\xb9\xbb-\xbf\xd7\xf7"
    "\u0300-\u036f\u037e\u0387\u055a-\u055f\u0589\u058a\u05be\u05c0\u05c3\u05f3\u05f4"
    "\u0600-\u060f\u061b-\u061f\u066a-\u066d\u06d4\u0964\u0965\u0e3f\u1680\u180e"
    "\u1ab0-\u1aff\u1dc0-\u1dff\u2000-\u2070\u2074-\u207e\u2080-\u208e\u20a0-\u20ff"
    "\u2190-\u2bff\u2e00-\u2e7f\u3000-\u3004\u3008-\u3020\u3030\u30fb"
    "\ud800-\uf8ff\ufe00-\ufe6f\ufeff-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65"
    "\uffe0-\uffff\U0001f000-\U0001faff\U000e0000-\U0010ffff"
)
# Combining marks, raised and lowered digits.
_MARKS = (
    "\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f"
    "\xb2\xb3\xb9\u2070\u2074-\u2079\u2080-\u2089"
)
_NO_START = rf"\x00-@\[-^`{{-\x7f{_NO_LETTERS}"
_NAME = rf"[^{_NO_START}](?:[^{_NO_START}]|[0-9{_MARKS}])*['\u2032-\u2034\u2057]*"
_NUMBER = r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?:im|j)?"
_BLANKS = r"[\t\n\r \xa0\u1680\u2000-\u200a\u202f\u205f\u3000\ufeff]+|#[^\n\r]*"
_WORD = re.compile(
    rf"(?:{_BLANKS})|(?P<name>{_NAME})|(?P<other>{_NUMBER}|'[^']'|[:+-]=|.)", re.DOTALL
)
_WHOLE_NAME = re.compile(_NAME)


def is_name(text: str) -> bool:
    """Whether a text is what statements can call a tensor."""
    return _WHOLE_NAME.fullmatch(text) is not None and text != "conj"


def words(text: str) -> Iterator[tuple[str, bool]]:
    """Yields the words of statements, and whether each is a name or label.

    Blanks, comments and ends of statements but `;` fall away.
    """
    for match in _WORD.finditer(text):
        if match.lastgroup is not None:
            yield match[0], match.lastgroup == "name"
