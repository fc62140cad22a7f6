"""How domains and datasets come to be: files, validators, and the build from one to the other."""
