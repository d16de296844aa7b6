"""Independent test equipment: nothing here knows the product's code."""
