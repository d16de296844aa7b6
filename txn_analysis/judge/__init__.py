"""The judge: evidence, then rules, then a verdict, a cause, warnings. Pure: it opens no file and knows no Spark."""
