#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Starts the example training job, opens probing-top on it, and ends the job when probing-top is left. Without a terminal
# one screen is printed instead. DEMO_JOB=plain takes the job without torch; PYTHON names the Python to run it with.

set -eu

build=${BUILD:-build}
case ${DEMO_JOB:-torch} in
plain)
    script=examples/train_plain.py
    python=${PYTHON:-python3}
    ;;
torch)
    script=examples/train.py
    python=$(tools/python_with_torch.sh "${VENV:-build/venv}") || {
        echo "demo: DEMO_JOB=plain ./run demo shows a job without torch" >&2
        exit 1
    }
    ;;
*)
    echo "demo: DEMO_JOB is torch or plain, not '$DEMO_JOB'" >&2
    exit 2
    ;;
esac

log=$build/demo.log
"$python" "$script" >"$log" 2>&1 &
job=$!

end_job() {
    trap - EXIT
    kill "$job" 2>/dev/null || true
    wait "$job" 2>/dev/null || true
}
trap end_job EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# The first finished step is when there is something to see.
echo "demo: started $python $script, pid $job (its output: $log)"
tries=3000
until grep -q '^step ' "$log"; do
    kill -0 "$job" 2>/dev/null || {
        echo "demo: the job ended before its first step:" >&2
        tail -n 5 "$log" >&2
        exit 1
    }
    tries=$((tries - 1))
    [ $tries -gt 0 ] || { echo "demo: the job made no step within five minutes; see $log" >&2; exit 1; }
    sleep 0.1
done

if [ -t 0 ] && [ -t 1 ]; then
    "$build/probing-top" "$job"
else
    "$build/probing-top" --export txt --once "$job"
fi
