"""A store of its own, real LangGraph programs killed mid-tool, and their repair, shown."""
