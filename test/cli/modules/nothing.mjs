// Nothing is exported.
