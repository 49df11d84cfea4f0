"""Find LangGraph threads left with interrupted tool calls, and mend them."""

__version__ = "0.1.0"
