"""What guarantees rest on besides the code, in the words that a `Release` carries."""

from __future__ import annotations

TIMES = "running times are not observed"
PUBLIC_SIZE = "the number of records, where the output depends on it, is public or was released"
REAL_NUMBERS = "sums and noise are real numbers, as floating point is not"
SECRET_STREAM = "the generator's stream cannot be computed again, and nothing else is drawn from it"
LAST_ALONE = "no iterate but the last is seen"
CHOSEN_BLINDLY = "bounds, steps, clipping and noise were chosen without looking at these records"

# Of an algorithm in floating point: with a source of noise that speaks for itself, and with a
# generator that the caller brings.
BESIDES_THE_STREAM = (TIMES, PUBLIC_SIZE, REAL_NUMBERS, CHOSEN_BLINDLY)
USUAL = (*BESIDES_THE_STREAM, SECRET_STREAM)
