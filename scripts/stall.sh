#!/bin/sh
# The wrk2 experiment: a server is stopped for 1.4 s in a run of 30 s at 2,000 requests per second. The response times of
# requests due during the stop are distributed evenly from 0 to 1.4 s, so the 99th percentile is known:
# 1.4 s x (1 - 0.01 / (1.4 / 30)) = 1.1 s. Service times contain only the few requests in flight.
#
#   scripts/stall.sh [PATH-TO-ONRUSH]        exit code 1 when the reported p99 is off by more than 5 %
set -eu
onrush=${1:-target/release/onrush}
directory=$(mktemp -d)
"$onrush" serve --respond 200:ok --listen "unix:$directory/server" >"$directory/serve.log" 2>&1 &
server=$!
trap 'kill -CONT $server; kill $server; rm -r "$directory"' EXIT
until [ -S "$directory/server" ]; do sleep 0.1; done
"$onrush" load "unix:$directory/server" -c 20 -R 2000 -d 30 --json "$directory/result.json" >"$directory/load.log" &
load=$!
sleep 10
stopped=$(date +%s%N)
kill -STOP $server
sleep 1.4
kill -CONT $server
continued=$(date +%s%N)
wait $load || { cat "$directory/load.log"; exit 1; }
grep -E '^(requests|warning)' "$directory/load.log"
python3 - "$directory/result.json" $(((continued - stopped) / 1000)) <<'END'
import json, sys
result = json.load(open(sys.argv[1]))
# Use the actual length: on a busy machine a sleep takes longer.
stall, run = float(sys.argv[2]), 30e6
print(f"stopped for {stall / 1e6:.3f} s")
wrong = False
for at in ("50", "90", "95", "99", "99.9"):
    above = 1 - float(at) / 100
    share = stall / run
    expected = stall * (1 - above / share) if above < share else 0
    response = result["latency_us"]["percentiles"][at]
    service = result["service_us"]["percentiles"][at]
    error = (response - expected) / expected if expected else 0
    wrong |= at == "99" and abs(error) > 0.05
    print(f"p{at:5} analytic {expected:10.0f} us  response {response:10.0f} us ({error:+.1%})  service {service:9.0f} us")
sys.exit(wrong)
END
