"""The S3 store: objects, growing journals and leases in a bucket of any S3-compatible service."""
