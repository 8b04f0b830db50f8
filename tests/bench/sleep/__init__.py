"""Parts of `make bench-sleep`: texts made by program, a played extractor, and what is measured with them."""
