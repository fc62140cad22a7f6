"""The three services of a team, on one machine: PostgreSQL, an S3-compatible store, an MLflow server.

Problem: that nothing is lost can only be shown on the services that a team really uses, and not
everybody has a container engine. So they are started here as ordinary processes, on loopback, with
their data in one folder (`runs/stack`), and stopped without leaving anything but those data.

The idea: the system is asked, never believed. A service is running if the process that was started
is still that process (id, start time, boot); it is ready when it has answered a request of the kind
that its users will make; it is stopped when nothing of it is left in /proc. What has been done is
not written down apart from that, so `up` and `down` can be interrupted and repeated at will.

Secrets are made at random on the first start, lie in files of mode 600, and reach the services
through their environment or libpq's password file: never through a command line, a URL or a log.

Modules, each of which knows only those named before it: `layout` (folder, ports, words), `keys`
(secrets), `processes` (start, stop, kill, confirm), `postgres`, `seaweed` and `mlflow_server` (what is
particular to each), `services` (all three in order; what tests use) and `__main__` (the commands).
`compose.yaml` says the same for a container engine.

Source: issue "Nothing is lost"; measured versions and traps are named where they matter.
"""
