# SPDX-License-Identifier: Apache-2.0
# What is installed without building: a tarball, a wheel and a .deb for any x86-64 Linux with glibc 2.17 or newer, the same bytes from
# any folder (tools/dist.py).

DIST := build/dist
ZIG_BUILD := build/zig
DIST_EPOCH := $(or $(SOURCE_DATE_EPOCH),$(shell git log -1 --format=%ct 2>/dev/null),1700000000)

zig:
	@$(MAKE) --no-print-directory ZIG=1 all man
	@mkdir -p $(ZIG_BUILD)/musl/deps
	@ln -sfn ../../deps/src $(ZIG_BUILD)/musl/deps/src
	@$(MAKE) --no-print-directory ZIG=musl relay
	@cp $(ZIG_BUILD)/musl/probing-relay $(ZIG_BUILD)/probing-relay

dist: zig
	@tools/check_dist.sh $(ZIG_BUILD)
	@tools/check_agent.sh $(ZIG_BUILD)/libprobing.so libdl.so.2 libpthread.so.0
	@$(PYTHON3) tools/third_party.py --build $(ZIG_BUILD) --deps $(ZIG_DEPS) --zig $(ZIG_HOME) --version $(VERSION) \
	    --commit '$(COMMIT)' -o $(ZIG_BUILD)/THIRD_PARTY.md
	@$(PYTHON3) tools/dist.py --build $(ZIG_BUILD) --deps $(ZIG_DEPS) --version $(VERSION) --commit '$(COMMIT)' --epoch $(DIST_EPOCH) \
	    --out $(DIST)

# The same from two other folders: are they the same bytes?
dist-check:
	tools/dist_check.sh

# Each package installed, used and removed again in bare Debians; needs root and the network.
matrix-install: dist
	tools/matrix_install.sh $(DIST)

.PHONY: zig dist dist-check matrix-install
