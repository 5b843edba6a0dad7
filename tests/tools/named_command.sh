#!/bin/sh
# Runs $COMEBACK_PROGRAM, whose requests then name the command in their user agent: `make conformance` compares the calls of
# each with the permissions that docs/operate.md lists.
command=$1
[ "$1" != dead ] || command="dead-$2"
for argument; do
    [ "$argument" != --probe ] || command="$command--probe"
done
export AWS_SDK_UA_APP_ID="$command"
exec "$COMEBACK_PROGRAM" "$@"
