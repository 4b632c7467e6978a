# SPDX-License-Identifier: Apache-2.0
#
# python.tensor_statistics: statistics of the numbers of one tensor; python.tensor_holders: its
# referrers. Numbers in the process's own memory are read by the agent in C, without the GIL and
# without torch; others are computed on their device, a piece at a time, by operations that draw no
# random numbers, without autograd. See tensors.py, worker_rows.h.


statistics_COLUMNS = ('id', 'shape', 'dtype', 'device', 'numel', 'nan', 'inf', 'zeros', 'min', 'max', 'mean', 'std', 'histogram')
statistics_HOLDERS = ('id', 'holder', 'kind', 'root')
statistics_PIECE = 1 << 22


def statistics_known(wanted):
    entry = tensors_known[(wanted >> 5) & 15].get(wanted)
    return entry[0] if entry is not None and tensors_kept(entry[0], wanted) is not None else None


def statistics_find(args, wanted, found):
    def emit(t, name, kind, module, known, storage, grad, place):
        if id(t) == wanted:
            found.append(place or roots_ref(t))
            state['walk']['over'] = True

    kept = statistics_known(wanted)
    if kept is not None:
        found.append(kept)
        return
    state = tensors_state(args, emit)
    yield from tensors_walk(state)
    yield from roots_end(state['walk'])


def statistics_refusal(t, known):
    if known[1] is None or known[2] is None or known[3] is None:
        return 'only numbers that are laid out by shape and strides can be read: this is %s' % facts_class(type(t))
    if known[0] not in facts_KINDS:
        return 'nothing is known of numbers of type %s' % known[0]
    if known[4] is None or known[4] == 'meta':
        return 'it has no numbers'
    if not known[5]:
        # Any operation would be the class's own: that of a DTensor waits for the other ranks.
        return 'its class has operations of its own (%s): ask for the tensors that it is made of' % facts_class(type(t))
    return None


def statistics_each(args):
    yield statistics_COLUMNS
    wanted, found = args.get('id'), []
    if not roots_refresh() or type(wanted) is not int:
        yield 'torch is not imported in this process' if type(wanted) is int else 'of which tensor? id is missing'
        return
    facts_refresh()
    yield from statistics_find(args, wanted, found)
    t = tensors_kept(found[0], wanted) if found else None
    if t is None:
        yield 'no tensor with this id is reachable now'
        return
    known = facts_read(t)
    why = statistics_refusal(t, known)
    if why is not None:
        t = None
        yield why
        return
    if known[4] != 'cpu':
        t = None
        yield from statistics_device(args, found[0], wanted, known)
        return
    view = facts_view(t, known)
    t = None
    if view is not None:
        yield list(view)
    answer, t = args.pop('answer', None), tensors_kept(found[0], wanted)
    same = t is not None and view is not None and facts_view(t, facts_read(t)) == view
    t = None
    if answer is None or not same:
        yield 'its numbers could not be read in time' if same else 'it was given back while it was read'
        return
    yield statistics_row(wanted, known, answer[:4], answer[4:8], answer[8])


def statistics_row(wanted, known, counts, values, bins):
    return (wanted, facts_shape(known[1]), known[0], known[4]) + tuple(counts) + tuple(values) + (bins or None,)


def statistics_plan(shape):
    inner, d = 1, len(shape)
    while d > 0 and inner * shape[d - 1] <= statistics_PIECE:
        d -= 1
        inner *= shape[d]
    if d == 0:
        return None, 1, 1
    step = max(1, statistics_PIECE // max(1, inner))
    pieces = -(-shape[d - 1] // step)
    for n in shape[:d - 1]:
        pieces *= n
    return d - 1, step, pieces


def statistics_piece(t, shape, d, step, i):
    if d is None:
        return t.reshape(-1)
    groups, places = -(-shape[d] // step), []
    i, group = divmod(i, groups)
    for n in reversed(shape[:d]):
        i, at = divmod(i, n)
        places.append(at)
    for at in reversed(places):
        t = t.select(0, at)
    return t.narrow(0, group * step, min(step, shape[d] - group * step)).reshape(-1)


def statistics_device(args, kept, wanted, known):
    torch = modules['torch']
    shape = known[1]
    d, step, pieces = statistics_plan(shape)
    total, low, high, bins = [known[2], 0, 0, 0, 0, 0.0, 0.0], None, None, [0] * 20
    for turn in (0, 1):
        for i in range(pieces if known[2] else 0):
            t = tensors_kept(kept, wanted)
            if t is None or 'stop' in args:
                yield 'it was given back while it was read' if t is None else 'its numbers could not be read in time'
                return
            with facts_guard(), torch.no_grad():
                x = statistics_piece(t.detach(), shape, d, step, i)
                if turn == 0:
                    low, high = statistics_sum(torch, x, total, low, high)
                else:
                    statistics_bins(torch, x, bins, low, high)
            t = x = None
            yield None
        if low is None:
            break
    n, mean, m2 = total[4], total[5], total[6]
    std = (m2 / (n - 1)) ** 0.5 if n > 1 else None
    text = ' '.join([str(b) for b in bins]) if low is not None else None
    yield statistics_row(wanted, known, total[:4], (low, high, mean if n else None, std), text)


def statistics_sum(torch, x, total, low, high):
    x = x.double()
    finite = torch.isfinite(x)
    n, nan, inf, zeros = torch.stack([finite.sum(), torch.isnan(x).sum(), torch.isinf(x).sum(), (x == 0).sum()]).tolist()
    total[1] += nan
    total[2] += inf
    total[3] += zeros
    if n == 0:
        return low, high
    mean = torch.where(finite, x, 0.0).sum() / n
    off = torch.where(finite, x - mean, 0.0)
    least, most = torch.where(finite, x, float('inf')).min(), torch.where(finite, x, -float('inf')).max()
    mean, m2, least, most = torch.stack([mean, (off * off).sum(), least, most]).tolist()
    before, apart = total[4], mean - total[5] if total[4] else 0.0
    total[6] += m2 + apart * apart * before * n / (before + n)
    total[5] = total[5] + apart * n / (before + n) if before else mean
    total[4] += n
    return least if low is None else min(low, least), most if high is None else max(high, most)


def statistics_bins(torch, x, bins, low, high):
    x = x.double()
    x = x[torch.isfinite(x)]
    scale = 20 / (high - low) if high > low else 0.0
    at = ((x - low) * scale).floor().clamp(0, 19).to(torch.int64)
    for i, n in enumerate(torch.bincount(at, minlength=20).tolist()):
        bins[i] += n


def statistics_holders_each(args):
    yield statistics_HOLDERS
    wanted, rows, names = args.get('id'), [], set()
    if not roots_refresh() or type(wanted) is not int:
        yield 'torch is not imported in this process' if type(wanted) is int else 'of which tensor? id is missing'
        return
    facts_refresh()

    def met(t, label, where):
        if id(t) == wanted and len(rows) < 1000:
            rows.append((wanted, label, where, walk['root']))
        elif facts_read(t)[5] and id(facts_gradient(t)) == wanted:
            rows.append((wanted, label + '.grad', where, walk['root']))

    def found(module, d, label, parent):
        up, name = parent if parent is not None else (None, label)
        path, prefix = modules_place(names, label, up, name)
        return {'path': path, 'prefix': prefix, 'wrapped': modules_wrapped(type(module))}

    def own(token, kind, name, t):
        met(t, '%s.%s' % (token['prefix'], name), kind)

    walk = roots_new(args, found, met, own)
    yield from roots_walk(walk)
    if not rows:
        yield 'nothing that is reached from variables holds a tensor with this id'
    for row in rows:
        yield row
    yield from roots_end(walk)
