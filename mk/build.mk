# SPDX-License-Identifier: Apache-2.0
# Libraries, programs and the agent. A folder without sources is skipped.

sources_of = $(sort $(wildcard src/$(1)/*.c src/$(1)/*/*.c src/$(1)/*/*/*.c))
objects_of = $(patsubst %.c,$(BUILD)/obj/%.o,$(filter-out %/main.c,$(call sources_of,$(1))))

MODULES := tui cli relay client inject agent store pystack flame wire base
PRESENT := $(foreach m,$(MODULES),$(if $(call objects_of,$(m)),$(m)))
SRC_OBJECTS := $(foreach m,$(PRESENT),$(call objects_of,$(m)))
MAIN_OBJECTS := $(patsubst %.c,$(BUILD)/obj/%.o,$(wildcard src/tui/main.c src/cli/main.c src/relay/main.c))
ALL_OBJECTS = $(SRC_OBJECTS) $(MAIN_OBJECTS) $(TEST_OBJECTS)

lib_of = $(foreach m,$(1),$(if $(filter $(m),$(PRESENT)),$(BUILD)/lib/lib$(m).a))
LIBS := $(call lib_of,$(MODULES))
TUI_LIBS := $(call lib_of,tui relay client store inject pystack flame wire base)
CLI_LIBS := $(call lib_of,cli relay client store inject pystack flame wire base)
RELAY_LIBS := $(call lib_of,relay client store inject pystack flame wire base)
AGENT_LIBS := $(call lib_of,store pystack flame wire base)
THEMES := $(wildcard themes/*)

BINARIES := $(if $(wildcard src/tui/main.c),$(BUILD)/probing-top) \
	$(if $(wildcard src/cli/main.c),$(BUILD)/probing) \
	$(if $(filter agent,$(PRESENT)),$(BUILD)/libprobing.so) $(RELAY)

all: $(LIBS) $(BINARIES) $(THEMES:%=$(BUILD)/%)
libs: $(LIBS)
relay: $(RELAY)
.PHONY: all libs relay

define library
$(BUILD)/lib/lib$(1).a: $(call objects_of,$(1))
endef
$(foreach m,$(PRESENT),$(eval $(call library,$(m))))

$(BUILD)/lib/lib%.a:
	$(call say,AR,$@)
	@mkdir -p $(@D)
	@rm -f $@
	$(Q)$(AR) rcs $@ $^

# A static pattern: in an implicit one % never matches nothing, and stub.c would be compiled like any other file.
STUB_OBJECTS := $(patsubst %.c,$(BUILD)/obj/%.o,$(wildcard src/inject/stub*.c))
$(STUB_OBJECTS): $(BUILD)/obj/%.o: %.c mk/build.mk tools/check_stub.sh $(BUILD)/flags $(BUILD)/gen/version.h | $(DEPS)/stamp
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(STUB_CFLAGS) -MMD -MP -c -o $@ $<
	$(Q)tools/check_stub.sh $@ inject_stub

$(BUILD)/obj/src/%.o: src/%.c $(BUILD)/flags $(BUILD)/gen/version.h | $(DEPS)/stamp
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

# Source that the agent runs in the job is built in as it is.
$(BUILD)/obj/src/agent/python/helper.o: $(wildcard src/agent/python/units/*.py)

# So are the jobs of the tour.
$(BUILD)/obj/src/tui/host/tour_job.o: examples/slow_train.py examples/train_plain.py

# So are style and script of the flame graph that is written as SVG, and the style of a report.
$(BUILD)/obj/src/client/export/export_flame.o: src/client/export/export_svg.css src/client/export/export_svg.js
$(BUILD)/obj/src/client/export/report_html.o: src/client/export/report.css

$(MAIN_OBJECTS): $(BUILD)/gen/commit.h

link_libs = -Wl,--start-group $(filter %.a,$^) -Wl,--end-group $(MSGPACK_LIBS) $(1) -lm -ldl

$(BUILD)/probing-top: $(BUILD)/obj/src/tui/main.o $(TUI_LIBS) $(WEBSOCKETS_LIBS) $(UNWIND_LIBS) $(BUILD)/link-flags
	$(call say,LD,$@)
	$(Q)$(CC) $(EXE_LDFLAGS) -o $@ $(filter %.o,$^) $(call link_libs,$(NCURSES_LIBS) $(SYMBOL_LIBS) $(SQLITE_LIBS) $(ZLIB_LIBS))

$(BUILD)/probing: $(BUILD)/obj/src/cli/main.o $(CLI_LIBS) $(WEBSOCKETS_LIBS) $(UNWIND_LIBS) $(BUILD)/link-flags
	$(call say,LD,$@)
	$(Q)$(CC) $(EXE_LDFLAGS) -o $@ $(filter %.o,$^) $(call link_libs,$(SYMBOL_LIBS) $(SQLITE_LIBS) $(ZLIB_LIBS) $(EDIT_LIBS))

# One static file with the agent inside. What glibc would load at run time it does without (src/relay/main.c): the linker's warnings
# about that are shown only if it fails.
$(BUILD)/obj/src/relay/main.o: private ALL_CFLAGS += -DPROBING_AGENT_FILE=\"$(AGENT_INSIDE)\"
$(BUILD)/obj/src/relay/main.o: $(AGENT_INSIDE)

$(BUILD)/probing-relay: $(BUILD)/obj/src/relay/main.o $(RELAY_LIBS) $(WEBSOCKETS_LIBS) $(UNWIND_LIBS) $(BUILD)/link-flags
	$(call say,LD,$@)
	$(Q)$(CC) $(RELAY_LDFLAGS) -o $@ $(filter %.o,$^) $(call link_libs,$(SQLITE_LIBS)) 2>$@.log || { cat $@.log >&2; exit 1; }
	@rm -f $@.log

# The agent goes into the job stripped; what a debugger needs lies beside it. The job's C library may be older than this
# system's: the agent asks for the oldest version of each name (mk/agent.symver; x86-64), and does without those of libpthread
# where it is only preloaded (mk/agent.weak).
$(BUILD)/libprobing.so: $(call objects_of,agent) $(AGENT_LIBS) $(WEBSOCKETS_LIBS) $(UNWIND_LIBS) mk/agent.map $(AGENT_SYMVER) mk/agent.weak $(BUILD)/link-flags
	$(call say,LD,$@)
	$(Q)$(CC) -r -nostdlib -o $@.o $(filter %.o,$^) $(filter-out -lm -ldl,$(call link_libs))
	$(Q)$(if $(filter x86_64,$(ARCH)),objcopy --weaken-symbols=mk/agent.weak $@.o && objcopy --redefine-syms=$(AGENT_SYMVER) $@.o)
	$(Q)$(CC) $(AGENT_LDFLAGS) -o $@.debug $@.o -lm -ldl
	$(Q)rm -f $@.o
	$(Q)objcopy --strip-unneeded $@.debug $@.new
	$(Q)objcopy --only-keep-debug $@.debug
	$(Q)objcopy --add-gnu-debuglink=$@.debug $@.new
	$(Q)mv $@.new $@

# Zig's C library has only the old versions, and its linker knows no other names for them: our own replacements are left.
$(BUILD)/agent.symver: mk/agent.symver
	@mkdir -p $(@D)
	$(Q)grep -v @ $< >$@

$(BUILD)/themes/%: themes/%
	@mkdir -p $(@D)
	$(Q)cp $< $@

clean:
	rm -rf $(BUILD)/obj $(BUILD)/lib $(BUILD)/gen $(BUILD)/tests $(BUILD)/bench $(BUILD)/asan $(BUILD)/fuzz $(BUILD)/lint \
	    $(BUILD)/themes $(BUILD)/share $(BUILD)/tools $(BUILD)/flags $(BUILD)/link-flags $(BUILD)/agent.symver $(BUILD)/probing $(BUILD)/probing-top $(BUILD)/probing-relay $(BUILD)/libprobing.so \
	    $(BUILD)/libprobing.so.debug
.PHONY: clean
