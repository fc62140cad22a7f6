"""Episodes on Ray: batches of them on workers of a cluster, one sweep's money and pace in one place.

The launch is the driver. It gives episode runs by name, in batches, to worker actors (`workers`),
which open the store and the models themselves and play with the code that one process plays with;
only short summaries come back, results go through the store. Ray's own retries are off: a lost
worker's batch is given to another one (`crew`), which claims the episodes through the store as any
launcher does and goes on from their journals. What is spent and how fast accounts are asked is kept by
one more actor (`desk`), with which the workers' clients deal in groups (`lines`). Whichever cluster
it is, it is looked at before the first episode (`clusters`); our own lives under a guard (`heads`).
"""
