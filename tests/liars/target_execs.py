# SPDX-License-Identifier: Apache-2.0
"""Begins another program (exec), by another thread than the main one, at one call of its injector or the next."""

from lying import begin_another

begin_another()
