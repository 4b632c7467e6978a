# SPDX-License-Identifier: Apache-2.0
#
# Non-recursive, no configure step. Sources are found by folder: a new .c file needs no change here.
#
#   make                     build/probing-top, build/probing, build/libprobing.so, build/probing-relay
#   make deps                third-party libraries from pinned source into build/deps (once)
#   make ZIG=1              the same with nothing of the system's within: for any Linux with glibc 2.17 or newer, in build/zig
#   make dist               a tarball, a wheel and a .deb of that, in build/dist
#   make demo test lint asan bench soak torture fuzz fuzz-record fuzz-smoke check-agent compdb fresh matrix man install clean
#
# Variables: BUILD (build), DEPS (build/deps), VENV (build/venv, a Python with torch), GREENLETS (build/greenlets, a module
# for tests) and READERS (build/readers, what tests read exports by) shared by every BUILD, CC, CFLAGS (-O2 -g), LDFLAGS, PREFIX, DESTDIR,
# ONLY, SAMPLES, SECONDS, N, PYTHONS and ROUNDS choose what `make soak` does and how much,
# V=1 shows commands, WERROR=1 makes warnings errors, SAN=address,undefined builds with sanitisers.

# The compiler of `make ZIG=1`, and what is built with it.
ZIG_HOME ?= build/zig/zig
ZIG_DEPS ?= build/zig/deps
ifeq ($(ZIG),1)
BUILD := build/zig
DEPS := $(ZIG_DEPS)
CC := $(abspath $(ZIG_HOME))/bin/cc
CFLAGS := -O2 -g0
endif
# The static relay of the packages, with the agent of build/zig inside: `make dist` calls this.
ifeq ($(ZIG),musl)
BUILD := build/zig/musl
DEPS := build/zig/musl/deps
AGENT_INSIDE := build/zig/libprobing.so
CC := $(abspath $(ZIG_HOME))/bin/musl-cc
CFLAGS := -O2 -g0
endif
BUILD ?= build
DEPS ?= build/deps
VENV ?= build/venv
GREENLETS ?= build/greenlets
READERS ?= build/readers
PREFIX ?= /usr/local
DESTDIR ?=
CFLAGS ?= -O2 -g
LDFLAGS ?=
PYTHON3 ?= python3
VERSION := $(shell cat VERSION)
ifeq ($(origin CC),default)
CC := gcc
endif

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SUFFIXES:
MAKEFLAGS += --no-builtin-rules

Q := $(if $(filter 1,$(V)),,@)
say = $(if $(filter 1,$(V)),,@printf '  %-7s %s\n' $(1) $(2))

bindir := $(PREFIX)/bin
libdir := $(PREFIX)/lib/probing
datadir := $(PREFIX)/share/probing-top

include mk/flags.mk
include mk/build.mk
include mk/deps.mk
include mk/test.mk
include mk/check.mk
include mk/manual.mk
include mk/install.mk
include mk/dist.mk

-include $(ALL_OBJECTS:.o=.d)
