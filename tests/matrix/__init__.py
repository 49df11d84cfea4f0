"""Each LangGraph release that is claimed: it writes, a sweep repairs, the same release goes on."""
