"""One module for each form in which a loop tells its resolved configuration; the table is ``registry``."""
