"""memory_tool."""
