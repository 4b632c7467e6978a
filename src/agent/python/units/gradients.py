# SPDX-License-Identifier: Apache-2.0
#
# Norms of the current gradients of parameters, for tensors in the process's own memory. Many jobs
# have gradients only from the backward pass to the next zero_grad, so the unit waits for a while
# until all exist. The agent reads them without the GIL, and accepts the result if none was written
# to meanwhile, which torch counts. They are not read while the job may be releasing them
# (src/agent/python/grads.h). See facts.py, worker_rows.h.


gradients_NUMBERS = 1 << 22
gradients_COUNT = 2000
gradients_TRIES = 16


def gradients_note(wanted, p, place):
    if type(p) is not roots_Parameter:
        return True
    trains = facts_get_requires_grad(p)
    if trains and id(p) not in wanted:
        wanted[id(p)] = place
    return trains


def gradients_is_there(i, place):
    p = types_member(place, i)
    return p is not None and type(facts_gradient(p)) is roots_Tensor


def gradients_one(i, place):
    p = types_member(place, i)
    g = facts_gradient(p) if p is not None else None
    if g is None or type(g) is not roots_Tensor:
        return None
    known = facts_read(g)
    if not known[5] or known[4] != 'cpu' or known[2] is None or facts_KINDS.get(known[0]) not in ('f', 'b'):
        return None
    view = facts_view(g, known)
    return None if view is None else (i, place, roots_ref(g), facts_get__version(g), view)


def gradients_look(wanted):
    found = []
    for at, (i, place) in enumerate(wanted.items()):
        one = gradients_one(i, place)
        if one is not None:
            found.append(one)
        if at % 8 == 7:
            yield None
    return found


def gradients_check(found, answers):
    norms = {}
    for at, (one, answer) in enumerate(zip(found, answers or ())):
        i, place, gradient, version, view = one
        now = gradients_one(i, place)
        if answer is not None and now is not None and now[2]() is gradient() and now[3:] == (version, view):
            norms[i] = answer
        now = None
        if at % 8 == 7:
            yield None
    return norms


def gradients_each(args, wanted, numel):
    if len(wanted) > gradients_COUNT or numel > gradients_NUMBERS:
        yield 'gradients of more than %d numbers, or of more than %d parameters, are not added up' % (gradients_NUMBERS, gradients_COUNT)
        return {}
    first = next(iter(wanted.items()), None)
    for left in reversed(range(gradients_TRIES if first is not None else 0)):
        if 'stop' in args:
            return {}
        if left == 0 or gradients_is_there(*first):
            found = yield from gradients_look(wanted)
            if found and (left == 0 or len(found) == len(wanted)):
                yield [one[4] for one in found]
                norms = yield from gradients_check(found, args.pop('answer', None))
                if left == 0 or len(norms) == len(wanted):
                    return norms
        yield 0.0
        yield 0.0
    return {}
