"""Text of the documentation pages of rules: one page a rule, and their index."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tracediag.comparing.pairrulefiles import PairRule
    from tracediag.findings import Fix
    from tracediag.rule import Param, Rule

__all__ = ["pair_rule_page", "rule_index", "rule_page", "rule_pages"]

_TRANSFORMS = {
    "drop": "The prediction takes the claimed time away.",
    "keep": "The prediction takes the claimed time away but for the part that the fix leaves.",
    "at_least": "The prediction takes away what the fix removes at least; how much more it removes is open.",
    "scale": "The prediction shrinks the claimed work, not the calls that launch it.",
    "scale_bytes": "The prediction shrinks the claimed work to the bytes that still must move, at the bandwidth measured in the trace.",
    "merge_launches": "The prediction takes away launch calls and the pauses between them, not the work of the device.",
    "none": "No speed-up is predicted.",
}


def rule_page(rule: Rule) -> str:
    """The page of one rule, in Markdown."""
    parts = [
        f"# {rule.code} {rule.id}",
        f"**{rule.title}**",
        rule.summary,
        _facts(rule),
        f"## Why\n\n{rule.why}",
        "## What to do\n\n" + "\n\n".join(_fix(fix) for fix in rule.fix),
        f"**What it changes in training:** {rule.changes_training or 'nothing.'}",
        _params({"min_share": rule.min_share, **rule.params}),
        f"## How it is seen\n\n{_TRANSFORMS[rule.saving.transform]}\n\n```sql\n{rule.query}\n```",
        "## References\n\n" + "\n".join(f"- <{url}>" for url in rule.references) if rule.references else "",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _facts(rule: Rule) -> str:
    rows = {
        "category": rule.category,
        "frameworks": ", ".join(rule.frameworks),
        "holds on": ", ".join(rule.devices),
        "severity, at most": rule.severity,
        "confidence": rule.confidence,
        "needs": ", ".join(f"`{name}`" for name in rule.needs) or "nothing but ops",
        "owns time": "no: an umbrella over other findings" if rule.umbrella else "yes" if rule.owns else "no",
        "comes before": ", ".join(f"[{name}]({name}.md)" for name in rule.excludes),
        "since": rule.since,
    }
    return "| | |\n|---|---|\n" + "\n".join(f"| {name} | {value} |" for name, value in rows.items() if value)


def _fix(fix: Fix) -> str:
    language = "sh" if fix.code and fix.code.lstrip().startswith("$") else "python"
    text = f"**{fix.framework}**: {fix.text}" if fix.framework != "any" else fix.text
    return f"{text}\n\n```{language}\n{fix.code}\n```" if fix.code else text


def pair_rule_page(rule: PairRule) -> str:
    """The page of one rule about two traces, in Markdown."""
    facts = {"used by": "`tracediag compare`", "severity, at most": rule.severity, "confidence": rule.confidence, "since": rule.since}
    parts = [
        f"# {rule.code} {rule.id}",
        f"**{rule.title}**",
        rule.summary,
        "| | |\n|---|---|\n" + "\n".join(f"| {name} | {value} |" for name, value in facts.items()),
        f"## Why\n\n{rule.why}",
        "## What to do\n\n" + "\n\n".join(_fix(fix) for fix in rule.fix) if rule.fix else "",
        _params(rule.params) if rule.params else "",
        f"## How it is seen\n\n```sql\n{rule.query}\n```",
        "## References\n\n" + "\n".join(f"- <{url}>" for url in rule.references) if rule.references else "",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _params(rows: Mapping[str, Param]) -> str:
    lines = "\n".join(f"| `{name}` | {value} |" for name, value in sorted(rows.items()))
    return f"## Parameters\n\n| parameter | default |\n|---|---|\n{lines}"


def rule_index(rules: Iterable[Rule], pairs: Iterable[PairRule]) -> str:
    """The page that lists the rules of one trace and those of two."""
    head = "| code | id | severity, at most | what it finds |\n|---|---|---|---|"
    return (
        f"# Rules\n\n{head}\n{_index_rows(rules)}\n\n## Of two traces\n\n`tracediag compare` asks these.\n\n{head}\n{_index_rows(pairs)}\n"
    )


def _index_rows(rules: Iterable[Rule | PairRule]) -> str:
    return "\n".join(f"| {rule.code} | [{rule.id}]({rule.id}.md) | {rule.severity} | {rule.title} |" for rule in rules)


def rule_pages(rules: Iterable[Rule], pairs: Iterable[PairRule]) -> dict[str, str]:
    """File name -> text of every page of the rules."""
    rules, pairs = tuple(rules), tuple(pairs)
    return {
        **{f"{rule.id}.md": rule_page(rule) for rule in rules},
        **{f"{rule.id}.md": pair_rule_page(rule) for rule in pairs},
        "index.md": rule_index(rules, pairs),
    }
