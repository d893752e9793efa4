"""Programs that run inside native sandboxes, by an image's own Python (3.8 or newer); the owner never imports them."""
