# SPDX-License-Identifier: Apache-2.0
#
# The parts of torch that are armed for a training step, and the names of the modules called in it.
# The hooks themselves are C functions (module_hooks.c). Their last results for each module are kept
# for python.modules: trace_sums, by its id: a weak reference, calls, forward and backward in ns (-1
# none), bytes of outputs (-1 unknown), the step (-1 unknown). Gradients too, as they were when an
# optimizer's step began: trace_norms, by the id of the parameter: its place (types_member), the sum
# of their squares, the number of non-finite numbers.


trace_Ordered = types_named('collections', 'OrderedDict')
trace_roots = []
trace_sums = {}
trace_norms = {}
trace_KEPT = 4096
trace_ref = types_named('_weakref', 'ref')


def trace_compiled():
    frames = types_named('torch._dynamo.convert_frame', 'FRAME_COUNTER')
    backends = types_named('torch._dynamo.eval_frame', 'cached_backends')
    used = [b for b in list(backends.values()) if b is not None] if type(backends) is dict else []
    return type(frames) is int and frames > 0 or len(used) > 0


def trace_open(compiled):
    registries = [types_named('torch.nn.modules.module', name) for name in ('_global_forward_pre_hooks', '_global_forward_hooks')]
    kinds = [types_named('torch', 'Tensor'), types_named('torch.nn.parameter', 'Parameter')]
    if kinds[0] is None or kinds[1] is None:
        return 'torch is not imported, or its import has not finished'
    if type(registries[0]) is not trace_Ordered or type(registries[1]) is not trace_Ordered:
        return 'this torch has no global hooks for modules'
    call = types_dict(types_named('torch.nn.modules.module', 'Module') or object).get('_call_impl')
    if type(call) is not types_Function:
        return 'this torch calls modules in a way that is not known'
    if not compiled and trace_compiled():
        return 'torch.compile is used here: hooks would have the model compiled anew; say that it may be (compiled=yes)'
    return tuple(registries + kinds + [call.__code__, types_named('torch._C', 'DisableTorchFunction'), types_named('torch', 'strided')])


def trace_root(ref):
    trace_roots.append(ref)


def trace_children(m):
    # Weak references, since the GIL is given up before their turn.
    children, found = types_attributes(m).get('_modules'), []
    known = type(children) is dict or type(children) is trace_Ordered
    for k, v in children.items() if known else ():
        try:
            if type(k) is str and v is not None:
                found.append((k, trace_ref(v)))
        except TypeError:
            pass
    return found


def trace_parameters(m, norms):
    held = types_attributes(m).get('_parameters') if norms else None
    known = type(held) is dict or type(held) is trace_Ordered
    for name, p in held.items() if known else ():
        if type(name) is str and id(p) in norms:
            trace_norms[id(p)] = (trace_ref(m), '_parameters', name) + norms[id(p)]


def trace_parse(text, sums, norms):
    at, step = 0, None
    while at < len(text):
        lines = text[at:at + 4096].rpartition('\n')[0]
        at += len(lines) + 1
        for line in lines.split('\n'):
            words = [int(word) for word in line.split()]
            if step is None:
                step = words[0]
            elif len(words) == 4:
                norms[words[0]] = (words[2] * 2.0 ** words[3], words[1])
            else:
                sums[words[0]] = words[1:] + [step]
        yield None


def trace_forget():
    for i in list(trace_sums):
        if trace_sums[i][0]() is None:
            del trace_sums[i]
    if len(trace_sums) > trace_KEPT:
        trace_sums.clear()
    yield None


def trace_names(text):
    wanted, norms = {}, {}
    refs, seen = list(trace_roots), set()
    del trace_roots[:]
    yield from trace_parse(text, wanted, norms)
    yield from trace_forget()
    trace_norms.clear()
    for ref in refs:
        rest = [('', ref)]
        while rest:
            path, ref = rest.pop()
            m = ref()
            if m is None or id(m) in seen:
                continue
            seen.add(id(m))
            rest.extend([(path + '.' + k if path else k, v) for k, v in reversed(trace_children(m))])
            trace_parameters(m, norms)
            sums = wanted.get(id(m))
            if sums is None or sums[1] != id(type(m)):
                m = None
                yield None
                continue
            trace_sums[id(m)] = [trace_ref(m)] + sums[2:]
            row = (sums[0], path, types_qualname(type(m)))
            m = None
            yield row
