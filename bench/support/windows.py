# SPDX-License-Identifier: Apache-2.0
"""Windows with and without sampling, in pairs of random order, and what they differ by.

A machine that others use drifts by more than what is to be measured. Two windows side by side see the same drift, so only their
quotient is looked at: the median of many pairs, with an interval from resampling them.
"""

import random
import statistics


def interval(values, rounds=2000):
    """95 % of the medians of resampled values lie within."""
    if len(values) < 3:
        return None
    dice = random.Random(1)
    medians = sorted(statistics.median(dice.choices(values, k=len(values))) for _ in range(rounds))
    return [round(medians[int(0.025 * rounds)], 3), round(medians[int(0.975 * rounds)], 3)]


def summary(values):
    quarters = statistics.quantiles(values, n=4) if len(values) > 1 else [values[0]] * 3
    return {"median": round(statistics.median(values), 3), "interval_95": interval(values),
            "quartiles": [round(quarters[0], 3), round(quarters[2], 3)], "pairs": len(values)}


def alternate(pairs, window, keys, seed=7):
    """`window(on)` gives a dictionary of costs, larger is worse. Per key: by how many percent the windows with sampling are worse."""
    dice = random.Random(seed)
    differences = {key: [] for key in keys}
    for _ in range(pairs):
        first = dice.random() < 0.5
        results = {on: window(on) for on in (first, not first)}
        for key in keys:
            if results[False].get(key) and results[True].get(key):
                differences[key].append(100 * (results[True][key] / results[False][key] - 1))
    return {key: summary(values) for key, values in differences.items() if values}
