#!/bin/sh
# A backend that serves one at a time: each line asked takes 10 ms, and the next one waits.
while read -r _; do
    sleep 0.01
    echo served
done
