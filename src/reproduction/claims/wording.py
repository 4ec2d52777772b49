"""Names that moved to `reproduction.engine.verdicts`."""

from reproduction.engine.verdicts import (
    describe as describe,
)
from reproduction.engine.verdicts import (
    number as number,
)
from reproduction.engine.verdicts import (
    selection as selection,
)
from reproduction.engine.verdicts import (
    series as series,
)
from reproduction.engine.verdicts import (
    with_error as with_error,
)
