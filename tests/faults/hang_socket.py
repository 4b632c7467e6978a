# SPDX-License-Identifier: Apache-2.0
"""The training reads from a peer that does not send.

verdict: STUCK
words: read_blob \({here}\)
within: 10
attach: before
"""
import socket

from fault_job import Loop, began

near, far = socket.socketpair()


def read_blob():
    return near.recv(4096)  # here


def train():
    loop = Loop()
    loop.go_on()
    began()
    read_blob()


train()
