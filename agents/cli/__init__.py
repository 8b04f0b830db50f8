"""The command line: `selfpager COMMAND`. Each command is a small file; what is heavy is imported when it runs."""
