# SPDX-License-Identifier: Apache-2.0
"""Sampling of one job, on and off again within milliseconds.

A client that stays connected and asks for the stream of samples, and ends it, as probing-top does; starting a process for each window would
take longer than the window, and disturb what is measured. What comes is read when the stream ends: in the window is what the agent does.
"""

import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "tests", "functional"))
import agent_wire  # noqa: E402


class Switch:
    def __init__(self, build, pid, hz=100.0):
        done = subprocess.run([f"{build}/probing", str(pid), "inject", "--json"], check=True, capture_output=True, text=True)
        self.client = agent_wire.Client(json.loads(done.stdout)["endpoint"].removeprefix("unix:"), timeout=60)
        self.wish = {"stream": "samples", "rate_hz": hz, "batch_s": 1.0}
        self.on = False

    def set(self, on):
        if on != self.on:
            self.client.call("subscribe" if on else "unsubscribe", self.wish if on else {"stream": "samples"})
            self.client.notifications.clear()
            self.on = on

    def close(self):
        self.client.close()
