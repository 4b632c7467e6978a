# SPDX-License-Identifier: Apache-2.0
#
# The job's threads are paused, each at its next line of Python, while pdb is at an address
# (pdb_server.py). A trace function of C (agent/debug/pause.c) pauses them; it is removed before the
# first of them continues. A paused thread waits no longer than the time limit, whatever happens to
# the agent.


pause_state = {}
PAUSE_STEPS = 'the job is held, and not stepped: probing TARGET debug has a debugger that does'


def pause_hold():
    t = pause_state.get('session')
    if t is None or t.why is not None:
        return
    if types_named('posix', 'getpid')() != t.process:
        sys.settrace(None)
        return
    native = types_named('_thread', 'get_native_id')
    t.held[eval_ident()] = native() if native else 0
    try:
        if t.gate.acquire(True, max(t.left(), 0) + 5):
            t.gate.release()
    except BaseException as e:
        t.end('a signal of the job: %s' % type(e).__name__)
        raise


def pause_show(t):
    debug_note(1, 'held', pdb_server_place(t), left=int(1000 * max(t.left(), 0)), used=int(t.client is not None))


def pause_arm(t):
    pause_show(t)
    t.known = pdb_server_functions['threads']()
    pdb_server_functions['trace'](pause_hold)


def pause_turn(t):
    if pdb_server_functions['threads']() != t.known:
        pause_arm(t)


def pause_end(t):
    pdb_server_functions['trace'](None)
    pause_state.pop('session', None)
    debug_note(1)


def pause_banner(t):
    found = pdb_server_threads(t)
    return ('process %d is held: %d of %d threads; for %.0f s more, or until continue\n'
        'threads, thread N, stacks; where, up, down, p, pp, list, args, help; continue\n') % (
        t.process, sum(one[2] in t.held for one in found), len(found), max(t.left(), 0))


def pause_serve(t, p):
    one = pdb_server_threads(t)[0]
    p.session_thread = one[2]
    p.interaction(one[4], None)


def pause_settled(t):
    found = pdb_server_threads(t)
    return all(one[2] in t.held for one in found)


def pause_now():
    t = pause_state.get('session')
    if t is not None and t.why is not None:
        pdb_server_wait(t, 3)
        t = pause_state.get('session')
    return t


def pause_begin(host, port, limit):
    t = pause_now()
    if t is not None:
        return debug_say(refused='the job is paused already, at %s: pause --off ends that' % (pdb_server_place(t) if t.address else '?'))
    if not pdb_server_functions.get('possible'):
        return debug_say(refused='threads of this Python cannot be held: it has no GIL, or lacks what that takes')
    why = debug_busy()
    if why:
        return debug_say(refused=why + ': nothing was done')
    t = pdb_server_Session(limit, pause_banner, PAUSE_STEPS)
    t.held, t.holds, t.over, t.serve, t.show = {}, True, 'the pause is over', pause_serve, pause_show
    pause_state['session'] = t
    try:
        pdb_server_begin(t, host, port, pause_arm, pause_turn, pause_end)
        debug_own(pause_state, 'session', pause_is_used, pause_off)
        for i in range(50):
            if t.known is not None and pause_settled(t) or t.why is not None or t.left() < limit / 2:
                break
            modules['time'].sleep(0.01)
        return pause_tell()
    except OSError as e:
        pause_state.pop('session', None)
        return debug_say(refused='cannot listen at %s port %d: %s' % (host, port, e.strerror or e))
    except BaseException:
        t.end('it was interrupted')
        if t.address is None:
            pause_state.pop('session', None)
        raise


def pause_tell():
    t = pause_now()
    if t is None or t.why is not None:
        return debug_say()
    threads = [debug_say(tid=one[1], held=one[2] in t.held, name=' '.join(one[3].split()), where=' '.join(pdb_server_where(t, one).split('\n')))
        for one in pdb_server_threads(t)]
    return debug_say(on=True, threads=threads, **pdb_server_tell(t))


def pause_is_used():
    t = pause_state.get('session')
    return t is not None and t.client is not None


def pause_off():
    t = pause_now()
    if t is not None:
        t.end('it was ended from outside')
        pdb_server_wait(t, 3)
    return debug_say(was=t is not None)


def pause_do(owner, how):
    return debug_act(owner, how, lambda: pause_begin(how['host'], how['port'], how['limit_s']), pause_tell, pause_off)
