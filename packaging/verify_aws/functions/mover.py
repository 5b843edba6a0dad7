"""Sends each message to its queue again, like Comeback's moves, as many times as the message's body requests."""

import os

import boto3

sqs = boto3.client("sqs")


def handler(event, context):
    for record in event["Records"]:
        left = int(record["body"])
        trace = record["attributes"].get("AWSTraceHeader")
        header = {"AWSTraceHeader": {"DataType": "String", "StringValue": trace}} if trace else {}
        queue, delay = (os.environ["QUEUE"], 1) if left > 0 else (os.environ["DONE"], 0)
        sqs.send_message(QueueUrl=queue, MessageBody=str(left - 1), DelaySeconds=delay, MessageSystemAttributes=header)
