# SPDX-License-Identifier: Apache-2.0
#
# debugpy, started in the job on request, with all its changes undone at the end. The method `debug`
# calls debug_do, on the thread that evals run on (agent/debug/debugger.h). Unlike other units, this
# one imports modules: debugpy and its dependencies. What debugpy patches and leaves behind was
# found by comparing the job before and after: docs/dev/design/agent-debug.md.
#
# Between two clients debugpy listens, but nothing is traced: tracing starts when a client has set
# its breakpoints, and ends when the client leaves.


debug_state = {}
debug_hooks = []
debug_owned, debug_asking = [], [0]
debug_noted = [None]
debug_lock = types_named('_thread', 'RLock')()
DEBUG_BEGIN, DEBUG_STATUS, DEBUG_END = 1, 2, 3  # as in src/wire/wire.h
debug_kept = ('PYDEVD_USE_FRAME_EVAL', 'NO'), ('PYDEVD_DISABLE_FILE_VALIDATION', '1')


def debug_frames():
    for ident, frame in sys._current_frames().items():
        while frame is not None:
            yield ident, frame
            frame = frame.f_back


def debug_server():
    return types_named('_pydevd_bundle.pydevd_constants', 'get_global_debugger')


def debug_busy():
    server, hook = debug_server(), types_named('threading', '_trace_hook')
    if server is not None and server() is not None:
        return 'debugpy, or pydevd of an IDE, is in the job already'
    tracers = [frame.f_trace for ident, frame in debug_frames() if frame.f_trace is not None]
    tracers += [f for f in (sys.gettrace(), hook) if f is not None]
    if tracers:
        name = getattr(tracers[0], '__module__', None)
        return 'the job has a trace function already, of %s' % (name if type(name) is str else 'its own')
    tool = sys.monitoring.get_tool(0) if hasattr(sys, 'monitoring') else None
    return 'the job has a debugger already: %s has sys.monitoring' % tool if tool else None


def debug_patched():
    import builtins
    import _thread
    import threading
    places = [(m, n) for m in (_thread, threading) for n in
        ('_original_start_new_thread', '_start_new_thread', 'start_new', 'start_new_thread',
         '_original_start_joinable_thread', 'start_joinable_thread', '_start_joinable_thread')]
    return places + [(builtins, 'execfile'), (builtins, 'runfile'), (sys, 'breakpointhook')]


def debug_remember():
    if not debug_hooks:
        debug_hooks.extend((m, n, m.__dict__.get(n, debug_hooks)) for m, n in debug_patched())


def debug_restore():
    for m, n, before in debug_hooks:
        if before is debug_hooks:
            m.__dict__.pop(n, None)
        elif m.__dict__.get(n) is not before:
            setattr(m, n, before)
    del debug_hooks[:]


def debug_import(given, others):
    import importlib
    import os
    environ, names = os.environ._data, [(os.fsencode(k), os.fsencode(v)) for k, v in debug_kept]
    had = dict((k, environ[k]) for k, v in names if k in environ)
    environ.update(names)
    fitting = [p for p in others if '/python%d.%d/' % sys.version_info[:2] in p]
    places = [given] if given else [None] + fitting
    try:
        for place in places:
            if place:
                sys.path.insert(0, place)
            try:
                import importlib.util
                if 'debugpy' in modules or importlib.util.find_spec('debugpy') is not None:
                    importlib.import_module('debugpy.server.api')
                    return modules['debugpy']
            finally:
                if place in sys.path:
                    sys.path.remove(place)
    finally:
        for k, v in names:
            environ.pop(k, None)
        environ.update(had)
    return None


def debug_untrace_threads():
    pdb_server_functions['trace'](None)
    (modules['pydevd_tracing'].TracingFunctionHolder._original_tracing or sys.settrace)(None)
    for ident, frame in debug_frames():
        if frame.f_trace is not None:
            frame.f_trace = None


def debug_codes():
    import gc
    for o in gc.get_objects():
        if type(o) is types_Function:
            todo = [o.__code__]
            while todo:
                code = todo.pop()
                yield code
                todo.extend(c for c in code.co_consts if type(c) is type(code))
    for ident, frame in debug_frames():
        yield frame.f_code


def debug_untrace_monitoring():
    m = sys.monitoring
    if m.get_tool(0) != 'pydevd':
        return
    m.set_events(0, 0)
    for code in debug_codes():
        if m.get_local_events(0, code):
            m.set_local_events(0, code, 0)
    for name in dir(m.events):
        event = getattr(m.events, name)
        if type(event) is int and event and event & (event - 1) == 0:
            m.register_callback(0, event, None)
    m.free_tool_id(0)


def debug_untrace():
    import threading
    modules['pydevd_tracing'].restore_sys_set_trace_func()
    modules['_pydev_bundle.pydev_monkey'].undo_patch_thread_modules()
    if hasattr(sys, 'monitoring'):
        debug_untrace_monitoring()
    else:
        threading._trace_hook = None
        debug_untrace_threads()
    known = debug_state.get('active', ())
    for ident, thread in list(threading._active.items()):
        if ident not in known and type(thread) is threading._DummyThread:
            threading._active.pop(ident, None)


def debug_sweep(of):
    import time
    for i in range(40):
        with debug_lock:
            if of.get('client', True):
                return
            if i == 0 or any(frame.f_trace is not None for ident, frame in debug_frames()):
                debug_untrace()
        time.sleep(0.05)


def debug_attach():
    with debug_lock:
        server = debug_state['server']
        debug_state['client'] = True
        server.patch_threads()
        server.enable_tracing(server.trace_dispatch, apply_to_all_threads=True)
        server.set_tracing_for_untraced_contexts()
        if not hasattr(sys, 'monitoring'):
            modules['pydevd_tracing'].SetTrace(None)
    debug_show()
    type(server).on_configuration_done(server)


def debug_detach():
    server = debug_state.get('server')
    if server is not None:
        type(server).on_disconnect(server)
    with debug_lock:
        if debug_state:
            debug_state['client'] = False
        debug_untrace()
    debug_show()
    start = types_named('_thread', 'start_new_thread')
    start(debug_sweep, (debug_state,))


def debug_adapters(token):
    import os
    for pid in os.listdir('/proc'):
        try:
            with open('/proc/%s/cmdline' % pid, 'rb') as f:
                words = f.read().split(b'\0')
        except OSError:
            continue
        if token.encode() in words and b'--for-server' in words:
            yield int(pid)


def debug_end_adapters(token):
    import os
    import time
    for pid in list(debug_adapters(token)):
        try:
            os.kill(pid, 15)
        except OSError:
            pass
    for i in range(40):
        left = list(debug_adapters(token))
        for pid in left:
            try:
                os.kill(pid, 9 if i == 20 else 0)
                os.waitpid(pid, 1)
            except OSError:
                pass
        if not left:
            return
        time.sleep(0.05)


# Reports the state of a debugger, for the agent's status: 0 debugpy, 1 a pause, 2 a caught one.
def debug_note(kind, state='', address='', text='', left=-1, used=0):
    if debug_noted[0]:
        debug_noted[0](kind, state, address, text, left, used)


def debug_place(address):
    return ('[%s]:%d' if ':' in address[0] else '%s:%d') % tuple(address[:2])


def debug_show():
    if debug_state.get('server') is None:
        debug_note(0)
    else:
        debug_note(0, 'listening', debug_place(debug_state['address']), used=int(bool(debug_state.get('client'))))


# A request of a method of the agent: `how` has its fields; a debugger that starts here ends with
# the client `owner`, unless that is 0.
def debug_act(owner, how, begin, tell, off):
    debug_asking[0] = owner
    return {DEBUG_BEGIN: begin, DEBUG_STATUS: tell, DEBUG_END: off}[how['action']]()


# Ends the debuggers that a client has started only for the time of its connection, unless they
# are in use.
def debug_own(state, key, used, end):
    debug_owned[:] = [one for one in debug_owned if one[1].get(one[2]) is one[3]]
    if debug_asking[0]:
        debug_owned.append((debug_asking[0], state, key, state.get(key), used, end))


def debug_leave(keeper):
    for one in [one for one in debug_owned if one[0] == keeper]:
        debug_owned.remove(one)
        if one[1].get(one[2]) is one[3] and not one[4]():
            one[5]()


eval_leaving.append(debug_leave)


# The fields of an answer; texts as bytes, because they may not be UTF-8.
def debug_say(**what):
    return {k: debug_text(v) if isinstance(v, str) else v for k, v in what.items()}


def debug_text(text, limit=4096):
    return eval_cut(text, limit)[0]


def debug_as():
    uid = types_named('posix', 'geteuid')()
    return 'user %d' % uid if uid else 'root'


# Other users who could connect, because debugpy has no password: people have numbers from 1000 on,
# services lower ones. None: nobody.
def debug_crowd(proc='/proc'):
    import os
    own = os.geteuid()
    if own == 0:
        return 'the job is root\'s'
    try:
        if os.readlink(proc + '/self/ns/pid') != 'pid:[4026531836]':
            return 'it is in a container, from which nobody else is seen'
        with open(proc + '/self/mountinfo', 'rb') as f:
            if any((' %s ' % proc).encode() in line and b'hidepid=' in line for line in f):
                return 'who else is on this machine is hidden from it'
        for name in os.listdir(proc):
            try:
                uid = os.stat(proc + '/' + name).st_uid if name.isdigit() else 0
            except OSError:
                continue
            if uid >= 1000 and uid not in (own, 65534):
                return 'user %d has processes on this machine' % uid
    except OSError as e:
        return 'who else is on this machine cannot be seen: %s' % e.strerror
    return None


def debug_begin(host, port, given, others, exposed):
    if debug_state:
        return debug_say(refused='debugpy listens already, on %s:%d: debug --off ends it' % debug_state['address'])
    crowd = None if exposed else debug_crowd()
    if crowd:
        return debug_say(refused='every user of the machine could connect, without a password, and run code as %s (%s): '
            'add --exposed if that is intended' % (debug_as(), crowd))
    why = debug_busy()
    if why:
        return debug_say(refused=why + ': nothing was done')
    if sys.version_info < (3, 8):
        return debug_say(refused='debugpy needs Python 3.8 or later in the job')
    import threading
    debug_remember()
    try:
        debugpy = debug_import(given, others)
    except Exception as e:
        debug_restore()
        return debug_say(refused='debugpy cannot be imported in the job: %s: %s' % (type(e).__name__, e))
    if debugpy is None:
        debug_restore()
        return debug_say(missing=given or 'debugpy')
    debug_state['active'] = set(threading._active)
    api, config = modules['debugpy.server.api'], dict(modules['debugpy.server.api']._config)
    try:
        api._config['subProcess'] = False
        debug_state['address'] = debugpy.listen((host, port))
        server = debug_server()()
        debug_state.update(server=server, client=False, where=debugpy.__file__, version=debugpy.__version__)
        server.on_configuration_done, server.on_disconnect = debug_attach, debug_detach
        debug_untrace()
        types_named('_thread', 'start_new_thread')(debug_sweep, (debug_state,))
    except BaseException as e:
        debug_off()
        if type(e) is KeyboardInterrupt:
            raise
        return debug_say(refused='debugpy cannot listen: %s' % e)
    finally:
        api._config.update(config)
    debug_own(debug_state, 'server', debug_is_used, debug_off)
    debug_show()
    return debug_tell()


def debug_tell():
    if not debug_state:
        return debug_say(other=debug_busy())
    return debug_say(on=True, host=debug_state['address'][0], port=debug_state['address'][1],
        client=bool(debug_state['client']), module=debug_state['where'], version=debug_state['version'],
        compiles=modules.get('torch._dynamo') is not None, user=debug_as(), cwd=types_named('posix', 'getcwd')())


def debug_is_used():
    return debug_state.get('client')


def debug_off():
    server = debug_state.get('server') or (debug_server() or (lambda: None))()
    was = bool(debug_state)
    if server is not None and was:
        if debug_state.get('client'):
            modules['_pydevd_bundle.pydevd_api'].PyDevdAPI().request_disconnect(server, resume_threads=True)
        with debug_lock:
            debug_state['client'] = False
            debug_untrace()
        token = server.authentication.access_token
        server.dispose_and_kill_all_pydevd_threads()
        with debug_lock:
            debug_untrace()
        modules['debugpy.server.api'].listen.called = False
        modules['pydevd'].SetupHolder.setup = None
        modules['atexit'].unregister(modules['pydevd'].stoptrace)
        if token:
            debug_end_adapters(token)
        with debug_lock:
            debug_untrace()
        debug_restore()
    debug_state.clear()
    debug_show()
    return debug_say(was=was)


def debug_do(owner, how):
    return debug_act(owner, how, lambda: debug_begin(how['host'], how['port'], how['path'], how['places'], how['exposed']), debug_tell, debug_off)
