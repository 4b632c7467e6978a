# SPDX-License-Identifier: Apache-2.0
#
# Tasks of asyncio. See types.py.


tasks_awaitables = ((types_named('types', 'CoroutineType'), 'cr_frame', 'cr_await'),
    (type(i for i in ()), 'gi_frame', 'gi_yieldfrom'),
    (types_named('types', 'AsyncGeneratorType'), 'ag_frame', 'ag_await'))


def tasks_loops():
    loops = []
    for frame in sys._current_frames().values():
        while frame is not None:
            code = frame.f_code
            if code.co_name == 'run_forever' and code.co_filename.endswith('asyncio/base_events.py'):
                loops.append(frame.f_locals['self'])
            frame = frame.f_back
    return loops


def tasks_sets():
    tasks, ref, found = modules.get('asyncio.tasks'), types_named('_weakref', 'ref'), []
    if type(tasks) is not types_Module:
        return found
    for name in ('_all_tasks', '_scheduled_tasks'):
        found.extend(getattr(tasks.__dict__.get(name, getattr(tasks.Task, name, None)), 'data', ()))
    found.extend([ref(t) for t in list(tasks.__dict__.get('_eager_tasks', ()))])
    if hasattr(tasks.Task, 'all_tasks') and not found:
        found = [ref(t) for loop in tasks_loops() for t in tasks.Task.all_tasks(loop)]
    return found


def tasks_current():
    tasks = modules.get('asyncio.tasks')
    if type(tasks) is not types_Module:
        return {}
    known = tasks.__dict__.get('_current_tasks', getattr(tasks.Task, '_current_tasks', None))
    if type(known) is dict:
        return {id(t) for t in list(known.values()) if t is not None}
    return {id(tasks.Task.current_task(loop)) for loop in tasks_loops()}


def tasks_awaits(task, edges):
    waiter = task._fut_waiter
    pairs = [(f, task) for f in [waiter] + list(getattr(waiter, '_children', ()))] + [(task, tasks_parent(task))]
    for awaited, by in pairs:
        if awaited is not None and by is not None and id(by) not in edges.setdefault(id(awaited), []):
            edges[id(awaited)].append(id(by))


def tasks_parent(task):
    kind = types_named('asyncio.taskgroups', 'TaskGroup')
    for entry in task._callbacks or () if kind is not None else ():
        callback = entry[0]
        group = callback.__self__ if type(callback) is types_Method else None
        if types_inherits(type(group), kind) and callback.__func__ is types_dict(kind).get('_on_task_done'):
            return types_attributes(group).get('_parent_task')
    return None


def tasks_next(c):
    t = type(c)
    for kind, frame, inner in tasks_awaitables:
        if t is kind:
            return getattr(c, frame), getattr(c, inner)
    if types_qualname(t) in ('coroutine_wrapper', 'async_generator_asend', 'async_generator_athrow', 'anext_awaitable'):
        referents = types_named('gc', 'get_referents') or (lambda o: ())
        for o in referents(c):
            if type(o) is tasks_awaitables[0][0] or type(o) is tasks_awaitables[2][0]:
                return None, o
    return None, None


def tasks_frames(c):
    rows = []
    while c is not None and len(rows) < 3 * 64:
        frame, inner = tasks_next(c)
        if frame is not None:
            code = frame.f_code
            rows[:0] = [str(c.__qualname__), str(code.co_filename), frame.f_lineno or 0]
        c = inner
    return rows


def tasks_row(task, running, edges):
    thread, name, coro = getattr(task._loop, '_thread_id', None), None, task._coro
    if hasattr(task, 'get_name'):
        name = task.get_name()
    awaiters = edges.get(id(task), [])[:16]
    what = coro.__qualname__ if hasattr(coro, '__qualname__') else types_name(type(coro))
    return (thread or 0, id(task), int(id(task) in running), len(awaiters)) + tuple(awaiters) + (
        str(name) if name is not None else None, str(what)) + tuple(tasks_frames(coro))


def tasks_each(limit):
    refs, edges, running, rows = tasks_sets(), {}, tasks_current(), 0
    for ref in refs:
        task = ref()
        if task is not None:
            try:
                tasks_awaits(task, edges)
            except Exception:
                pass
        task = None
        yield None
    for ref in refs:
        task, row = ref(), None
        if task is not None:
            try:
                row = None if task.done() else tasks_row(task, running, edges)
            except Exception:
                pass
        task = None
        if row is not None and rows == limit:
            yield ()
            return
        rows += row is not None
        yield row
