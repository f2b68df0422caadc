"""What `doctor` looks at, part by part: this machine, the store, the queue, the boards."""
