"""Each remedy settles: a piece of a real capture is taken away, the words are followed, and the lack is gone."""
