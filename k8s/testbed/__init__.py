"""A real Kubernetes control plane on one machine, with pods that really run.

Problem: what we do on a cluster (quotas, evictions, owner references, probes, lost nodes) cannot be
believed when it was only tested against a fake, and a test machine has neither a container engine
nor a cluster.

Idea: the API server, controllers and scheduler are the real ones, built once from Debian's source
package (`builds`) and run on loopback and a bridge of our own (`control_planes`). Only two things
are stand-ins: a kubelet that runs containers as local processes in namespaces of their own
(`kubelet`, `pods`, `containers`), and an operator for RayJobs (`ray_operator`). `beds.Bed` starts and
stops everything in seconds; when its process dies, the kernel ends all the rest.

What it is not: there are no images (a table says which programs an image name stands for, `images`),
no CPU limits, no users (everything runs as root), no virtual service addresses (a Service's name
resolves to its ready pods, so port and target port have to be the same), no `exec` through the API.
It needs Linux, root and Debian 12.
"""
