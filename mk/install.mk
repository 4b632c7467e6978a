# SPDX-License-Identifier: Apache-2.0

install: all install-man
	install -d $(DESTDIR)$(bindir) $(DESTDIR)$(libdir) $(DESTDIR)$(datadir)/themes
	install -m 755 $(BUILD)/probing-top $(BUILD)/probing $(DESTDIR)$(bindir)
	install -m 755 $(BUILD)/libprobing.so $(RELAY) $(DESTDIR)$(libdir)
	$(if $(THEMES),install -m 644 $(THEMES) $(DESTDIR)$(datadir)/themes)

# Into the environment of one Python, so that it heeds $PROBING; it loads the agent that `make install` has put under PREFIX.
PYTHON ?=

install-python:
	@tools/install_python.sh install '$(PYTHON)' '$(libdir)/libprobing.so' '$(DESTDIR)'

uninstall-python:
	@tools/install_python.sh uninstall '$(PYTHON)' '$(libdir)/libprobing.so' '$(DESTDIR)'

.PHONY: install install-python uninstall-python
