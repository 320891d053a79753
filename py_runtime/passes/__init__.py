"""Graph passes: each module is one pure function from a graph to a graph."""
