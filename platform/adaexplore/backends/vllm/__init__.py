"""vLLM as a process that we start: one server a replica, watched, restarted, and gone afterwards.

Modules, each of which knows only those named before it: `guard` (the process that holds the server
and outlives nobody), `procfs` (what the system says of processes and sockets), `processes` (start,
stop and confirm), `ports` (who listens where), `servers` (ready, watched, restarted), `commands` (words
and environment), `gpus` (who may use which), `fingerprints` (what is served) and `hosts` (the seam that
experiments use). What does not depend on where engines run is in `models.engines`.
"""
