# SPDX-License-Identifier: Apache-2.0
# Third-party libraries from pinned source (deps.lock), built once and shared by every BUILD.

deps: $(DEPS)/stamp
.PHONY: deps

ifneq ($(BY_ZIG),)
$(ZIG_HOME)/stamp: mk/zig.txt tools/zig.sh
	$(Q)tools/zig.sh $(ZIG_HOME)

$(DEPS)/stamp: deps.lock deps-static.lock tools/deps.sh tools/deps_static.sh $(ZIG_HOME)/stamp
	$(Q)DEPS_CC=$(CC) DEPS_RELAY_ONLY=$(filter musl,$(ZIG)) tools/deps.sh --static $(DEPS)

$(STATIC_LIBS): $(DEPS)/stamp ;
else
$(DEPS)/stamp: deps.lock tools/deps.sh
	$(Q)tools/deps.sh $(DEPS)
endif

$(WEBSOCKETS_LIBS) $(UNWIND_LIBS): $(DEPS)/stamp ;
