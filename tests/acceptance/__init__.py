"""What LangGraph itself does with the threads that were repaired."""
