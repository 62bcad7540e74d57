"""Text: the UCI protocol, options, output, bench and the command line. Nothing else prints."""
