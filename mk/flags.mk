# SPDX-License-Identifier: Apache-2.0
# Compiler and linker flags. Everything is compiled position-independent with hidden symbols, so that one set of
# objects serves both the programs and the agent.

MACHINE := $(shell $(CC) -dumpmachine 2>/dev/null)
ARCH := $(firstword $(subst -, ,$(MACHINE)))
IS_CLANG := $(findstring clang,$(shell $(CC) --version 2>/dev/null))

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

TEST_CFLAGS := $(ALL_CFLAGS) -Wno-missing-field-initializers -Itests -DPROBING_SOURCE_DIR=\"$(CURDIR)\"

ALL_LDFLAGS := $(LDFLAGS) -pthread -Wl,--gc-sections -Wl,--as-needed -Wl,-z,relro,-z,now -Wl,-z,noexecstack
EXE_LDFLAGS := $(ALL_LDFLAGS) $(SAN_LDFLAGS) -pie
AGENT_LDFLAGS := $(ALL_LDFLAGS) -shared -static-libgcc -Wl,-soname,libprobing.so -Wl,--exclude-libs,ALL \
	-Wl,-Bsymbolic -Wl,--version-script=mk/agent.map -Wl,-z,defs -Wl,--build-id

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
WEBSOCKETS_LIBS := $(DEPS)/lib/libwebsockets.a
# Symbols of native frames, in the programs alone: elfutils, and a demangler for C++ and Rust.
SYMBOL_LIBS := -ldw -lelf -l:libiberty.a
UNWIND_LIBS := $(DEPS)/lib/libunwind-ptrace.a $(DEPS)/lib/libunwind-$(ARCH).a $(DEPS)/lib/libunwind.a

# Objects are rebuilt when any of this changes.
export PROBING_FLAGS := $(CC) $(ALL_CFLAGS) | $(STUB_CFLAGS) | $(TEST_CFLAGS)
export PROBING_LINK_FLAGS := $(CC) $(EXE_LDFLAGS) | $(AGENT_LDFLAGS) | $(NCURSES_LIBS) $(MSGPACK_LIBS) $(SYMBOL_LIBS) $(SQLITE_LIBS) $(ZLIB_LIBS) $(EDIT_LIBS)

write_if_changed = mkdir -p $(@D) && { printf '%s\n' $(1) | cmp -s - $@ || printf '%s\n' $(1) >$@; }

$(BUILD)/flags: FORCE
	@$(call write_if_changed,"$$PROBING_FLAGS")

$(BUILD)/link-flags: FORCE
	@$(call write_if_changed,"$$PROBING_LINK_FLAGS")

$(BUILD)/gen/version.h: FORCE
	@$(call write_if_changed,'/* Generated from VERSION. */' '#pragma once' '#define PROBING_VERSION "$(VERSION)"')

FORCE:
.PHONY: FORCE
