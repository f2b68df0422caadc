"""The worker: claims submissions, has them scored, judges and publishes them."""
