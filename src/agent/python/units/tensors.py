# SPDX-License-Identifier: Apache-2.0
#
# python.tensors: the job's tensors, a row each; python.tensor_growth: the growth since an earlier
# reading. The memory of earlier readings is bounded. It has weak references to tensors, but not to
# those of modules, and to none that the job may swap: types_member. See roots.py, facts.py.


tensors_COLUMNS = ('name', 'kind', 'type', 'shape', 'dtype', 'device', 'bytes', 'module', 'storage_id', 'storage_bytes', 'shared',
    'requires_grad', 'grad', 'first_step', 'age_s', 'id')
tensors_GROWTH = ('type', 'shape', 'dtype', 'device', 'kind', 'owner', 'count', 'bytes', 'count_then', 'bytes_then', 'growth_bytes',
    'growth_per_step', 'since_step')
tensors_ROWS = 20000
tensors_KNOWN = 16384
tensors_GROUPS = 1000
tensors_LOOKS = 6
tensors_BETWEEN_S = 60
tensors_known = [{} for _ in range(16)]
tensors_looks = []
tensors_TRIES = 40
tensors_time = types_named('time', 'monotonic') or (lambda: 0.0)


def tensors_state(args, emit):
    state = {'args': args, 'emit': emit, 'names': set(), 'homes': {}, 'later': [], 'busy': [], 'walk': None, 'step': args.get('step'), 'now': tensors_time()}

    def found(module, d, label, parent):
        return tensors_of_module(state, module, d, label, parent)

    def met(t, label, where):
        if types_inherits(type(t), roots_Parameter):
            if len(state['later']) < tensors_ROWS and not tensors_is_seen(state['walk'], t):
                state['later'].append((roots_ref(t), label))
        else:
            tensors_add(state, t, label, where, state['homes'].get(state['walk']['of']))

    def own(token, kind, name, t):
        full, place = '%s.%s' % (token['prefix'], name), (token['ref'], '_%ss' % kind, name)
        state['walk']['names'].setdefault(id(t), full)
        if kind == 'parameter':
            state['homes'].setdefault(id(t), token['path'])
        tensors_add(state, t, full, kind, token['path'], place)

    state['walk'] = roots_new(args, found, met, own)
    return state


def tensors_is_seen(walk, o):
    return id(o) in walk['seen'][(id(o) >> 5) & 31]


def tensors_of_module(state, module, d, label, parent):
    up, name = parent if parent is not None else (None, label)
    path, prefix = modules_place(state['names'], label, up, name)
    return {'path': path, 'prefix': prefix, 'wrapped': modules_wrapped(type(module)), 'ref': roots_ref(module)}


def tensors_add(state, t, name, kind, module, place=None):
    if not roots_is_new(state['walk'], t):
        return
    try:
        known = facts_read(t)
        storage = facts_storage(t, known[4], known[5])
    except Exception:
        known, storage = (None,) * 6, (None, None)
    grad = facts_gradient(t)
    row = state['emit'](t, name, kind, module, known, storage, None if grad is False else grad is not None, place)
    if grad is False:
        state['busy'].append((place or roots_ref(t), id(t), name, module, row))
    elif grad is not None:
        tensors_add(state, grad, name + '.grad', 'gradient', module)
    if known[5] is False and type(t) is not roots_Tensor:
        for n, inner in list(dict.items(roots_attributes(t))) + roots_slots(t):
            if type(inner) is roots_Tensor:
                tensors_add(state, inner, '%s.%s' % (name, n), kind, module)


def tensors_walk(state):
    walk = state['walk']
    yield from roots_walk(walk)
    for at, (ref, label) in enumerate(state['later']):
        t = ref()
        if t is not None:
            tensors_add(state, t, label, 'parameter', None)
        t = ref = None
        if at % 16 == 15:
            yield None
    while state['later']:
        del state['later'][-500:]
        yield None
    yield from tensors_wait(state)


def tensors_wait(state):
    busy = state['busy']
    for _ in range(tensors_TRIES):
        for _ in range(len(busy)):
            kept, i, name, module, row = busy[-1]
            t = tensors_kept(kept, i)
            grad = facts_gradient(t) if t is not None else None
            if grad is False:
                break
            if grad is not None:
                tensors_add(state, grad, name + '.grad', 'gradient', module)
            if row is not None:
                row[12] = grad is not None
            t = grad = None
            busy.pop()
            if len(busy) % 16 == 0:
                yield None
        t = grad = None
        if not busy or 'stop' in state['args']:
            break
        yield None
    if busy:
        yield 'the gradients of %d tensors are not known: the job was at them' % len(busy)
    while busy:
        del busy[-500:]
        yield None


def tensors_keep(t, kind, known, place):
    if place is not None:
        return place
    swapped = kind in ('parameter', 'buffer', 'gradient') or types_inherits(type(t), roots_Parameter)
    return roots_ref(t) if not swapped and (known[5] or type(t) is roots_Tensor) else None


def tensors_kept(kept, i):
    t = types_member(kept, i) if type(kept) is tuple else kept()
    return t if id(t) == i else None


def tensors_age(state, t, kind, known, place):
    shard = tensors_known[(id(t) >> 5) & 15]
    entry = shard.get(id(t))
    if entry is not None and tensors_kept(entry[0], id(t)) is t:
        return entry[1], entry[2]
    kept = tensors_keep(t, kind, known, place)
    if kept is None or len(shard) >= tensors_KNOWN // 16 and entry is None:
        return None, None
    shard[id(t)] = (kept, state['step'], state['now'])
    return state['step'], state['now']


def tensors_forget(args):
    for shard in tensors_known:
        for at, i in enumerate(list(shard)):
            if tensors_kept(shard[i][0], i) is None:
                del shard[i]
            if at % 64 == 63:
                yield None
        yield None


def tensors_flag(get, t):
    try:
        with facts_guard():
            return bool(get(t))
    except Exception:
        return None


def tensors_each(args):
    yield tensors_COLUMNS
    if not roots_refresh():
        yield 'torch is not imported in this process'
        return
    facts_refresh()
    rows, shared, more = [], {}, []

    def emit(t, name, kind, module, known, storage, grad, place):
        if len(rows) >= tensors_ROWS:
            more.append(None) if not more else None
            return None
        step, since = tensors_age(state, t, kind, known, place)
        if storage[0] is not None:
            shared[storage[0]] = shared.get(storage[0], 0) + 1
        row = [name, kind, facts_class(type(t)), facts_shape(known[1]), known[0], known[4], known[3], module, storage[0], storage[1],
            None, tensors_flag(facts_get_requires_grad, t), grad, step, None if since is None else state['now'] - since, id(t)]
        rows.append(row)
        return row

    state = tensors_state(args, emit)
    yield from tensors_forget(args)
    yield from tensors_walk(state)
    if more:
        yield 'only the first %d tensors are listed' % tensors_ROWS
    for at, row in enumerate(rows):
        row[10] = shared[row[8]] > 1 if row[8] is not None else None
        yield tuple(row)
        rows[at] = None
    while rows:
        del rows[-500:]
        yield None
    while shared:
        for _ in range(min(1000, len(shared))):
            shared.popitem()
        yield None
    yield from roots_end(state['walk'])


def tensors_owner(name):
    parts, depth = [], 0
    for piece in name.replace(']', '[').split('['):
        parts.append(piece if depth % 2 == 0 else '[*]')
        depth += 1
    return ''.join(parts)


def tensors_growth_each(args):
    yield tensors_GROWTH
    if not roots_refresh():
        yield 'torch is not imported in this process'
        return
    facts_refresh()
    groups, storages, lost = {}, set(), []

    def emit(t, name, kind, module, known, storage, grad, place):
        owner = tensors_owner(name) if module is None or kind == 'optimizer' else module
        key = (facts_class(type(t)), facts_shape(known[1]), known[0], known[4], kind, owner)
        group = groups.get(key)
        if group is None:
            if len(groups) >= tensors_GROUPS:
                lost.append(None) if not lost else None
                return
            group = groups[key] = [0, 0]
        group[0] += 1
        if storage[0] is None or storage[0] not in storages:
            storages.add(storage[0])
            group[1] += storage[1] if storage[1] is not None else known[3] or 0

    state = tensors_state(args, emit)
    yield from tensors_walk(state)
    if lost:
        yield 'only %d kinds of tensors are distinguished' % tensors_GROUPS
    then = tensors_compare(state, groups)
    for key in set(groups) | set(then[2]):
        yield tensors_growth_row(state, then, key, groups.get(key, (0, 0)), then[2].get(key, (0, 0)))
    yield from roots_shed([storages])
    yield from roots_end(state['walk'])


def tensors_compare(state, groups):
    now, looks = state['now'], tensors_looks
    if 'mark' in state['args']:
        looks.clear()
    if 'stop' not in state['args'] and (not looks or now - looks[-1][0] >= tensors_BETWEEN_S):
        looks.append((now, state['step'], {k: tuple(v) for k, v in groups.items()}))
    if len(looks) > tensors_LOOKS:
        del looks[0]
    return looks[0] if looks else (now, state['step'], {k: tuple(v) for k, v in groups.items()})


def tensors_growth_row(state, then, key, now, before):
    step, growth = state['step'], now[1] - before[1]
    steps = step - then[1] if step is not None and then[1] is not None else None
    return key + (now[0], now[1], before[0], before[1], growth, growth / steps if steps else None, then[1])
