# Shell functions for the scripts in faults.rs.
uuid() { aws lambda list-event-source-mappings --function-name "$HANDLER" --output text --query 'EventSourceMappings[0].UUID'; }
mapping() { aws lambda update-event-source-mapping --uuid "$(uuid)" "$@" >/dev/null; }
handler() { aws lambda update-function-configuration --function-name "$HANDLER" "$@" >/dev/null; }
queue() { aws sqs set-queue-attributes --queue-url "$1" --attributes "$2"; }
variable() {
  handler --environment "$(aws lambda get-function-configuration --function-name "$HANDLER" --output json \
    --query "{Variables: merge(Environment.Variables, {$1: '$2'})}")"
}
redrive() { queue "$RETRY_URL" "{\"RedrivePolicy\":\"{\\\"deadLetterTargetArn\\\":\\\"$1\\\",\\\"maxReceiveCount\\\":\\\"$2\\\"}\"}"; }
policy() { aws iam put-role-policy --role-name "$ROLE" --policy-name retry-handler --policy-document "$1"; }
without() {
  policy "$(echo "$POLICY" | python3 -c 'import json, sys
policy = json.load(sys.stdin)
policy["Statement"] = [each for each in policy["Statement"] if each["Sid"] != sys.argv[1]]
print(json.dumps(policy))' "$1")"
}
restored() { policy "$POLICY"; aws iam delete-role-policy --role-name "$ROLE" --policy-name "comeback-$1"; }
attached() {
  retries=$1 age=$2 destination=$3; shift 3
  aws lambda put-function-event-invoke-config --function-name "$FUNCTION" --maximum-retry-attempts "$retries" \
    --maximum-event-age-in-seconds "$age" --destination-config "OnFailure={Destination=$destination}" "$@" >/dev/null
}
may_send() {
  aws iam put-role-policy --role-name "$FUNCTION" --policy-name send --policy-document \
    '{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"sqs:SendMessage","Resource":"'"$RETRY_ARN"'"}]}'
}
paused() {
  aws ssm put-parameter --overwrite --type String --name "$PAUSES" --value "{\"v\":1,\"pauses\":[{\"target\":\"$FUNCTION_ARN\",
    \"from\":$(($(date +%s) - $1)),\"until\":null,\"spread\":0,\"by\":\"ops\",\"why\":\"planted\",\"concurrency\":null}]}"
}
comeback() { "$COMEBACK" "$@" --yes; }
new_key() { aws kms create-key --query KeyMetadata.Arn --output text; }
disabled_key() { key=$(new_key); aws kms disable-key --key-id "$key"; echo "$key"; }
# The shell functions below are for $CONSUMER, a Lambda function that reads the SQS queue of the same name.
consumed() { aws sqs get-queue-url --queue-name "$CONSUMER${1-}" --query QueueUrl --output text; }
consumed_arn() { aws sqs get-queue-attributes --queue-url "$(consumed "${1-}")" --attribute-names QueueArn --query Attributes.QueueArn --output text; }
consumer_uuid() { aws lambda list-event-source-mappings --function-name "$CONSUMER" --output text --query 'EventSourceMappings[0].UUID'; }
consumer_may() {
  aws iam put-role-policy --role-name "$CONSUMER" --policy-name "$1" --policy-document \
    '{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"sqs:'"$1"'","Resource":"'"$2"'"}]}'
}
consumer_variables() {
  aws lambda update-function-configuration --function-name "$CONSUMER" --environment "Variables={MAX_AGE=2d,DEAD_LETTER_QUEUE_URL=$1}" >/dev/null
}
