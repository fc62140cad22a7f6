"""What we create in a cluster, as plain documents. Pure: no cluster, no clock, no library of Kubernetes."""
