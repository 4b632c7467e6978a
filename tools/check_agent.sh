#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Checks what libprobing.so would bring into a process: the libraries it needs and how old they may be, the names it shows,
# its size, and that nothing of it is both writable and executable or left writable after loading.
#
# usage: tools/check_agent.sh FILE [LIBRARY...]     libraries that may be needed, too

set -u

agent=$1
shift
also=" $* "
limit=2000000
status=0
complain() { printf 'check-agent: %s: %s\n' "$agent" "$*" >&2; status=1; }

[ -f "$agent" ] || { complain "not built"; exit 1; }

needed=$(readelf -dW "$agent" | sed -nE 's/.*\(NEEDED\).*\[(.*)\].*/\1/p')
for library in $needed; do
    case $library in
    libc.so.6 | libm.so.6 | ld-linux*.so.*) ;;
    *) case $also in *" $library "*) ;; *) complain "needs $library; only libc, libm and the loader may be needed" ;; esac ;;
    esac
done

# A job may run with an older C library than the one the agent was built with.
newest=$(readelf -VW "$agent" | grep -oE 'GLIBC_[0-9.]+' | sed 's/GLIBC_//' | sort -uV | tail -n 1)
[ "$(printf '%s\n2.17\n' "$newest" | sort -V | tail -n 1)" = 2.17 ] || complain "needs glibc $newest; 2.17 must do (see mk/agent.symver)"

# Preloaded into a program without threads, it must load where libpthread is a library of its own (glibc before 2.34): of its names libc has these.
in_libc='attr_(destroy|init|getdetachstate|setdetachstate)|cond_(broadcast|destroy|init|signal|timedwait|wait)|condattr_(destroy|init)'
in_libc="$in_libc|equal|exit|mutex_(destroy|init|lock|unlock)|self|setcancelstate|setcanceltype"
for name in $(nm -D --undefined-only "$agent" | sed -nE 's/^ +U ((pthread|sem|mq|timer|aio|shm)_[a-z_]+).*/\1/p' | grep -vxE "pthread_($in_libc)"); do
    complain "insists on $name (see mk/agent.weak)"
done

exports=$(nm -D --defined-only "$agent" | awk '{ print $NF }' | sed 's/@.*//')
for name in $exports; do
    case $name in
    probing_* | PyInit__probing) ;;
    *) complain "shows the name $name; only probing_* and PyInit__probing may be shown" ;;
    esac
done
[ -n "$exports" ] || complain "shows no probing_* name"

size=$(wc -c <"$agent")
[ "$size" -le $limit ] || complain "is $size bytes; at most $limit"

headers=$(readelf -lW "$agent")
dynamic=$(readelf -dW "$agent")
printf '%s\n' "$headers" | grep -E 'GNU_STACK' | grep -q 'RWE' && complain "has an executable stack"
printf '%s\n' "$headers" | grep -q 'GNU_STACK' || complain "has no GNU_STACK header"
printf '%s\n' "$headers" | grep -E '^ *LOAD' | grep -q 'RWE' && complain "has a segment that is writable and executable"
printf '%s\n' "$headers" | grep -q 'GNU_RELRO' || complain "has no RELRO segment"
printf '%s\n' "$dynamic" | grep -qE 'BIND_NOW|FLAGS_1.*NOW' || complain "is not bound at load time, so RELRO is not full"
printf '%s\n' "$dynamic" | grep -q 'TEXTREL' && complain "has relocations in its code"
readelf -SW "$agent" | grep -qE ' \.(debug_info|symtab) ' && complain "is not stripped"

[ $status -ne 0 ] || printf 'check-agent: %s bytes, needs %s, shows %s\n' "$size" \
    "$(echo $needed | tr ' ' ',')" "$(echo $exports | tr ' ' ',')"
exit $status
