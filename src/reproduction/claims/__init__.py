"""The ledger: what a paper says, what would refute it, and the verdict.

`entries` holds what a ledger may say and `ledger` reads it; `evidence` names a number and `checks`
the kinds of check; `observation` reads the evidence, `decision` weighs it, `verdicts` records what
was seen; `records` joins that with the ledger's words, `gate` compares it with what is expected.
`page`, `summary` and `coverage` show it: to a reader of the results, of the repository, and of one
paper. `falsify` demands that wrong code is caught.
"""
