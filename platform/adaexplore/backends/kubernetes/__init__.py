"""Kubernetes: sweeps as RayJobs, open models as pods. The cluster's library is imported when used."""
