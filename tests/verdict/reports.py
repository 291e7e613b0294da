"""Reports of sanitizers in what a program has printed."""

from __future__ import annotations

import re

BEGIN = re.compile(
    r"(ERROR|WARNING|FATAL): (Address|Leak|Thread|UndefinedBehavior)Sanitizer"
    r"|: runtime error: "  # UndefinedBehaviorSanitizer's, which may have no summary
)
END = re.compile(r"SUMMARY: \w+Sanitizer")
FRAME = re.compile(r"\s+#\d+ ")


def reports_in(output: str) -> list[str]:
    """The reports, each whole: to its summary, or as far as it goes."""
    reports: list[list[str]] = []
    is_open = False
    for line in output.splitlines():
        if BEGIN.search(line):
            reports.append([line])
            is_open = True
        elif is_open and END.match(line):
            reports[-1].append(line)
            is_open = False
        elif (
            is_open and ": runtime error: " in reports[-1][0] and not FRAME.match(line)
        ):
            is_open = False
        elif is_open:
            reports[-1].append(line)
    return ["\n".join(lines).rstrip() for lines in reports]
