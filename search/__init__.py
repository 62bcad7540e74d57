"""The tree search: one state machine, its tables, threads, clock, and the `Engine` facade."""
