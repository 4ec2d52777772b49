"""Names that moved to `reproduction.engine.checks`."""

from reproduction.engine.checks import (
    Above as Above,
)
from reproduction.engine.checks import (
    All as All,
)
from reproduction.engine.checks import (
    Below as Below,
)
from reproduction.engine.checks import (
    Between as Between,
)
from reproduction.engine.checks import (
    Check as Check,
)
from reproduction.engine.checks import (
    Close as Close,
)
from reproduction.engine.checks import (
    Monotone as Monotone,
)
from reproduction.engine.checks import (
    Ordered as Ordered,
)
from reproduction.engine.checks import (
    assess as assess,
)
from reproduction.engine.checks import (
    largest_z as largest_z,
)
from reproduction.engine.checks import (
    refuses as refuses,
)
from reproduction.engine.checks import (
    region as region,
)
