# SPDX-License-Identifier: Apache-2.0
#
# torch.profiler for some training steps: started and ended where an Optimizer.step ends, on the
# same thread, by a hook in torch's registry; its result is written to a file, and summed up. `tell`
# is a C function (torch_profiler.c), which returns the next order.
#
# The unit calls the functions below torch.profiler, so that the job's view of its own profilers
# does not change.


profiler_now = {}
profiler_NOTHING, profiler_START, profiler_STOP, profiler_DROP = 0, 1, 2, 3
profiler_STEP, profiler_STARTED, profiler_STOPPED, profiler_FAILED, profiler_CALL = 0, 1, 2, 3, 4
profiler_KEY = 'probing profiler'
profiler_GPU = -2  # in place of a thread
profiler_PIECES = 64
profiler_WORK = ('kernel', 'gpu_memcpy', 'gpu_memset')
profiler_REGISTRIES = (
    ('torch.optim.optimizer', '_global_optimizer_post_hooks', 'torch/optim/optimizer.py', 'wrapper'),
    ('torch.nn.modules.module', '_global_forward_pre_hooks', 'torch/nn/modules/module.py', '_call_impl'),
)


def profiler_torch(name):
    return types_named('torch._C._profiler' if name == '_ExperimentalConfig' else 'torch.autograd', name)


def profiler_text(e):
    text = str(e).split('\n')[0] if type(e) in (RuntimeError, TypeError, ValueError, OSError, FileNotFoundError, PermissionError) else ''
    return 'torch: ' + types_name(type(e)) + ': ' + text[:120]


def profiler_busy():
    tracker = types_named('torch.autograd.profiler', 'KinetoStepTracker')
    counts = types_dict(tracker).get('_step_dict') if type(tracker) is type else None
    environ = types_named('os', 'environ')
    if types_named('torch.autograd.profiler', '_is_profiler_enabled'):
        return 'another profiler of torch is running in the job'
    if isinstance(counts, dict) and 'ProfilerStep' in counts:
        return 'the job has a torch.profiler of its own, which may begin at any step: two of them end the job'
    for name in ('KINETO_USE_DAEMON', 'NSYS_PROFILING_SESSION_ID', 'CUDA_INJECTION64_PATH'):
        if environ is not None and environ.get(name):
            return name + ' is set: another profiler may be at work'
    return ''


def profiler_here():
    cuda = types_named('torch.cuda', 'is_current_stream_capturing')
    if sys.gettrace() is not None or sys.getprofile() is not None:
        return 'the training thread is being traced: by a debugger, or a profiler of Python'
    if profiler_torch('_profiler_enabled')():
        return 'another profiler of torch is running on the training thread'
    if profiler_on_cuda() and cuda is not None and cuda():
        return 'a CUDA graph is being captured'
    return profiler_busy()


def profiler_on_cuda():
    is_initialized = types_named('torch.cuda', 'is_initialized')
    return bool(is_initialized is not None and is_initialized())


def profiler_config():
    states, activity = profiler_torch('ProfilerState'), profiler_torch('ProfilerActivity')
    config = profiler_torch('ProfilerConfig')(states.KINETO, False, False, False, False, False, profiler_torch('_ExperimentalConfig')())
    activities = set([activity.CPU])
    if profiler_on_cuda():
        activities.add(activity.CUDA)
    return config, activities


def profiler_start(tell):
    why = profiler_here()
    if not why:
        try:
            began = profiler_now['clock']()
            config, activities = profiler_config()
            profiler_torch('_prepare_profiler')(config, activities)
            profiler_torch('_enable_profiler')(config, activities)
            profiler_now['pauses'].append(profiler_now['clock']() - began)
        except Exception as e:
            why = profiler_text(e)
    profiler_now['note'] = why
    tell(profiler_FAILED if why else profiler_STARTED)


def profiler_stop(tell):
    why = '' if 'result' in profiler_now else 'somebody else has ended it'
    try:
        if profiler_torch('_profiler_enabled')():
            began = profiler_now['clock']()
            profiler_now['result'] = profiler_torch('_disable_profiler')()
            profiler_now['pauses'].append(profiler_now['clock']() - began)
            why = ''
    except Exception as e:
        why = profiler_text(e)
    profiler_now['note'] = why
    tell(profiler_FAILED if why else profiler_STOPPED)


def profiler_act(what):
    tell = profiler_now.get('tell')
    order = tell(what) if tell is not None else profiler_NOTHING
    if order == profiler_START:
        profiler_start(tell)
    elif order == profiler_STOP:
        profiler_stop(tell)
    elif order == profiler_DROP:
        profiler_stop(tell)
        profiler_now.pop('result', None)


# An entry in multiprocessing's registry for children that it forks, such as workers of loaders; it
# is removed with the object.
class profiler_Mark:
    pass


def profiler_on_fork(mark):
    profiler_act(profiler_CALL)


def profiler_mark():
    register = types_named('multiprocessing.util', 'register_after_fork')
    if type(register) is types_Function:
        profiler_now['mark'] = mark = profiler_Mark()
        register(mark, profiler_on_fork)


def profiler_on_step(*args):
    profiler_act(profiler_STEP)


def profiler_on_call(*args):
    profiler_act(profiler_CALL)


def profiler_within(file, name):
    for frame in list(sys._current_frames().values()):
        while frame is not None:
            if frame.f_code.co_name == name and frame.f_code.co_filename.endswith(file):
                return True
            frame = frame.f_back
    return False


def profiler_insert(which):
    module, name, file, function = profiler_REGISTRIES[which]
    registry = types_named(module, name)
    ours = (profiler_on_step, profiler_on_call)[which]
    # it may belong to the process that has forked this one
    if registry.get(profiler_KEY) is not ours:
        if profiler_within(file, function):
            return False
        registry[profiler_KEY] = ours
    return True


def profiler_remove():
    for module, name, file, function in profiler_REGISTRIES:
        registry = types_named(module, name)
        if type(registry) is trace_Ordered and profiler_KEY in registry:
            if profiler_within(file, function):
                return False
            registry.pop(profiler_KEY, None)
    return True


def profiler_open(tell, compiled):
    names = ('_enable_profiler', '_disable_profiler', '_prepare_profiler', '_profiler_enabled', 'ProfilerConfig', 'ProfilerState',
             'ProfilerActivity', '_ExperimentalConfig')
    if any(profiler_torch(name) is None for name in names):
        return 'torch is not imported, not wholly, or has no such profiler'
    if any(type(types_named(module, name)) is not trace_Ordered for module, name, file, function in profiler_REGISTRIES):
        return 'this torch has no hooks for all optimizers (from 2.0 on): there is no point at which to start'
    if not compiled and trace_compiled():
        return 'torch.compile is used here: a hook may have an optimizer compiled anew; say that it may be (--compiled)'
    clock = types_named('time', 'perf_counter')
    profiler_now.clear()
    profiler_now.update(tell=tell, pauses=[], note='', clock=clock)
    profiler_mark()
    return profiler_busy()


def profiler_note():
    return profiler_now.get('note', '')


def profiler_save(result, path):
    os = modules.get('os')
    folder = path + '.d'
    os.mkdir(folder, 0o700)
    try:
        part = folder + '/trace.json'
        result.save(part)
        os.chmod(part, 0o600)
        size = os.stat(part).st_size
        os.rename(part, path)
    finally:
        for name in os.listdir(folder):
            os.unlink(folder + '/' + name)
        os.rmdir(folder)
    return size


def profiler_when(event):
    if hasattr(event, 'start_ns'):
        return event.start_ns(), event.duration_ns()
    return event.start_us() * 1000, event.duration_us() * 1000


def profiler_thread(event):
    return event.device_resource_id() if str(event.device_type()).endswith('CPU') else -1


def profiler_ends(events):
    for i, event in enumerate(events):
        if event.name().startswith('Optimizer.step#'):
            began, took = profiler_when(event)
            yield began + took
        elif i % 100 == 0:
            yield None


def profiler_is_work(event):
    # On a GPU: a kernel or a copy, and not a range of the job. Without activity_type (2.13 has it)
    # they cannot be told apart.
    return profiler_thread(event) == -1 and hasattr(event, 'activity_type') and event.activity_type() in profiler_WORK


def profiler_note_work(work, event, began, took, ends):
    # What of its time lies within each step, in pieces that are sorted alone; ends[0] is the
    # beginning of the first step.
    for step in range(len(ends) - 1):
        begin, end = max(began, ends[step]), min(began + took, ends[step + 1])
        if begin >= end:
            continue
        of_step = work.setdefault((event.device_index(), step), [0, {}])
        of_step[0] += 1
        width = (ends[step + 1] - ends[step]) // profiler_PIECES + 1
        while begin < end:
            piece = (begin - ends[step]) // width
            until = min(end, ends[step] + (piece + 1) * width)
            of_step[1].setdefault(piece, []).append((begin, until))
            begin = until


def profiler_busy_ns(parts):
    # The time in which any of them was at work.
    busy, until = 0, 0
    for begin, end in sorted(parts):
        if end > until:
            busy += end - max(begin, until)
            until = end
    return busy


def profiler_work_rows(work, ends):
    # A row for each step and device, and one for all, of the device that was busiest.
    most = {}
    for device, step in sorted(work):
        kernels, pieces = work.pop((device, step))
        busy = 0
        while pieces:
            busy += profiler_busy_ns(pieces.popitem()[1])
            yield None
        yield (step, 'cuda:%d' % device, ends[step], busy, kernels, profiler_GPU)
        most[device] = most.get(device, 0) + busy
    if most:
        yield (-2, '', ends[-1] - ends[0], max(most.values()), 0, len(most))


def profiler_sums(events, ends, per_step, steps, work):
    sums = {}
    n = len(ends) // per_step
    while events:
        for event in events[-50:]:
            began, took = profiler_when(event)
            step = min(sum([began >= end for end in ends[per_step - 1::per_step]]), max(n - 1, 0))
            if profiler_is_work(event):
                profiler_note_work(work, event, began, took, steps)
            row = sums.setdefault((step, event.name(), profiler_thread(event)), [began, 0, 0])
            row[0] = min(row[0], began)
            row[1] += took
            row[2] += 1
        event = None
        del events[-50:]
        yield None
    yield sums


def profiler_finish(path, per_step):
    result, pauses, clock = profiler_now.pop('result', None), profiler_now.get('pauses'), profiler_now.get('clock')
    if result is None:
        return
    try:
        began = clock()
        size = profiler_save(result, path)
        events = result.events()
        pauses.append(clock() - began)
    except Exception as e:
        profiler_now['note'] = profiler_text(e)
        return
    yield None
    result = None
    yield (-1, path, len(events), size, int(1e6 * sum(pauses)), 0)
    ends = []
    for end in profiler_ends(events):
        if end is None:
            yield None
        else:
            ends.append(end)
    ends.sort()
    sums, work = None, {}
    # torch gives events by their beginning
    steps = [profiler_when(event)[0] for event in events[:1]] + ends[per_step - 1::per_step]
    for sums in profiler_sums(events, ends, per_step, steps, work):
        yield None
    yield from profiler_work_rows(work, steps)
    for key, row in sorted(sums.items(), key=lambda item: -item[1][1])[:2000]:
        yield (key[0], key[1][:200], row[0], row[1], row[2], key[2])


def profiler_off():
    profiler_remove()
    profiler_now.clear()
