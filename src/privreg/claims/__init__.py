"""The ledger: what a paper says, what would refute it, and the verdict.

`entries` holds what a ledger may say and `checks` the kinds of check; `observation` reads the
evidence, `decision` weighs it, `verdicts` records the result; `page` shows the verdicts and `gate`
compares them with what is expected.
"""
