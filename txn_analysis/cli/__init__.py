"""The command line: verbs, their options, where their output goes. It stands above all other rooms."""
