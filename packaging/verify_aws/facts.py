"""Facts, observations, and the table of both."""

from dataclasses import dataclass

from run import NotSeen, Stopped

AS_EXPECTED, DIFFERS, NOT_SHOWN, NOT_ASKED = "as expected", "differs", "not shown here", "not asked"


@dataclass(frozen=True)
class Fact:
    text: str
    expected: str
    emulated: bool = False  # True if MiniStack behaves the same


@dataclass(frozen=True)
class Row:
    fact: Fact
    seen: str
    verdict: str

    def is_fine(self):
        return self.verdict in (AS_EXPECTED, NOT_SHOWN, NOT_ASKED)


class NotAsked(Exception):
    """Raised by a check that is skipped. The text gives the reason."""


def rows(run, check):
    """Returns a row for each of a check's facts, even if the check fails."""
    found, problem, verdict = {}, "no answer", DIFFERS
    try:
        for fact, seen, agrees in check.check(run):
            found[fact] = Row(fact, seen, verdict_of(run, fact, AS_EXPECTED if agrees else DIFFERS))
    except Stopped:
        raise
    except NotAsked as reason:
        problem, verdict = str(reason), NOT_ASKED
    except NotSeen as error:
        problem = str(error)
    except Exception as error:  # A failed check must not affect the others. Its rows show the error.
        problem = f"{type(error).__name__}: {error}"
    return [found.get(fact) or Row(fact, problem, verdict_of(run, fact, verdict)) for fact in check.FACTS]


def verdict_of(run, fact, verdict):
    return NOT_SHOWN if run.account.is_emulator and not fact.emulated else verdict


def table(rows):
    cells = [(row.fact.text, row.fact.expected, row.seen, row.verdict) for row in rows]
    return in_columns([("fact", "expected", "seen", "verdict"), *cells])


def questions(checks):
    cells = [(fact.text, fact.expected) for check in checks for fact in check.FACTS]
    return in_columns([("fact", "expected"), *cells])


def in_columns(lines):
    """Returns the table as Markdown, to paste into a page."""
    heading, *rest = [[cell.replace("|", "\\|").replace("\n", " ") for cell in line] for line in lines]
    rule = ["---"] * len(heading)
    return "\n".join(f"| {' | '.join(line)} |" for line in [heading, rule, *rest])
