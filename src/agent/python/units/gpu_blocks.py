# SPDX-License-Identifier: Apache-2.0
#
# python.gpu_blocks: the memory that torch's allocator holds on GPUs, by the stack that allocated
# it, as torch.cuda.memory._snapshot has it, but by the function of torch._C that it calls. That is
# one call, in which torch makes an object of each block, with the GIL: so it is only made for as
# many blocks as GPU_BLOCKS_MOST, by their number in the allocator's counters. The history of
# allocations, which may be much longer, is left out; where torch has no way to do that (before
# memory_snapshot had include_traces) the call is not made while a history is kept. Stacks may have
# frames of C++, which torch names in that call, by programs that it starts (addr2line): with such a
# history it is only made where the job's environment says that it shall not. Uses the names of
# gpu_memory.py. See types.py.


gpu_blocks_COLUMNS = ('device', 'state', 'bytes', 'requested_bytes', 'blocks', 'function_name', 'file', 'lineno', 'stack')
gpu_blocks_MOST = 20000
gpu_blocks_ROWS = 1000
gpu_blocks_DEPTH = 64
gpu_blocks_NAME = 160
gpu_blocks_PIECE = 4  # blocks, of many frames each


def gpu_blocks_text(o):
    return o if type(o) is str else '?'


def gpu_blocks_number(o):
    return o if type(o) is int and 0 <= o < 2 ** 62 else 0


def gpu_blocks_frame(frame):
    return gpu_blocks_text(frame.get('name')), gpu_blocks_text(frame.get('filename')), gpu_blocks_number(frame.get('line'))


def gpu_blocks_stack(frames, seen):
    # Frames of different blocks are the same objects, as far as there is room; the innermost is first.
    stack = []
    for frame in frames[:gpu_blocks_DEPTH] if type(frames) is list else ():
        if type(frame) is dict:
            frame = gpu_blocks_frame(frame)
            stack.append(seen.setdefault(frame, frame))
    return tuple(stack)


def gpu_blocks_label(frame):
    # as fold() writes a frame
    name, file, line = frame
    label = name[:gpu_blocks_NAME]
    if line:
        label += ' (%s:%d)' % (file[file.rfind('/') + 1:][:gpu_blocks_NAME], line)
    return label.replace(';', ':')


def gpu_blocks_place(stack):
    # The innermost frame of Python: torch may have recorded frames of C++, too, which have no such file.
    for frame in stack:
        if frame[1].endswith('.py'):
            return frame
    return stack[0] if stack else (None, None, None)


def gpu_blocks_options():
    # The argument that leaves the history out; None: this torch has none.
    function = types_named('torch.cuda.memory', 'memory_snapshot')
    code = function.__code__ if type(function) is types_Function else None
    names = code.co_varnames[:code.co_argcount] if code is not None else ()
    return (0, 0, False) if 'include_traces' in names else None


def gpu_blocks_why(n):
    # Why the call is not made; '': it can be.
    snapshot, kept = types_named('torch._C', '_cuda_memorySnapshot'), types_named('torch._C', '_cuda_isHistoryEnabled')
    if type(snapshot) is not types_Builtin:
        return 'this torch was built without CUDA'
    if n > gpu_blocks_MOST:
        return 'the allocator has %d blocks: to list more than %d would stop the job for too long' % (n, gpu_blocks_MOST)
    if type(kept) is not types_Builtin or not kept():
        return ''
    if gpu_blocks_options() is None:
        return 'a history of allocations is kept, and this torch lists blocks only with all of it'
    environ = types_named('os', 'environ')
    if environ is None or environ.get('TORCH_SYMBOLIZE_MODE') != 'dladdr':
        return 'stacks are recorded: torch may take minutes to name C++ frames in them, unless TORCH_SYMBOLIZE_MODE is dladdr'
    return ''


def gpu_blocks_count():
    # The blocks that the allocator's counters have; a text if they cannot be read.
    n, stats_of = 0, types_named('torch._C', '_cuda_memoryStats')
    for device in gpu_memory_devices():
        try:
            stats = stats_of(device)
        except Exception as e:
            yield 'device %d: %s' % (device, types_name(type(e)))
            return
        # a free segment is a block, too
        for name in ('active', 'inactive_split', 'segment'):
            n += gpu_memory_number(stats, name, 'current') or 0
        yield None
    yield n


def gpu_blocks_take():
    # The segments, or a text.
    options, snapshot = gpu_blocks_options(), types_named('torch._C', '_cuda_memorySnapshot')
    try:
        if options is not None:
            taken = snapshot(options)
        else:
            try:
                taken = snapshot(None)
            except TypeError:
                taken = snapshot()
    except Exception as e:
        return types_name(type(e))
    segments = taken.get('segments') if type(taken) is dict else None
    return segments if type(segments) is list else 'torch gave no segments'


def gpu_blocks_add(sums, seen, device, block):
    if type(block) is not dict:
        return
    state = gpu_blocks_text(block.get('state'))[:40]
    # a free block has the stack of those that had it before
    stack = gpu_blocks_stack(block.get('frames'), seen) if state != 'inactive' else ()
    row = sums.setdefault((device, state, stack), [0, 0, 0])
    row[0] += gpu_blocks_number(block.get('size'))
    row[1] += gpu_blocks_number(block.get('requested_size'))
    row[2] += 1


def gpu_blocks_sum(segments, sums, seen, args):
    # What has been read is given back piece by piece: all at once would take as long as the call.
    while segments:
        segment = segments.pop()
        blocks, device = (segment.get('blocks'), segment.get('device')) if type(segment) is dict else (None, None)
        device = device if type(device) is int and 0 <= device < gpu_memory_MOST else None
        segment = None
        while type(blocks) is list and blocks:
            yield None
            for block in blocks[-gpu_blocks_PIECE:] if 'stop' not in args else ():
                gpu_blocks_add(sums, seen, device, block)
            block = None
            del blocks[-gpu_blocks_PIECE:]


def gpu_blocks_rank(sums, largest):
    # The largest rows, the largest first; the others are added up without their stacks.
    others = {}
    while sums:
        for _ in range(min(100, len(sums))):
            largest.append(sums.popitem())
        largest.sort(key=lambda item: -item[1][0])
        while len(largest) > gpu_blocks_ROWS:
            key, row = largest.pop()
            other = others.setdefault(key[:2] + ((),), [0, 0, 0])
            for i in range(3):
                other[i] += row[i]
        yield None
    largest.extend(others.items())


def gpu_blocks_row(key, row):
    name, file, line = gpu_blocks_place(key[2])
    stack = ';'.join([gpu_blocks_label(frame) for frame in key[2][::-1]]) or None
    return key[:2] + tuple(row) + (name and name[:gpu_blocks_NAME], file, line or None, stack)


def gpu_blocks_each(args):
    yield gpu_blocks_COLUMNS
    n, why, sums, seen, largest = None, gpu_memory_why(), {}, {}, []
    for n in gpu_blocks_count() if not why else ():
        yield None
    why = why or (n if type(n) is str else gpu_blocks_why(n))
    segments = gpu_blocks_take() if not why and 'stop' not in args else why
    yield None
    if type(segments) is str:
        if segments:
            yield segments
        return
    yield from gpu_blocks_sum(segments, sums, seen, args)
    # From here on what was read is only sent: who is stopped then leaves nothing out.
    if 'stop' not in args:
        args['whole'] = True
    if sums and not seen:
        yield 'no stacks are recorded: torch.cuda.memory._record_memory_history begins it'
    if len(sums) > gpu_blocks_ROWS:
        yield 'only the largest %d of %d stacks are listed, the others as one' % (gpu_blocks_ROWS, len(sums))
    yield from gpu_blocks_rank(sums, largest)
    largest.reverse()
    while largest:
        key, row = largest.pop()
        yield gpu_blocks_row(key, row)
    key = row = None
    while seen:
        for _ in range(min(1000, len(seen))):
            seen.popitem()
        yield None
