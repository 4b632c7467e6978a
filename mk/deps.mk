# SPDX-License-Identifier: Apache-2.0
# Third-party libraries from pinned source (deps.lock), built once and shared by every BUILD.

deps: $(DEPS)/stamp
.PHONY: deps

$(DEPS)/stamp: deps.lock tools/deps.sh
	$(Q)tools/deps.sh $(DEPS)

$(WEBSOCKETS_LIBS) $(UNWIND_LIBS): $(DEPS)/stamp ;
