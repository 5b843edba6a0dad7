#!/bin/sh
# Runs $COMEBACK_PROGRAM with the command's name in the user agent of its requests, so that `make conformance` can
# compare the calls of each command with the permissions that docs/operate.md lists.
command=$1
[ "$1" != dead ] || command="dead-$2"
for argument; do
    case "$1 $argument" in "doctor --probe" | "attach --list") command="$command$argument" ;; esac
done
export AWS_SDK_UA_APP_ID="$command"
exec "$COMEBACK_PROGRAM" "$@"
