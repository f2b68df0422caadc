"""What a worker claims, holds and hands back, and how it shows that it lives."""
