"""MLflow as a projection of the store.

Runs are nested: the sweep, its cells, their episodes. Everything happens beside the sweep, in threads
fed by a queue: MLflow may be down, slow, restarted or wiped without stopping the sweep, and whatever
it missed is read from the store. One module a matter: how MLflow is spoken to (`service`, `rest`,
`library`, `child`), what it holds (`ledger`, `limits`, `spans`), who shows (`claims`), when (`outbox`,
`tracker`), and from the store to the page and back (`syncing`).
"""
