# SPDX-License-Identifier: Apache-2.0
"""The beginning of jobs whose stacks are known: `spin` (lines 5 to 7) computes below `work` (line 10), `doze` (line 14) sleeps."""

BEGINNING = """
import os, threading, time

def spin():
    x = 0
    while True:
        x += 1

def work():
    spin()

def doze():
    while True:
        time.sleep(0.05)
"""
