# SPDX-License-Identifier: Apache-2.0
# Manual pages, the shells' completion and the reference pages of docs/, made from the programs' own tables.

MANUAL_PROGRAMS := probing-top probing
MANUAL_PAGES := $(MANUAL_PROGRAMS:%=$(BUILD)/share/man/%.1)
COMPLETIONS := $(foreach s,bash zsh fish,$(MANUAL_PROGRAMS:%=$(BUILD)/share/$(s)/%))
GEN_MANUAL := $(BUILD)/tools/gen_manual

$(BUILD)/obj/tools/%.o: tools/%.c $(BUILD)/flags $(BUILD)/gen/version.h | $(DEPS)/stamp
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

$(GEN_MANUAL): $(BUILD)/obj/tools/gen_manual.o $(BUILD)/obj/tools/gen_reference.o $(LIBS) $(WEBSOCKETS_LIBS) $(UNWIND_LIBS) $(BUILD)/link-flags
	$(call link_test)

$(BUILD)/share/man/%.1: $(GEN_MANUAL)
	@mkdir -p $(@D)
	$(Q)$< man $* > $@

define completion
$(BUILD)/share/$(1)/%: $(GEN_MANUAL)
	@mkdir -p $$(@D)
	$$(Q)$$< $(1) $$* > $$@
endef
$(foreach s,bash zsh fish,$(eval $(call completion,$(s))))

man: $(MANUAL_PAGES) $(COMPLETIONS)
.PHONY: man

# Pages of docs/ that are made from the programs' tables; tests/functional/test_docs_pages.py holds that they are up to date.
REFERENCE_PAGES := cli keys tables settings formats
docs: $(GEN_MANUAL) docs-versions
	$(Q)for page in $(REFERENCE_PAGES); do $(GEN_MANUAL) page $$page > docs/$$page.md || exit 1; done
.PHONY: docs

install-man: man
	install -d $(DESTDIR)$(PREFIX)/share/man/man1 $(DESTDIR)$(PREFIX)/share/bash-completion/completions \
	    $(DESTDIR)$(PREFIX)/share/zsh/site-functions $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d
	install -m 644 $(MANUAL_PAGES) $(DESTDIR)$(PREFIX)/share/man/man1
	install -m 644 $(MANUAL_PROGRAMS:%=$(BUILD)/share/bash/%) $(DESTDIR)$(PREFIX)/share/bash-completion/completions
	for p in $(MANUAL_PROGRAMS); do \
	    install -m 644 $(BUILD)/share/zsh/$$p $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_$$p && \
	    install -m 644 $(BUILD)/share/fish/$$p $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/$$p.fish || exit 1; \
	done
.PHONY: install-man

-include $(BUILD)/obj/tools/gen_manual.d $(BUILD)/obj/tools/gen_reference.d
