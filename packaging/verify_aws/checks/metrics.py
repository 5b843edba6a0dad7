"""How late are a function's minutes, which of its invocations do they count, and what does it cost to read them?"""

import json
import time
from datetime import datetime, timedelta, timezone

import boto3
import make
from facts import Fact

QUALIFIERS = ["", ":$LATEST", ":live"]

LAG = Fact("a minute of a function's `Invocations` and `Errors` is complete soon after it has ended", "within 120 s")
COUNTED = Fact("the series of `FunctionName` alone counts the function, its `$LATEST` and its alias", "3 invocations, 3 errors")
WITHOUT = Fact("a minute of invocations without a failure has `Errors`, and they are 0", "0 errors")
PRICE = Fact("the price of a metric that `GetMetricData` is asked for; a read asks for two", "0.00001 USD")
FACTS = [LAG, COUNTED, WITHOUT, PRICE]


def check(run):
    function, queue = make.function(run, "metered"), make.queue(run, "metered")
    run.account.functions.publish_version(FunctionName=function)
    run.account.functions.create_alias(FunctionName=function, Name="live", FunctionVersion="1")
    for qualifier in ["", ":live"]:
        make.fails_to(run, function + qualifier, queue)
    for qualifier in QUALIFIERS:
        make.invoke(run, function + qualifier, {"failures": 1})
    ended = 60 * (time.time() // 60 + 1)
    counts = run.until("minutes of all three", 900, lambda: complete(run, function))
    lag = max(0, round(time.time() - ended))
    yield COUNTED, "{} invocations, {} errors".format(*counts), counts == [3, 3]
    yield LAG, f"after {lag} s", lag <= 120
    make.invoke(run, function, {"failures": 0})
    errors = run.until("`Errors` of the minute without a failure", 900, lambda: errors_without_failure(run, function))
    yield WITHOUT, f"{errors:g} errors", errors == 0
    yield PRICE, *priced(run)


def complete(run, function):
    """Returns the sums of both series once they have all that there can be."""
    counts = [int(sum(series(run, function, name).values())) for name in ["Invocations", "Errors"]]
    return counts if min(counts) >= len(QUALIFIERS) else None


def errors_without_failure(run, function):
    """Returns the errors of the newest minute once it has one more invocation than all before, which failed."""
    invocations, errors = (series(run, function, name) for name in ["Invocations", "Errors"])
    return errors.get(max(invocations)) if sum(invocations.values()) > len(QUALIFIERS) else None


def series(run, function, name):
    """Returns the values of a metric by the beginning of their minutes."""
    now = datetime.now(timezone.utc)
    metric = {
        "Namespace": "AWS/Lambda",
        "MetricName": name,
        "Dimensions": [{"Name": "FunctionName", "Value": function}],
    }
    query = {"Id": "m", "MetricStat": {"Metric": metric, "Period": 60, "Stat": "Sum"}}
    answer = run.account.metrics.get_metric_data(
        MetricDataQueries=[query], StartTime=now - timedelta(hours=1), EndTime=now + timedelta(minutes=1)
    )
    result = answer["MetricDataResults"][0]
    return dict(zip(result["Timestamps"], result["Values"]))


def priced(run):
    """The list price. A bill comes a day later."""
    prices = boto3.client("pricing", region_name="us-east-1")
    filters = [{"Type": "TERM_MATCH", "Field": "regionCode", "Value": run.account.region}]
    pages = prices.get_paginator("get_products").paginate(ServiceCode="AmazonCloudWatch", Filters=filters)
    products = (json.loads(text) for page in pages for text in page["PriceList"])
    of_reads = [it for it in products if it["product"]["attributes"].get("usagetype", "").endswith("CW:GMD-Metrics")]
    terms = [term for product in of_reads for term in product["terms"]["OnDemand"].values()]
    usd = {float(price["pricePerUnit"]["USD"]) for term in terms for price in term["priceDimensions"].values()}
    return ", ".join(f"{price:.5f} USD" for price in sorted(usd)) or "no price", usd == {0.00001}
