# SPDX-License-Identifier: Apache-2.0
"""A server that nobody asks anything.

verdict: IDLE
words: for requests
within: 6
attach: before after
quick: yes
"""
import http.server

from fault_job import began, work_until_client

work_until_client()
server = http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler)
began()
server.serve_forever()
