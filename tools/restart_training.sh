#!/bin/bash
# tools/restart_training.sh N COMMAND...: runs COMMAND, a training of several processes, and runs it again when it fails, N times at the max.
#
# COMMAND is the same each time: `heddle train ... --checkpoint-dir DIR --resume`, which begins where DIR has no checkpoint and goes on from
# the newest one otherwise, or `mpirun -n 4 heddle train ... --rendezvous pmix --checkpoint-dir DIR --resume`. Without a launcher each rank
# has a script of its own: a rank whose peer is lost fails too, and when all are there again they go on. Ends with the status of COMMAND.
# A training that is over, wrong options (2), files that are missing or damaged (3), a command that is none (126, 127), and a training that
# was told to stop (SIGINT, SIGTERM) are not run again.
set -uo pipefail

usage() {
  echo "usage: ${0##*/} N COMMAND..., where N says how often COMMAND may be run again" >&2
  exit 2
}
[ $# -ge 2 ] || usage
case $1 in '' | *[!0-9]*) usage ;; esac
left=$((10#$1))
shift

child=
stopped=
stop() {
  stopped=yes
  [ -z "$child" ] || kill -TERM "$child" 2>/dev/null  # commands in the background ignore SIGINT
}
trap stop INT TERM

status=143
while [ -z "$stopped" ]; do
  "$@" &
  child=$!
  # A signal ends the wait before the command ends.
  wait "$child"
  status=$?
  while kill -0 "$child" 2>/dev/null; do
    wait "$child"
    status=$?
  done
  child=
  case $status in 0 | 2 | 3 | 126 | 127 | 130 | 143) exit "$status" ;; esac
  [ -z "$stopped" ] || break
  if [ "$left" -eq 0 ]; then
    echo "${0##*/}: ended with status $status, and was run again as often as it may be" >&2
    exit "$status"
  fi
  left=$((left - 1))
  echo "${0##*/}: ended with status $status, runs again; $left more times at the max" >&2
  sleep 1 &
  wait $!  # which a signal ends
done
exit "$status"
