"""What a link to a page says of itself where it is shared: title, summary and a picture."""
