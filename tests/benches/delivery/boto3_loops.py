"""What one writes with boto3: prints the calls made and the seconds taken.

Usage: boto3_loops.py sqs QUEUE_URL COUNT | boto3_loops.py dynamodb TABLE COUNT
"""

import json
import sys
import time

import boto3


def sqs(client, queue_url, count):
    for start in range(0, count, 10):
        batch = range(start, min(start + 10, count))
        entries = [{"Id": str(i), "MessageBody": f"order {i}"} for i in batch]
        answer = client.send_message_batch(QueueUrl=queue_url, Entries=entries)
        assert not answer.get("Failed")


def dynamodb(table, count):
    with table.batch_writer() as batch:
        for i in range(count):
            batch.put_item(Item={"id": f"order {i}"})


def main():
    service, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    calls = 0

    def counted(**_):
        nonlocal calls
        calls += 1

    if service == "sqs":
        client = boto3.client("sqs")
        client.meta.events.register("before-send", counted)
        work = lambda: sqs(client, name, count)
    else:
        table = boto3.resource("dynamodb").Table(name)
        table.meta.client.meta.events.register("before-send", counted)
        work = lambda: dynamodb(table, count)
    start = time.perf_counter()
    work()
    print(json.dumps({"calls": calls, "seconds": time.perf_counter() - start}))


main()
