"""The words of statements, as the server cuts them: `core/notation/scanner.h`.

Of texts that it takes. Which characters beyond ASCII are letters is for the server to
say: a name has what is neither blank nor a prime, and this client need not know the same
version of Unicode.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_BLANK = r"\t \xa0\u1680\u2000-\u200a\u202f\u205f\u3000\ufeff"
_PRIME = r"'\u2032-\u2034\u2057"
_DEFINITION = "\u2254"  # := as one character
_LETTER = rf"[^\x00-@\[-^`{{-\x7f{_BLANK}{_PRIME}{_DEFINITION}]"
_NAME = rf"{_LETTER}(?:{_LETTER}|[0-9])*[{_PRIME}]*"
_NUMBER = r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?:im|j)?"
_WORD = re.compile(
    rf"[\n\r{_BLANK}]+|#[^\n\r]*|(?P<name>{_NAME})"
    rf"|(?P<other>{_NUMBER}|(?<=[)\]])'|'[^']'|[:+=!<>-]=|.)",
    re.DOTALL,
)


def words(text: str) -> Iterator[tuple[str, bool]]:
    """Yields the words of statements, and whether each is a name or label.

    Blanks, comments and ends of statements but `;` fall away.
    """
    for match in _WORD.finditer(text):
        if match.lastgroup is not None:
            yield match[0], match.lastgroup == "name"
