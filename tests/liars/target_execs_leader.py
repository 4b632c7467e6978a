# SPDX-License-Identifier: Apache-2.0
"""Begins another program (exec), by its main thread, at one call of its injector or the next."""

from lying import begin_another

begin_another(by_leader=True)
