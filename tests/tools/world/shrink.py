"""What is wrong in many steps, in as few as will do, told as a story."""

from collections.abc import Callable
from dataclasses import replace

from tests.tools.world.random_worlds import Plot

_PLAINER = (
    {"fault": None},
    {"says_last": False},
    {"says_nothing_lost": False},
    {"clocks_ms": ()},
    {"is_shallow": ()},
    {"names_previous": True},
    {"epochs": 2},
)


def shrunk(plot: Plot, is_wrong: Callable[[Plot], bool]) -> Plot:
    """The plot without every fault, word and step that it does not take, so that it is still wrong."""
    plot = _plainer(replace(plot, steps=plot.world().steps), is_wrong)
    index = len(plot.steps) - 1
    while index >= 0:
        shorter = plot.without(index)
        if is_wrong(shorter):
            plot, index = shorter, len(shorter.steps)
        index -= 1
    return _plainer(plot, is_wrong)


def _plainer(plot: Plot, is_wrong: Callable[[Plot], bool]) -> Plot:
    """With one thing less said or broken at a time."""
    for change in _PLAINER:
        plainer = replace(plot, **change)
        if plainer != plot and is_wrong(plainer):
            plot = plainer
    return plot


def told(plot: Plot) -> str:
    """The story, a line a sentence."""
    return "".join(f"{number:3}. {sentence}\n" for number, sentence in enumerate(plot.story(), start=1))
