"""The engine as a GUI sees it: a process behind pipes, line by line."""
