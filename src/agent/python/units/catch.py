# SPDX-License-Identifier: Apache-2.0
#
# An exception that nobody in the job catches, on its main thread or on one of threading's, is
# reported to the table of events. Its thread waits for a while, with pdb over its traceback at an
# address (pdb_server.py). The previous sys.excepthook and threading.excepthook are called first;
# they are restored if ours are still installed. Fatal signals are recorded by C
# (agent/debug/fatal.c).


catch_state = {}
catch_signals = 'SIGSEGV', 'SIGBUS', 'SIGFPE', 'SIGILL', 'SIGABRT'  # in the order of agent/debug/fatal.c
CATCH_STEPS = 'the function that raised has ended: you can inspect it, but not step'


def catch_modules():
    return [m for m in (sys, modules.get('threading')) if m is not None and hasattr(m, 'excepthook')]


def catch_nothing(t):
    pass


def catch_show(t):
    debug_note(2, 'kept', pdb_server_place(t), '%s in %s' % (' '.join(t.what.split())[:180], ' '.join(t.name.split())[:40]),
        int(1000 * max(t.left(), 0)), int(t.client is not None))


def catch_over(t):
    debug_note(2, 'armed' if catch_state.get('on') else '')


def catch_banner(t):
    return ('process %d: %s in %s; its thread stays for %.0f s more, or until continue\n'
        'where, up, down, p, pp, list, args; threads, thread N, stacks; help; continue\n') % (
        t.process, t.what, t.name, max(t.left(), 0))


def catch_serve(t, p):
    p.interaction(None, t.traceback)


def catch_describe(kind, value, traceback):
    lines = modules['traceback'].format_exception(kind, value, traceback)
    try:
        text = str(value).split('\n')[0]
    except Exception:
        text = '?'
    return '%s: %s' % (kind.__name__, text) if text else kind.__name__, ''.join(lines)


def catch_inner(traceback):
    while traceback.tb_next is not None:
        traceback = traceback.tb_next
    return traceback


def catch_listen(t, host, port):
    try:
        pdb_server_begin(t, host, port, catch_show, catch_nothing, catch_over)
    except OSError:
        pdb_server_begin(t, host, 0, catch_show, catch_nothing, catch_over)


def catch_hold(kind, value, traceback, name):
    on, me = catch_state.get('on'), object()
    if on is None or traceback is None or not issubclass(kind, Exception):
        return
    if types_named('posix', 'getpid')() != on['process'] or catch_state.setdefault('by', me) is not me:
        return
    t = pdb_server_Session(on['limit'], catch_banner, CATCH_STEPS)
    t.held, t.holds, t.over, t.serve, t.show = {}, False, 'the job continues', catch_serve, catch_show
    t.name, t.traceback, t.kept = name, traceback, eval_ident()
    try:
        t.frame = catch_inner(traceback).tb_frame
        t.what, t.text = catch_describe(kind, value, traceback)
        catch_listen(t, on['host'], on['port'])
        catch_state['session'] = t
        pdb_server_functions['tell'](('%s in %s; pdb at %s\n' % (t.what, name, pdb_server_place(t)))[:300] + t.text[-700:])
        if t.gate.acquire(True, on['limit'] + 5):
            t.gate.release()
    except KeyboardInterrupt:
        pass
    except Exception as e:
        # raised from here it would be printed as the job's, although it is not the job's error
        pdb_server_functions['tell']('%s is not kept: %s: %s' % (name, type(e).__name__, e))
    finally:
        t.end('^C')
        catch_state.pop('session', None)
        catch_state.pop('by', None)
        t.traceback = t.frame = None


def catch_arguments(arguments):
    if len(arguments) == 3:
        return arguments + ('MainThread',)
    args = arguments[0]
    return args.exc_type, args.exc_value, args.exc_traceback, str(getattr(args.thread, '_name', None) or 'a thread')


def catch_hook(before):
    def hook(*arguments):
        known = catch_arguments(arguments)
        try:
            before(*arguments)
        finally:
            if hook in catch_state.get('hooks', ()):
                catch_hold(*known)
    return hook


def catch_reporter():
    # The signals whose handler may be faulthandler's: it is on, and Python has no handler for them.
    try:
        import faulthandler
    except ImportError:
        return 0
    import _signal
    known = [_signal.getsignal(getattr(_signal, name)) for name in catch_signals]
    own = [one is not None and not (type(one) is int and one == int(_signal.SIG_DFL)) for one in known]
    return sum(1 << i for i, is_own in enumerate(own) if not is_own) if faulthandler.is_enabled() else 0


def catch_begin(host, port, limit):
    import traceback
    if catch_state.get('on'):
        return debug_say(refused='exceptions are caught already: catch --off ends that')
    if not pdb_server_functions.get('token'):
        return debug_say(refused='functions of the agent are not there')
    pdb_server_listen(host, port).close()
    found = catch_modules()
    before = [m.excepthook for m in found]
    hooks = [catch_hook(one) for one in before]
    catch_state.update(on=dict(host=host, port=port, limit=limit, process=types_named('posix', 'getpid')()), before=before, hooks=hooks)
    for m, hook in zip(found, hooks):
        m.excepthook = hook
    debug_own(catch_state, 'on', catch_is_used, catch_off)
    told = pdb_server_functions['fatal'](1, catch_reporter())
    catch_state['refused'] = told[1:] if told.startswith('!') else ''
    debug_note(2, 'armed')
    return catch_tell()


def catch_try(host, port, limit):
    try:
        return catch_begin(host, port, limit)
    except OSError as e:
        return debug_say(refused='cannot listen at %s port %d: %s' % (host, port, e.strerror or e))


def catch_tell():
    on, t = catch_state.get('on'), catch_state.get('session')
    if on is None:
        return debug_say()
    signals = pdb_server_functions['fatal'](2, 0).partition('|')
    told = dict(on=True, signals=signals[0], left_alone=catch_state['refused'] or signals[2], limit_s=on['limit'], all_threads=len(catch_state['before']) > 1)
    if t is not None and t.why is None:
        told.update(pdb_server_tell(t), thread=' '.join(t.name.split()), exception=' '.join(t.what.split()),
            traceback=debug_text('\n'.join(t.text.rstrip('\n').split('\n')[-60:]), 32768))
    return debug_say(**told)


def catch_is_used():
    t = catch_state.get('session')
    return t is not None and t.client is not None


def catch_off():
    on, t = catch_state.pop('on', None), catch_state.get('session')
    if on is not None:
        pdb_server_functions['fatal'](0, 0)
    found = [m for m in catch_modules() if on is not None]
    for m, hook, before in zip(found, catch_state.pop('hooks', ()), catch_state.pop('before', ())):
        if m.excepthook is hook:
            m.excepthook = before
    if t is not None:
        t.end('it was ended from outside')
        pdb_server_wait(t, 3)
    elif on is not None:
        debug_note(2)
    return debug_say(was=on is not None)


def catch_do(owner, how):
    return debug_act(owner, how, lambda: catch_try(how['host'], how['port'], how['limit_s']), catch_tell, catch_off)
