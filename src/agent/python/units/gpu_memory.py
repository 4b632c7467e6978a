# SPDX-License-Identifier: Apache-2.0
#
# python.gpu_memory: the counters of torch's allocator on each GPU, as torch.cuda.memory_stats has
# them, but by the function of torch._C that it calls, which takes the allocator's lock for a
# moment. CUDA is not started for it. See types.py.


gpu_memory_COLUMNS = ('device', 'uuid', 'allocated_mb', 'reserved_mb', 'peak_mb', 'inactive_mb', 'retries', 'ooms', 'allocations')
gpu_memory_MOST = 64
gpu_memory_uuids = {}


def gpu_memory_number(stats, name, what):
    # stats['allocated_bytes']['all']['current']
    for key in (name, 'all', what):
        stats = stats.get(key) if type(stats) is dict else None
    return stats if type(stats) is int and 0 <= stats < 2 ** 62 else None


def gpu_memory_count(stats, name):
    n = stats.get(name)
    return n if type(n) is int and 0 <= n < 2 ** 62 else None


def gpu_memory_mib(n):
    return None if n is None else n / 1048576.0


def gpu_memory_uuid(device):
    # As the driver writes it; torch has it from 2.5 on.
    if device not in gpu_memory_uuids and len(gpu_memory_uuids) < gpu_memory_MOST:
        uuid = None
        get = types_named('torch.cuda', '_get_device_properties')
        try:
            if type(get) is types_Builtin:
                uuid = 'GPU-' + str(get(device).uuid)
        except Exception:
            uuid = None
        gpu_memory_uuids[device] = uuid
    return gpu_memory_uuids.get(device)


def gpu_memory_why():
    # Why torch's allocator is not asked; '': it can be.
    if type(modules.get('torch.cuda')) is not types_Module:
        return 'torch is not imported'
    stats_of, count = types_named('torch._C', '_cuda_memoryStats'), types_named('torch._C', '_cuda_getDeviceCount')
    if type(stats_of) is not types_Builtin or type(count) is not types_Builtin:
        return 'this torch was built without CUDA'
    if types_named('torch.cuda', '_initialized') is not True:
        return 'torch has not used CUDA yet'
    bad = types_named('torch._C', '_cuda_isInBadFork')
    if type(bad) is types_Builtin and bad():
        return 'this process is a fork of one that had used CUDA'
    return ''


def gpu_memory_devices():
    n = types_named('torch._C', '_cuda_getDeviceCount')()
    return range(min(n, gpu_memory_MOST) if type(n) is int else 0)


def gpu_memory_each(args):
    yield gpu_memory_COLUMNS
    why = gpu_memory_why()
    if why:
        yield why
        return
    stats_of = types_named('torch._C', '_cuda_memoryStats')
    for device in gpu_memory_devices():
        yield None
        if 'stop' in args:
            return
        try:
            stats = stats_of(device)
        except Exception as e:
            yield 'device %d: %s' % (device, types_name(type(e)))
            continue
        if type(stats) is not dict:
            continue
        used = gpu_memory_number(stats, 'allocation', 'allocated')
        if not used and not gpu_memory_number(stats, 'reserved_bytes', 'current'):
            continue
        row = (device, gpu_memory_uuid(device)) + tuple([gpu_memory_mib(gpu_memory_number(stats, name, what)) for name, what in (
            ('allocated_bytes', 'current'), ('reserved_bytes', 'current'), ('allocated_bytes', 'peak'), ('inactive_split_bytes', 'current'))])
        yield row + (gpu_memory_count(stats, 'num_alloc_retries'), gpu_memory_count(stats, 'num_ooms'), used)
