# SPDX-License-Identifier: Apache-2.0
"""Puts a file of root's where the injector's file in memory was."""

import hostile

hostile.run(hostile.swap, hostile.victim("secret"))
