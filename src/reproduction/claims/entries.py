"""Names that moved to `reproduction.engine.ledger`."""

from reproduction.engine.ledger import (
    CrossCheck as CrossCheck,
)
from reproduction.engine.ledger import (
    Finding as Finding,
)
from reproduction.engine.ledger import (
    Statement as Statement,
)
