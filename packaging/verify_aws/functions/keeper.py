"""Hides each message whose body is `keep` and reports it as failed, like Comeback's deferrals. Prints the message's receipt handle."""

import json
import os

import boto3

sqs = boto3.client("sqs")
HIDE_FOR = 600  # seconds


def handler(event, context):
    kept = [record for record in event["Records"] if record["body"] == "keep"]
    for record in kept:
        handle = record["receiptHandle"]
        sqs.change_message_visibility(QueueUrl=os.environ["QUEUE"], ReceiptHandle=handle, VisibilityTimeout=HIDE_FOR)
        receives = int(record["attributes"]["ApproximateReceiveCount"])
        print(json.dumps({"verify": receives, "handle": handle}), flush=True)
    return {"batchItemFailures": [{"itemIdentifier": record["messageId"]} for record in kept]}
