# SPDX-License-Identifier: Apache-2.0
"""What a debugger may leave in a job, looked for by code that runs in it."""

# Trace functions and events, patched functions: a list of texts.
LEFT = r'''
import builtins, gc, sys, threading, _thread
def left():
    found = []
    for ident, frame in sys._current_frames().items():
        while frame is not None:
            if frame.f_trace is not None:
                found.append(("f_trace", frame.f_code.co_name))
            frame = frame.f_back
    found += [("settrace", f) for f in (sys.gettrace(), threading._trace_hook) if f is not None]
    if hasattr(sys, "monitoring"):
        found += [("monitoring", i) for i in range(6) if sys.monitoring.get_tool(i)]
        sys.monitoring.use_tool_id(0, "test")
        for o in gc.get_objects():
            if type(o) is type(left) and sys.monitoring.get_local_events(0, o.__code__):
                found.append(("events", o.__name__))
        sys.monitoring.free_tool_id(0)
    if not isinstance(_thread.start_new_thread, type(len)) or not isinstance(threading._start_new_thread if hasattr(threading, "_start_new_thread") else len, type(len)):
        found.append("start_new_thread")
    return found
sorted(map(str, left()))
'''
