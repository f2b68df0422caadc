"""The desk: who may send what, and what is kept of it."""
