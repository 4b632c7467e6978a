# SPDX-License-Identifier: Apache-2.0
#
# python.process_groups: the process groups of torch.distributed, with the counters of torch's
# flight recorder. Groups come from the dicts of torch.distributed.distributed_c10d; classes of the
# job among them are not asked anything. Counters are numbered as this process has made its groups,
# and only entries have both that number and the name: so entries are read where a number has no
# name yet, or a collective has not ended. `_dump_fr_trace_json` keeps the GIL while it writes (some
# 12 us an entry); the handler of the same document, which torch's debug server uses, does not: it
# is preferred where it exists, and otherwise entries are read once, for the names, and again when a
# group without entries goes on, or the job stands still with a collective that has not ended.
# Documents with stacks are never requested. See types.py and src/agent/python/flight.h.


groups_COLUMNS = ('pg', 'desc', 'backend', 'size', 'ranks', 'my_rank', 'timeout_s', 'last_enqueued', 'last_completed', 'p2p', 'op', 'bytes',
    'dtype')
groups_MODULE = 'torch.distributed.distributed_c10d'
groups_MOST = 2048
groups_AT_ONCE = 16
groups_RANKS = 16384
groups_TEXT = 6000
groups_NAME = 180
groups_ENTRIES = 20000
groups_STILL_S = 1
groups_RECORDERS = (('nccl', '_dump_nccl_trace_json', 'dump_nccl_trace_json'), ('', '_dump_fr_trace_json', 'fr_trace_json'))
groups_SEQUENCES = ('gloo', 'nccl', 'xccl')
groups_islice = types_named('itertools', 'islice') or (lambda i, *at: list(i)[slice(*at)])
groups_time = types_named('time', 'thread_time_ns') or (lambda: 0)
groups_Delta = types_named('datetime', 'timedelta')
groups_state = {'names': {}, 'nameless': {}, 'still': {}, 'class': None}


def groups_off():
    groups_state.clear()


def groups_dict(name):
    d = types_named(groups_MODULE, name)
    return d if type(d) is dict else {}


def groups_by_id(name):
    return {id(pg): value for pg, value in list(groups_islice(groups_dict(name).items(), groups_MOST))}


def groups_text(o):
    return o[:groups_NAME] if type(o) is str else None


def groups_find():
    # Nothing of the job is kept, only texts: the groups in the order in which they were made.
    names, configs, found = groups_by_id('_pg_names'), groups_by_id('_pg_backend_config'), []
    for pg, value in list(groups_islice(groups_dict('_pg_map').items(), groups_MOST)):
        backend = groups_text(configs.get(id(pg)))
        if backend is None and type(value) is tuple and value:
            backend = groups_text(value[0])
        found.append({'id': id(pg), 'pg': groups_text(names.get(id(pg))), 'backend': groups_backend(backend)})
    return found


def groups_backend(config):
    # 'cpu:gloo,cuda:gloo' is gloo
    if config is None:
        return None
    parts = []
    for part in config.split(',')[:16]:
        name = part.partition(':')[2] or part
        if name not in parts:
            parts.append(name)
    return ','.join(parts)


def groups_bound(o, name):
    # A descriptor of torch's own class, which no class of the job has replaced.
    if not types_module(type(o)).startswith(('torch._C.', 'torch.distributed.')):
        return None
    for t in types_mro(type(o)):
        d = types_dict(t).get(name)
        if d is not None:
            return d.__get__(o)
    return None


def groups_call(o, name, *args):
    try:
        method = groups_bound(o, name)
        return None if method is None else method(*args)
    except Exception:
        return None


def groups_get(o, name):
    try:
        return groups_bound(o, name)
    except Exception:
        return None


def groups_timeout(pg):
    devices = groups_get(pg, '_device_types')
    backend = groups_call(pg, '_get_backend', devices[0]) if type(devices) is list and devices else None
    options = groups_get(backend, 'options') if backend is not None else None
    timeout = groups_get(options, '_timeout') if options is not None else None
    return timeout.total_seconds() if groups_Delta is not None and type(timeout) is groups_Delta else None


def groups_facts(about, pg):
    rank, seq = groups_call(pg, 'rank'), None
    about['my_rank'] = rank if type(rank) is int and rank >= 0 else None
    about['desc'] = groups_text(groups_get(pg, 'group_desc')) or None
    about['timeout_s'] = groups_timeout(pg)
    if about['backend'] is not None and about['backend'].split(',')[0] in groups_SEQUENCES:
        seq = groups_call(pg, '_get_sequence_number_for_group')
    about['sequence'] = seq if type(seq) is int and 0 <= seq < 2 ** 62 else None


def groups_ranges(ranks):
    # '0-16,18-411'; None if that is too long
    if not ranks:
        return ''
    if ranks[-1] - ranks[0] + 1 == len(ranks):
        return '%d-%d' % (ranks[0], ranks[-1]) if len(ranks) > 1 else '%d' % ranks[0]
    parts, at, first = [], 0, ranks[0]
    for i, rank in enumerate(ranks):
        if i + 1 == len(ranks) or ranks[i + 1] != rank + 1:
            parts.append('%d' % rank if rank == first else '%d-%d' % (first, rank))
            first = ranks[i + 1] if i + 1 < len(ranks) else None
            at += len(parts[-1]) + 1
            if at > groups_TEXT:
                return None
    return ','.join(parts)


def groups_ranks(about, d):
    about['size'] = len(d) if type(d) is dict else None
    about['ranks'] = None
    if type(d) is dict and len(d) <= groups_RANKS:
        ranks = [r for r in list(d) if type(r) is int and 0 <= r < 2 ** 20]
        if len(ranks) == len(d):
            ranks.sort()
            about['ranks'] = groups_ranges(ranks)


def groups_describe(found):
    # Pieces of some groups each: what each is now, if it is still there.
    places = {about['id']: about for about in found}
    for name in ('_pg_map', '_pg_group_ranks'):
        at = 0
        while at < groups_MOST:
            part = list(groups_islice(groups_dict(name).items(), at, at + groups_AT_ONCE))
            for pg, value in part:
                about = places.get(id(pg))
                if about is None:
                    continue
                if name == '_pg_map':
                    groups_facts(about, pg)
                else:
                    groups_ranks(about, value)
            at += groups_AT_ONCE
            full, pg, value, part = len(part) == groups_AT_ONCE, None, None, None
            yield None
            if not full:
                break


def groups_capacity():
    # entries that the recorder keeps, as far as the environment has it
    environ = types_named('os', 'environ')
    d = types_attributes(environ).get('_data') if environ is not None else None
    for name in (b'TORCH_FR_BUFFER_SIZE', b'TORCH_NCCL_TRACE_BUFFER_SIZE'):
        value = d.get(name) if type(d) is dict else None
        if type(value) is bytes and value.isdigit():
            return int(value[:18])
    return 2000


def groups_answer_classes(c10d):
    # torch's handlers answer to an object: a subclass of ours keeps the text.
    if groups_state['class'] is None:
        Request, Response = c10d.__dict__['_Request'], c10d.__dict__['_Response']

        def set_content(self, content, kind):
            self.apart_ns = groups_time() - self.began_ns
            self.content = content

        groups_state['class'] = (
            type(Request)('groups_Request', (Request,), {'body': lambda self: b'', 'params': lambda self: {}, 'get_param': lambda self, name: ''}),
            type(Response)('groups_Response', (Response,), {'set_content': set_content, 'set_status': lambda self, status: None}))
    return groups_state['class']


def groups_by_handler(c10d, handler, args):
    # The whole document, written without the GIL; None if this torch has no such handler.
    names, get = c10d.__dict__.get('_get_handler_names'), c10d.__dict__.get('_get_handler')
    if type(names) is not types_Builtin or type(get) is not types_Builtin or handler not in names():
        return None
    Request, Response = groups_answer_classes(c10d)
    call, request, response = get(handler), Request(), Response()
    response.content, response.apart_ns, response.began_ns = None, 0, groups_time()
    call(request, response)
    content, args['apart_ns'] = response.content, max(0, response.apart_ns)
    return content.encode('utf-8', 'replace') if type(content) is str else content if type(content) is bytes else None


def groups_entries(c10d, function, handler, args, with_gil):
    # Entries too: a document as bytes, a str why not, None if they are not worth the GIL.
    try:
        if groups_capacity() > groups_ENTRIES:
            return 'the flight recorder keeps more than %d entries (TORCH_FR_BUFFER_SIZE): they are not read' % groups_ENTRIES
        content = groups_by_handler(c10d, handler, args)
        if content is None and with_gil:
            content = function(True, False)
        return content if type(content) in (bytes, type(None)) else None
    except Exception as e:
        return 'the flight recorder could not be read: ' + types_name(type(e))


def groups_counters(function):
    try:
        content = function(False, False)
        return content if type(content) is bytes else None
    except Exception as e:
        return 'the flight recorder could not be read: ' + types_name(type(e))


def groups_stands(recorder, rows):
    # Whether these counters are a second old. One earlier question does not show that: another client may have asked it just now.
    clock, counters, known = types_named('time', 'monotonic'), [r[:1] + r[4:6] for r in rows], groups_state['still'].get(recorder)
    if type(clock) is not types_Builtin:
        return False
    if known is None or known[0] != counters:
        known = groups_state['still'][recorder] = (counters, clock())
    return clock() - known[1] >= groups_STILL_S


def groups_learn(names, read):
    for number, name, desc, backend, enqueued, completed, p2p in [r[:7] for r in read]:
        if name is not None and number >= 0 and len(names) < 2 * groups_MOST:
            known = names.get(number)
            names[number] = (name, backend, max(p2p, known[2] if known is not None else -1))


def groups_ask(args, recorder, dump, handler, read):
    # What a recorder has, put into the list `read`: (number, name, backend, p2p, its row).
    c10d = types_named('torch._C', '_distributed_c10d')
    function = c10d.__dict__.get(dump) if type(c10d) is types_Module else None
    if type(function) is not types_Builtin:
        return
    names, content = groups_state['names'].setdefault(recorder, {}), groups_counters(function)
    yield content
    rows = args.pop('answer', None)
    if type(rows) is not list:
        if type(rows) is str:
            yield rows
        return
    nameless = groups_state['nameless'].setdefault(recorder, {})
    named, stands = all([r[0] in names or nameless.get(r[0]) == r[4] for r in rows]), groups_stands(recorder, rows)
    if rows and not (named and all([r[4] == r[5] for r in rows])):
        content = groups_entries(c10d, function, handler, args, stands or not named)
        yield content
        more = args.pop('answer', None)
        args.pop('apart_ns', None)
        if type(more) is list:
            groups_learn(names, more)
            nameless.clear()
            nameless.update((r[0], r[4]) for r in rows if r[0] not in names)
            rows = more
        elif type(more) is str:
            yield more
    content = None
    for r in rows:
        name, backend, p2p = names.get(r[0], (None, None, -1))
        read.append((r[0], r[1] or name, r[3] or backend or recorder or None, max(r[6], p2p), r))


def groups_known(n):
    return n if n is not None and n >= 0 else None


def groups_row(about, backend, read):
    desc, timeout, enqueued, completed, p2p, op = about.get('desc'), about.get('timeout_s'), about.get('sequence'), None, None, (None,) * 3
    if enqueued is not None and ',' not in about['backend']:
        completed = 0 if enqueued == 0 else None
        # A row above the sequence is of a group of that name that was destroyed; or of sends of NCCL, which have a count of their own.
        if read is not None and read[4][4] > enqueued and (read[3] <= 0 or backend == 'gloo'):
            read = None
    if read is not None:
        number, name, _, p2p, r = read
        desc = desc or r[2]
        timeout = r[7] / 1000.0 if timeout is None and r[7] >= 0 else timeout
        enqueued = r[4] if r[4] >= 0 else enqueued
        completed, p2p = r[5] if r[5] >= 0 else completed, None if p2p < 0 else p2p > 0
        if r[8] >= 0:
            op = (r[9], groups_known(r[10]), r[11])
    return (about['pg'], desc, backend, about.get('size'), about.get('ranks'), about.get('my_rank'), timeout, enqueued, completed, p2p) + op


def groups_matches(about, by_name):
    # The recorders' groups of that name, one a backend: a name is used again after its group was destroyed, with a larger number.
    newest = {}
    for one in by_name.get(about['pg'], ()) if about['pg'] is not None else ():
        known = newest.get(one[2])
        if known is None or (one[0], one[4][4]) > (known[0], known[4][4]):
            newest[one[2]] = one
    mine = (about['backend'] or '').split(',')
    named = [(backend, newest[backend]) for backend in mine if backend in newest]
    return named or [(about['backend'], one) for one in list(newest.values())[:1]] or [(about['backend'], None)]


def groups_each(args):
    yield groups_COLUMNS
    if type(modules.get(groups_MODULE)) is not types_Module:
        yield 'torch.distributed is not imported'
        return
    found = groups_find()
    if not found:
        yield 'no process group of torch.distributed was made'
        return
    if len(groups_dict('_pg_map')) > groups_MOST:
        yield 'only the first %d of %d process groups were read' % (groups_MOST, len(groups_dict('_pg_map')))
    yield None
    read, by_name = [], {}
    for recorder, dump, handler in groups_RECORDERS:
        for piece in groups_ask(args, recorder, dump, handler, read):
            yield piece
    # after the recorders, whose counters of a group are then not above its sequence
    for piece in groups_describe(found):
        yield piece
    for one in read:
        by_name.setdefault(one[1], []).append(one)
    if not read:
        yield 'torch has no counters of its flight recorder (TORCH_FR_BUFFER_SIZE): what has completed is not known'
    for at, about in enumerate(found):
        if 'stop' in args:
            return
        if at % 100 == 99:
            yield None
        for backend, one in groups_matches(about, by_name):
            yield groups_row(about, backend, one)
