# SPDX-License-Identifier: Apache-2.0
# Compiler and linker flags. Everything is compiled position-independent with hidden symbols, so that one set of
# objects serves both the programs and the agent.

BY_ZIG := $(filter 1 musl,$(ZIG))

ifneq ($(BY_ZIG),) # it may have to be fetched first
MACHINE := x86_64-linux-gnu
IS_CLANG := clang
else
MACHINE := $(shell $(CC) -dumpmachine 2>/dev/null)
IS_CLANG := $(findstring clang,$(shell $(CC) --version 2>/dev/null))
endif
ARCH := $(firstword $(subst -, ,$(MACHINE)))

WARNINGS := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wformat=2 -Wvla
# snprintf and strncpy into a fixed buffer cut on purpose: text for a screen or a name of fixed size.
ifeq ($(IS_CLANG),)
WARNINGS += -Wno-format-truncation -Wno-stringop-truncation
endif
ifeq ($(WERROR),1)
WARNINGS += -Werror
endif

ifneq ($(SAN),)
SAN_CFLAGS := -fsanitize=$(SAN) -fno-omit-frame-pointer -fno-sanitize-recover=undefined
SAN_LDFLAGS := -fsanitize=$(subst fuzzer-no-link,fuzzer,$(SAN))
endif

DEFINES := -D_GNU_SOURCE -DNCURSES_WIDECHAR=1 \
	-DPROBING_LIBDIR=\"$(libdir)\" -DPROBING_DATADIR=\"$(datadir)\"
INCLUDES := -Isrc -I$(BUILD)/gen -isystem $(DEPS)/include
ifeq ($(ZIG),musl) # of libraries that only the programs are linked with
INCLUDES += -isystem $(ZIG_DEPS)/include
endif

BASE_CFLAGS := -std=gnu11 $(CFLAGS) $(WARNINGS) $(DEFINES) $(INCLUDES) -pthread \
	-fPIC -fvisibility=hidden -ffunction-sections -fdata-sections
ALL_CFLAGS := $(BASE_CFLAGS) $(SAN_CFLAGS)

# The bytes of src/inject/stub*.c are copied into another process: no call, table or check may reach outside them,
# whatever the rest is built with.
STUB_CFLAGS := $(BASE_CFLAGS) -O2 -fPIC -fno-stack-protector -fno-sanitize=all -fno-jump-tables -fno-builtin
ifneq ($(filter x86_64 i%86,$(ARCH)),)
STUB_CFLAGS += -fcf-protection=branch -mgeneral-regs-only
endif
ifeq ($(IS_CLANG),)
STUB_CFLAGS += -fno-tree-loop-distribute-patterns
endif
ifneq ($(BY_ZIG),) # which asks for SSE by name
STUB_CFLAGS += -mno-sse -mno-sse2 -mno-mmx -mno-x87
endif

TEST_CFLAGS := $(ALL_CFLAGS) -Wno-missing-field-initializers -Itests -DPROBING_SOURCE_DIR=\"$(CURDIR)\"

ALL_LDFLAGS := $(LDFLAGS) -pthread -Wl,--gc-sections -Wl,--as-needed -Wl,-z,relro,-z,now -Wl,-z,noexecstack
EXE_LDFLAGS := $(ALL_LDFLAGS) $(SAN_LDFLAGS) -pie
AGENT_LDFLAGS := $(ALL_LDFLAGS) -shared -static-libgcc -Wl,-soname,libprobing.so \
	-Wl,-Bsymbolic -Wl,--version-script=mk/agent.map -Wl,-z,defs -Wl,--build-id
ifneq ($(BY_ZIG),)
EXE_LDFLAGS += -Wl,-s
AGENT_SYMVER := $(BUILD)/agent.symver
else
AGENT_LDFLAGS += -Wl,--exclude-libs,ALL
AGENT_SYMVER := mk/agent.symver
endif

WEBSOCKETS_LIBS := $(DEPS)/lib/libwebsockets.a
UNWIND_LIBS := $(DEPS)/lib/libunwind-ptrace.a $(DEPS)/lib/libunwind-$(ARCH).a $(DEPS)/lib/libunwind.a
ifneq ($(BY_ZIG),)
static = $(patsubst %,$(DEPS)/lib/lib%.a,$(1))
NCURSES_LIBS := $(call static,ncursesw)
MSGPACK_LIBS := $(call static,msgpackc)
SQLITE_LIBS := $(call static,sqlite3)
ZLIB_LIBS := $(call static,z)
EDIT_LIBS := $(call static,edit ncursesw)
SYMBOL_LIBS := $(call static,dw elf eu lzma z iberty)
STATIC_LIBS := $(sort $(NCURSES_LIBS) $(MSGPACK_LIBS) $(SQLITE_LIBS) $(ZLIB_LIBS) $(EDIT_LIBS) $(SYMBOL_LIBS))
else
NCURSES_LIBS := $(or $(shell pkg-config --libs ncursesw 2>/dev/null),-lncursesw -ltinfo)
# Static; Debian 13 and later name it with a hyphen.
MSGPACK_ARCHIVES := $(foreach a,libmsgpackc.a libmsgpack-c.a,$(filter /%,$(shell $(CC) -print-file-name=$(a) 2>/dev/null)))
MSGPACK_LIBS ?= $(or $(firstword $(MSGPACK_ARCHIVES)),-l:libmsgpackc.a)
# Static where it is, so that a program does not meet another version of it (conda brings its own).
SQLITE_ARCHIVE := $(filter /%,$(shell $(CC) -print-file-name=libsqlite3.a 2>/dev/null))
SQLITE_LIBS ?= $(or $(SQLITE_ARCHIVE),-lsqlite3)
ZLIB_ARCHIVE := $(filter /%,$(shell $(CC) -print-file-name=libz.a 2>/dev/null))
ZLIB_LIBS ?= $(or $(ZLIB_ARCHIVE),-lz)
# The line editor of `probing TARGET repl`.
EDIT_LIBS ?= $(or $(shell pkg-config --libs libedit 2>/dev/null),-ledit)
# Symbols of native frames, in the programs alone: elfutils, and a demangler for C++ and Rust.
SYMBOL_LIBS := -ldw -lelf -l:libiberty.a
endif

# The relay is linked statically where the C library and all others can be, and not with sanitisers.
RELAY_LDFLAGS := $(ALL_LDFLAGS) -static -Wl,-s
AGENT_INSIDE ?= $(BUILD)/libprobing.so
ifeq ($(ZIG),musl) # whose threads have small stacks otherwise
RELAY_LDFLAGS += -Wl,-z,stack-size=8388608
RELAY := $(BUILD)/probing-relay
else ifeq ($(BY_ZIG)$(SAN),)
RELAY := $(if $(and $(filter /%,$(shell $(CC) -print-file-name=libc.a 2>/dev/null)),$(SQLITE_ARCHIVE),$(MSGPACK_ARCHIVES)),$(BUILD)/probing-relay)
endif

# Objects are rebuilt when any of this changes.
export PROBING_FLAGS := $(CC) $(ALL_CFLAGS) | $(STUB_CFLAGS) | $(TEST_CFLAGS)
export PROBING_LINK_FLAGS := $(CC) $(EXE_LDFLAGS) | $(AGENT_LDFLAGS) | $(RELAY_LDFLAGS) | $(NCURSES_LIBS) $(MSGPACK_LIBS) $(SYMBOL_LIBS) $(SQLITE_LIBS) $(ZLIB_LIBS) $(EDIT_LIBS)

write_if_changed = mkdir -p $(@D) && { printf '%s\n' $(1) | cmp -s - $@ || printf '%s\n' $(1) >$@; }

$(BUILD)/flags: FORCE
	@$(call write_if_changed,"$$PROBING_FLAGS")

$(BUILD)/link-flags: FORCE
	@$(call write_if_changed,"$$PROBING_LINK_FLAGS")

$(BUILD)/gen/version.h: FORCE
	@$(call write_if_changed,'/* Generated from VERSION. */' '#pragma once' '#define PROBING_VERSION "$(VERSION)"')

# Only src/*/main.c include it, so that a commit makes little anew. A source tree without git has a file COMMIT.
COMMIT := $(or $(shell cat COMMIT 2>/dev/null),$(shell git describe --always --abbrev=12 --exclude '*' --dirty=+changes 2>/dev/null),unknown)

$(BUILD)/gen/commit.h: FORCE
	@$(call write_if_changed,'/* Generated. */' '#pragma once' '#define PROBING_COMMIT "$(COMMIT)"')

FORCE:
.PHONY: FORCE
