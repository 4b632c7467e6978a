# SPDX-License-Identifier: Apache-2.0
"""Two models, two optimizers.

fine: MOVING SLOW
"""
from fault_job import Loop

generator, critic = Loop(), Loop()
while True:
    critic.step()
    generator.step()
