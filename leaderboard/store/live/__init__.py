"""What running workers say between commits: pulses and logs."""
