"""Two engines that run the same steps: in this process, and in Spark's tasks. They move rows, and hold no rule."""
