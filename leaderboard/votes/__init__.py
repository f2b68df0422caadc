"""Human votes: people choose between two models' images of a prompt."""
