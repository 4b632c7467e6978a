# SPDX-License-Identifier: Apache-2.0
# Tests, fuzz targets and benchmarks. tests/run runs what is built here and counts.

TEST_SOURCES := $(wildcard tests/unit/test_*.c)
TEST_SUPPORT := $(filter-out $(TEST_SOURCES),$(wildcard tests/unit/*.c tests/support/*.c))
FUZZ_SOURCES := $(wildcard tests/fuzz/fuzz_*.c)
TARGET_SOURCES := $(wildcard tests/targets/*.c)
BENCH_SOURCES := $(wildcard bench/*.c)
TOOL_SOURCES := $(wildcard tests/tools/*.c)
LIARS_SOURCES := $(wildcard tests/liars/*.c)

UNIT_TESTS := $(TEST_SOURCES:tests/unit/%.c=$(BUILD)/tests/%)
FUZZ_REPLAYS := $(FUZZ_SOURCES:tests/fuzz/%.c=$(BUILD)/tests/%)
FUZZERS := $(FUZZ_SOURCES:tests/fuzz/%.c=$(BUILD)/fuzzers/%)
TARGETS := $(TARGET_SOURCES:tests/targets/%.c=$(BUILD)/tests/targets/%.so)
BENCHES := $(BENCH_SOURCES:bench/%.c=$(BUILD)/bench/%)
TOOLS := $(TOOL_SOURCES:tests/tools/%.c=$(BUILD)/tests/tools/%)

SUPPORT_OBJECTS := $(TEST_SUPPORT:%.c=$(BUILD)/obj/%.o)
TEST_OBJECTS := $(patsubst %.c,$(BUILD)/obj/%.o,$(TEST_SOURCES) $(TEST_SUPPORT) $(FUZZ_SOURCES) $(BENCH_SOURCES) $(TOOL_SOURCES) $(LIARS_SOURCES) tests/known/known.c tests/known/handler.c tests/known/native.c tests/known/stacks.c tests/known/outside.c)
ifneq ($(FUZZ_SOURCES),)
TEST_OBJECTS += $(BUILD)/obj/tests/fuzz/replay.o $(BUILD)/obj/tests/fuzz/blocks.o
endif
TEST_LIBS := $(if $(SUPPORT_OBJECTS),$(BUILD)/lib/libtestsupport.a) $(LIBS) $(WEBSOCKETS_LIBS) $(UNWIND_LIBS)

# The agent's way of sampling, without its budget, for the program whose stacks are known.
KNOWN := $(BUILD)/tests/known/known.so
# The same from another process.
KNOWN_OUTSIDE := $(BUILD)/tests/known/outside

# The hostile agent of tests/liars, within a Python; and clients within one program, in front of the same.
LIARS := $(BUILD)/tests/liars/agent.so $(BUILD)/tests/liars/session

# The hostile target of tests/torture: native threads, and a library that they load and unload.
TORTURE_SOURCES := $(filter-out tests/torture/plugin.c,$(wildcard tests/torture/*.c))
TORTURE := $(BUILD)/tests/torture/torture.so $(BUILD)/tests/torture/plugin.so

# Inputs for fuzz targets that are made, beside those that are kept in tests/fuzz/corpus.
SEEDS := $(BUILD)/tests/seeds/stamp

tests: $(UNIT_TESTS) $(FUZZ_REPLAYS) $(TARGETS) $(TOOLS) $(KNOWN) $(KNOWN_OUTSIDE) $(TORTURE) $(LIARS) $(SEEDS) man
.PHONY: tests

$(SEEDS): tests/fuzz/seeds.py
	$(call say,GEN,$@)
	@mkdir -p $(@D)
	$(Q)$(PYTHON3) tests/fuzz/seeds.py $(@D)
	$(Q)touch $@

$(BUILD)/lib/libtestsupport.a: $(SUPPORT_OBJECTS)

$(BUILD)/obj/tests/%.o: tests/%.c $(BUILD)/flags $(BUILD)/gen/version.h | $(DEPS)/stamp
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(TEST_CFLAGS) -MMD -MP -c -o $@ $<

$(BUILD)/obj/bench/%.o: bench/%.c $(BUILD)/flags $(BUILD)/gen/version.h | $(DEPS)/stamp
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(TEST_CFLAGS) -MMD -MP -c -o $@ $<

define link_test
	$(call say,LD,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(EXE_LDFLAGS) -o $@ $(filter %.o,$^) $(call link_libs,$(1) $(NCURSES_LIBS) $(SYMBOL_LIBS) $(SQLITE_LIBS) $(ZLIB_LIBS) $(EDIT_LIBS))
endef

$(UNIT_TESTS): $(BUILD)/tests/%: $(BUILD)/obj/tests/unit/%.o $(TEST_LIBS) $(BUILD)/link-flags
	$(call link_test,-lcmocka -lvterm)

# Allocations of all that is linked go through the test, which lets one fail.
$(BUILD)/tests/test_agent_failing: EXE_LDFLAGS += -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=strdup

$(FUZZ_REPLAYS): $(BUILD)/tests/%: $(BUILD)/obj/tests/fuzz/%.o $(BUILD)/obj/tests/fuzz/replay.o $(TEST_LIBS) $(BUILD)/link-flags
	$(call link_test)

# Large blocks are kept from one input to the next (tests/fuzz/blocks.c). The map says what is linked: tools/fuzz.py counts for that.
$(FUZZERS): EXE_LDFLAGS += -Wl,-Map=$@.map -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=free
$(FUZZERS): $(BUILD)/fuzzers/%: $(BUILD)/obj/tests/fuzz/%.o $(BUILD)/obj/tests/fuzz/blocks.o $(TEST_LIBS) $(BUILD)/link-flags
	$(call link_test)

# Functions of libwebsockets that it has itself count, not the library's.
$(BUILD)/tests/fuzz_agent_endpoints $(BUILD)/fuzzers/fuzz_agent_endpoints: EXE_LDFLAGS += -Wl,-z,muldefs

# What a client does goes through the target, which says whether it may; and who answers is the target.
ACTS_WRAPPED := open openat syscall fopen unlink unlinkat rename connect sigaction signal cli_open_database call_open call_close call_status call_arm \
    call_disarm call_rest database_refresh database_begin database_explain
$(BUILD)/tests/fuzz_client_acts $(BUILD)/fuzzers/fuzz_client_acts: EXE_LDFLAGS += $(ACTS_WRAPPED:%=-Wl,--wrap=%)

# Programs that functional tests run.
$(TOOLS): $(BUILD)/tests/tools/%: $(BUILD)/obj/tests/tools/%.o $(call lib_of,inject pystack base) $(UNWIND_LIBS) $(BUILD)/link-flags
	$(call link_test)

# What the injector does to a job goes through the tool, which counts it.
$(BUILD)/tests/tools/inject_step: EXE_LDFLAGS += -Wl,--wrap=ptrace,--wrap=pwrite,--wrap=write

$(KNOWN): $(BUILD)/obj/tests/known/known.o $(BUILD)/obj/tests/known/handler.o $(BUILD)/obj/tests/known/native.o $(BUILD)/obj/tests/known/stacks.o $(call lib_of,agent store pystack flame wire base) $(WEBSOCKETS_LIBS) $(UNWIND_LIBS) $(BUILD)/link-flags
	$(call say,LD,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_LDFLAGS) -shared -Wl,--exclude-libs,ALL -Wl,-Bsymbolic -o $@ $(filter %.o,$^) $(call link_libs)

$(KNOWN_OUTSIDE): $(BUILD)/obj/tests/known/outside.o $(BUILD)/obj/tests/known/stacks.o $(call lib_of,inject pystack base) $(UNWIND_LIBS) $(BUILD)/link-flags
	$(call link_test)

LIARS_AGENT := $(BUILD)/obj/tests/liars/agent.o $(BUILD)/obj/tests/liars/lies.o

$(BUILD)/tests/liars/agent.so: $(LIARS_AGENT) $(call lib_of,store pystack wire base) $(WEBSOCKETS_LIBS) $(BUILD)/link-flags
	$(call say,LD,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_LDFLAGS) -shared -Wl,--exclude-libs,ALL -Wl,-Bsymbolic -o $@ $(filter %.o,$^) $(call link_libs)

$(BUILD)/tests/liars/session: $(BUILD)/obj/tests/liars/session.o $(LIARS_AGENT) $(TEST_LIBS) $(BUILD)/link-flags
	$(call link_test)

$(BENCHES): $(BUILD)/bench/%: $(BUILD)/obj/bench/%.o $(TEST_LIBS) $(BUILD)/link-flags
	$(call link_test)

# Native code that test jobs load (a C call that keeps the GIL, ...).
$(TARGETS): $(BUILD)/tests/targets/%.so: tests/targets/%.c $(BUILD)/flags
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -std=gnu11 -O2 -g $(WARNINGS) -D_GNU_SOURCE -fPIC -shared -pthread -o $@ $<

# Bound when it is loaded: a child of a fork must not wait for the loader.
$(BUILD)/tests/torture/torture.so: $(TORTURE_SOURCES) $(wildcard tests/torture/*.h) $(BUILD)/flags
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -std=gnu11 -O2 -g $(WARNINGS) -D_GNU_SOURCE -fPIC -shared -pthread -Wl,-z,now -o $@ $(TORTURE_SOURCES) -ldl -lm

$(BUILD)/tests/torture/plugin.so: tests/torture/plugin.c $(BUILD)/flags
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -std=gnu11 -O2 -g $(WARNINGS) -fPIC -shared -o $@ $<

# N times in and out of a hostile target: make torture N=1000 PYTHON=python3.13
TORTURE_ARGS ?=

torture: all $(TORTURE)
	@tests/torture/run.py --build $(BUILD) --cycles $(or $(N),1000) $(if $(PYTHON),--python '$(PYTHON)') $(TORTURE_ARGS)
.PHONY: torture

# `make test` finds (or makes) a Python with torch, the modules greenlet and debugpy for each Python, and what others have published about the
# formats of exports, for the functional tests; without them those that want them are skipped with a reason.
TEST_ARGS ?=

# What tests import, made where it is missing.
TEST_MEANS = PROBING_TEST_GREENLETS="$${PROBING_TEST_GREENLETS:-$$(tools/greenlets.sh $(GREENLETS))}" \
    PROBING_TEST_DEBUGPYS="$${PROBING_TEST_DEBUGPYS:-$$(tools/greenlets.sh $(GREENLETS)/debugpy debugpy debugpy==1.8.14 8)}" \
    PROBING_TEST_READERS="$${PROBING_TEST_READERS:-$$(tools/readers.sh $(READERS))}" \
    PROBING_TEST_TORCH_PYTHON="$${PROBING_TEST_TORCH_PYTHON:-$$(tools/python_with_torch.sh $(VENV))}"

test: all tests
	@$(TEST_MEANS) \
	    tests/run --build $(BUILD) $(TEST_ARGS)

# With the long ones.
test-all: TEST_ARGS += --long
test-all: test

asan:
	@$(MAKE) --no-print-directory BUILD=$(BUILD)/asan DEPS=$(DEPS) SAN=address,undefined tests-unit
	@LSAN_OPTIONS=suppressions=$(CURDIR)/tests/lsan.supp:print_suppressions=0 \
	    ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1 UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1 \
	    tests/run --build $(BUILD)/asan --part unit,fuzz

tests-unit: $(UNIT_TESTS) $(FUZZ_REPLAYS) $(TARGETS) $(SEEDS)

# RUNS executions of each fuzz target from its corpus, or those whose name holds ONLY; or SECONDS of each, whichever is first. A line of
# JSON for each; what they find lies in BUILD/fuzz/found. What a target has had since it last fell or was changed counts, in this BUILD or by
# tests/fuzz/executions.json, so that many are reached in pieces: ANEW=1 counts from none, `make fuzz-record` writes the file.
RUNS ?= 10000000
FUZZ_JOBS ?= 1
FUZZ_ARGS = --runs $(RUNS) --jobs $(FUZZ_JOBS) $(if $(SECONDS),--seconds $(SECONDS)) $(if $(ONLY),--only $(ONLY)) $(if $(ANEW),--anew)
FUZZ_SECONDS ?= 20
# Comparisons are not traced: that took up to two thirds of the time, and what they are made with stands in the corpora. For a new target
# it is worth it: FUZZ_CFLAGS='-O2 -g'.
FUZZ_CFLAGS ?= -O2 -g -fno-sanitize-coverage=trace-cmp

# Small ones are reached by small inputs, and a size that lies costs little.
FUZZ_LIMITS := -DPYSTACK_MAX_THREADS=128 -DPYSTACK_DICT_MAX=512

fuzz: fuzz-build
	@$(PYTHON3) tools/fuzz.py $(BUILD)/fuzz $(FUZZ_ARGS)

fuzz-record:
	@$(PYTHON3) tools/fuzz.py $(BUILD)/fuzz --record

# The same, for a moment: twenty seconds of each.
fuzz-smoke: fuzz-build
	@$(PYTHON3) tools/fuzz.py $(BUILD)/fuzz --seconds $(FUZZ_SECONDS) --jobs $(FUZZ_JOBS)

fuzz-build:
	@$(MAKE) --no-print-directory BUILD=$(BUILD)/fuzz DEPS=$(DEPS) CC=clang SAN=fuzzer-no-link,address,undefined CFLAGS='$(FUZZ_CFLAGS) $(FUZZ_LIMITS)' fuzzers

fuzzers: $(FUZZERS) $(SEEDS)

# Programs built from bench/*.c, and scripts bench/*.py; each prints JSON.
bench: all $(BENCHES) $(KNOWN) $(KNOWN_OUTSIDE)
	@VENV=$(VENV) tools/bench.sh $(BUILD) $(BENCHES) $(wildcard bench/*.py)

# What takes minutes or hours: the parts in tests/soak, and a table of them at the end. How much of it (see tests/soak/run):
# ONLY=known,eintr SAMPLES=1000000 SECONDS=60 N=10000 PYTHONS=3.9,3.11 ROUNDS=20
SOAK_ARGS = $(if $(ONLY),--only $(ONLY)) $(if $(SAMPLES),--samples $(SAMPLES)) $(if $(SECONDS),--seconds $(SECONDS)) \
    $(if $(N),--cycles $(N)) $(if $(PYTHONS),--pythons $(PYTHONS)) \
    $(if $(ROUNDS),--rounds $(ROUNDS))

soak: all tests
	@$(TEST_MEANS) tests/soak/run --build $(BUILD) $(SOAK_ARGS)

demo: all
	@BUILD=$(BUILD) VENV=$(VENV) tools/demo.sh

# The tests of reading and attaching over Pythons that this system does not have; needs root and the network.
MATRIX_ARGS ?=

matrix: all tests
	@tools/matrix.sh $(BUILD) $(MATRIX_ARGS)

.PHONY: soak matrix test test-all asan tests-unit fuzz fuzz-record fuzz-smoke fuzz-build fuzzers bench demo

# The table of Pythons in docs/pythons.md, from the descriptor that the code uses.
docs-versions: $(BUILD)/tests/tools/pystack_versions
	tools/versions_table.sh $(BUILD)
.PHONY: docs-versions

# The pictures of the screens (tests/screens) as they are drawn now; read the difference before committing it.
golden-update: $(BUILD)/tests/test_tui_screens $(BUILD)/tests/test_tui_matrix
	UPDATE_GOLDEN=1 $(BUILD)/tests/test_tui_screens
	UPDATE_GOLDEN=1 $(BUILD)/tests/test_tui_matrix
.PHONY: golden-update

# The README's pictures, of the training job, with what is built; needs tmux and a Python with torch.
PICTURES ?=

pictures: all
	$(PYTHON3) tools/pictures.py --build $(BUILD) --python "$$(tools/python_with_torch.sh $(VENV))" $(PICTURES)
.PHONY: pictures

# Those of docs/dev/terminals.md; needs GNU screen, too.
terminal-pictures: all
	$(PYTHON3) tools/terminals.py --build $(BUILD) --python "$$(tools/python_with_torch.sh $(VENV))" $(PICTURES)
.PHONY: terminal-pictures

# docs/access.md: who may see and do what, from the tables that the agent goes by.
access: $(BUILD)/tests/test_agent_matrix
	$(Q)$(BUILD)/tests/test_agent_matrix --write
.PHONY: access
