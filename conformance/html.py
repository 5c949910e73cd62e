"""The report as one page that needs no other file: a table, and every failure under a filter."""

import json
from pathlib import Path

TEMPLATE = Path(__file__).with_name("report.html")
MARK = "/*DATA*/null"


def page(data: dict) -> str:
    """Return a page for a report as plain data; only what fails is listed one by one."""
    small = {k: v for k, v in data.items() if k != "libraries"}
    small["libraries"] = [
        {
            **{k: v for k, v in one.items() if k != "results"},
            "failures": [r for r in one["results"] if r["outcome"] not in ("passed", "skipped")],
        }
        for one in data["libraries"]
    ]
    text = json.dumps(small, separators=(",", ":")).replace("<", "\\u003c")
    return TEMPLATE.read_text(encoding="utf-8").replace(MARK, text)
