# SPDX-License-Identifier: Apache-2.0
#
# python.memory_growth: the containers and tensors that variables of the job reach, by how they are
# reached, and how many more elements they hold than at an earlier look. Between two looks only
# names and numbers are kept. A look that comes too soon is not taken: its rows are those of the
# look before, so that looks, however often somebody asks, take at most a hundredth of the GIL.
# See roots.py, facts.py, tensors.py.


growth_COLUMNS = ('holder', 'kind', 'of', 'count', 'bytes', 'growth', 'growth_bytes', 'growth_per_step', 'since_s', 'graphs', 'room',
    'hits', 'looked')
growth_ROWS = 200
growth_KEYS = 5000
growth_OBJECTS = 300000
growth_BETWEEN_S = 1.5
growth_SHARE = 100
growth_OLD_S = 30
growth_NEWEST = 4
growth_FEW = 4
growth_DEPTH = 2
growth_SMALL = 16
growth_TRIES = 3
growth_FORGET_S = 90
growth_Descriptor = type(list.__dict__['append'])
growth_ids = {}
growth_state = {'rows': [], 'next': 0.0, 'first': None}
growth_names = {roots_LIST: 'list', roots_DICT: 'dict', roots_SET: 'set', roots_CACHE: 'lru_cache'}


def growth_own(o):
    for base in types_mro(type(o)):
        d = types_dict(base).get('__sizeof__')
        if d is not None:
            known = types_module(base) in ('builtins', 'collections', 'numpy') and type(d) is growth_Descriptor
            return d(o) if known else 0
    return 0


def growth_base(o):
    for base in types_mro(type(o)):
        if base is list or base is tuple or base is roots_deque or base is dict or base is set or base is frozenset:
            return base
    return None


def growth_inside(o):
    kind = growth_base(o)
    if kind is list or kind is tuple or kind is roots_deque:
        return roots_of_list(o, 0, growth_FEW), kind.__len__(o)
    if kind is dict:
        return [c for _, c in roots_items(o, roots_DICT, 0, growth_FEW)], dict.__len__(o)
    if kind is not None:
        return [c for _, c in roots_items(o, roots_SET, 0, growth_FEW)], kind.__len__(o)
    if roots_flags(type(o)) & roots_HEAP:
        values = [c for _, c in roots_items(o, roots_INSTANCE, 0, growth_FEW)]
        return values, len(values)
    return (), 0


def growth_tensor(about, t):
    known = facts_read(t)
    storage = facts_storage(t, known[4], known[5])
    with facts_guard():
        about['graphs'] = about['graphs'] or bool(facts_get_requires_grad(t)) and not facts_get_is_leaf(t)
    if storage[0] is not None:
        if storage[0] in about['seen']:
            return 0
        about['seen'].add(storage[0])
    return storage[1] if storage[1] is not None else known[3] or 0


def growth_size(about, o, depth):
    if id(o) in about['seen']:
        return 0
    about['seen'].add(id(o))
    if growth_is_tensor(o):
        return growth_tensor(about, o)
    size = growth_own(o)
    if depth < growth_DEPTH:
        values, n = growth_inside(o)
        inner = 0
        for c in values:
            inner += growth_size(about, c, depth + 1)
        if values:
            size += inner * n // len(values)
    return size


def growth_is_tensor(o):
    return types_inherits(type(o), roots_Base)


def growth_of(o, depth=0):
    if growth_is_tensor(o):
        known = facts_read(o)
        shape = facts_shape(known[1])
        return facts_class(type(o)) + (' ' + shape if shape else '') + (' ' + known[4] if known[4] not in (None, 'cpu') else '')
    name = types_qualname(type(o)) if types_module(type(o)) in ('builtins', '__main__') else types_name(type(o))
    values = growth_inside(o)[0] if depth < 2 and any([type(o) is t for t in (list, tuple, dict)]) else ()
    for c in values:
        if growth_is_tensor(c):
            return '%s of %s' % (name, growth_of(c, depth + 1))
    return name


def growth_len(o, kind):
    return growth_base(o).__len__(o)


def growth_newest(o, kind):
    if kind == roots_LIST and growth_base(o) is list:
        return list.__getitem__(o, slice(-growth_NEWEST, None))
    if kind == roots_LIST:
        return [roots_deque.__getitem__(o, -1)]
    if kind == roots_DICT and sys.version_info >= (3, 8):
        keys = list(roots_islice(dict.__reversed__(o), 0, growth_NEWEST))
        if all([type(k) is int or type(k) is str or type(k) is bytes or type(k) is float for k in keys]):
            return [dict.__getitem__(o, k) for k in reversed(keys)]
    return [c for _, c in roots_items(o, kind, 0, growth_NEWEST)]


def growth_group(state, key):
    group = state['groups'].get(key)
    if group is None and len(state['groups']) < growth_KEYS:
        group = state['groups'][key] = {'count': 0, 'bytes': 0, 'n': 0, 'each': 0.0, 'of': None, 'graphs': False, 'room': None, 'hits': None}
    state['lost'] = state['lost'] or group is None
    return group


def growth_met(state, o, kind, label):
    # The job may change the container meanwhile.
    try:
        if kind == roots_CACHE:
            growth_met_cache(state, o, label)
        elif kind in growth_names and growth_base(o) is not tuple and not label.endswith('__builtins__'):
            n = growth_len(o, kind)
            group = growth_group(state, (tensors_owner(label), kind)) if n >= growth_SMALL else None
            if group is not None:
                growth_add(group, o, kind, n)
    except Exception:
        state['walk']['failed'] += 1


def growth_met_cache(state, o, label):
    hits, _, most, n = roots_cache_info(o)
    group = growth_group(state, (tensors_owner(label), roots_CACHE)) if n >= growth_SMALL else None
    if group is None:
        return
    group['hits'] = hits
    if most is not None:
        group['room'] = max(0, most - n)
        group['count'] += n
    else:
        growth_add(group, roots_cached(o), roots_DICT, n)


def growth_add(group, o, kind, n):
    group['count'] += n
    if kind == roots_LIST and growth_base(o) is not list:
        most = roots_deque.maxlen.__get__(o)
        group['room'] = group['room'] if most is None else max(0, most - n)
    if group['n'] < growth_TRIES:
        values, about, size = growth_newest(o, kind), {'seen': set(), 'graphs': False}, 0
        for c in values:
            size += growth_size(about, c, 0)
        if values:
            group['n'] += 1
            group['each'] += (float(size) / len(values) - group['each']) / group['n']
            group['graphs'] = group['graphs'] or about['graphs']
            group['of'] = growth_of(values[-1])
    group['bytes'] += growth_own(o) + int(group['each'] * n)


def growth_met_tensor(state, t, label):
    name = tensors_owner(label)
    if name.partition('@')[0].endswith(']') or not roots_is_new(state['walk'], t):
        return
    group = growth_group(state, (name, roots_TENSOR))
    if group is not None:
        about = {'seen': set(), 'graphs': False}
        group['count'] += 1
        group['bytes'] += growth_tensor(about, t)
        group['graphs'] = group['graphs'] or about['graphs']
        group['of'] = growth_of(t)


def growth_known(state, key, group):
    # [when, step, count, bytes] of the look that is compared with, of one that may be the next such, and of the last one
    now = [state['now'], state['step'], group['count'], group['bytes']]
    known = growth_ids.get(key)
    at = 3 if key[1] == roots_TENSOR else 2
    if known is None or now[at] < known[2][at]:
        growth_ids[key] = [now, now, now]
        return None if known is None else now
    if now[0] - known[1][0] > growth_OLD_S:
        known[0], known[1] = known[1], now
    known[2] = now
    return known[0]


def growth_row(state, key, group):
    then = growth_known(state, key, group)
    count, size = group['count'], group['bytes']
    growth = grown = since = a_step = None
    if then is not None and then[0] < state['now']:
        growth, since = count - then[2], state['now'] - then[0]
        grown = size - then[3] if key[1] == roots_TENSOR else growth * size // count if count else 0
        steps = state['step'] - then[1] if state['step'] is not None and then[1] is not None else 0
        a_step = float(growth) / steps if steps > 0 else None
    return (key[0] or None, growth_names.get(key[1], 'tensor'), group['of'], count, size, growth, grown, a_step, since, group['graphs'],
        group['room'], group['hits'], None)


def growth_cut(rows):
    # Those that grow most. Often, so that no piece has many to sort.
    rows.sort(key=lambda row: (row[6] or 0, row[5] or 0, row[4]), reverse=True)
    del rows[growth_ROWS:]


def growth_each(args):
    yield growth_COLUMNS
    now = tensors_time()
    if now < growth_state['next']:
        for row in list(growth_state['rows']):
            yield row
        return
    if now - growth_state['next'] > growth_FORGET_S:
        growth_ids.clear()
        growth_state['first'] = None
    if roots_refresh():
        facts_refresh()
    state = {'groups': {}, 'lost': False, 'step': args.get('step'), 'now': now, 'walk': None}
    walk = state['walk'] = roots_new(args, lambda *_: None, lambda t, label, where: growth_met_tensor(state, t, label), lambda *_: None)
    walk['container'] = lambda o, kind, label: growth_met(state, o, kind, label)
    walk['most'] = growth_OBJECTS
    pieces = 0
    for piece in roots_walk(walk):
        pieces += 1
        yield piece
    if 'stop' in args:
        yield from roots_shed(walk['seen'])
        return
    rows, at = [], 0
    for key, group in list(state['groups'].items()):
        rows.append(growth_row(state, key, group))
        at += 1
        if at % 100 == 0:
            growth_cut(rows)
            yield None
    for key in [k for k in growth_ids if k not in state['groups']]:
        del growth_ids[key]
    yield None
    growth_cut(rows)
    first = growth_state['first']
    rows.insert(0, (None, 'all', None, None, None, None, None, None, None if first is None else now - first, None, None, None,
        walk['looked'] + walk['met']))
    growth_state['first'] = now if first is None else first
    growth_state['rows'] = rows
    growth_state['next'] = tensors_time() + max(growth_BETWEEN_S, growth_SHARE * pieces * roots_NS / 1e9)
    for row in rows:
        yield row
    if state['lost']:
        yield 'only %d kinds of holders are distinguished' % growth_KEYS
    yield from roots_end(walk)
