"""Names that moved to `reproduction.engine.ledger`."""

from reproduction.engine.ledger import (
    Ledger as Ledger,
)
from reproduction.engine.ledger import (
    load_ledger as load_ledger,
)
from reproduction.engine.ledger import (
    parse_topic as parse_topic,
)
from reproduction.engine.ledger import (
    topic_files as topic_files,
)
