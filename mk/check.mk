# SPDX-License-Identifier: Apache-2.0
# Checks that are not tests of behaviour.

# What the agent brings into a process.
check-agent: $(BUILD)/libprobing.so
	@tools/check_agent.sh $(BUILD)/libprobing.so

LINT_MAKE = $(MAKE) --no-print-directory DEPS=$(DEPS) WERROR=1
LINT_CLANG := $(shell command -v clang 2>/dev/null)
# What was built with warnings as errors need not be built again to find them.
LINT_GCC := $(if $(filter 1,$(WERROR)),$(BUILD),$(BUILD)/lint/gcc)

lint: $(DEPS)/stamp $(BUILD)/gen/version.h
	@tools/lint.py --cc '$(CC)' --cflags '$(TEST_CFLAGS)'
	@$(LINT_MAKE) BUILD=$(LINT_GCC) CC=gcc all tests
ifneq ($(LINT_CLANG),)
	@$(LINT_MAKE) BUILD=$(BUILD)/lint/clang CC=clang all tests
else
	@echo 'lint: clang is not installed, only gcc was tried'
endif
	@$(LINT_MAKE) BUILD=$(LINT_GCC) CC=gcc check-agent

format:
	clang-format -i $(shell git ls-files '*.c' '*.h')

# For editors: compile_commands.json in the source folder.
compdb: $(DEPS)/stamp
	@$(MAKE) --no-print-directory -n -B -o $(DEPS)/stamp V=1 BUILD=$(BUILD) DEPS=$(DEPS) all tests | tools/compdb.py

# ./run demo and ./run test in a Debian 12 that has nothing installed.
fresh:
	tools/fresh.sh $(BUILD)/fresh

.PHONY: check-agent lint format compdb fresh
