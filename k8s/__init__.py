"""Kubernetes beside the package: manifests for people without Helm, and the test control plane."""
