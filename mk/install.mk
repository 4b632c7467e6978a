# SPDX-License-Identifier: Apache-2.0

install: all
	install -d $(DESTDIR)$(bindir) $(DESTDIR)$(libdir) $(DESTDIR)$(datadir)/themes
	install -m 755 $(BUILD)/probing-top $(BUILD)/probing $(DESTDIR)$(bindir)
	install -m 755 $(BUILD)/libprobing.so $(DESTDIR)$(libdir)
	$(if $(THEMES),install -m 644 $(THEMES) $(DESTDIR)$(datadir)/themes)
.PHONY: install
