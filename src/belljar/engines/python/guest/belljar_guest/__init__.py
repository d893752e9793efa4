"""What guest programs can ask of their sandbox beyond a Unix."""
