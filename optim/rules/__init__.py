"""The update rules of optimizers, each declared once; ``RULES`` has one instance for each name.

- rule.py: Rule: options, slots, numbers of a step, update; what follows from them
- descent.py: SGD, ASGD, Rprop
- adaptive.py: Adagrad, Adadelta, RMSprop
- adam.py: Adam, AdamW, Adamax, NAdam, RAdam
"""

from .adam import Adam, Adamax, NAdam, RAdam
from .adaptive import Adadelta, Adagrad, RMSprop
from .descent import ASGD, SGD, Rprop
from .rule import Rule as Rule
from .rule import Scalar as Scalar

RULES: dict[str, Rule] = {
    "SGD": SGD(),
    "ASGD": ASGD(),
    "Rprop": Rprop(),
    "Adagrad": Adagrad(),
    "Adadelta": Adadelta(),
    "RMSprop": RMSprop(),
    "Adam": Adam(),
    "AdamW": Adam(weight_decay=1e-2, decoupled_weight_decay=True),
    "Adamax": Adamax(),
    "NAdam": NAdam(),
    "RAdam": RAdam(),
}
