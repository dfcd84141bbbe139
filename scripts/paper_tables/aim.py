"""An aim, and whether what was measured reaches it."""

import math

from .markdown import NONE


class Aim:
    def __init__(self, sign, bound, unit, is_reached):
        self.bound, self.unit, self.is_reached = bound, unit, is_reached
        self.text = f"{sign} {bound:g}{unit}"

    def show(self, value, decimals):
        """With as many decimals more as it takes to see on which side of the bound it is."""
        if value is None:
            return NONE
        if math.isinf(value):
            return f"∞{self.unit}"
        while decimals < 6 and self.is_reached(round(value, decimals)) != self.is_reached(value):
            decimals += 1
        return f"{value:,.{decimals}f}{self.unit}"


def at_least(bound, unit=""):
    return Aim("≥", bound, unit, lambda value: value >= bound)


def above(bound, unit=""):
    return Aim(">", bound, unit, lambda value: value > bound)


def at_most(bound, unit=""):
    return Aim("≤", bound, unit, lambda value: value <= bound)


def below(bound, unit=""):
    return Aim("<", bound, unit, lambda value: value < bound)


def verdict(value, aim, is_whole=True):
    """What is missed by a part is missed by all; what is reached by a part may still be missed."""
    if value is None:
        return NONE
    if not aim.is_reached(value):
        return "**missed**"
    return "reached" if is_whole else "reached so far"
