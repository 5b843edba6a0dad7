#!/bin/sh
# Runs $COMEBACK_PROGRAM. The user agent of its AWS calls contains the command's name, for `make conformance`.
command=$1
[ "$1" != dead ] || command="dead-$2"
for argument; do
    case "$1 $argument" in "doctor --probe" | "attach --list") command="$command$argument" ;; esac
done
export AWS_SDK_UA_APP_ID="$command"
exec "$COMEBACK_PROGRAM" "$@"
