# SPDX-License-Identifier: Apache-2.0
"""A server with a pool of threads that nobody asks anything.

fine: IDLE
"""
import http.server
import socketserver

from fault_job import ready


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True


server = Server(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler)
ready()
server.serve_forever()
