"""Runs MiniStack 1.5.33 with a FilterLogEvents that returns more than one page. Every line matches.

MiniStack itself returns up to 10,000 lines, and no token for the rest.
"""

import runpy

from ministack.services import cloudwatch_logs

# About 1 MB of lines, the size of a page in CloudWatch.
LINES_OF_A_PAGE = 2_500


def page(data):
    group = cloudwatch_logs._log_groups[data["logGroupName"]]
    lines = group["streams"]["one"]["events"]
    start = int(data.get("nextToken", 0))
    end = start + LINES_OF_A_PAGE
    events = [{**event, "logStreamName": "one"} for event in lines[start:end]]
    return cloudwatch_logs.json_response({"events": events, **({"nextToken": str(end)} if end < len(lines) else {})})


cloudwatch_logs._filter_log_events = page

if __name__ == "__main__":
    runpy.run_path("tests/tools/run_ministack.py", run_name="__main__")
