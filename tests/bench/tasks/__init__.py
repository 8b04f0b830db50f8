"""The parts of `make bench-tasks`: a world of files, a policy that reads only its prompt, and the runs over both."""
